/**
 * Records which fields of which objects each binding names in its spec, and which it owns by its status. Returns the competing claims on an
 * object, and the bindings that a change of claims concerns. The named fields are exact once the targets of the binding are resolved.
 */
import { isDeepStrictEqual } from "node:util";
import {
  bindingKey,
  fieldsOfTarget,
  namespaceIn,
  recordId,
  type StoredBinding,
  type TargetStatus,
} from "../api/binding.ts";
import { expand } from "../api/status-records.ts";
import { isStub } from "../api/stub.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { BoundedMap, getOrInsert } from "../apimachinery/maps.ts";
import { idOf, type ObjectRef, objectId, parseApiVersion } from "../apimachinery/objects.ts";
import { mayOverlap, parsePaths } from "../apimachinery/path-overlap.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { PathIndex } from "./path-index.ts";

/** The fields of one object that a binding names or owns. */
export interface FieldClaim {
  /** The key of the binding. */
  key: string;
  account: string;
  createdAt: string;
  paths: readonly string[];
  /** The paths are recorded as written, or are about to be written. Otherwise the binding only names them. */
  held: boolean;
  /** The outcome of a write of these paths is unknown, so it is also unknown whether the account may write them. */
  pending: boolean;
  /**
   * The paths are only named, and the status for the current spec says that they are not written because of a fault of the binding itself.
   * A binding that waits for another binding does not count: it is next in line.
   */
  passed: boolean;
  /** The record says that the binding created the object. */
  created: boolean;
}

/** A claim that may keep a binding from a path: an older claim, or a younger claim that owns the path. */
export interface CompetingClaim extends FieldClaim {
  isOlder: boolean;
}

/** Paths that may belong to many objects. */
export type PathList = readonly string[] | ReadonlySet<string>;

/** An object that a target of a binding resolves to, and the paths that the binding names there. Objects of one target share their paths. */
export interface ResolvedTarget {
  ref: ObjectRef;
  paths: PathList;
}

/** A binding, what its targets last resolved to, and the objects that its claims are recorded for. */
interface Claimant {
  /** Undefined once the binding is gone. */
  binding: StoredBinding | undefined;
  resolved: { uid: string; generation: number | undefined; named: readonly ResolvedTarget[] } | undefined;
  readonly objects: Set<string>;
  /** Whether something was noted since the last update began. */
  isDue: boolean;
  /** What the recorded claims are of. */
  recorded: Pick<Claimant, "binding" | "resolved">;
}

/** Reasons of a record whose announced paths are being written, or may have been written before a write was interrupted. */
const UNKNOWN = ["Pending", "Unavailable"];

/** If more bindings than these claim an object, an index finds the claims on a path. */
const FEW = 16;
/** How many paths all indexes have together. An object that needs more has none, and each claim on it is compared. */
const MAX_INDEXED = 50_000;
/** How many characters of paths are kept parsed. Parsed paths are far larger than their text. */
const MAX_PARSED = 1024 ** 2;
/** What a list of paths counts at least. */
const LEAST_CHARACTERS = 64;
/** For how many pairs of lists it is known whether they touch each other. */
const MAX_PAIRS = 100_000;

/**
 * A generator yields where it may be interrupted. Others may claim the same objects meanwhile: each object is up to date by itself. The
 * objects of a binding share their claims, so that these are kept and compared once for all of them.
 */
export class FieldClaims {
  readonly #byObject = new Map<string, ObjectClaims>();
  readonly #bindings = new Map<string, Claimant>();
  readonly #indexed = { paths: 0 };

  /**
   * Returns claims of other bindings that may keep the binding from one of the paths or from its own claims. Owned claims come first, then
   * older claims that are only named and not `passed`, the oldest first. The binding that created the object counts as the oldest there, so
   * younger bindings never keep it from a path. Each list of paths is parsed and compared once, so pass the same one for several objects.
   */
  *competing(
    { key, createdAt }: Pick<FieldClaim, "key" | "createdAt">,
    ref: ObjectRef,
    paths: readonly PathList[],
  ): Generator<void, CompetingClaim[]> {
    const there = this.#byObject.get(idOf(ref));
    if (there === undefined) return [];
    const own = there.get(key);
    const created = own.some((claim) => claim.created);
    const age = ageOf({ key, createdAt, created });
    const touching = yield* there.others(key, [...paths, ...own.map((claim) => claim.paths)], mayDecide);
    const [held, named]: [CompetingClaim[], CompetingClaim[]] = [[], []];
    for (const claim of touching) {
      yield;
      const isOlder = ageOf(claim) < age;
      if (isOlder || (claim.held && !created)) (isHeldForSure(claim) ? held : named).push({ ...claim, isOlder });
    }
    return [...(yield* byAge(held)), ...(yield* firstOfAccounts(yield* byAge(named)))];
  }

  /** Notes the current spec and status of a binding, for `update`. */
  put(binding: StoredBinding): void {
    const key = bindingKey(binding);
    const nothing = { binding: undefined, resolved: undefined };
    const newOne = () => ({ ...nothing, objects: new Set<string>(), isDue: true, recorded: nothing });
    const claimant = getOrInsert(this.#bindings, key, newOne);
    claimant.isDue ||= claimant.binding !== binding;
    claimant.binding = binding;
    // A stub names no targets.
    if (isStub(binding)) claimant.resolved = undefined;
  }

  /** Notes the objects that a binding's targets resolve to, for `update`. */
  resolved(key: string, named: readonly ResolvedTarget[]): void {
    const claimant = this.#bindings.get(key);
    if (claimant?.binding === undefined) return;
    const { uid, generation } = claimant.binding.metadata;
    const { resolved: known } = claimant;
    if (known?.uid === uid && known.generation === generation && isSameTargets(known.named, named)) return;
    claimant.resolved = { uid, generation, named };
    claimant.isDue = true;
  }

  /** Notes that a binding claims nothing any more, for `update`. */
  remove(key: string): void {
    const claimant = this.#bindings.get(key);
    if (claimant === undefined) return;
    claimant.binding = undefined;
    claimant.resolved = undefined;
    claimant.isDue = true;
  }

  /** Whether an update would record something that was noted. */
  isDue(key: string): boolean {
    return this.#bindings.get(key)?.isDue === true;
  }

  /**
   * Replaces the claims of a binding if their state has changed. Returns the bindings to reconcile; none if `isReported` is false, since
   * finding them takes most of the time. Updates of one binding may not overlap.
   */
  *update(key: string, isReported = true): Generator<void, Set<string>> {
    const concerned = new Set<string>();
    const claimant = this.#bindings.get(key);
    if (!claimant?.isDue) return concerned;
    claimant.isDue = false;
    const { binding, resolved, objects, recorded } = claimant;
    claimant.recorded = { binding, resolved };
    const isKnown = recorded.resolved === resolved && (yield* decidesTheSame(recorded.binding, binding));
    if (isKnown && binding !== undefined) return concerned;
    const after = binding === undefined ? new Map<string, FieldClaim[]>() : yield* claimsOf(key, binding, resolved);
    const changeBetween = eachOnce(changed);
    for (const object of new Set([...objects, ...after.keys()])) {
      yield;
      // For an index.
      if ((this.#byObject.get(object)?.size ?? 0) >= FEW)
        for (const { paths } of after.get(object) ?? NONE) yield* parsing(paths);
      const there = this.#byObject.get(object) ?? new ObjectClaims(this.#indexed);
      const [was, now] = [there.get(key), after.get(object) ?? NONE];
      const changes = changeBetween(was, now);
      if (changes.length === 0) continue;
      there.set(key, now);
      if (now.length === 0) objects.delete(object);
      else objects.add(object);
      if (there.size === 0) this.#byObject.delete(object);
      else this.#byObject.set(object, there);
      if (!isReported) continue;
      for (const other of yield* concernedBy(changes.filter(mayDecide), key, there)) concerned.add(other.key);
    }
    if (binding === undefined && claimant.binding === undefined) this.#bindings.delete(key);
    return concerned;
  }
}

/** How often a walk over objects may be interrupted. */
const STEP = 256;

const NONE: readonly FieldClaim[] = [];

/** Whether the claims of two states of a binding are the same, beside what its targets resolve to. */
function* decidesTheSame(a: Claimant["binding"], b: Claimant["binding"]): Generator<void, boolean> {
  if (a === undefined || b === undefined) return a === b;
  if (!isDeepStrictEqual(decisive(a), decisive(b))) return false;
  for (const listsOf of [({ spec }: StoredBinding) => spec.targets, ({ status }: StoredBinding) => status?.targets]) {
    const [before, after] = [listsOf(a) ?? [], listsOf(b) ?? []];
    if (before.length !== after.length) return false;
    for (const [n, each] of before.entries()) {
      yield;
      if (!isDeepStrictEqual(each, after[n])) return false;
    }
  }
  return true;
}

const decisive = ({ metadata, spec, status }: StoredBinding) => [
  [metadata.uid, metadata.generation, metadata.creationTimestamp, metadata.deletionTimestamp],
  [spec.serviceAccountName, spec.suspend],
  [status === undefined, status?.observedGeneration, readyOf(status)],
];

const readyOf = (status: StoredBinding["status"]) => status?.conditions?.find(({ type }) => type === "Ready")?.status;

/** What decides the claims on one object. Numbers are positions in lists that all objects of the binding share. */
interface Parts {
  records: number[];
  created: boolean;
  named: number[];
}

function* claimsOf(
  key: string,
  binding: StoredBinding,
  resolved: Claimant["resolved"],
): Generator<void, Map<string, readonly FieldClaim[]>> {
  const { metadata, spec, status } = binding;
  const stored = status?.targets ?? [];
  const names: PathList[] = [];
  const parts = new Map<string, Parts>();
  const partsOf = (object: string): Parts =>
    getOrInsert(parts, object, () => ({ records: [], created: false, named: [] }));
  for (const [position, entry] of stored.entries()) {
    yield;
    for (const [n, record] of expand([entry]).entries()) {
      if (n % STEP === STEP - 1) yield;
      const at = partsOf(recordId(record));
      at.records.push(position);
      at.created ||= record.created === true && record.uid !== undefined;
    }
  }
  const places = new Map<PathList, number>();
  const addNamed = (object: string, paths: PathList) => {
    partsOf(object).named.push(getOrInsert(places, paths, () => names.push(paths) - 1));
  };
  for (const [n, [object, paths]] of namedIn(binding, resolved).entries()) {
    if (n % STEP === 0) yield;
    addNamed(object, paths);
  }
  const who = { key, account: spec.serviceAccountName, createdAt: metadata.creationTimestamp ?? "" };
  const claimsFor = ({ records, created, named }: Parts): FieldClaim[] => {
    const claim = (paths: readonly string[], is: Partial<FieldClaim>): FieldClaim[] =>
      paths.length === 0 ? [] : [{ ...who, paths, held: false, pending: false, passed: false, created, ...is }];
    const states = records.flatMap((at) => stored[at] ?? []);
    const state = states.at(-1);
    const isPassed = isPassedOver(binding, state);
    const awaited = new Set(state?.awaitedPaths);
    const [isNext, isLast] = [(path: string) => !isPassed || awaited.has(path), (path: string) => !isNext(path)];
    return [
      ...states.flatMap((each) => [
        ...claim(each.paths ?? [], { held: true }),
        ...claim(pendingPaths(each), { held: true, pending: true }),
      ]),
      ...named.flatMap((at) => {
        const paths = [...(names[at] ?? [])];
        return [...claim(paths.filter(isNext), {}), ...claim(paths.filter(isLast), { passed: true })];
      }),
    ];
  };
  const shared = new Map<string, readonly FieldClaim[]>();
  const claims = new Map<string, readonly FieldClaim[]>();
  for (const [object, each] of parts) {
    if (claims.size % STEP === 0) yield;
    const { records, created, named } = each;
    const text = `${records} ${created} ${named}`;
    let own = shared.get(text);
    if (own === undefined) {
      yield;
      own = claimsFor(each);
      shared.set(text, own);
    }
    if (own.length > 0) claims.set(object, own);
  }
  return claims;
}

/** The objects that a binding names, with the paths there. */
function namedIn({ metadata, spec }: StoredBinding, resolved: Claimant["resolved"]): [string, PathList][] {
  // A suspended or deleted binding writes nothing, so it claims only what it owns.
  if (spec.suspend || metadata.deletionTimestamp !== undefined) return [];
  if (resolved?.uid === metadata.uid && resolved.generation === metadata.generation)
    return resolved.named.map(({ ref, paths }) => [idOf(ref), paths]);
  // Until the selectors and the scopes of the kinds are resolved, only targets with a name count.
  return spec.targets.flatMap(
    ({ apiVersion, kind, name, namespace = metadata.namespace, fields, namespaceSelector }) => {
      if (name === undefined || namespaceSelector !== undefined) return [];
      const { group } = parseApiVersion(apiVersion);
      return [[objectId({ group, kind }, namespace, name), fieldsOfTarget({ fields }).map(({ path }) => path)]];
    },
  );
}

/** Compares each pair of objects once. */
function eachOnce<T extends object, R>(compare: (a: T, b: T) => R): (a: T, b: T) => R {
  const known = new Map<T, Map<T, R>>();
  return (a, b) => {
    const those = getOrInsert(known, a, () => new Map<T, R>());
    return getOrInsert(those, b, () => compare(a, b));
  };
}

function isSameTargets(known: readonly ResolvedTarget[], now: readonly ResolvedTarget[]): boolean {
  const isSame = eachOnce((a: PathList, b: PathList) => isDeepStrictEqual([...a], [...b]));
  return (
    known.length === now.length &&
    known.every(({ ref, paths }, at) => {
      const other = now[at];
      return other !== undefined && idOf(ref) === idOf(other.ref) && isSame(paths, other.paths);
    })
  );
}

/**
 * Whether the fields that a binding names and does not own have no precedence: the status is of the current spec, and its reason for the
 * object is one that only the author of the binding can fix. A missing object is no such reason, since it is missing for every binding.
 */
function isPassedOver({ metadata, status }: StoredBinding, record: Pick<TargetStatus, "reason"> | undefined): boolean {
  if (status === undefined || status.observedGeneration !== metadata.generation) return false;
  if (record !== undefined) return record.reason !== "Pending" && record.reason !== "TargetNotFound";
  return readyOf(status) === "False" && (status.targets ?? []).length === 0;
}

/** The paths of an object that a binding owns, or may own after an interrupted write. */
export function claimedPaths(record: TargetStatus): string[] {
  return [...(record.paths ?? []), ...pendingPaths(record)];
}

/** While a write is refused, its announced paths stay on record without precedence. */
function pendingPaths({
  reason,
  paths,
  pendingPaths: announced = [],
}: Pick<TargetStatus, "reason" | "paths" | "pendingPaths">): string[] {
  if (!UNKNOWN.includes(reason)) return [];
  const owned = new Set(paths);
  return announced.filter((path) => !owned.has(path));
}

/**
 * Returns the claims of other bindings that a change of claims concerns. A change of owned fields follows a write and concerns all. Any
 * other change concerns only the next in line: the oldest claim of each account that may wait for the path. Its binding then owns the path
 * or gives up its precedence, which is a change that concerns the next claim.
 */
function* concernedBy(
  changes: readonly FieldClaim[],
  key: string,
  there: ObjectClaims,
): Generator<void, readonly FieldClaim[]> {
  const paths = changes.map((claim) => claim.paths);
  if (changes.some((claim) => claim.created || isHeldForSure(claim))) return yield* there.others(key, paths);
  // A write with an unknown outcome keeps older bindings out too.
  const isForAll = changes.some(({ pending }) => pending);
  const oldest = changes.map(ageOf).reduce((a, b) => (a < b ? a : b), "~");
  const isWaiting = (claim: FieldClaim) => !claim.held && !claim.passed && (isForAll || ageOf(claim) > oldest);
  return yield* firstOfAccounts(yield* byAge(yield* there.others(key, paths, isWaiting)));
}

/**
 * Drops each claim whose paths an older claim of the same account names completely. If the account may write, the older claim has
 * precedence. If it may not, the dropped claim could not be written either.
 */
function* firstOfAccounts<T extends FieldClaim>(claims: readonly T[]): Generator<void, T[]> {
  const first: T[] = [];
  const named = new Map<string, Set<string>>();
  for (const claim of claims) {
    yield;
    const seen = getOrInsert(named, accountOf(claim), () => new Set());
    const isAlwaysFirst = claim.held || claim.created;
    if (isAlwaysFirst || claim.paths.some((path) => !seen.has(path))) first.push(claim);
    if (!isAlwaysFirst) for (const path of claim.paths) seen.add(path);
  }
  return first;
}

/** The service account of a claim, with its namespace. */
export const accountOf = ({ key, account }: FieldClaim) => `${namespaceIn(key)}/${account}`;

const isHeldForSure = ({ held, pending }: FieldClaim) => held && !pending;

/** A `passed` claim decides nothing, unless its binding created the object. */
const mayDecide = ({ held, created, passed }: FieldClaim) => held || created || !passed;

/** The claims that are in only one of the lists. */
const changed = (was: readonly FieldClaim[], now: readonly FieldClaim[]): FieldClaim[] =>
  was === now ? [] : [...notIn(now, was), ...notIn(was, now)];

const notIn = (others: readonly FieldClaim[], claims: readonly FieldClaim[]) =>
  claims.filter((claim) => !others.some((other) => isDeepStrictEqual(claim, other)));

/** What bindings claim on one object. */
class ObjectClaims {
  readonly #byKey = new Map<string, readonly FieldClaim[]>();
  readonly #indexed: { paths: number };
  #index: PathIndex | undefined;
  /** Bindings from before the index. Their paths are not parsed for it, since that takes long for all of them at once. */
  #unindexed = new Set<string>();

  /** `indexed` counts the paths in the indexes of all objects. */
  constructor(indexed: { paths: number }) {
    this.#indexed = indexed;
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): readonly FieldClaim[] {
    return this.#byKey.get(key) ?? NONE;
  }

  set(key: string, claims: readonly FieldClaim[]): void {
    // Without an index, no path is parsed.
    if (this.#index && !this.#unindexed.delete(key))
      for (const path of pathsIn(this.get(key))) this.#index.delete(path, key);
    const isNew = this.#index === undefined && !this.#byKey.has(key) && this.size === FEW;
    if (isNew && this.#indexed.paths < MAX_INDEXED) {
      this.#index = new PathIndex(this.#indexed);
      this.#unindexed = new Set(this.#byKey.keys());
    }
    if (claims.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, claims);
    if (this.#index === undefined) return;
    for (const path of pathsIn(claims)) this.#index.add(path, key);
    if (this.size > FEW && this.#indexed.paths <= MAX_INDEXED) return;
    this.#index.end();
    this.#index = undefined;
    this.#unindexed.clear();
  }

  /** Claims of others that match `isWanted` and touch one of the paths. */
  *others(
    key: string,
    paths: readonly PathList[],
    isWanted: (claim: FieldClaim) => boolean = () => true,
  ): Generator<void, FieldClaim[]> {
    if (this.size <= (this.#byKey.has(key) ? 1 : 0)) return [];
    const found: FieldClaim[] = [];
    for (const each of yield* this.#keysTouching(paths)) {
      yield;
      if (each === key) continue;
      for (const claim of this.get(each))
        if (isWanted(claim) && (yield* touchesAny(claim.paths, paths))) found.push(claim);
    }
    return found;
  }

  /** The bindings that may touch one of the paths. */
  *#keysTouching(lists: readonly PathList[]): Generator<void, Iterable<string>> {
    const index = this.#index;
    if (index === undefined) return [...this.#byKey.keys()];
    const unindexed = [...this.#unindexed];
    const paths: (readonly FieldPath[])[] = [];
    for (const each of lists) paths.push(yield* parsing(each));
    return new Set([...unindexed, ...(yield* index.touching(paths.flat()))]);
  }
}

const pathsIn = (claims: readonly FieldClaim[]) => claims.flatMap(({ paths }) => parsedPaths(paths));

function* touchesAny(paths: PathList, others: readonly PathList[]): Generator<void, boolean> {
  for (const each of others) if (yield* touches(paths, each)) return true;
  return false;
}

/** Whether lists of paths touch each other. What is known is forgotten at once when it is too much. */
let touching = new WeakMap<PathList, WeakMap<PathList, boolean>>();
let pairs = 0;

function* touches(paths: PathList, others: PathList): Generator<void, boolean> {
  const known = touching.get(paths)?.get(others);
  if (known !== undefined) return known;
  let isTouching = false;
  const those = yield* parsing(others);
  for (const path of yield* parsing(paths)) {
    isTouching = those.some((other) => mayOverlap(path, other));
    if (isTouching) break;
    yield;
  }
  if (++pairs > MAX_PAIRS) [touching, pairs] = [new WeakMap(), 0];
  getOrInsert(touching, paths, () => new WeakMap()).set(others, isTouching);
  return isTouching;
}

/** From the one that was parsed first. */
const parsed = new BoundedMap<PathList, readonly FieldPath[]>(Infinity, MAX_PARSED, (_, paths) => charactersIn(paths));

/** The parsed paths of a list, which are kept for the next time up to a total size. */
export const parsedPaths = (paths: PathList): readonly FieldPath[] => finish(parsing(paths));

function* parsing(paths: PathList): Generator<void, readonly FieldPath[]> {
  const known = parsed.get(paths);
  if (known !== undefined) return known;
  const all = [...paths];
  const now: FieldPath[] = [];
  for (let at = 0; at < all.length; at += STEP) {
    if (at > 0) yield;
    now.push(...parsePaths(all.slice(at, at + STEP)));
  }
  parsed.set(paths, now);
  return now;
}

/** A list without paths takes memory too. */
function charactersIn(paths: PathList): number {
  let sum = LEAST_CHARACTERS;
  for (const { length } of paths) sum += length;
  return sum;
}

/** The oldest first. */
function* byAge<T extends FieldClaim>(claims: readonly T[]): Generator<void, T[]> {
  const aged: Aged<T>[] = [];
  for (const claim of claims) {
    yield;
    aged.push({ claim, age: ageOf(claim) });
  }
  return (yield* sorted(aged)).map(({ claim }) => claim);
}

interface Aged<T> {
  claim: T;
  age: string;
}

/** Sorts the halves of long lists, and merges them. */
function* sorted<T>(claims: readonly Aged<T>[]): Generator<void, Aged<T>[]> {
  yield;
  if (claims.length <= STEP) return claims.toSorted((a, b) => (a.age < b.age ? -1 : a.age > b.age ? 1 : 0));
  const middle = Math.ceil(claims.length / 2);
  const [first, second] = [yield* sorted(claims.slice(0, middle)), yield* sorted(claims.slice(middle))];
  const merged: Aged<T>[] = [];
  let at = 0;
  for (const each of first) {
    for (let next = second[at]; next !== undefined && next.age < each.age; next = second[++at]) merged.push(next);
    merged.push(each);
  }
  return [...merged, ...second.slice(at)];
}

/** A text that sorts by creation, then namespace, then name. A blank sorts before all characters of names. */
const ageOf = ({ key, createdAt, created }: Pick<FieldClaim, "key" | "createdAt" | "created">) =>
  `${created ? "" : createdAt} ${key.replace("/", " ")}`;
