/**
 * What a binding's rollout looks for comes in; the workloads that there are, as the streams show them at the moment, and what
 * each of them restarts for goes out. Where that can't be known, it is said so: nothing is restarted then.
 */

import { type SecretBinding, sourceName } from "../../api/binding.ts";
import { type Dependent, digestId, type RolloutSpec } from "../../api/rollout.ts";
import { idOf, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { Streams } from "../../cache/informers.ts";
import { type As, type Dependency, isCollection } from "../../cache/subscription.ts";
import type { Owners } from "../../controllers/binding/observed-state.ts";
import { streamRefusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { ALL_KEYS, usesOf } from "../../sources/uses.ts";
import { compileTemplate } from "../../transform/template.ts";
import type { Workload } from "../../workloads/workload.ts";
import type { Lookup, RolloutReferences } from "./lookups.ts";

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
const MOST_CHARACTERS = 1_000_000;
/** As long as what stands there of a workload beside its name. */
const AROUND = 300;

function tooMany(count: number): Problem {
  const what = `spec.rollout concerns ${count} workloads, and the binding's status has no room for so many`;
  return new Problem("InvalidBinding", `${what}; split it into several bindings`, "event");
}

/** A rollout of one reconcile. */
export interface RollingRun {
  binding: SecretBinding;
  identity: As["identity"];
  spec: RolloutSpec;
  /** What is wrong with its pace: told before it matters. */
  wrong: Problem | undefined;
  references: RolloutReferences;
  dependents: Dependents;
  /** Where each source is. */
  refs: ReadonlyMap<string, ObjectRef | Problem>;
  /** The objects that the binding writes. */
  targets: readonly ObjectRef[];
  /** The versions of the sources. */
  inputs: string;
  /** How long it is to be waited for the workloads before anything else is done. */
  patienceMs: number;
}

/** What has to be watched for a lookup. */
export function watchedFor(as: As, { resource, paths: workload, namespace, find }: Lookup): Dependency {
  if (find.by === "name") return { ...as, ref: { resource, namespace, name: find.name }, workload };
  const { names, labels } = find.by === "choice" ? find : { names: undefined, labels: "" };
  const consumersOf = find.by === "reference" ? { consumersOf: { kind: find.kind, name: find.name } } : {};
  return { ...as, resource, namespace, names, labels, workload, ...consumersOf };
}

/** What the stream of a lookup shows. */
function membersOf(streams: Streams, key: string, watched: Dependency) {
  if (isCollection(watched)) return streams.members(key, watched);
  const { version, ...state } = streams.look(key, watched);
  return { ...state, members: version === undefined ? [] : [{ name: watched.ref.name, version }] };
}

/** `ownersOf` tells of the objects that the binding writes. Whose can't be known is not taken for nobody's. */
export function dependentsOf(
  streams: Streams,
  key: string,
  as: As,
  binding: SecretBinding,
  { lookups, problem }: RolloutReferences,
  ownersOf: () => Owners,
): Dependents {
  const found = new Map<string, Dependent & { uses: Set<string> }>();
  const fieldUses = lookups.some(({ find }) => find.by !== "reference") ? usedByFields(binding) : [];
  const owners = lookups.some(({ find }) => find.by === "owner") ? ownersOf() : undefined;
  const used = new Set<string>();
  const out: Dependents = { all: [], used, pending: false, problem };
  for (const lookup of lookups) {
    const { resource, namespace, paths, stampAt, step, find } = lookup;
    const watched = watchedFor(as, lookup);
    const seen = membersOf(streams, key, watched);
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
      const isRestartField = paths.restart !== undefined;
      const known = found.get(idOf(ref)) ?? {
        ref,
        version,
        workload,
        stampAt,
        isRestartField,
        step,
        uses: new Set<string>(),
      };
      for (const use of uses) {
        known.uses.add(use);
        used.add(use);
      }
      found.set(idOf(ref), known);
    }
  }
  out.all = [...found.values()].sort((a, b) => a.step - b.step);
  const characters = out.all.reduce((sum, { ref }) => sum + ref.name.length + (ref.namespace ?? "").length + AROUND, 0);
  if (characters > MOST_CHARACTERS) out.problem ??= tooMany(out.all.length);
  return out;
}

/** One whose pods are replaced by us is as far as its pods are. */
function asReplaced(workload: Workload | undefined): Workload | undefined {
  if (workload?.replacing === undefined) return workload;
  return { ...workload, progress: workload.replacing.progress, onDelete: false };
}

/** The keys of a source that the pods of a workload refer to. */
function usedByPods(
  { source, kind, name, keys: brought }: Extract<Lookup["find"], { by: "reference" }>,
  workload: Workload,
): string[] {
  return workload.references
    .filter((each) => each.kind === kind && each.name === name)
    .flatMap(({ keys = [ALL_KEYS] }) => (brought ?? keys).map((key) => digestId(source, key)));
}

/** What the fields of a binding use; all of its sources, if it has no fields. */
export function usedByFields(binding: SecretBinding): ReadonlySet<string> {
  const { spec } = binding;
  const fields = spec.targets.flatMap((target) => target.fields);
  if (fields.length === 0) return new Set(spec.sources.map((source) => digestId(sourceName(source), ALL_KEYS)));
  const uses = fields.flatMap((field) => usesOf(binding, field, (text) => compileTemplate(text).references));
  return new Set(uses.map(({ source, of }) => digestId(source, of)));
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/** All that a rollout depends on which nobody has begun. */
export function textOf({ all, problem }: Dependents): string {
  const workloads = all.map(({ ref, version, uses }) => `${idOf(ref)} ${version.uid} ${[...uses].sort().join(",")}`);
  return [problem?.message ?? "", ...workloads].join("\n");
}
