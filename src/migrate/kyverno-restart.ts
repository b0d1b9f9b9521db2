/** Converts Kyverno rules that change the pod template of workloads when a Secret changes to rollouts. Pure. */
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Draft, Drafts } from "./kyverno-draft.ts";
import { isExact, KEEP_RULE, type Match, matchesOf, operationsIn } from "./kyverno-match.ts";
import type { Input } from "./migration.ts";
import { compact } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

const WORKLOADS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob"];
const VERSION = /^\{\{\s*request\.object\.metadata\.resourceVersion\s*\}\}$/;
const CHANGES = /^\{\{\s*(?:time_now(?:_utc)?\(\)|random\(.*\))\s*\}\}$/;
const SAME_NAMESPACE = /^\{\{\s*request\.(?:namespace|object\.metadata\.namespace)\s*\}\}$/;

/** The workloads that one rule restarts. */
interface Restart {
  readonly kinds: readonly string[];
  readonly consumersBy: readonly string[];
  /** Named or selected workloads, instead of those that refer to the Secret. */
  readonly targets: readonly JsonObject[];
  readonly stamp: JsonObject;
}

export function addRestart(input: Input, rule: Tracked, drafts: Drafts): void {
  const mutate = rule.field("mutate");
  const patch = mutate.field("patchStrategicMerge");
  const annotations = patch.field("spec", "template", "metadata", "annotations");
  const targets = mutate.field("targets");
  const kinds = Array.isArray(targets.peek())
    ? (targets.peek() as JsonObject[]).map((each) => String(each?.["kind"]))
    : [];
  const matches = matchesOf(rule.field("match"));
  const isAbout = ({ kinds: of, names }: Match) =>
    of.length === 1 && ["Secret", "ConfigMap"].includes(String(of[0])) && names.length > 0 && names.every(isExact);
  const isKnown =
    kinds.length > 0 && kinds.every((kind) => WORKLOADS.includes(kind)) && annotations.exists && matches.every(isAbout);
  if (!isKnown || matches.length === 0) {
    rule.refuse(KEEP_RULE);
    return;
  }
  rule.field("name").ignore();
  mutate.field("mutateExistingOnPolicyUpdate").ignore();
  operationsIn(rule.field("preconditions"));
  const stamp = stampOf(annotations);
  if (stamp === undefined) return;
  for (const match of matches)
    for (const name of match.names) {
      const restart = restartOf(mutate, patch, name, stamp);
      const concerned = draftsOf(input, match, name, drafts);
      if (concerned.length === 0)
        match.block.lose(
          "the Secret has no namespace, and no rule in these files copies it; add its namespace, and convert again",
        );
      for (const draft of concerned) {
        draft.inputs.add(input);
        apply(draft, restart, name, rule);
      }
    }
}

/** The bindings of the Secret. Without a namespace in the rule, these are the bindings of the Secret and of its copies. */
function draftsOf(input: Input, { kinds: [kind = ""], ...match }: Match, name: string, drafts: Drafts): Draft[] {
  const namespaces = match.namespaces();
  const named = namespaces.length === 0 && input.namespace !== "" ? [input.namespace] : namespaces;
  const exact = named.filter(isExact);
  const isCopy = (target: JsonObject) => target["kind"] === kind && target["name"] === name;
  const known = drafts
    .all()
    .filter((draft) => (draft.kind === kind && draft.name === name) || draft.targets.some(isCopy));
  if (exact.length < named.length || named.length === 0) return known;
  return exact.map((namespace) => drafts.of(kind, namespace, name, input));
}

function apply(draft: Draft, { kinds, consumersBy, targets, stamp }: Restart, name: string, rule: Tracked): void {
  if (draft.rollout !== undefined) {
    rule.lose(
      `another rule already restarts the workloads of ${draft.namespace}/${draft.name}; add these workloads to its rollout`,
    );
    return;
  }
  if (targets.length > 0) {
    draft.rollout = { targets: [...targets], stamp };
    return;
  }
  draft.rollout = compact({
    consumersOf: draft.name === name ? [name] : undefined,
    consumersOfTargets: draft.targets.length > 0 ? true : undefined,
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
  return { annotation: key.replace(/^\+\((.*)\)$/, "$1"), value: value ?? "Time" };
}

function restartOf(mutate: Tracked, patch: Tracked, secret: string, stamp: JsonObject): Restart {
  const pods = patch.field("spec", "template", "spec");
  const consumersBy = [...new Set(referencesIn(pods, secret))];
  const all = mutate
    .field("targets")
    .list()
    .map((target) => {
      const [kind = "", name = ""] = [target.field("kind").text(), target.field("name").text()];
      const apiVersion = target.field("apiVersion");
      if (!["apps/v1", "batch/v1"].includes(apiVersion.text() ?? ""))
        apiVersion.lose("must be apps/v1 or batch/v1; correct it");
      const namespace = target.field("namespace");
      const other = SAME_NAMESPACE.test(namespace.text() ?? "{{request.namespace}}") ? undefined : namespace.text();
      const labels = target.field("selector", "matchLabels").map();
      const isNamed = name !== "" && name !== "*" && !/[*?{]/.test(name);
      if (name.includes("{{")) target.field("name").lose("Inlay has no variables here; write rollout.targets by hand");
      const selector = compact({
        matchLabels: labels,
        names: !isNamed && name !== "" && !name.includes("{{") ? [name] : labels === undefined ? ["*"] : undefined,
      });
      const workload = compact({
        kind,
        namespace: other?.includes("{{") ? undefined : other,
        ...(isNamed ? { name } : { selector }),
      });
      if (other?.includes("{{")) namespace.lose("Inlay has no variables here; write rollout.targets by hand");
      return { kind, workload, isSelected: isNamed || labels !== undefined || other !== undefined };
    });
  const isByReference = consumersBy.length > 0 && !all.some(({ isSelected }) => isSelected);
  return {
    kinds: [...new Set(all.map(({ kind }) => kind))],
    consumersBy,
    targets: isByReference ? [] : all.map(({ workload }) => workload),
    stamp,
  };
}

const REFERENCES: Readonly<Record<string, string>> = {
  secretKeyRef: "Env",
  configMapKeyRef: "Env",
  secretRef: "EnvFrom",
  configMapRef: "EnvFrom",
  secret: "Volume",
  configMap: "Volume",
};
const OF_SECRET = /^\{\{\s*request\.object\.metadata\.name\s*\}\}$/;

/** How the pod template of the patch refers to the Secret. Its keys have anchors, such as `<(name)`. The rest of it stays unhandled. */
function* referencesIn(patch: Tracked, secret: string): Generator<string> {
  const value = patch.peek();
  if (Array.isArray(value)) for (const each of patch.list()) yield* referencesIn(each, secret);
  if (!isObject(value)) return;
  for (const [anchored, child] of patch.entries()) {
    const key = withoutAnchor(anchored);
    const by = Object.hasOwn(REFERENCES, key) ? REFERENCES[key] : undefined;
    if (key === "name" && child.peek() === "*") child.ignore();
    const named =
      by === undefined || !isObject(child.peek())
        ? []
        : child.entries().filter(([name, of]) => isNameOf(name, of.peek(), secret));
    for (const [, name] of named) name.ignore();
    if (by !== undefined && named.length > 0) yield by;
    else yield* referencesIn(child, secret);
  }
}

const withoutAnchor = (key: string) => key.replace(/^[<+=^X]?\((.*)\)$/, "$1");

const isNameOf = (key: string, value: unknown, secret: string) =>
  ["name", "secretName"].includes(withoutAnchor(key)) && (value === secret || OF_SECRET.test(String(value)));
