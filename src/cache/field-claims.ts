/**
 * What each binding names of which object, and what it holds there by record, comes in; who is at an object goes out, and
 * whom it concerns when that changes. A binding names what its spec says, exactly once its targets were resolved.
 */
import { isDeepStrictEqual } from "node:util";
import { bindingKey, recordId, type StoredBinding, type TargetStatus } from "../api/binding.ts";
import { expand } from "../api/status-records.ts";
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
   * Claims of others on an object that touch one of the paths, or what the binding itself claims there: those of older
   * bindings, and what younger ones hold; the oldest first. Who made the object is the oldest there, and is kept from nothing
   * by younger ones.
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
    return there
      .others(key, [...paths, ...own.flatMap((claim) => claim.paths)])
      .map((claim) => ({ claim, age: ageOf(claim) }))
      .filter((each) => each.age < age || (each.claim.held && !made))
      .sort((a, b) => (a.age < b.age ? -1 : 1))
      .map((each) => ({ ...each.claim, isOlder: each.age < age }));
  }

  /** Takes what a binding says and records now. Returns the bindings whom that concerns. */
  put(binding: StoredBinding): Set<string> {
    return this.#index(bindingKey(binding), binding);
  }

  /** Takes the objects that the targets of a binding are. Returns the bindings whom that concerns. */
  resolved(key: string, named: readonly ResolvedTarget[]): Set<string> {
    const binding = this.#bindings.get(key)?.binding;
    if (binding === undefined) return new Set();
    const { uid, generation } = binding.metadata;
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
      const changed = [...was, ...now];
      const oldest = changed.map(ageOf).reduce((a, b) => (a < b ? a : b));
      const paths = changed.flatMap((claim) => claim.paths);
      const isHeld = changed.some(({ held }) => held);
      for (const other of there.others(key, paths)) if (isHeld || ageOf(other) > oldest) concerned.add(other.key);
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

/**
 * Whether what a binding names of an object, and does not hold, keeps nobody from it: status has come to the current spec,
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

/** What was announced stays on record while its write is refused, and is nobody's then. */
function pendingPaths({ reason, paths, pendingPaths: announced = [] }: TargetStatus): string[] {
  return UNKNOWN.includes(reason) ? announced.filter((path) => !paths?.includes(path)) : [];
}

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

  /** Claims of others that touch one of the paths. */
  others(key: string, paths: Iterable<string>): FieldClaim[] {
    if (this.size <= (this.#byKey.has(key) ? 1 : 0)) return [];
    const asked = parsePaths(new Set(paths));
    const index = this.#index;
    const keys = index ? new Set(asked.flatMap((path) => [...index.touching(path)])) : this.#byKey.keys();
    return [...keys]
      .filter((each) => each !== key)
      .flatMap((each) => this.get(each))
      .filter((claim) => parsePaths(claim.paths).some((path) => asked.some((other) => mayOverlap(path, other))));
  }

  #indexed(): PathIndex {
    const index = new PathIndex();
    for (const [key, claims] of this.#byKey) for (const path of pathsIn(claims)) index.add(path, key);
    return index;
  }
}

const pathsIn = (claims: readonly FieldClaim[]) => parsePaths(new Set(claims.flatMap(({ paths }) => paths)));

/** By creation, then namespace, then name, as a text that sorts like that: a blank comes before all that names have. */
const ageOf = ({ key, createdAt, made }: Pick<FieldClaim, "key" | "createdAt" | "made">) =>
  `${made ? "" : createdAt} ${key.replace("/", " ")}`;
