/** Reads which objects a MutatingPolicy changes, by its constraints and by conditions on them. Pure. */
import { nameMatcher } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { type Cel, operandsOf, partsOf, pathOf, textOf } from "./cel-syntax.ts";
import { type Condition, type Constraints, comparisonOf, type Identity, isTrue } from "./kyverno-cel-match.ts";
import { isExact } from "./kyverno-match.ts";
import type { Input } from "./migration.ts";
import { compact } from "./parts.ts";

/** The objects that a policy changes. */
export interface Targets {
  readonly constraints: Constraints;
  /** Undefined for all namespaces. */
  readonly namespaces: readonly string[] | undefined;
  /** Whether they are in the namespace of the Secret that changes. */
  readonly areBeside: boolean;
  /** How their pods refer to the Secret. */
  readonly consumersBy: readonly string[];
}

const OF_TARGET = "object.metadata.namespace";

/** Reports conditions on the targets that Inlay does not have. */
export function targetsOf(
  input: Input,
  constraints: Constraints,
  conditions: readonly Condition[],
  kind: string,
  names: readonly string[],
): Targets {
  const { matchLabels = {}, matchExpressions } = constraints.namespaceSelector ?? {};
  const { "kubernetes.io/metadata.name": label, ...labels } = matchLabels as Record<string, string>;
  if (Object.keys(labels).length > 0 || matchExpressions !== undefined)
    constraints.place
      .field("namespaceSelector")
      .lose("Inlay restarts workloads of named namespaces; write them by hand");
  if (label !== undefined && !isExact(label))
    constraints.place.field("namespaceSelector").lose("no namespace has this name; write it, and convert again");
  if (constraints.exceptNames.length > 0)
    constraints.place.field("excludeResourceRules").lose("write exceptNames in the selector of the targets by hand");
  let namespaces: readonly string[] | undefined =
    input.namespace !== "" ? [input.namespace] : label !== undefined ? [label] : undefined;
  let areBeside = false;
  const consumersBy = new Set<string>();
  for (const { place, part } of conditions) {
    const { path = "", globs = [], isNegated = true, isContaining = true } = comparisonOf(part) ?? {};
    const equal = (operandsOf(part, "==") ?? []).map((each) => pathOf(each)?.join("."));
    const by = referenceIn(part, kind, names);
    if (equal.includes(OF_TARGET) && equal.includes("request.namespace")) areBeside = true;
    else if (path === OF_TARGET && !isNegated && !isContaining && namespaces === undefined && globs.length > 0)
      namespaces = globs;
    else if (by !== undefined) consumersBy.add(by);
    else if (!isTrue(part) && !isGuard(part, "object"))
      place.lose("Inlay can't read this condition; write the rollout or the targets by hand");
  }
  return { constraints, namespaces, areBeside, consumersBy: [...consumersBy] };
}

/** What changes, in the namespaces of targets that must be beside it. */
export function besideTargets(trigger: Identity, { constraints, namespaces, areBeside }: Targets): Identity {
  if (!areBeside || namespaces === undefined) return trigger;
  const isOfTargets = nameMatcher(namespaces);
  const both = trigger.namespaces?.filter((each) => isOfTargets(each)) ?? namespaces;
  if (both.length > 0 && both.every(isExact)) return { ...trigger, namespaces: both };
  constraints.place.lose("the targets have no fixed namespace that is also one of the Secret; write it by hand");
  return trigger;
}

/** `has(object.spec)`, which protects an expression after it. */
function isGuard(part: Cel, root: string): boolean {
  if (part.kind !== "call" || part.name !== "has" || part.of !== undefined) return false;
  const [field] = part.args;
  return field !== undefined && pathOf(field)?.[0] === root;
}

const REFERENCES: Readonly<Record<string, readonly [string, string]>> = {
  "valueFrom.secretKeyRef.name": ["Secret", "Env"],
  "valueFrom.configMapKeyRef.name": ["ConfigMap", "Env"],
  "secretRef.name": ["Secret", "EnvFrom"],
  "configMapRef.name": ["ConfigMap", "EnvFrom"],
  "secret.secretName": ["Secret", "Volume"],
  "configMap.name": ["ConfigMap", "Volume"],
};
const PLACES: Readonly<Record<string, string>> = {
  Env: "containers.env",
  EnvFrom: "containers.envFrom",
  Volume: "volumes",
};

/** How a condition such as `object.spec.template.spec.containers.exists(c, c.env.exists(…))` says that pods refer to the Secret. */
function referenceIn(part: Cel, kind: string, names: readonly string[]): string | undefined {
  const path: string[] = [];
  let [root, current]: [string, Cel] = ["object", part];
  while (
    current.kind === "call" &&
    current.name === "exists" &&
    current.of !== undefined &&
    current.args.length === 2
  ) {
    const [variable, body] = current.args as [Cel, Cel];
    const [from, ...keys] = pathOf(current.of) ?? [];
    if (from !== root || variable.kind !== "name") return undefined;
    path.push(...keys);
    root = variable.name;
    const [only, ...more] = partsOf(body, "&&").filter((each) => !isGuard(each, variable.name));
    if (only === undefined || more.length > 0) return undefined;
    current = only;
  }
  const [left, right] = operandsOf(current, "==") ?? [];
  if (left === undefined || right === undefined) return undefined;
  const [from, ...keys] = pathOf(left) ?? [];
  const [of, by = ""] = REFERENCES[keys.join(".")] ?? [];
  const name = textOf(right);
  const isName =
    name === undefined
      ? ["request.name", "request.object.metadata.name"].includes(pathOf(right)?.join(".") ?? "")
      : names.length === 1 && names[0] === name;
  const isPlace = path.join(".") === `spec.template.spec.${PLACES[by]}`;
  return from === root && of === kind && isName && isPlace ? by : undefined;
}

/** Objects by their names, or by a selector. */
export function selectedBy({ names, objectSelector }: Constraints): JsonObject[] {
  if (objectSelector !== undefined || names.length === 0)
    return [
      {
        selector: compact({
          names: names.length > 0 ? [...names] : undefined,
          ...(objectSelector ?? { names: ["*"] }),
        }),
      },
    ];
  return names.map((name) => ({ name }));
}
