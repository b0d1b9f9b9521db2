/**
 * Finds the workloads of a binding's rollout, as the streams show them at the moment, and the values that each of them restarts for.
 * Says of which namespaces that can't be known: nothing restarts there.
 */
import { isAfterRollout, type SecretBinding } from "../../api/binding.ts";
import { digestId, digestParts, groupsOf, type RolloutSpec, type RolloutStatus } from "../../api/rollout.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { describeObject, idOf, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { isCollection, type Subscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { streamRefusal, WRITE_VERBS } from "../../kube/access-error.ts";
import type { WatchIdentity } from "../../kube/identity.ts";
import { parseSources } from "../../sources/registry.ts";
import type { ParsedSource, ResolvedSource } from "../../sources/source.ts";
import { ALL_KEYS, usesOf } from "../../sources/uses.ts";
import { compileTemplate } from "../../transform/template.ts";
import type { Workload } from "../../workloads/workload.ts";
import type { AwaitedTarget } from "../decide/wait-for-targets.ts";
import type { Dependent, NamespaceProblem } from "../types.ts";
import type { RolloutReferences, WorkloadLookup } from "./lookups.ts";

export interface Dependents {
  /** In the order of their steps, and of their names in each. */
  all: Dependent[];
  /** The digests that any of them restarts for. */
  used: ReadonlySet<string>;
  /** Some stream has not brought its first list yet: which there are is not known. */
  pending: boolean;
  /** The namespaces of which it can't be known which there are, one entry for each. */
  unknown: readonly NamespaceProblem[];
  /** Those that the binding names, and that do not exist. */
  missing: readonly ObjectRef[];
  /** Why nothing can be known at all. */
  problem: Problem | undefined;
}

/** The record of all has to fit into the binding's status, beside that of the targets. */
const MAX_CHARACTERS = 1_000_000;
/** As long as what stands there of a workload beside its name. */
const AROUND = 300;

/** A rollout of one reconcile. */
export interface RolloutContext {
  binding: SecretBinding;
  identity: WatchIdentity["identity"];
  spec: RolloutSpec;
  /** What is wrong with its pace: told before it matters. */
  wrong: Problem | undefined;
  references: RolloutReferences;
  dependents: Dependents;
  /** As they were resolved, by name. */
  sources: ReadonlyMap<string, ResolvedSource | Problem>;
  /** The objects that the binding writes before the rollout. */
  targets: readonly AwaitedTarget[];
  /** The versions of the sources. */
  sourceRevisions: string;
  /** How long it is to be waited for the workloads before anything else is done. */
  patienceMs: number;
}

/** By the lookups of a reconcile, which are many for a binding with many namespaces. */
const subscriptions = new WeakMap<WorkloadLookup, Subscription>();

/** What has to be watched for a lookup, which is of one account. */
export function watchedFor(as: WatchIdentity, lookup: WorkloadLookup): Subscription {
  const known = subscriptions.get(lookup) ?? subscriptionFor(as, lookup);
  subscriptions.set(lookup, known);
  return known;
}

function subscriptionFor(
  as: WatchIdentity,
  { resource, paths: workload, namespace, find, wide }: WorkloadLookup,
): Subscription {
  const by = wide ? { ...as, wide } : as;
  if (find.by === "name") return { ...by, ref: { resource, namespace, name: find.name }, workload };
  const { names, exceptNames, labels } = find.by === "choice" ? find : { names: undefined, labels: "" };
  const consumersOf = find.by === "reference" ? { consumersOf: { kind: find.kind, name: find.name } } : {};
  return { ...by, resource, namespace, names, exceptNames, labels, workload, ...consumersOf };
}

/** What the stream of a lookup shows. */
function membersOf(watcher: Pick<Watcher, "get" | "list">, key: string, watched: Subscription) {
  if (isCollection(watched)) return watcher.list(key, watched);
  const { version, ...state } = watcher.get(key, watched);
  return { ...state, members: version === undefined ? [] : [{ name: watched.ref.name, version }] };
}

/** `ownersOf` tells of the objects that the binding writes. Whose can't be known is not taken for nobody's. */
export function dependentsOf(
  watcher: Pick<Watcher, "get" | "list">,
  key: string,
  as: WatchIdentity,
  binding: SecretBinding,
  { lookups, closed, problem }: RolloutReferences,
  ownersOf: () => Owners,
): Dependents {
  const found = new Map<string, Dependent & { uses: Set<string> }>();
  const unknown = new Map<string, NamespaceProblem>();
  const isUnknown = (each: NamespaceProblem) => {
    const known = unknown.get(each.namespace) ?? each;
    unknown.set(each.namespace, { ...known, step: Math.min(known.step, each.step) });
  };
  closed.forEach(isUnknown);
  const missing: ObjectRef[] = [];
  const fieldUses = lookups.some(({ find }) => find.by !== "reference") ? [...usedByFields(binding)] : [];
  const owners = lookups.some(({ find }) => find.by === "owner") ? ownersOf() : undefined;
  const isDeletionCounted = binding.spec.rollout?.restartOn?.includes("SourceDeleted") === true;
  const sources = isDeletionCounted ? parseSources(binding) : [];
  const out: Dependents = { all: [], used: new Set(), pending: false, unknown: [], missing, problem };
  for (const lookup of lookups) {
    const { resource, namespace, paths, stampAt, step, find } = lookup;
    const place = { stampAt, isRestartField: paths.restart !== undefined, step };
    const watched = watchedFor(as, lookup);
    const seen = membersOf(watcher, key, watched);
    const ref = isCollection(watched) ? watched : watched.ref;
    if (seen.phase === "failed") {
      const refused = streamRefusal(seen.error, { identity: as.identity, ref, verbs: WRITE_VERBS }, "list");
      isUnknown({ namespace, step, problem: refused });
    }
    if (seen.phase === "synced" && !isCollection(watched) && seen.members.length === 0) missing.push(watched.ref);
    if (find.by === "owner") out.problem ??= owners?.problem;
    out.pending ||= seen.phase === "pending";
    for (const { name, version } of seen.phase === "synced" ? seen.members.toSorted(byName) : []) {
      const workload = binding.spec.rollout?.replacePods ? asReplaced(version.workload) : version.workload;
      if (
        workload === undefined ||
        workload.isPassing ||
        (find.by === "owner" && !workload.owners.some((uid) => owners?.uids.has(uid)))
      )
        continue;
      const ref: ObjectRef = { resource, namespace, name };
      const uses = find.by === "reference" ? usedByPods(find, workload) : fieldUses;
      // What it reads there, the binding does not write.
      if (find.by === "reference" && uses.length === 0) continue;
      const required = isDeletionCounted && { required: requiredBy(workload, namespace, sources) };
      const known = found.get(idOf(ref)) ?? { ref, version, workload, ...place, uses: new Set<string>(), ...required };
      for (const use of uses) known.uses.add(use);
      found.set(idOf(ref), known);
    }
  }
  out.all = [...found.values()].sort((a, b) => a.step - b.step);
  out.used = new Set(out.all.flatMap(({ uses }) => [...uses]));
  out.unknown = [...unknown.values()];
  const characters = out.all.reduce((sum, { ref }) => sum + ref.name.length + (ref.namespace ?? "").length + AROUND, 0);
  if (characters > MAX_CHARACTERS) {
    const what = `spec.rollout concerns ${out.all.length} workloads, and the binding's status has no room for so many`;
    out.problem ??= new Problem("InvalidBinding", `${what}; split it into several bindings`, "OnChange");
  }
  return out;
}

/** The sources without which its pods can't start. */
function requiredBy({ references }: Workload, home: string, sources: readonly ParsedSource[]): Set<string> {
  const isRequired = ({ data }: ParsedSource) =>
    data?.namespace === home &&
    references.some(({ kind, name, optional }) => kind === data.kind && name === data.name && !optional);
  return new Set(sources.filter(isRequired).map(({ name }) => name));
}

/** One whose pods are replaced by us is as far as its pods are. */
function asReplaced(workload: Workload | undefined): Workload | undefined {
  if (workload?.replacing === undefined) return workload;
  return { ...workload, progress: workload.replacing.progress, onDelete: false };
}

/** The values behind the keys that the pods of a workload refer to. */
function usedByPods(
  { kind, name, ways, uses, keys: brought }: Extract<WorkloadLookup["find"], { by: "reference" }>,
  workload: Workload,
): string[] {
  return workload.references
    .filter((each) => each.kind === kind && each.name === name && (ways?.includes(each.by) ?? true))
    .flatMap(({ keys }) => uses(brought ?? keys));
}

/** What the fields of a binding use that are written before the rollout; all of its sources, if there are none. */
export function usedByFields(binding: SecretBinding): ReadonlySet<string> {
  const { spec } = binding;
  const sources = parseSources(binding);
  const fields = spec.targets.flatMap((target) => (isAfterRollout(target) ? [] : target.fields));
  if (fields.length === 0)
    return new Set(sources.flatMap(({ name, valueKeys = [ALL_KEYS] }) => valueKeys.map((key) => digestId(name, key))));
  const uses = fields.flatMap((field) => usesOf(sources, field, (text) => compileTemplate(text).references));
  return new Set(uses.map(({ source, of }) => digestId(source, of)));
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/**
 * With what workloads may use in namespaces that can't be seen, or could not until now: what is known from before, and anything of
 * the sources.
 */
export function withHiddenUses(
  dependents: Dependents,
  before: RolloutStatus | undefined,
  binding: SecretBinding,
): Dependents {
  if (dependents.unknown.length === 0 && before?.unknownNamespaces === undefined) return dependents;
  const hidden = [...Object.keys(before?.digests ?? {}), ...sourcesOf(binding).map((name) => digestId(name, ALL_KEYS))];
  return { ...dependents, used: new Set([...dependents.used, ...hidden]) };
}

/** Those of which workloads may use anything: what they refer to themselves, and what is written before they restart. */
function sourcesOf(binding: SecretBinding): string[] {
  const { rollout } = binding.spec;
  const consumed = rollout === undefined ? [] : groupsOf(rollout).flatMap(({ consumersOf = [] }) => consumersOf);
  const written = [...usedByFields(binding)].map((id) => digestParts(id).source);
  return [...new Set([...consumed, ...written])];
}

/** All that a rollout depends on which nobody has begun. */
export function dependentsFingerprint({ all, unknown, missing, problem }: Dependents): string {
  const workloads = all.map(({ ref, version, uses }) => `${idOf(ref)} ${version.uid} ${[...uses].sort().join(",")}`);
  const others = [...unknown.map((each) => each.problem.message), ...missing.map(idOf)];
  return [problem?.message ?? "", ...others, ...workloads].join("\n");
}

/** How many namespaces, or workloads, one message names. */
const MAX_NAMED = 3;

/** What keeps the condition from saying that all is rolled out, although the rest goes on: where nothing can be known, and who is missing. */
export function apartFrom({ unknown, missing }: Pick<Dependents, "unknown" | "missing">): Problem | undefined {
  const [first, ...more] = unknown;
  if (first !== undefined) {
    const { reason, message, retryPolicy } = first.problem;
    const others = more.map(({ namespace }) => namespace);
    const and = others.length === 0 ? "" : `; the same for ${firstOf(others, MAX_NAMED)}`;
    return new Problem(reason, `namespace ${first.namespace}: ${message}${and}`, retryPolicy);
  }
  if (missing.length === 0) return undefined;
  const names = missing.map(({ resource, namespace, name }) => describeObject(resource.kind, namespace, name));
  const message = `spec.rollout names ${firstOf(names, MAX_NAMED)}, and there is no such workload; create it, or correct the name`;
  return new Problem("WorkloadNotFound", message);
}

/** Objects that workloads may belong to. */
export interface Owners {
  uids: ReadonlySet<string>;
  /** Why some of them can't be known. */
  problem: Problem | undefined;
}
