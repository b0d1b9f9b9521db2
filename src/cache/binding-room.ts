/**
 * Decides which bindings are kept whole: none above a size, and in each namespace the oldest ones, up to a total size and a number of fields
 * that they own. Of the others, only a stub is kept. The decision depends on the bindings alone, not on the order in which they arrive.
 */
import type { StoredBinding, StoredRecord } from "../api/binding.ts";
import type { Limits } from "../api/limits.ts";
import { bindingLength, isStub, stubOf } from "../api/stub.ts";
import { insertionPoint } from "../apimachinery/insertion-point.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { Entry, Keeper } from "./resource-store.ts";

/**
 * The most fields that the bindings of a namespace own together. The fields of an object count for each binding that records it, at least as
 * one.
 */
export const MAX_OWNED_FIELDS = 500_000;

interface Size {
  /** About the characters as JSON. */
  readonly bytes: number;
  /** The fields that it owns. */
  readonly fields: number;
}

/** What a binding exceeds: its own limit, or one of its namespace. */
export interface Excess extends Size {
  readonly limit: "bindingBytes" | "bindingBytesPerNamespace" | "ownedFields";
}

interface Member extends Size {
  readonly entry: Entry<StoredBinding>;
}

/** The bindings of a namespace from the oldest to the youngest. The first `fitting` ones have room, and this size in all. */
interface Namespace {
  readonly members: Member[];
  fitting: number;
  bytes: number;
  fields: number;
  /** Bindings that lost or regained their room since they were last reduced or reported. */
  readonly passed: Set<Entry<StoredBinding>>;
}

type RoomLimits = Pick<Limits, "bindingBytes" | "bindingBytesPerNamespace"> & { readonly ownedFields?: number };

export class BindingRoom implements Pick<Keeper<StoredBinding>, "put" | "removed"> {
  readonly #limits: Required<RoomLimits>;
  readonly #moved: (entry: Entry<StoredBinding>) => void;
  readonly #inSlices: (namespace: string, work: Generator<void, void>) => void;
  readonly #namespaces = new Map<string, Namespace>();

  /**
   * `moved` is called with the entry of a binding that lost its room to another one, or has room again. One change may move thousands, which
   * `inSlices` runs.
   */
  constructor(
    limits: RoomLimits,
    moved: (entry: Entry<StoredBinding>) => void,
    inSlices: (namespace: string, work: Generator<void, void>) => void,
  ) {
    this.#limits = { ownedFields: MAX_OWNED_FIELDS, ...limits };
    this.#moved = moved;
    this.#inSlices = inSlices;
  }

  put(entry: Entry<StoredBinding>): void {
    const { namespace = "" } = entry.object.metadata;
    const empty = () => ({ members: [], fitting: 0, bytes: 0, fields: 0, passed: new Set<Entry<StoredBinding>>() });
    const there = getOrInsert(this.#namespaces, namespace, empty);
    const at = positionOf(there, entry);
    const known = there.members[at];
    const isKnown = isStub(entry.object) && known?.entry === entry;
    const member = isKnown ? known : { entry, bytes: bindingLength(entry.object), fields: ownedFields(entry.object) };
    if (known !== undefined && isSameObject(known.entry, entry)) this.#remove(there, at);
    there.members.splice(at, 0, member);
    if (at < there.fitting) {
      there.fitting++;
      this.#count(there, member, 1);
    }
    this.#fit(namespace, there, entry);
    if (!this.#hasRoom(there, at)) reduce(entry);
  }

  removed(entry: Entry<StoredBinding>): void {
    const { namespace = "" } = entry.object.metadata;
    const there = this.#namespaces.get(namespace);
    if (there === undefined) return;
    const at = positionOf(there, entry);
    if (there.members[at]?.entry !== entry) return;
    this.#remove(there, at);
    this.#fit(namespace, there);
    if (there.members.length === 0) this.#namespaces.delete(namespace);
  }

  /** Undefined if the binding has room. Its entry is a stub nevertheless if it had none before. */
  excessOf(entry: Entry<StoredBinding>): Excess | undefined {
    const there = this.#namespaces.get(entry.object.metadata.namespace ?? "");
    const at = there === undefined ? 0 : positionOf(there, entry);
    const member = there?.members[at];
    if (there === undefined || member?.entry !== entry) return undefined;
    if (this.#hasRoom(there, at)) return undefined;
    const { bytes, fields } = member;
    if (bytes > this.#limits.bindingBytes) return { limit: "bindingBytes", bytes, fields };
    // The oldest one without room shows what there is too much of.
    const first = there.members[there.fitting];
    const isFields = there.fields + (first?.fields ?? 0) > this.#limits.ownedFields;
    return { limit: isFields ? "ownedFields" : "bindingBytesPerNamespace", bytes, fields };
  }

  #hasRoom({ members, fitting }: Namespace, at: number): boolean {
    return at < fitting && (members[at]?.bytes ?? 0) <= this.#limits.bindingBytes;
  }

  #remove(there: Namespace, at: number): void {
    const [member] = there.members.splice(at, 1);
    if (member === undefined || at >= there.fitting) return;
    there.fitting--;
    this.#count(there, member, -1);
  }

  #count(there: Namespace, member: Member, sign: 1 | -1): void {
    const { bytes, fields } = this.#counted(member);
    there.bytes += sign * bytes;
    there.fields += sign * fields;
  }

  /** Of a binding that is too large by itself, nothing counts: only its stub is kept. */
  #counted(size: Size): Size {
    return size.bytes > this.#limits.bindingBytes ? { bytes: 0, fields: 0 } : size;
  }

  /** Moves the boundary between the bindings that have room and those that don't. */
  #fit(namespace: string, there: Namespace, own?: Entry<StoredBinding>): void {
    const { members, passed } = there;
    const { bindingBytesPerNamespace, ownedFields } = this.#limits;
    const isMoving = passed.size > 0;
    const pass = (member: Member, sign: 1 | -1) => {
      there.fitting += sign;
      this.#count(there, member, sign);
      if (member.entry !== own) passed.add(member.entry);
    };
    while (there.bytes > bindingBytesPerNamespace || there.fields > ownedFields)
      pass(members[there.fitting - 1] as Member, -1);
    for (let next = members[there.fitting]; next !== undefined; next = members[there.fitting]) {
      const { bytes, fields } = this.#counted(next);
      if (there.bytes + bytes > bindingBytesPerNamespace || there.fields + fields > ownedFields) break;
      pass(next, 1);
    }
    if (!isMoving && passed.size > 0) this.#inSlices(namespace, this.#settle(there));
  }

  /** Reduces and reports the bindings that passed the boundary, if they are on the other side when their turn comes. */
  *#settle(there: Namespace): Generator<void, void> {
    for (const entry of there.passed) {
      yield;
      const at = positionOf(there, entry);
      const isWhole = this.#hasRoom(there, at);
      if (there.members[at]?.entry === entry && (isWhole ? isStub(entry.object) : reduce(entry))) this.#moved(entry);
      there.passed.delete(entry);
    }
  }
}

/** The fields that the status says the binding owns or is about to own. */
function ownedFields({ status }: StoredBinding): number {
  const count = ({ objects, paths = [], pendingPaths = [] }: StoredRecord) =>
    (objects?.length ?? 1) * Math.max(1, paths.length + pendingPaths.length);
  return (status?.targets ?? []).reduce((sum, record) => sum + count(record), 0);
}

/** Returns whether it was whole. */
function reduce(entry: Entry<StoredBinding>): boolean {
  if (isStub(entry.object)) return false;
  entry.object = stubOf(entry.object);
  return true;
}

/** The position of an object among those of its namespace, or the position at which to insert it. */
const positionOf = ({ members }: Namespace, entry: Entry<StoredBinding>): number =>
  insertionPoint(members, (each) => isBefore(each.entry, entry));

function isBefore({ object: { metadata: a } }: Entry<StoredBinding>, { object }: Entry<StoredBinding>): boolean {
  const b = object.metadata;
  const [before, after] = [a.creationTimestamp ?? "", b.creationTimestamp ?? ""];
  return before === after ? a.name < b.name : before < after;
}

/** Two objects of one name can be created in the same second. */
const isSameObject = (a: Entry<StoredBinding>, b: Entry<StoredBinding>): boolean =>
  a.object.metadata.name === b.object.metadata.name &&
  a.object.metadata.creationTimestamp === b.object.metadata.creationTimestamp;
