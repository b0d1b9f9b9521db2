/** Converts Kyverno's MutatingPolicies that restart workloads to rollouts, and those that write values into fields to bindings. Pure. */
import { nameMatcher } from "../apimachinery/glob.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { argumentsOf, type Cel, operandsOf, partsOf, pathOf, pointerOf, textCallIn, textOf } from "./cel-syntax.ts";
import { call, type Expression, NotTranslated, translated } from "./go-expression.ts";
import { translateWith } from "./go-template.ts";
import type { DataObject } from "./known-objects.ts";
import { dataOf, specOf } from "./kyverno-cel.ts";
import {
  type Condition,
  type Constraints,
  celOf,
  comparisonOf,
  conditionsIn,
  conditionsOf,
  constraintsOf,
  dataKindOf,
  type Identity,
  identityOf,
  isOfV1,
  isTrue,
  variablesOf,
} from "./kyverno-cel-match.ts";
import { NOTHING } from "./kyverno-draft.ts";
import type { Results } from "./kyverno-fields.ts";
import { isExact, KEEP_RULE, LEFT_OUT } from "./kyverno-match.ts";
import { draftsAbout, restart } from "./kyverno-restart.ts";
import { DataSources } from "./kyverno-value.ts";
import type { Input } from "./migration.ts";
import { compact, elsewhere, nonEmpty } from "./parts.ts";
import { fieldsOfValue, patchedOf } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

/** The objects that a policy changes. */
interface Targets {
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
function targetsOf(
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
function besideTargets(trigger: Identity, { constraints, namespaces, areBeside }: Targets): Identity {
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
const selectedBy = ({ names, objectSelector }: Constraints): JsonObject[] =>
  objectSelector === undefined && names.length > 0
    ? names.map((name) => ({ name }))
    : [{ selector: compact({ names: nonEmpty(names), ...(objectSelector ?? { names: ["*"] }) }) }];

/** A policy that changes other objects when a Secret or ConfigMap changes. */
interface Mutation {
  readonly input: Input;
  readonly spec: Tracked;
  /** What changes. */
  readonly kind: DataObject["kind"];
  readonly trigger: Identity;
  readonly targets: Targets;
  /** The field with the patch. */
  readonly expression: Tracked;
}

/** The patch writes keys of Secrets into fields of the targets. */
function addValues(mutation: Mutation, patch: Cel, { drafts, output, known }: Results): void {
  const { input, spec, kind, trigger, targets, expression } = mutation;
  const { constraints } = targets;
  const [group = "", plural = ""] = [constraints.groups[0], constraints.resources[0]];
  const apiVersion = [group, constraints.versions[0] ?? ""].filter((each) => each !== "").join("/");
  const resource = known.kinds.byPlural(apiVersion, plural);
  if ([constraints.groups, constraints.versions, constraints.resources].some((each) => each.length !== 1))
    constraints.place.lose("write one group, version and resource, and convert again");
  if (resource === undefined)
    constraints.place.lose(`the kind of ${plural} is unknown; add its CRD to the files, and convert again`);
  if (targets.consumersBy.length > 0)
    constraints.place.lose("conditions on pods are for workloads; write targets by hand");
  if (trigger.namespaces === undefined)
    constraints.place.lose("the Secret has no fixed namespace; add it, and convert again");
  const isWhole = drafts.isUnderstood(input, spec);
  if (resource === undefined) {
    spec.ignore();
    return;
  }
  const namespaces = (trigger.namespaces ?? []).filter((each) => !LEFT_OUT.includes(each));
  for (const namespace of namespaces)
    for (const name of trigger.names) {
      const values = new Values({ kind, namespace, name });
      const patched = patchedOf(apiVersion);
      const fields =
        translated(
          () => fieldsOfValue(expression, values.jsonOf(patch), patched, (text) => values.translate(text)),
          (why) => expression.lose(`the expression has ${why}; write the binding by hand`),
        ) ?? [];
      const sources = values.sources.inBinding(namespace, input, output);
      if (fields.length === 0 || sources.length === 0) {
        expression.lose(KEEP_RULE);
        continue;
      }
      const isBeside = !resource.namespaced || targets.areBeside || targets.namespaces?.join() === namespace;
      const others = targets.namespaces === undefined ? { exceptNames: LEFT_OUT } : { names: [...targets.namespaces] };
      const namespaceSelector = isBeside ? undefined : others;
      const selected = isWhole
        ? selectedBy(constraints).map((each) => compact({ ...each, namespaceSelector }))
        : [{ selector: NOTHING }];
      const spec = { sources, targets: selected.map((each) => ({ apiVersion, kind: resource.kind, ...each, fields })) };
      const notes = isWhole
        ? []
        : ["Writes nothing. Inlay does not know all of what the policy selects: write the targets by hand."];
      output.add("SecretBinding", { name: input.name, namespace }, spec, [input], notes);
    }
  if (!isWhole) drafts.selectNothing(input, [], "");
}

/** Reads values of Secrets and ConfigMaps in the value of a patch. */
class Values {
  readonly sources = new DataSources();
  readonly #expressions: Expression[] = [];
  readonly #trigger: DataObject;

  constructor(trigger: DataObject) {
    this.#trigger = trigger;
  }

  /** The patch as JSON, with `{{0}}` for the first expression. */
  jsonOf(tree: Cel): JsonValue {
    if (tree.kind === "map")
      return Object.fromEntries(
        tree.entries.map(([key, value]) => {
          const name = textOf(key);
          if (name === undefined) throw new NotTranslated("a computed key");
          return [name, name === "path" ? (pointerOf(value) ?? this.jsonOf(value)) : this.jsonOf(value)];
        }),
      );
    if (tree.kind === "list") return tree.items.map((each) => this.jsonOf(each));
    if (tree.kind === "value") {
      if (typeof tree.value === "string" && tree.value.includes("{{")) throw new NotTranslated("braces in a text");
      return tree.value;
    }
    return this.#textOf(tree);
  }

  translate(text: string) {
    return translateWith(text, (body) => this.#expressions[Number(body)] ?? { kind: "literal", value: body });
  }

  #textOf(tree: Cel): string {
    const text = textOf(tree);
    if (text !== undefined) return text;
    const sum = operandsOf(tree, "+");
    if (sum !== undefined) return sum.map((each) => this.#textOf(each)).join("");
    this.#expressions.push(this.#expressionOf(tree));
    return `{{${this.#expressions.length - 1}}}`;
  }

  #expressionOf(tree: Cel): Expression {
    const value = textCallIn(tree);
    if (value !== undefined) return this.#expressionOf(value);
    const [encoded] = argumentsOf(tree, "base64", "decode") ?? [];
    if (encoded !== undefined) return call("base64decode", this.#expressionOf(encoded));
    const [plain] = argumentsOf(tree, "base64", "encode") ?? [];
    if (plain !== undefined) return call("base64", this.#expressionOf(plain));
    const isKey = tree.kind === "field" && tree.of.kind === "field" && tree.of.name === "data";
    if (!isKey || tree.of.kind !== "field") throw new NotTranslated("a value that is no key of a Secret or ConfigMap");
    const object = tree.of.of;
    const read = pathOf(object)?.join(".") === "request.object" ? this.#trigger : dataOf(object);
    if (read?.name === undefined) throw new NotTranslated("a value that is no key of a Secret or ConfigMap");
    return this.sources.valueOf({ ...read, name: read.name }, tree.name);
  }
}

const WORKLOADS: Readonly<Record<string, string>> = {
  "apps/deployments": "Deployment",
  "apps/statefulsets": "StatefulSet",
  "apps/daemonsets": "DaemonSet",
  "batch/cronjobs": "CronJob",
};

const PATCHES: Readonly<Record<string, string>> = {
  ApplyConfiguration: "applyConfiguration",
  JSONPatch: "jsonPatch",
};

export function addMutated(input: Input, results: Results): void {
  const spec = specOf(input);
  const constraints = constraintsOf(spec.field("matchConstraints"));
  const kind = dataKindOf(constraints);
  const isExisting = spec.field("evaluation", "mutateExisting", "enabled").flag() === true;
  const mutations = spec.field("mutations").list();
  if (!isExisting || kind === undefined || !spec.field("targetMatchConstraints").exists || mutations.length !== 1) {
    input.root.refuse(KEEP_RULE);
    return;
  }
  const variables = variablesOf(spec);
  const [single = spec] = mutations;
  const type = single.field("patchType").text() ?? "";
  const expression = single.field(Object.hasOwn(PATCHES, type) ? String(PATCHES[type]) : "expression", "expression");
  const read = celOf(expression, variables);
  const { patch, condition } = read === undefined ? {} : conditionalOf(read);
  if (patch === undefined) {
    input.root.refuse(KEEP_RULE);
    return;
  }
  const matched = identityOf(constraints, conditionsOf(spec.field("matchConditions"), variables), input.namespace);
  if (!matched.operations.includes("UPDATE"))
    constraints.place.lose("Inlay acts when the Secret changes, and this policy does not; keep Kyverno for it");
  const ofTargets = [
    ...conditionsOf(spec.field("targetMatchConditions"), variables),
    ...(condition === undefined ? [] : conditionsIn(expression, condition)),
  ];
  const targets = targetsOf(input, constraintsOf(spec.field("targetMatchConstraints")), ofTargets, kind, matched.names);
  const mutation = { input, spec, kind, trigger: besideTargets(matched, targets), targets, expression };
  const annotation = annotationOf(patch);
  if (annotation !== undefined) addRestarts(mutation, annotation, results);
  else addValues(mutation, patch, results);
}

/** `condition ? patch : Object{}` as its parts. */
function conditionalOf(cel: Cel): { readonly patch?: Cel; readonly condition?: Cel } {
  const [condition, patch, otherwise] = operandsOf(cel, "?:") ?? [];
  if (condition === undefined || patch === undefined || otherwise === undefined) return { patch: cel };
  const isEmpty =
    (otherwise.kind === "map" && otherwise.entries.length === 0) ||
    (otherwise.kind === "list" && otherwise.items.length === 0);
  return isEmpty ? { patch, condition } : {};
}

interface Annotation {
  readonly key: string;
  readonly value: Cel;
}

const TEMPLATE = ["spec", "template", "metadata", "annotations"];

/** The annotation of the pod template, if that is all that the patch changes. */
function annotationOf(patch: Cel): Annotation | undefined {
  if (patch.kind === "list") {
    const [operation, ...more] = patch.items;
    if (operation?.kind !== "map" || more.length > 0) return undefined;
    const fields = new Map(operation.entries.map(([key, value]) => [textOf(key), value]));
    const [op, path, value] = ["op", "path", "value"].map((name) => fields.get(name));
    const prefix = `/${TEMPLATE.join("/")}/`;
    const text = path === undefined ? undefined : pointerOf(path);
    if (!["add", "replace"].includes(textOf(op ?? patch) ?? "") || text === undefined || value === undefined)
      return undefined;
    const key = text.slice(prefix.length).replaceAll("~1", "/").replaceAll("~0", "~");
    return text.startsWith(prefix) && !text.slice(prefix.length).includes("/") ? { key, value } : undefined;
  }
  let current: Cel | undefined = patch;
  for (const name of TEMPLATE) {
    const [key, value] = onlyEntryOf(current);
    current = key === name ? value : undefined;
  }
  const [key, value] = onlyEntryOf(current);
  return key === undefined || value === undefined ? undefined : { key, value };
}

function onlyEntryOf(tree: Cel | undefined): readonly [string | undefined, Cel] | readonly [] {
  const [entry, ...more] = tree?.kind === "map" ? tree.entries : [];
  return entry === undefined || more.length > 0 ? [] : [textOf(entry[0]), entry[1]];
}

function addRestarts(mutation: Mutation, { key, value }: Annotation, { drafts }: Results): void {
  const { input, spec, kind, trigger, targets, expression } = mutation;
  const { constraints, consumersBy, areBeside } = targets;
  const [group, ...groups] = constraints.groups;
  const kinds = constraints.resources.map((resource) => WORKLOADS[`${group}/${resource}`]);
  if (kinds.includes(undefined) || kinds.length === 0 || groups.length > 0 || !isOfV1(constraints))
    constraints.place.lose("Inlay restarts workloads with pod templates; write rollout by hand");
  if (targets.namespaces === undefined && !areBeside)
    constraints.place.lose("the workloads have no fixed namespace; write rollout by hand");
  const areConsumers = consumersBy.length > 0;
  const isSelected = constraints.names.length > 0 || constraints.objectSelector !== undefined;
  if (areConsumers && isSelected)
    constraints.place.lose("workloads can't be selected by their references and in another way; write rollout by hand");
  const namespaces = trigger.namespaces?.filter((each) => !LEFT_OUT.includes(each));
  const concerned = trigger.names.flatMap((name) => draftsAbout(input, kind, name, namespaces, drafts));
  const isElsewhere = !areBeside && concerned.some(({ namespace }) => targets.namespaces?.join() !== namespace);
  if (areConsumers && (isElsewhere || (!areBeside && trigger.namespaces === undefined)))
    constraints.place.lose("the workloads are not in the namespace of the Secret; write rollout by hand");
  if (concerned.length === 0) constraints.place.lose("the Secret has no namespace; add it, and convert again");
  if (!drafts.isUnderstood(input, spec)) {
    drafts.selectNothing(input, concerned, "Restarts nothing.");
    return;
  }
  const stamp = { annotation: key, value: stampOf(value) ?? "Time" };
  if (stampOf(value) === undefined)
    expression.lose(
      "Inlay writes the resourceVersion of the Secret, the time or a revision; the annotation gets the time",
    );
  for (const draft of concerned) {
    draft.inputs.add(input);
    const workloads = (areBeside ? [undefined] : (targets.namespaces ?? [])).flatMap((namespace) =>
      kinds.flatMap((each) =>
        selectedBy(constraints).map((selected) =>
          compact({ kind: each, namespace: elsewhere(namespace, draft.namespace), ...selected }),
        ),
      ),
    );
    const notes = areConsumers ? ["Inlay also restarts workloads whose init containers refer to the Secret."] : [];
    const of = {
      kinds: kinds as string[],
      consumersBy: areConsumers ? consumersBy : undefined,
      targets: workloads,
      stamp,
      ofCopies: trigger.namespaces === undefined,
      notes,
    };
    for (const name of trigger.names) restart(draft, of, name, spec);
  }
}

function stampOf(value: Cel): "ResourceVersion" | "Time" | undefined {
  const inner = textCallIn(value, ["string"]);
  if (inner !== undefined) return stampOf(inner);
  if (argumentsOf(value, "time", "now") !== undefined) return "Time";
  return pathOf(value)?.join(".") === "request.object.metadata.resourceVersion" ? "ResourceVersion" : undefined;
}
