/**
 * What each binding names of which object, and what it holds there by record, comes in; who is at an object goes out, and
 * whom it concerns when that changes. A binding names what its spec says, exactly once its targets were resolved.
 */
import { isDeepStrictEqual } from "node:util";
import { bindingKey, namespaceIn, recordId, type StoredBinding, type TargetStatus } from "../api/binding.ts";
import { expand } from "../api/status-records.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { idOf, type ObjectRef, objectId, parseApiVersion } from "../apimachinery/objects.ts";
import { mayOverlap, parsePaths } from "../apimachinery/path-overlap.ts";
import { PathIndex } from "./path-index.ts";

/** What a binding names, or holds, of one object. */
export interface FieldClaim {
  /** The binding's. */
  key: string;
  account: string;
  createdAt: string;
  paths: readonly string[];
  /** Written by record, or about to be. Else it is only named. */
  held: boolean;
  /** It is held by a write of which it is not known whether it was made, so that the account may write there is not known either. */
  pending: boolean;
  /**
   * It is only named, and status says of the current spec that it is not written for a reason of the binding's own. What
   * waits for another binding is not passed over: it is next when that one gives it up.
   */
  passed: boolean;
  /** The binding made the object, by record. */
  made: boolean;
}

/** A claim that may keep a binding from a path: an older one, or a younger one that holds it. */
export interface CompetingClaim extends FieldClaim {
  isOlder: boolean;
}

/** An object that a binding was found to be about, and the paths that it names there. */
export interface ResolvedTarget {
  ref: ObjectRef;
  paths: readonly string[];
}

/** Reasons of a record whose announced paths are being written, or may have been by a write that was cut off. */
const UNKNOWN = ["Pending", "Unavailable"];

/** With more bindings than these at an object, those at a path are found by an index. */
const FEW = 16;

export class FieldClaims {
  readonly #byObject = new Map<string, ObjectClaims>();
  readonly #bindings = new Map<string, { binding: StoredBinding; objects: readonly string[] }>();
  /** What was resolved last. */
  readonly #resolved = new Map<
    string,
    { uid: string; generation: number | undefined; named: readonly ResolvedTarget[] }
  >();

  /**
   * Claims of others on an object that touch one of the paths, or what the binding itself claims there, and may keep the
   * binding from it: what is held by others, then what older bindings name and do not pass over, the oldest first. The
   * binding that made the object is the oldest there, and is kept from nothing by younger ones.
   */
  competing(
    { key, createdAt }: Pick<FieldClaim, "key" | "createdAt">,
    ref: ObjectRef,
    paths: Iterable<string>,
  ): CompetingClaim[] {
    const there = this.#byObject.get(idOf(ref));
    if (there === undefined) return [];
    const own = there.get(key);
    const made = own.some((claim) => claim.made);
    const age = ageOf({ key, createdAt, made });
    const others = there
      .others(key, [...paths, ...own.flatMap((claim) => claim.paths)], mayDecide)
      .filter((claim) => ageOf(claim) < age || (claim.held && !made));
    const [held, named] = [others.filter(isHeldForSure), others.filter((claim) => !isHeldForSure(claim))];
    const inOrder = [...byAge(held), ...firstOfAccounts(byAge(named))];
    return inOrder.map((claim) => ({ ...claim, isOlder: ageOf(claim) < age }));
  }

  /** Takes what a binding says and records now. Returns the bindings that have to look again. */
  put(binding: StoredBinding): Set<string> {
    return this.#index(bindingKey(binding), binding);
  }

  /** Takes the objects that the targets of a binding are. Returns the bindings that have to look again. */
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
    const made = new Set<string>();
    const add = (
      object: string,
      paths: readonly string[],
      is: Partial<Pick<FieldClaim, "held" | "pending" | "passed">>,
    ) => {
      const claim = { ...who, paths, held: false, pending: false, passed: false, made: made.has(object), ...is };
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
      if (record.created && record.uid !== undefined) made.add(recordId(record));
      add(recordId(record), record.paths ?? [], { held: true });
      add(recordId(record), pendingPaths(record), { held: true, pending: true });
    }
    // Who writes nothing keeps what is his, and no more.
    if (spec.suspend || metadata.deletionTimestamp !== undefined) return claims;
    const resolved = this.#resolved.get(key);
    if (resolved?.uid === metadata.uid && resolved.generation === metadata.generation) {
      for (const { ref, paths } of resolved.named) addNamed(idOf(ref), paths);
      return claims;
    }
    // Until it is known what they select, and which kinds belong to the cluster.
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
 * Whether what a binding names of an object, and does not hold, has no precedence: status has come to the current spec,
 * and what it says of the object is the binding's own to mend. That an object is not there yet is the same for all.
 */
function isPassedOver({ metadata, status }: StoredBinding, record: TargetStatus | undefined): boolean {
  if (status === undefined || status.observedGeneration !== metadata.generation) return false;
  if (record !== undefined) return record.reason !== "Pending" && record.reason !== "TargetNotFound";
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  return ready?.status === "False" && (status.targets ?? []).length === 0;
}

/** The paths of an object that are a binding's, or may be after a write that was cut off. */
export function claimedPaths(record: TargetStatus): string[] {
  return [...(record.paths ?? []), ...pendingPaths(record)];
}

/** What was announced stays on record while its write is refused, and has no precedence then. */
function pendingPaths({ reason, paths, pendingPaths: announced = [] }: TargetStatus): string[] {
  return UNKNOWN.includes(reason) ? announced.filter((path) => !paths?.includes(path)) : [];
}

/**
 * Claims of others that a change of claims concerns. A change of what is held for sure follows a write, and concerns all.
 * Any other change concerns only the next in line: the oldest of each account that may be waiting for it. That one takes
 * the path and holds it, or passes it on, which is a change that concerns the one after it.
 */
function concernedBy(changed: readonly FieldClaim[], key: string, there: ObjectClaims): FieldClaim[] {
  const paths = changed.flatMap((claim) => claim.paths);
  if (changed.some((claim) => claim.made || isHeldForSure(claim))) return there.others(key, paths);
  // A write that may have been made keeps older bindings out too.
  const isForAll = changed.some(({ pending }) => pending);
  const oldest = changed.map(ageOf).reduce((a, b) => (a < b ? a : b), "~");
  const isWaiting = (claim: FieldClaim) => !claim.held && !claim.passed && (isForAll || ageOf(claim) > oldest);
  return firstOfAccounts(byAge(there.others(key, paths, isWaiting)));
}

/**
 * Leaves out claims of which an older one of the same account names all paths. If the account may write, the older one keeps
 * the path from them; if not, they can't write it either.
 */
function firstOfAccounts(claims: readonly FieldClaim[]): FieldClaim[] {
  const seen = new Set<string>();
  return claims.filter((claim) => {
    if (claim.held || claim.made) return true;
    const all = claim.paths.map((path) => `${accountOf(claim)} ${path}`);
    const isFirst = all.some((each) => !seen.has(each));
    for (const each of all) seen.add(each);
    return isFirst;
  });
}

/** The service account of a claim, with its namespace. */
export const accountOf = ({ key, account }: FieldClaim) => `${namespaceIn(key)}/${account}`;

const isHeldForSure = ({ held, pending }: FieldClaim) => held && !pending;

/** What is named and passed over decides nothing, unless its binding made the object. */
const mayDecide = ({ held, made, passed }: FieldClaim) => held || made || !passed;

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
    for (const path of pathsIn(this.get(key))) this.#index?.delete(path, key);
    if (claims.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, claims);
    for (const path of pathsIn(claims)) this.#index?.add(path, key);
    if (this.size <= FEW) this.#index = undefined;
    else this.#index ??= this.#indexed();
  }

  /** Claims of others that are wanted and touch one of the paths. */
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

/** The paths of a claim, which are parsed once. */
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

/** By creation, then namespace, then name, as a text that sorts like that: a blank comes before all that names have. */
const ageOf = ({ key, createdAt, made }: Pick<FieldClaim, "key" | "createdAt" | "made">) =>
  `${made ? "" : createdAt} ${key.replace("/", " ")}`;
