/**
 * Finds the workloads of a binding's rollout in the watches, and the values that each of them restarts for. Reports the
 * namespaces whose workloads can't be known: nothing restarts there.
 */
import { createHash } from "node:crypto";
import { isAfterRollout, type SecretBinding } from "../../api/binding.ts";
import { digestId, digestParts, groupsOf, type RolloutSpec, type RolloutStatus } from "../../api/rollout.ts";
import type { Effort } from "../../apimachinery/glob.ts";
import { getOrInsert } from "../../apimachinery/maps.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { describeRef, idOf, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { CONFIG_MAPS, SECRETS } from "../../apimachinery/resources.ts";
import { similarName } from "../../apimachinery/suggest-names.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import { isCollection, type Subscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { streamRefusal, WRITE_VERBS } from "../../kube/access-error.ts";
import type { WatchIdentity } from "../../kube/identity.ts";
import { parseSources } from "../../sources/registry.ts";
import type { ParsedSource, ResolvedSource } from "../../sources/source.ts";
import { ALL_KEYS } from "../../sources/uses.ts";
import { referencesTo } from "../../workloads/pod-references.ts";
import { MAX_SYNCED } from "../../workloads/provider-class.ts";
import type { Workload } from "../../workloads/workload.ts";
import type { AwaitedTarget } from "../decide/wait-for-targets.ts";
import type { Dependent, NamespaceProblem } from "../types.ts";
import type { RolloutReferences, WorkloadLookup } from "./lookups.ts";
import { MAX_USES, tooManyUses, type UsesOfKeys, usesOfFields } from "./written-values.ts";

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
interface UnreadWorkload extends ObjectRef {
  /** Nothing is known, because the workloads of its namespace are too large together. */
  isTooLarge?: true;
}

interface MissingWorkload extends ObjectRef {
  /** Finds the name of a workload beside it that was probably meant: only for a message, because there may be many. */
  similar?(): string | undefined;
}

/** The record of all workloads must fit into the binding's status, with the record of the targets. */
const MAX_CHARACTERS = 1_000_000;
/** The most values of all workloads together: a few tenths of a second for each decision. */
const MAX_USES_OF_ALL = 250_000;
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
export const watchedFor = (as: WatchIdentity, lookup: WorkloadLookup): Subscription =>
  getOrInsert(subscriptions, lookup, () => subscriptionFor(as, lookup));

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
  const found = new Map<string, Omit<Dependent, "uses"> & { used: Set<Values> }>();
  const unknown = new Map<string, NamespaceProblem>();
  const isUnknown = (each: NamespaceProblem) => {
    const known = unknown.get(each.namespace) ?? each;
    unknown.set(each.namespace, { ...known, step: Math.min(known.step, each.step) });
  };
  closed.forEach(isUnknown);
  const missing: MissingWorkload[] = [];
  const ofFields = yield* usedByFields(binding);
  const values = new SharedValues();
  const owners = lookups.some(({ find }) => find.by === "owner") ? ownersOf() : undefined;
  const isDeletionCounted = binding.spec.rollout?.restartOn?.includes("SourceDeleted") === true;
  const sources = isDeletionCounted ? parseSources(binding) : [];
  const unread = new Map<string, UnreadWorkload>();
  const out: Dependents = { all: [], used: new Set(), pending: false, unknown: [], missing, unread: [], problem };
  if (ofFields instanceof Problem) return { ...out, unknown: [...unknown.values()], problem: problem ?? ofFields };
  const fieldValues = values.of(ofFields);
  const effort = { left: MAX_EFFORT };
  let characters = 0;
  const tooMany = () => (characters > MAX_CHARACTERS ? tooManyWorkloads() : values.problem);
  /** Without any workloads. */
  const refused = (why: Problem) => ({ ...out, unknown: [...unknown.values()], problem: out.problem ?? why });
  for (const lookup of lookups) {
    yield;
    const { resource, namespace, paths, stampAt, step, find } = lookup;
    const place = { stampAt, isRestartField: paths.restart !== undefined, step };
    const watched = watchedFor(as, lookup);
    const reads = readBy(lookup);
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
    const members = seen.phase === "synced" ? seen.members.toSorted(byName) : [];
    for (const [at, { name, version }] of members.entries()) {
      if (at % STEP === STEP - 1) yield;
      const why = tooMany();
      if (why !== undefined) return refused(why);
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
      const used = find.by === "reference" ? yield* usedByPods(values, find, workload) : fieldValues;
      // The binding does not write the keys that the workload reads there.
      if (find.by === "reference" && used.uses.size === 0) continue;
      const id = idOf(ref);
      const known = found.get(id);
      if (known !== undefined) {
        known.used.add(used);
        known.reads = reads && known.reads && [...new Set([...known.reads, ...reads])];
        continue;
      }
      const required = isDeletionCounted && { required: requiredBy(workload, namespace, sources) };
      found.set(id, { ref, version, workload, ...place, reads, used: new Set([used]), ...required });
      characters += ref.name.length + namespace.length + AROUND;
    }
  }
  const all: Dependent[] = [];
  for (const { used, ...each } of found.values()) {
    const uses = yield* values.together(used);
    const why = tooMany();
    if (why !== undefined) return refused(why);
    all.push({ ...each, uses });
  }
  out.all = all.sort((a, b) => a.step - b.step);
  out.used = usedBy(out.all);
  out.unknown = [...unknown.values()];
  // It may also be named.
  out.unread = [...unread].flatMap(([id, ref]) => (found.has(id) ? [] : [ref]));
  return out;
}

/** The object that pods refer to, if their workload is found by that. */
function readBy({ namespace, find }: WorkloadLookup): readonly ObjectRef[] | undefined {
  if (find.by !== "reference" || find.kind === "SecretProviderClass") return undefined;
  return [{ resource: find.kind === "Secret" ? SECRETS : CONFIG_MAPS, namespace, name: find.name }];
}

function tooManyWorkloads(): Problem {
  const what = "spec.rollout selects more workloads than the status of one binding has room for";
  return new Problem("InvalidBinding", `${what}; split it into several bindings`, "OnChange");
}

/** The ids of digests, and a number for them in the SharedValues. */
interface Values {
  position: number;
  /** Sorted. */
  uses: ReadonlySet<string>;
}

/** The values that the workloads of a binding use. Equal ones are kept once, because thousands of workloads use the same values. */
class SharedValues {
  readonly #byKeys = new Map<UsesOfKeys, Map<string, Values>>();
  readonly #together = new Map<string, ReadonlySet<string>>();
  readonly #used = new Set<string>();
  #positions = 0;
  #kept = 0;
  #ofAll = 0;

  /** Why these are too many. */
  get problem(): Problem | undefined {
    if (this.#used.size > MAX_USES) return tooManyUses();
    if (Math.max(this.#kept, this.#ofAll) <= MAX_USES_OF_ALL) return undefined;
    const most = MAX_USES_OF_ALL.toLocaleString("en");
    const what = `its workloads restart for too many values, more than ${most} of all workloads together`;
    const fix = "select fewer workloads, or split the binding";
    return new Problem("InvalidBinding", { at: ["spec.rollout"], what, fix }, "OnChange");
  }

  of(uses: ReadonlySet<string>): Values {
    this.#kept += uses.size;
    return { position: this.#positions++, uses };
  }

  /** The values behind keys of an object. Yields once. */
  *behind(uses: UsesOfKeys, keys: readonly (readonly string[] | undefined)[]): Generator<void, Values> {
    yield;
    const byKeys = getOrInsert(this.#byKeys, uses, () => new Map<string, Values>());
    return getOrInsert(byKeys, JSON.stringify(keys), () => this.of(new Set(keys.flatMap((each) => uses(each)).sort())));
  }

  /** The values of one workload, sorted. Yields once. */
  *together(values: ReadonlySet<Values>): Generator<void, ReadonlySet<string>> {
    yield;
    const all = [...values].sort((a, b) => a.position - b.position);
    const uses = getOrInsert(this.#together, all.map(({ position }) => position).join(), () => {
      const union = unionOf(all);
      for (const id of union) this.#used.add(id);
      return union;
    });
    this.#ofAll += uses.size;
    return uses;
  }
}

function unionOf([first, ...others]: readonly Values[]): ReadonlySet<string> {
  if (first !== undefined && others.length === 0) return first.uses;
  return new Set([first, ...others].flatMap((each) => [...(each?.uses ?? [])]).sort());
}

/** The ids of the digests that any of the workloads restarts for. */
export const usedBy = (dependents: readonly Dependent[]): ReadonlySet<string> =>
  new Set([...new Set(dependents.map(({ uses }) => uses))].flatMap((uses) => [...uses]));

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

/** The values behind the keys that the pods of a workload refer to, or that a class brings to them instead. */
function usedByPods(
  values: SharedValues,
  { kind, name, ways, uses, keys: brought }: Extract<WorkloadLookup["find"], { by: "reference" }>,
  { references }: Workload,
): Generator<void, Values> {
  const found = referencesTo(references, { kind, name }).filter(({ by }) => ways?.includes(by) ?? true);
  const keys = found.map(({ keys }) => brought ?? keys);
  return values.behind(uses, brought === undefined ? keys : keys.slice(0, 1));
}

/** The values used by the fields that are written before the rollout; if there are none, all sources. Returns and yields as `usesOfFields`. */
export function* usedByFields(binding: SecretBinding): Generator<void, ReadonlySet<string> | Problem> {
  const uses = yield* usesOfFields(binding);
  if (uses instanceof Problem) return uses;
  if (uses.byField.size > 0) return uses.all;
  const ofSource = ({ name, valueKeys = [ALL_KEYS] }: ParsedSource) => valueKeys.map((key) => digestId(name, key));
  return new Set(parseSources(binding).flatMap(ofSource).sort());
}

/** The values that workloads get through fields which the binding writes before it restarts them. Returns and yields as `usesOfFields`. */
export function* writtenBeforeRestarts(binding: SecretBinding): Generator<void, ReadonlySet<string> | Problem> {
  const isAny = binding.spec.targets.some((target) => !isAfterRollout(target));
  return isAny ? yield* usedByFields(binding) : new Set();
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/**
 * Adds the values that workloads may use in namespaces that can't be seen, or could not until now: the recorded ones, and all
 * keys of the sources. Yields where it may be interrupted.
 */
export function* withHiddenUses(
  dependents: Dependents,
  before: RolloutStatus | undefined,
  binding: SecretBinding,
): Generator<void, Dependents> {
  if (dependents.unknown.length === 0 && before?.unknownNamespaces === undefined) return dependents;
  const ofFields = yield* usedByFields(binding);
  if (ofFields instanceof Problem) return dependents;
  const sources = sourcesOf(binding, ofFields).map((name) => digestId(name, ALL_KEYS));
  const hidden = [...Object.keys(before?.digests ?? {}), ...sources];
  return { ...dependents, used: new Set([...dependents.used, ...hidden]) };
}

/**
 * The sources of which workloads may use any value: those that pods refer to, and those of fields written before the restarts.
 */
function sourcesOf({ spec: { rollout } }: SecretBinding, ofFields: ReadonlySet<string>): string[] {
  const consumed = rollout === undefined ? [] : groupsOf(rollout).flatMap(({ consumersOf = [] }) => consumersOf);
  const written = [...ofFields].map((id) => digestParts(id).source);
  return [...new Set([...consumed, ...written])];
}

/** Everything that the start of a rollout depends on. Yields where it may be interrupted. */
export function* dependentsFingerprint({
  all,
  unknown,
  missing,
  unread,
  problem,
}: Dependents): Generator<void, string> {
  const positions = new Map<ReadonlySet<string>, number>();
  const values = createHash("sha256");
  const workloads: string[] = [];
  for (const { ref, version, uses } of all) {
    const position = positions.get(uses) ?? positions.size;
    if (!positions.has(uses)) {
      yield;
      positions.set(uses, position);
      values.update(JSON.stringify([...uses]));
    }
    workloads.push(`${idOf(ref)} ${version.uid} ${position}`);
  }
  const others = [...unknown.map((each) => each.problem.message), ...missing.map(idOf), "", ...unread.map(idOf)];
  return [problem?.message ?? "", ...others, ...workloads, values.digest("base64")].join("\n");
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
    const and = others.length === 0 ? first.problem.note : `the same for ${firstOf(others, MAX_NAMED)}`;
    return first.problem.within(`namespace ${first.namespace}`).with({ note: and });
  }
  if (missing.length === 0) return unread.length === 0 ? undefined : notRead(unread);
  const names = missing.map((each, at) => {
    const meant = at < MAX_NAMED ? each.similar?.() : undefined;
    return `${describeRef(each)}${meant === undefined ? "" : ` (did you mean ${meant}?)`}`;
  });
  const what = `there is no ${firstOf(names, MAX_NAMED)}; create it, or correct the name`;
  return new Problem("WorkloadNotFound", { at: ["spec.rollout"], what });
}

function notRead(unread: readonly UnreadWorkload[]): Problem {
  const large = unread.filter(({ isTooLarge }) => isTooLarge);
  const all = large.length > 0 ? large : unread;
  const first = firstOf(all.map(describeRef), MAX_NAMED);
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
