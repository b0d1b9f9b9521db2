/**
 * What a binding's rollout looks for comes in; the workloads that there are, as the streams show them at the moment, and what
 * each of them restarts for goes out. Where that can't be known, it is said so: nothing is restarted then.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { digestId, type RolloutSpec } from "../../api/rollout.ts";
import { idOf, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { isCollection, type Subscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { streamRefusal, WRITE_VERBS } from "../../kube/access-error.ts";
import type { WatchIdentity } from "../../kube/identity.ts";
import { parseSources } from "../../sources/registry.ts";
import type { ResolvedSource } from "../../sources/source.ts";
import { ALL_KEYS, usesOf } from "../../sources/uses.ts";
import { compileTemplate } from "../../transform/template.ts";
import type { Workload } from "../../workloads/workload.ts";
import type { Dependent } from "../types.ts";
import type { RolloutReferences, WorkloadLookup } from "./lookups.ts";

export interface Dependents {
  /** In the order of their steps, and of their names in each. */
  all: Dependent[];
  /** The digests that any of them restarts for. */
  used: ReadonlySet<string>;
  /** Some stream has not brought its first list yet: which there are is not known. */
  pending: boolean;
  /** Why some can't be known. */
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
  /** The objects that the binding writes. */
  targets: readonly ObjectRef[];
  /** The versions of the sources. */
  sourceRevisions: string;
  /** How long it is to be waited for the workloads before anything else is done. */
  patienceMs: number;
}

/** What has to be watched for a lookup. */
export function watchedFor(
  as: WatchIdentity,
  { resource, paths: workload, namespace, find }: WorkloadLookup,
): Subscription {
  if (find.by === "name") return { ...as, ref: { resource, namespace, name: find.name }, workload };
  const { names, labels } = find.by === "choice" ? find : { names: undefined, labels: "" };
  const consumersOf = find.by === "reference" ? { consumersOf: { kind: find.kind, name: find.name } } : {};
  return { ...as, resource, namespace, names, labels, workload, ...consumersOf };
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
  { lookups, problem }: RolloutReferences,
  ownersOf: () => Owners,
): Dependents {
  const found = new Map<string, Dependent & { uses: Set<string> }>();
  const fieldUses = lookups.some(({ find }) => find.by !== "reference") ? usedByFields(binding) : [];
  const owners = lookups.some(({ find }) => find.by === "owner") ? ownersOf() : undefined;
  const out: Dependents = { all: [], used: new Set(), pending: false, problem };
  for (const lookup of lookups) {
    const { resource, namespace, paths, stampAt, step, find } = lookup;
    const place = { stampAt, isRestartField: paths.restart !== undefined, step };
    const watched = watchedFor(as, lookup);
    const seen = membersOf(watcher, key, watched);
    const ref = isCollection(watched) ? watched : watched.ref;
    if (seen.phase === "failed")
      out.problem ??= streamRefusal(seen.error, { identity: as.identity, ref, verbs: WRITE_VERBS }, "list");
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
      const known = found.get(idOf(ref)) ?? { ref, version, workload, ...place, uses: new Set<string>() };
      for (const use of uses) known.uses.add(use);
      found.set(idOf(ref), known);
    }
  }
  out.all = [...found.values()].sort((a, b) => a.step - b.step);
  out.used = new Set(out.all.flatMap(({ uses }) => [...uses]));
  const characters = out.all.reduce((sum, { ref }) => sum + ref.name.length + (ref.namespace ?? "").length + AROUND, 0);
  if (characters > MAX_CHARACTERS) {
    const what = `spec.rollout concerns ${out.all.length} workloads, and the binding's status has no room for so many`;
    out.problem ??= new Problem("InvalidBinding", `${what}; split it into several bindings`, "OnChange");
  }
  return out;
}

/** One whose pods are replaced by us is as far as its pods are. */
function asReplaced(workload: Workload | undefined): Workload | undefined {
  if (workload?.replacing === undefined) return workload;
  return { ...workload, progress: workload.replacing.progress, onDelete: false };
}

/** The keys of a source that the pods of a workload refer to. */
function usedByPods(
  { source, kind, name, keys: brought }: Extract<WorkloadLookup["find"], { by: "reference" }>,
  workload: Workload,
): string[] {
  return workload.references
    .filter((each) => each.kind === kind && each.name === name)
    .flatMap(({ keys = [ALL_KEYS] }) => (brought ?? keys).map((key) => digestId(source, key)));
}

/** What the fields of a binding use; all of its sources, if it has no fields. */
export function usedByFields(binding: SecretBinding): ReadonlySet<string> {
  const { spec } = binding;
  const sources = parseSources(binding);
  const fields = spec.targets.flatMap((target) => target.fields);
  if (fields.length === 0) return new Set(sources.map(({ name }) => digestId(name, ALL_KEYS)));
  const uses = fields.flatMap((field) => usesOf(sources, field, (text) => compileTemplate(text).references));
  return new Set(uses.map(({ source, of }) => digestId(source, of)));
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/** All that a rollout depends on which nobody has begun. */
export function dependentsFingerprint({ all, problem }: Dependents): string {
  const workloads = all.map(({ ref, version, uses }) => `${idOf(ref)} ${version.uid} ${[...uses].sort().join(",")}`);
  return [problem?.message ?? "", ...workloads].join("\n");
}

/** Objects that workloads may belong to. */
export interface Owners {
  uids: ReadonlySet<string>;
  /** Why some of them can't be known. */
  problem: Problem | undefined;
}
