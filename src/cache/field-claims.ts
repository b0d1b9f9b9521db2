/**
 * Records which fields of which objects each binding names in its spec, and which it owns by its status. Returns the competing claims on an
 * object, and the bindings that a change of claims concerns. The named fields are exact once the targets of the binding are resolved.
 */
import { isDeepStrictEqual } from "node:util";
import { bindingKey, namespaceIn, recordId, type StoredBinding, type TargetStatus } from "../api/binding.ts";
import { expand } from "../api/status-records.ts";
import { isStub } from "../api/stub.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { idOf, type ObjectRef, objectId, parseApiVersion } from "../apimachinery/objects.ts";
import { mayOverlap, parsePaths } from "../apimachinery/path-overlap.ts";
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

/** An object that a target of a binding resolves to, and the paths that the binding names there. */
export interface ResolvedTarget {
  ref: ObjectRef;
  paths: readonly string[];
}

/** Reasons of a record whose announced paths are being written, or may have been written before a write was interrupted. */
const UNKNOWN = ["Pending", "Unavailable"];

/** If more bindings than these claim an object, an index finds the claims on a path. */
const FEW = 16;

export class FieldClaims {
  readonly #byObject = new Map<string, ObjectClaims>();
  readonly #bindings = new Map<string, { binding: StoredBinding; objects: readonly string[] }>();
  /** The result of the last resolution. */
  readonly #resolved = new Map<
    string,
    { uid: string; generation: number | undefined; named: readonly ResolvedTarget[] }
  >();

  /**
   * Returns claims of other bindings that may keep the binding from one of the paths or from its own claims. Owned claims come first, then
   * older claims that are only named and not `passed`, the oldest first. The binding that created the object counts as the oldest there, so
   * younger bindings never keep it from a path.
   */
  competing(
    { key, createdAt }: Pick<FieldClaim, "key" | "createdAt">,
    ref: ObjectRef,
    paths: Iterable<string>,
  ): CompetingClaim[] {
    const there = this.#byObject.get(idOf(ref));
    if (there === undefined) return [];
    const own = there.get(key);
    const created = own.some((claim) => claim.created);
    const age = ageOf({ key, createdAt, created });
    const others = there
      .others(key, [...paths, ...own.flatMap((claim) => claim.paths)], mayDecide)
      .filter((claim) => ageOf(claim) < age || (claim.held && !created));
    const [held, named] = [others.filter(isHeldForSure), others.filter((claim) => !isHeldForSure(claim))];
    const inOrder = [...byAge(held), ...firstOfAccounts(byAge(named))];
    return inOrder.map((claim) => ({ ...claim, isOlder: ageOf(claim) < age }));
  }

  /** Replaces the claims of a binding by its current spec and status. Returns the bindings to reconcile. */
  put(binding: StoredBinding): Set<string> {
    // A stub names no targets.
    if (isStub(binding)) this.#resolved.delete(bindingKey(binding));
    return this.#index(bindingKey(binding), binding);
  }

  /** Records the objects that a binding's targets resolve to. Returns the bindings to reconcile. */
  resolved(key: string, named: readonly ResolvedTarget[]): Set<string> {
    const binding = this.#bindings.get(key)?.binding;
    if (binding === undefined) return new Set();
    const { uid, generation } = binding.metadata;
    const known = this.#resolved.get(key);
    if (known?.uid === uid && known.generation === generation && isSameTargets(known.named, named)) return new Set();
    this.#resolved.set(key, { uid, generation, named });
    return this.#index(key, binding);
  }

  remove(key: string): Set<string> {
    this.#resolved.delete(key);
    return this.#index(key, undefined);
  }

  #index(key: string, binding: StoredBinding | undefined): Set<string> {
    const after = binding === undefined ? new Map<string, FieldClaim[]>() : this.#claimsOf(key, binding);
    const before = this.#bindings.get(key)?.objects ?? [];
    if (binding === undefined) this.#bindings.delete(key);
    else this.#bindings.set(key, { binding, objects: [...after.keys()] });
    const concerned = new Set<string>();
    for (const object of new Set([...before, ...after.keys()])) {
      const there = this.#byObject.get(object) ?? new ObjectClaims();
      const [was, now] = [there.get(key), after.get(object) ?? []];
      if (isDeepStrictEqual(was, now)) continue;
      there.set(key, now);
      if (there.size === 0) this.#byObject.delete(object);
      else this.#byObject.set(object, there);
      const changed = [...notIn(now, was), ...notIn(was, now)].filter(mayDecide);
      for (const other of concernedBy(changed, key, there)) concerned.add(other.key);
    }
    return concerned;
  }

  #claimsOf(key: string, binding: StoredBinding): Map<string, FieldClaim[]> {
    const { metadata, spec, status } = binding;
    const claims = new Map<string, FieldClaim[]>();
    const who = { key, account: spec.serviceAccountName, createdAt: metadata.creationTimestamp ?? "" };
    const records = new Map<string, TargetStatus>();
    const created = new Set<string>();
    const add = (
      object: string,
      paths: readonly string[],
      is: Partial<Pick<FieldClaim, "held" | "pending" | "passed">>,
    ) => {
      const claim = { ...who, paths, held: false, pending: false, passed: false, created: created.has(object), ...is };
      if (paths.length > 0) claims.set(object, [...(claims.get(object) ?? []), claim]);
    };
    const addNamed = (object: string, paths: readonly string[]) => {
      const record = records.get(object);
      const isPassed = (path: string) => isPassedOver(binding, record) && !record?.awaitedPaths?.includes(path);
      for (const passed of [false, true]) {
        const those = paths.filter((path) => isPassed(path) === passed);
        add(object, those, { passed });
      }
    };
    for (const record of expand(status?.targets ?? [])) {
      records.set(recordId(record), record);
      if (record.created && record.uid !== undefined) created.add(recordId(record));
      add(recordId(record), record.paths ?? [], { held: true });
      add(recordId(record), pendingPaths(record), { held: true, pending: true });
    }
    // A suspended or deleted binding writes nothing, so it claims only what it owns.
    if (spec.suspend || metadata.deletionTimestamp !== undefined) return claims;
    const resolved = this.#resolved.get(key);
    if (resolved?.uid === metadata.uid && resolved.generation === metadata.generation) {
      for (const { ref, paths } of resolved.named) addNamed(idOf(ref), paths);
      return claims;
    }
    // Until the selectors and the scopes of the kinds are resolved, only targets with a name count.
    for (const { apiVersion, kind, name, namespace = metadata.namespace, fields, namespaceSelector } of spec.targets) {
      if (name === undefined || namespaceSelector !== undefined) continue;
      const paths = fields.map(({ path }) => path);
      addNamed(objectId({ group: parseApiVersion(apiVersion).group, kind }, namespace, name), paths);
    }
    return claims;
  }
}

const isSameTargets = (known: readonly ResolvedTarget[], now: readonly ResolvedTarget[]): boolean =>
  known.length === now.length &&
  known.every(({ ref, paths }, at) => {
    const other = now[at];
    return other !== undefined && idOf(ref) === idOf(other.ref) && isDeepStrictEqual(paths, other.paths);
  });

/**
 * Whether the fields that a binding names and does not own have no precedence: the status is of the current spec, and its reason for the
 * object is one that only the author of the binding can fix. A missing object is no such reason, since it is missing for every binding.
 */
function isPassedOver({ metadata, status }: StoredBinding, record: TargetStatus | undefined): boolean {
  if (status === undefined || status.observedGeneration !== metadata.generation) return false;
  if (record !== undefined) return record.reason !== "Pending" && record.reason !== "TargetNotFound";
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "False" && (status.targets ?? []).length === 0;
}

/** The paths of an object that a binding owns, or may own after an interrupted write. */
export function claimedPaths(record: TargetStatus): string[] {
  return [...(record.paths ?? []), ...pendingPaths(record)];
}

/** While a write is refused, its announced paths stay on record without precedence. */
function pendingPaths({ reason, paths, pendingPaths: announced = [] }: TargetStatus): string[] {
  return UNKNOWN.includes(reason) ? announced.filter((path) => !paths?.includes(path)) : [];
}

/**
 * Returns the claims of other bindings that a change of claims concerns. A change of owned fields follows a write and concerns all. Any
 * other change concerns only the next in line: the oldest claim of each account that may wait for the path. Its binding then owns the path
 * or gives up its precedence, which is a change that concerns the next claim.
 */
function concernedBy(changed: readonly FieldClaim[], key: string, there: ObjectClaims): FieldClaim[] {
  const paths = changed.flatMap((claim) => claim.paths);
  if (changed.some((claim) => claim.created || isHeldForSure(claim))) return there.others(key, paths);
  // A write with an unknown outcome keeps older bindings out too.
  const isForAll = changed.some(({ pending }) => pending);
  const oldest = changed.map(ageOf).reduce((a, b) => (a < b ? a : b), "~");
  const isWaiting = (claim: FieldClaim) => !claim.held && !claim.passed && (isForAll || ageOf(claim) > oldest);
  return firstOfAccounts(byAge(there.others(key, paths, isWaiting)));
}

/**
 * Drops each claim whose paths an older claim of the same account names completely. If the account may write, the older claim has
 * precedence. If it may not, the dropped claim could not be written either.
 */
function firstOfAccounts(claims: readonly FieldClaim[]): FieldClaim[] {
  const seen = new Set<string>();
  return claims.filter((claim) => {
    if (claim.held || claim.created) return true;
    const all = claim.paths.map((path) => `${accountOf(claim)} ${path}`);
    const isFirst = all.some((each) => !seen.has(each));
    for (const each of all) seen.add(each);
    return isFirst;
  });
}

/** The service account of a claim, with its namespace. */
export const accountOf = ({ key, account }: FieldClaim) => `${namespaceIn(key)}/${account}`;

const isHeldForSure = ({ held, pending }: FieldClaim) => held && !pending;

/** A `passed` claim decides nothing, unless its binding created the object. */
const mayDecide = ({ held, created, passed }: FieldClaim) => held || created || !passed;

const notIn = (others: readonly FieldClaim[], claims: readonly FieldClaim[]) =>
  claims.filter((claim) => !others.some((other) => isDeepStrictEqual(claim, other)));

/** What bindings claim on one object. */
class ObjectClaims {
  readonly #byKey = new Map<string, readonly FieldClaim[]>();
  #index: PathIndex | undefined;

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): readonly FieldClaim[] {
    return this.#byKey.get(key) ?? [];
  }

  set(key: string, claims: readonly FieldClaim[]): void {
    // Without an index, no path is parsed: parsed paths are far larger than their text.
    if (this.#index) for (const path of pathsIn(this.get(key))) this.#index.delete(path, key);
    if (claims.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, claims);
    if (this.size <= FEW) this.#index = undefined;
    else if (this.#index === undefined) this.#index = this.#indexed();
    else for (const path of pathsIn(claims)) this.#index.add(path, key);
  }

  /** Claims of others that match `isWanted` and touch one of the paths. */
  others(key: string, paths: Iterable<string>, isWanted: (claim: FieldClaim) => boolean = () => true): FieldClaim[] {
    if (this.size <= (this.#byKey.has(key) ? 1 : 0)) return [];
    const asked = parsePaths(new Set(paths));
    const index = this.#index;
    const keys = index ? new Set(asked.flatMap((path) => [...index.touching(path)])) : this.#byKey.keys();
    return [...keys]
      .filter((each) => each !== key)
      .flatMap((each) => this.get(each))
      .filter(
        (claim) => isWanted(claim) && parsedPaths(claim).some((path) => asked.some((other) => mayOverlap(path, other))),
      );
  }

  #indexed(): PathIndex {
    const index = new PathIndex();
    for (const [key, claims] of this.#byKey) for (const path of pathsIn(claims)) index.add(path, key);
    return index;
  }
}

const pathsIn = (claims: readonly FieldClaim[]) => claims.flatMap(parsedPaths);

const parsed = new WeakMap<readonly string[], readonly FieldPath[]>();

/** The parsed paths of a claim. Each claim is parsed once. */
export function parsedPaths({ paths }: FieldClaim): readonly FieldPath[] {
  const known = parsed.get(paths) ?? parsePaths(paths);
  parsed.set(paths, known);
  return known;
}

const byAge = (claims: readonly FieldClaim[]) =>
  claims
    .map((claim) => ({ claim, age: ageOf(claim) }))
    .sort((a, b) => (a.age < b.age ? -1 : 1))
    .map(({ claim }) => claim);

/** A text that sorts by creation, then namespace, then name. A blank sorts before all characters of names. */
const ageOf = ({ key, createdAt, created }: Pick<FieldClaim, "key" | "createdAt" | "created">) =>
  `${created ? "" : createdAt} ${key.replace("/", " ")}`;
