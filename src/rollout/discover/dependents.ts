/**
 * Finds the workloads of a binding's rollout in the watches, and the values that each of them restarts for. Reports the
 * namespaces whose workloads can't be known: nothing restarts there.
 */
import { isAfterRollout, type SecretBinding } from "../../api/binding.ts";
import { digestId, digestParts, groupsOf, type RolloutSpec, type RolloutStatus } from "../../api/rollout.ts";
import type { Effort } from "../../apimachinery/glob.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { describeObject, idOf, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { similarName } from "../../apimachinery/suggest-names.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import { isCollection, type Subscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { streamRefusal, WRITE_VERBS } from "../../kube/access-error.ts";
import type { WatchIdentity } from "../../kube/identity.ts";
import { parseSources } from "../../sources/registry.ts";
import type { ParsedSource, ResolvedSource } from "../../sources/source.ts";
import { ALL_KEYS, usesOf } from "../../sources/uses.ts";
import { compileTemplate } from "../../transform/template.ts";
import { referencesTo } from "../../workloads/pod-references.ts";
import { MAX_SYNCED } from "../../workloads/provider-class.ts";
import type { Workload } from "../../workloads/workload.ts";
import type { AwaitedTarget } from "../decide/wait-for-targets.ts";
import type { Dependent, NamespaceProblem } from "../types.ts";
import type { RolloutReferences, WorkloadLookup } from "./lookups.ts";

export interface Dependents {
  /** In the order of their steps, and by name within a step. */
  all: Dependent[];
  /** The ids of the digests that any of them restarts for. */
  used: ReadonlySet<string>;
  /** Some watch is not in sync yet, so the workloads are not known. */
  pending: boolean;
  /** The namespaces whose workloads can't be known, one entry for each. */
  unknown: readonly NamespaceProblem[];
  /** Workloads that the binding names and that do not exist. */
  missing: readonly MissingWorkload[];
  /**
   * Workloads of which too little is known to restart them. Those with too many references, or with a SecretProviderClass that lists too
   * many Secrets, may read a source of the binding.
   */
  unread: readonly UnreadWorkload[];
  /** Why no workload can be known. */
  problem: Problem | undefined;
}

/** A workload with too many references, so that it is not known whether it reads a source of the binding. */
export interface UnreadWorkload extends ObjectRef {
  /** Nothing is known, because the workloads of its namespace are too large together. */
  isTooLarge?: true;
}

export interface MissingWorkload extends ObjectRef {
  /** Finds the name of a workload beside it that was probably meant: only for a message, because there may be many. */
  similar?(): string | undefined;
}

/** The record of all workloads must fit into the binding's status, with the record of the targets. */
const MAX_CHARACTERS = 1_000_000;
/** The approximate size of a workload's record besides its name. */
const AROUND = 300;
/** The limit for comparing the names of workloads with patterns, in characters: some hundredths of a second. */
const MAX_EFFORT = 2_000_000;
const TOO_MANY_PATTERNS =
  "spec.rollout: comparing the names of the targets with all workloads takes too long; write simpler names, or select by labels";
/** How often the walk over the workloads of a lookup may be interrupted. */
const STEP = 256;

/** The rollout in one reconcile. */
export interface RolloutContext {
  binding: SecretBinding;
  identity: WatchIdentity["identity"];
  spec: RolloutSpec;
  /** A mistake in the pace settings, reported before it matters. */
  wrong: Problem | undefined;
  references: RolloutReferences;
  dependents: Dependents;
  /** The resolved sources, by name. */
  sources: ReadonlyMap<string, ResolvedSource | Problem>;
  /** The objects that the binding writes before the rollout. */
  targets: readonly AwaitedTarget[];
  /** The versions of the sources. */
  sourceRevisions: string;
  /** The objects that are sources, by name, as the watches show them. */
  sourceObjects: ReadonlyMap<string, CachedObject>;
  /** How many ms to wait for the workloads before anything else happens. */
  patienceMs: number;
}

/** By lookup: a binding with many namespaces has many. */
const subscriptions = new WeakMap<WorkloadLookup, Subscription>();

/** The subscription for a lookup. A lookup belongs to one account. */
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

/** The objects that the watch of a lookup shows. */
function membersOf(watcher: Pick<Watcher, "get" | "list">, key: string, watched: Subscription, effort: Effort) {
  if (isCollection(watched)) return watcher.list(key, watched, effort);
  const { version, ...state } = watcher.get(key, watched);
  return { ...state, members: version === undefined ? [] : [{ name: watched.ref.name, version }] };
}

/**
 * `ownersOf` returns the objects that the binding writes. If they can't be known, the rollout has a problem. Yields where it may be
 * interrupted.
 */
export function* dependentsOf(
  watcher: Pick<Watcher, "get" | "list" | "namesBeside">,
  key: string,
  as: WatchIdentity,
  binding: SecretBinding,
  { lookups, closed, problem }: RolloutReferences,
  ownersOf: () => Owners,
): Generator<void, Dependents> {
  const found = new Map<string, Dependent & { uses: Set<string> }>();
  const unknown = new Map<string, NamespaceProblem>();
  const isUnknown = (each: NamespaceProblem) => {
    const known = unknown.get(each.namespace) ?? each;
    unknown.set(each.namespace, { ...known, step: Math.min(known.step, each.step) });
  };
  closed.forEach(isUnknown);
  const missing: MissingWorkload[] = [];
  const fieldUses = lookups.some(({ find }) => find.by !== "reference") ? [...usedByFields(binding)] : [];
  const owners = lookups.some(({ find }) => find.by === "owner") ? ownersOf() : undefined;
  const isDeletionCounted = binding.spec.rollout?.restartOn?.includes("SourceDeleted") === true;
  const sources = isDeletionCounted ? parseSources(binding) : [];
  const unread = new Map<string, UnreadWorkload>();
  const out: Dependents = { all: [], used: new Set(), pending: false, unknown: [], missing, unread: [], problem };
  const effort = { left: MAX_EFFORT };
  for (const lookup of lookups) {
    yield;
    const { resource, namespace, paths, stampAt, step, find } = lookup;
    const place = { stampAt, isRestartField: paths.restart !== undefined, step };
    const watched = watchedFor(as, lookup);
    const seen = membersOf(watcher, key, watched, effort);
    if (effort.left < 0) {
      out.problem ??= new Problem("InvalidBinding", TOO_MANY_PATTERNS, "OnChange");
      continue;
    }
    const ref = isCollection(watched) ? watched : watched.ref;
    if (seen.phase === "failed") {
      const refused = streamRefusal(seen.error, { identity: as.identity, ref, verbs: WRITE_VERBS }, "list");
      isUnknown({ namespace, step, problem: refused });
    }
    if (seen.phase === "synced" && !isCollection(watched) && seen.members.length === 0) {
      const similar = () => similarName(watched.ref.name, watcher.namesBeside(key, watched));
      missing.push({ ...watched.ref, similar });
    }
    if (find.by === "owner") out.problem ??= owners?.problem;
    out.pending ||= seen.phase === "pending";
    // The same for all workloads that mount a class.
    const brought = find.by === "reference" && find.keys !== undefined ? find.uses(find.keys) : undefined;
    const members = seen.phase === "synced" ? seen.members.toSorted(byName) : [];
    for (const [at, { name, version }] of members.entries()) {
      if (at % STEP === STEP - 1) yield;
      const ref: ObjectRef = { resource, namespace, name };
      if (version.isTooLarge) unread.set(idOf(ref), { ...ref, isTooLarge: true });
      const workload = binding.spec.rollout?.replacePods ? asReplaced(version.workload) : version.workload;
      if (
        workload === undefined ||
        workload.isPassing ||
        (find.by === "owner" && !workload.owners.some((uid) => owners?.uids.has(uid)))
      )
        continue;
      if (find.by === "reference" && (workload.hasTooManyReferences || find.isTooLarge)) {
        unread.set(idOf(ref), ref);
        continue;
      }
      const uses = find.by === "reference" ? usedByPods(find, workload, brought) : fieldUses;
      // The binding does not write the keys that the workload reads there.
      if (find.by === "reference" && uses.length === 0) continue;
      const id = idOf(ref);
      const known = found.get(id) ?? {
        ...{ ref, version, workload, ...place, uses: new Set<string>() },
        ...(isDeletionCounted && { required: requiredBy(workload, namespace, sources) }),
      };
      for (const use of uses) known.uses.add(use);
      found.set(id, known);
    }
  }
  out.all = [...found.values()].sort((a, b) => a.step - b.step);
  out.used = new Set(out.all.flatMap(({ uses }) => [...uses]));
  out.unknown = [...unknown.values()];
  // It may also be named.
  out.unread = [...unread].flatMap(([id, ref]) => (found.has(id) ? [] : [ref]));
  const characters = out.all.reduce((sum, { ref }) => sum + ref.name.length + (ref.namespace ?? "").length + AROUND, 0);
  if (characters > MAX_CHARACTERS) {
    const what = `spec.rollout selects ${out.all.length} workloads, more than the status of one binding has room for`;
    out.problem ??= new Problem("InvalidBinding", `${what}; split it into several bindings`, "OnChange");
  }
  return out;
}

/** The sources without which its pods can't start, or may not be able to. */
function requiredBy(
  { references, hasTooManyReferences }: Workload,
  home: string,
  sources: readonly ParsedSource[],
): Set<string> {
  const isRequired = ({ data }: ParsedSource) =>
    data?.namespace === home &&
    (hasTooManyReferences === true || referencesTo(references, data).some(({ optional }) => !optional));
  return new Set(sources.filter(isRequired).map(({ name }) => name));
}

/** If Inlay replaces the pods of a workload, their state is its progress. */
function asReplaced(workload: Workload | undefined): Workload | undefined {
  if (workload?.replacing === undefined) return workload;
  return { ...workload, progress: workload.replacing.progress, onDelete: false };
}

/** The values behind the keys that the pods of a workload refer to. `brought` are those that a class brings instead. */
function usedByPods(
  { kind, name, ways, uses }: Extract<WorkloadLookup["find"], { by: "reference" }>,
  { references }: Workload,
  brought: readonly string[] | undefined,
): readonly string[] {
  const found = referencesTo(references, { kind, name }).filter(({ by }) => ways?.includes(by) ?? true);
  if (brought !== undefined) return found.length === 0 ? [] : brought;
  return found.flatMap(({ keys }) => uses(keys));
}

/** The values used by the fields that are written before the rollout; if there are none, all sources. */
export function usedByFields(binding: SecretBinding): ReadonlySet<string> {
  const { spec } = binding;
  const sources = parseSources(binding);
  const fields = spec.targets.flatMap((target) => (isAfterRollout(target) ? [] : target.fields));
  if (fields.length === 0)
    return new Set(sources.flatMap(({ name, valueKeys = [ALL_KEYS] }) => valueKeys.map((key) => digestId(name, key))));
  const uses = fields.flatMap((field) => usesOf(sources, field, (text) => compileTemplate(text).references));
  return new Set(uses.map(({ source, of }) => digestId(source, of)));
}

/** The values that workloads get through fields which the binding writes before it restarts them. */
export const writtenBeforeRestarts = (binding: SecretBinding): ReadonlySet<string> =>
  binding.spec.targets.some((target) => !isAfterRollout(target)) ? usedByFields(binding) : new Set();

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/**
 * Adds the values that workloads may use in namespaces that can't be seen, or could not until now: the recorded ones, and all
 * keys of the sources.
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

/**
 * The sources of which workloads may use any value: those that pods refer to, and those of fields written before the restarts.
 */
function sourcesOf(binding: SecretBinding): string[] {
  const { rollout } = binding.spec;
  const consumed = rollout === undefined ? [] : groupsOf(rollout).flatMap(({ consumersOf = [] }) => consumersOf);
  const written = [...usedByFields(binding)].map((id) => digestParts(id).source);
  return [...new Set([...consumed, ...written])];
}

/** Everything that the start of a rollout depends on. */
export function dependentsFingerprint({ all, unknown, missing, unread, problem }: Dependents): string {
  const workloads = all.map(({ ref, version, uses }) => `${idOf(ref)} ${version.uid} ${[...uses].sort().join(",")}`);
  const others = [...unknown.map((each) => each.problem.message), ...missing.map(idOf), "", ...unread.map(idOf)];
  return [problem?.message ?? "", ...others, ...workloads].join("\n");
}

/** How many namespaces or workloads a message names. */
const MAX_NAMED = 3;

/**
 * The problems that keep the condition from being True while other workloads continue: unknown namespaces, missing workloads, and those with
 * too many references.
 */
export function apartFrom({
  unknown,
  missing,
  unread,
}: Pick<Dependents, "unknown" | "missing" | "unread">): Problem | undefined {
  const [first, ...more] = unknown;
  if (first !== undefined) {
    const others = more.map(({ namespace }) => namespace);
    const and = others.length === 0 ? "" : `; the same for ${firstOf(others, MAX_NAMED)}`;
    return first.problem.within(`namespace ${first.namespace}: `, and);
  }
  if (missing.length === 0) return unread.length === 0 ? undefined : notRead(unread);
  const names = missing.map(({ resource, namespace, name, similar }, at) => {
    const meant = at < MAX_NAMED ? similar?.() : undefined;
    const guess = meant === undefined ? "" : ` (did you mean ${meant}?)`;
    return `${describeObject(resource.kind, namespace, name)}${guess}`;
  });
  const message = `spec.rollout: there is no ${firstOf(names, MAX_NAMED)}; create it, or correct the name`;
  return new Problem("WorkloadNotFound", message);
}

function notRead(unread: readonly UnreadWorkload[]): Problem {
  const large = unread.filter(({ isTooLarge }) => isTooLarge);
  const all = large.length > 0 ? large : unread;
  const names = all.map(({ resource, namespace, name }) => describeObject(resource.kind, namespace, name));
  const first = firstOf(names, MAX_NAMED);
  const message =
    large.length > 0
      ? `spec.rollout: Inlay does not restart ${first}, because the workloads that the bindings of the namespace watch are too large together; remove references from workloads, or use one service account and the same template and restartPath in all bindings, then change the workload`
      : `spec.rollout: the pods of ${first} refer to more Secrets and ConfigMaps than Inlay reads (limits.referencesPerWorkload), or to a SecretProviderClass with more than ${MAX_SYNCED} Secrets and keys, so it is not known whether they use a source, and they are not restarted; remove references or secretObjects, or name the workload in spec.rollout.targets`;
  return new Problem("TooLarge", message);
}

/** Objects that may own workloads. */
export interface Owners {
  uids: ReadonlySet<string>;
  /** Why some of them can't be known. */
  problem: Problem | undefined;
}
