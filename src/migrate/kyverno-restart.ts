/** Converts Kyverno rules that change the pod template of workloads when a Secret changes to rollouts. Pure. */
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { compositionOf, type Draft, type Drafts, isCopy, NOTHING } from "./kyverno-draft.ts";
import type { Results } from "./kyverno-fields.ts";
import {
  excludedBy,
  isAboutData,
  isExact,
  isExcluded,
  KEEP_RULE,
  LEFT_OUT,
  type Match,
  matchesOf,
  namespaceSelectorIn,
  namespacesOf,
  operationsOf,
  SAME_NAMESPACE,
} from "./kyverno-match.ts";
import type { Input } from "./migration.ts";
import { compact, objectName } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

const WORKLOADS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob"];
const VERSION = /^\{\{\s*request\.object\.metadata\.resourceVersion\s*\}\}$/;
const CHANGES = /^\{\{\s*(?:time_now(?:_utc)?\(\)|random\(.*\))\s*\}\}$/;

/** The workloads that one rule restarts. */
interface Restart {
  readonly kinds: readonly string[];
  /** How the pods refer to the Secret. Undefined for all of `targets`. */
  readonly consumersBy?: readonly string[] | undefined;
  /** Named or selected workloads. Without a namespace, those of the Secret's namespace. */
  readonly targets: readonly JsonObject[];
  readonly stamp: JsonObject;
  /** Whether a change of a copy counts, too. */
  readonly ofCopies: boolean;
  readonly notes?: readonly string[];
}

/** Whether the rule writes an annotation of pod templates. */
export function isRestart(rule: Tracked): boolean {
  const mutate = rule.field("mutate");
  const targets = mutate.field("targets").peek();
  return (
    Array.isArray(targets) &&
    targets.length > 0 &&
    (targets as JsonObject[]).every((each) => WORKLOADS.includes(String(each?.["kind"]))) &&
    mutate.field("patchStrategicMerge", "spec", "template", "metadata", "annotations").exists
  );
}

export function addRestart(input: Input, rule: Tracked, results: Results): void {
  const { drafts } = results;
  const mutate = rule.field("mutate");
  const template = mutate.field("patchStrategicMerge", "spec", "template");
  const annotations = template.field("metadata", "annotations");
  const matches = matchesOf(rule.field("match"));
  const isKnown = ({ block, kinds, names }: Match) =>
    isAboutData({
      kinds,
      names: names.length === 0 && block.field("resources", "selector").exists ? ["any"] : names,
    }) && kinds.length === 1;
  if (matches.length === 0 || !matches.every(isKnown)) {
    rule.refuse(KEEP_RULE);
    return;
  }
  rule.ignore("name");
  mutate.ignore("mutateExistingOnPolicyUpdate");
  const stamp = stampOf(annotations);
  for (const match of matches) {
    if (!operationsOf(match, rule.field("preconditions")).includes("UPDATE"))
      match.block.lose("Inlay restarts workloads when the Secret changes, and this rule does not; keep Kyverno for it");
    if (match.names.length === 0 && stamp !== undefined) restartSelected(input, rule, match, stamp, results);
    for (const name of match.names) {
      const references = referencesOf(template, match.kinds[0] ?? "", name);
      const all = draftsOf(input, match, name, drafts);
      const concerned = all.filter((draft) => !isExcluded(rule, draft.kind, draft.namespace, name));
      if (isEverywhere(input, match)) checkExcludedCopies(rule, concerned);
      const ofExcluded = all.filter((draft) => !concerned.includes(draft)).flatMap(({ targets }) => targets);
      if (isEverywhere(input, match) && ofExcluded.some((target) => isCopy(target) && target["name"] === name))
        rule.field("exclude").lose("Inlay can't restart only the consumers of the copies; write rollout by hand");
      const targets = targetsOf(mutate.field("targets"), references !== undefined);
      const kinds = [...new Set(targets.map(({ kind }) => String(kind)))];
      if (stamp === undefined) continue;
      if (!drafts.isUnderstood(input, rule, [annotations])) {
        drafts.selectNothing(input, concerned, "Restarts nothing.");
        continue;
      }
      if (all.length === 0)
        match.block.lose(
          "the Secret has no namespace, and no rule in these files copies it; add its namespace, and convert again",
        );
      const of = { ...references, kinds, targets, stamp, ofCopies: isEverywhere(input, match) };
      for (const draft of concerned) {
        draft.inputs.add(input);
        restart(draft, of, name, rule);
      }
    }
  }
}

function draftsOf(input: Input, match: Match, name: string, drafts: Drafts): Draft[] {
  const namespaces = namespacesOf(match, input.namespace);
  if (!namespaces.every(isExact))
    match.block.field("resources", "namespaces").lose("Inlay has no wildcards here; write each namespace");
  const all = isEverywhere(input, match) ? undefined : namespaces.filter(isExact);
  return draftsAbout(input, match.kinds[0] ?? "", name, all, drafts);
}

/** The rule is about the Secrets with some labels: a composition creates a binding for each. */
function restartSelected(
  input: Input,
  rule: Tracked,
  match: Match,
  stamp: JsonObject,
  { drafts, output }: Results,
): void {
  const [kind = ""] = match.kinds;
  const template = rule.field("mutate", "patchStrategicMerge", "spec", "template");
  // No Secret has this name: conditions must name the one that changes.
  const { consumersBy, notes = [] } = referencesOf(template, kind, "") ?? {};
  const targets = targetsOf(rule.field("mutate", "targets"), consumersBy !== undefined);
  if (targets.some(({ namespace }) => namespace !== undefined))
    rule.field("mutate", "targets").lose("the workloads are not in the namespace of the Secret; write rollout by hand");
  const selector = match.selector();
  const excluded = excludedBy(rule);
  for (const { block, kinds, names } of excluded)
    if (kinds.length > 0 || names.length > 0)
      block
        .field("resources")
        .lose("an exclusion by other criteria than namespaces can't be selected; write it by hand");
  const except = excluded.flatMap((each) => each.namespaces);
  const isWhole = drafts.isUnderstood(input, rule, [template.field("metadata", "annotations")]);
  const kinds = [...new Set(targets.map((each) => String(each["kind"])))];
  const rollout =
    consumersBy === undefined
      ? { targets, stamp }
      : { consumersOf: ["source"], consumersBy: [...consumersBy], kinds, stamp };
  const spec = compositionOf(
    "restart",
    {
      kind,
      selector: isWhole ? selector : NOTHING,
      namespaceSelector: namespaceSelectorIn(match, input.namespace, except),
    },
    { rollout: isWhole ? rollout : { consumersOf: ["source"], suspend: true } },
  );
  const name = objectName(`${input.name}-${rule.field("name").text() ?? "rule"}-${kind}`).slice(0, 63);
  output.add("BindingComposition", { name }, spec, [input], notes);
  if (!isWhole) drafts.selectNothing(input, [], "");
}

/**
 * The bindings of the Secret. Without namespaces, these are the bindings of all Secrets of that name, except where Kyverno
 * leaves them out, and of their copies.
 */
export function draftsAbout(
  input: Input,
  kind: string,
  name: string,
  namespaces: readonly string[] | undefined,
  drafts: Drafts,
): Draft[] {
  if (namespaces !== undefined) return namespaces.map((namespace) => drafts.of(kind, namespace, name, input));
  const isCopyOfIt = (target: JsonObject) => target["kind"] === kind && target["name"] === name;
  const isIt = (draft: Draft) => draft.kind === kind && draft.name === name && !LEFT_OUT.includes(draft.namespace);
  return drafts.all().filter((draft) => isIt(draft) || draft.targets.some(isCopyOfIt));
}

/** Whether the rule is about the Secrets of that name in all namespaces. */
const isEverywhere = ({ namespace }: Input, { namespaces }: Match): boolean =>
  namespaces.length === 0 && namespace === "";

/** A rollout restarts the consumers of all copies, so namespaces without a restart must be namespaces without a copy. */
function checkExcludedCopies(rule: Tracked, drafts: readonly Draft[]): void {
  const exceptNames = drafts
    .flatMap(({ targets }) => targets)
    .map(({ namespaceSelector }) => (namespaceSelector as JsonObject | undefined)?.["exceptNames"] ?? []);
  for (const { block, namespaces } of excludedBy(rule))
    if (!namespaces.every((each) => exceptNames.every((names) => (names as string[]).includes(each))))
      block
        .field("resources", "namespaces")
        .lose(
          "there are copies in these namespaces, and the rollout would restart their consumers; write rollout by hand",
        );
}

/** Reports on `place` what the rollout of the binding does not restart. */
export function restart(draft: Draft, of: Restart, name: string, place: Tracked): void {
  const { kinds, consumersBy, targets, stamp, ofCopies, notes = [] } = of;
  const lose = (what: string) => place.lose(`${what} of ${draft.namespace}/${draft.name}; write its rollout by hand`);
  if (draft.rollout !== undefined) {
    lose("another rule already restarts the workloads");
    return;
  }
  const copies = draft.targets.filter((target) => isCopy(target) && target["name"] === name);
  const isOnlyName = copies.length === draft.targets.filter(isCopy).length;
  const hasCopies = ofCopies && copies.length > 0;
  if (hasCopies && (consumersBy === undefined ? targets.some(({ namespace }) => namespace === undefined) : !isOnlyName))
    lose("Inlay can't restart these workloads in the namespaces with copies");
  for (const note of notes) draft.notes.add(note);
  if (consumersBy === undefined) {
    draft.rollout = { targets: [...targets], stamp };
    return;
  }
  draft.rollout = compact({
    consumersOf: draft.name === name && !LEFT_OUT.includes(draft.namespace) ? [name] : undefined,
    consumersOfTargets: hasCopies && isOnlyName ? true : undefined,
    consumersBy: [...consumersBy],
    kinds: [...kinds],
    stamp,
  });
}

function stampOf(annotations: Tracked): JsonObject | undefined {
  const [first, ...more] = annotations.entries();
  for (const [, each] of more) each.refuse("a restart changes one annotation; check whether you need this one");
  if (first === undefined) return undefined;
  const [key, field] = first;
  const text = field.text() ?? "";
  const value = VERSION.test(text) ? "ResourceVersion" : CHANGES.test(text) ? "Time" : undefined;
  if (value === undefined)
    field.lose("Inlay writes the resourceVersion of the Secret, the time or a revision; this annotation gets the time");
  return { annotation: anchorOf(key).name, value: value ?? "Time" };
}

/** `areConsumers`: only workloads that refer to the Secret, so that a target can't select them in another way. */
function targetsOf(list: Tracked, areConsumers: boolean): JsonObject[] {
  return list.list().map((target) => {
    const [kind = "", name = ""] = target.textsOf("kind", "name");
    const apiVersion = target.field("apiVersion");
    if (!["apps/v1", "batch/v1"].includes(apiVersion.text() ?? ""))
      apiVersion.lose("must be apps/v1 or batch/v1; correct it");
    const namespace = target.field("namespace");
    if (!namespace.exists) target.lose("has no namespace; add it, and convert again");
    const other = SAME_NAMESPACE.test(namespace.text() ?? "{{request.namespace}}") ? undefined : namespace.text();
    if (other !== undefined && !isExact(other))
      namespace.lose("Inlay has no variables and wildcards here; write rollout.targets by hand");
    const labels = target.field("selector", "matchLabels").map();
    if (name.includes("{{")) target.field("name").lose("Inlay has no variables here; write rollout.targets by hand");
    const isNamed = name !== "" && name !== "*" && !/[*?{]/.test(name);
    if (areConsumers && (name !== "" && name !== "*" ? true : labels !== undefined || other !== undefined))
      target.lose("workloads can't be selected by their references and in another way; write rollout by hand");
    const selector = compact({
      matchLabels: labels,
      names: !isNamed && name !== "" ? [name] : labels === undefined ? ["*"] : undefined,
    });
    return compact({ kind, namespace: other, ...(isNamed ? { name } : { selector }) });
  });
}

const REFERENCES: Readonly<Record<string, readonly [string, string]>> = {
  secretKeyRef: ["Secret", "Env"],
  configMapKeyRef: ["ConfigMap", "Env"],
  secretRef: ["Secret", "EnvFrom"],
  configMapRef: ["ConfigMap", "EnvFrom"],
  secret: ["Secret", "Volume"],
  configMap: ["ConfigMap", "Volume"],
};
/** The fields of a pod that lead to its references. */
const LEADING = ["containers", "env", "envFrom", "valueFrom", "volumes"];
const OF_SECRET = /^\{\{\s*request\.(?:object\.metadata\.)?name\s*\}\}$/;

/** Kyverno's anchors: `(key)` and `<(key)` are conditions, `=(key)` and `^(key)` conditions within them. `+(key)` writes, and `X(key)` is the opposite. */
function anchorOf(key: string): { readonly mark: string | undefined; readonly name: string } {
  const [, mark, name] = /^([<+=^X]?)\((.*)\)$/.exec(key) ?? [];
  return { mark, name: name ?? key };
}

/**
 * How the pods of the workloads must refer to the Secret. Undefined if the patch has no such condition. Reports other
 * conditions, and what it writes.
 */
function referencesOf(
  template: Tracked,
  kind: string,
  name: string,
): Pick<Restart, "consumersBy" | "notes"> | undefined {
  const found = new Set<string>();
  const notes = new Set<string>();
  const specs = template.entries().filter(([key]) => anchorOf(key).name === "spec");
  for (const [key, spec] of specs) {
    const mark = conditionOf(spec, key, false);
    if (mark !== undefined) walk(spec, mark !== "");
  }
  if (found.size === 0) return undefined;
  notes.add("Inlay also restarts workloads whose init containers refer to the Secret.");
  return { consumersBy: [...found], notes: [...notes] };

  /** The mark of a condition, or an empty text for a plain key. Undefined if the anchor is reported. */
  function conditionOf(field: Tracked, key: string, isWithin: boolean): string | undefined {
    const { mark } = anchorOf(key);
    if (mark === undefined) return "";
    if (mark === "" || mark === "<") return "(";
    if (isWithin && (mark === "^" || mark === "=")) {
      if (mark === "=")
        notes.add(
          `${key} also matches workloads without ${anchorOf(key).name}. Inlay restarts those that refer to the Secret.`,
        );
      return "(";
    }
    field.refuse(`Inlay has no equal of the anchor ${mark}(); write rollout by hand`);
    return undefined;
  }

  function walk(node: Tracked, isCondition: boolean): void {
    if (Array.isArray(node.peek())) {
      for (const each of node.list()) walk(each, isCondition);
      return;
    }
    for (const [key, child] of node.entries()) {
      const mark = conditionOf(child, key, isCondition);
      if (mark === undefined) continue;
      const field = anchorOf(key).name;
      const isWithin = isCondition || mark !== "";
      const reference = Object.hasOwn(REFERENCES, field) ? REFERENCES[field] : undefined;
      if (field === "name" && child.peek() === "*") child.ignore();
      else if (reference !== undefined && isObject(child.peek())) refer(child, reference, isWithin);
      else if (LEADING.includes(field)) walk(child, isWithin);
      else child.refuse("Inlay selects workloads by their references to the Secret only; write rollout by hand");
    }
  }

  function refer(node: Tracked, [of, by]: readonly [string, string], isCondition: boolean): void {
    for (const [key, child] of node.entries()) {
      const mark = conditionOf(child, key, isCondition);
      if (mark === undefined) continue;
      const value = child.peek();
      const isName = ["name", "secretName"].includes(anchorOf(key).name);
      if (!isName || of !== kind || (value !== name && !OF_SECRET.test(String(value))))
        child.refuse("Inlay selects workloads by their references to the Secret only; write rollout by hand");
      else if (!isCondition && mark === "")
        child.refuse("the patch writes this reference; a condition is written as (name). Write rollout by hand");
      else {
        child.ignore();
        found.add(by);
        if (!isCondition && anchorOf(key).mark === "")
          notes.add(
            `In a list, ${key} skips an element, and not the workload: Kyverno restarts all workloads. Inlay restarts those that refer to the Secret.`,
          );
      }
    }
  }
}
