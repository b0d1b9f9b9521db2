/** Converts Kyverno's MutatingPolicies that restart workloads to rollouts, and finds those that write values of Secrets. Pure. */
import { argumentsOf, type Cel, operandsOf, pathOf, pointerOf, textOf } from "./cel-syntax.ts";
import { specOf } from "./kyverno-cel.ts";
import {
  celOf,
  conditionsIn,
  conditionsOf,
  constraintsOf,
  dataKindOf,
  type Identity,
  identityOf,
  isOfV1,
  variablesOf,
} from "./kyverno-cel-match.ts";
import { besideTargets, selectedBy, type Targets, targetsOf } from "./kyverno-cel-targets.ts";
import { addValues } from "./kyverno-cel-values.ts";
import type { Results } from "./kyverno-fields.ts";
import { KEEP_RULE, LEFT_OUT } from "./kyverno-match.ts";
import { draftsAbout, restart } from "./kyverno-restart.ts";
import type { Input } from "./migration.ts";
import { compact } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

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
  const [mutation = spec] = mutations;
  const type = mutation.field("patchType").text() ?? "";
  const expression = mutation.field(Object.hasOwn(PATCHES, type) ? String(PATCHES[type]) : "expression", "expression");
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
  const trigger = besideTargets(matched, targets);
  const value = annotationOf(patch);
  if (value !== undefined) addRestarts(input, spec, kind, trigger, targets, value, expression, results);
  else addValues(input, spec, kind, trigger, targets, patch, expression, results);
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

function addRestarts(
  input: Input,
  spec: Tracked,
  kind: string,
  trigger: Identity,
  targets: Targets,
  { key, value }: Annotation,
  expression: Tracked,
  { drafts }: Results,
): void {
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
          compact({ kind: each, namespace: namespace === draft.namespace ? undefined : namespace, ...selected }),
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
  if (value.kind === "call" && value.of === undefined && value.name === "string" && value.args.length === 1)
    return stampOf(value.args[0] as Cel);
  if (argumentsOf(value, "time", "now") !== undefined) return "Time";
  return pathOf(value)?.join(".") === "request.object.metadata.resourceVersion" ? "ResourceVersion" : undefined;
}
