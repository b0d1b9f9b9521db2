/**
 * Decides which bindings are kept whole: none above a size, and in each namespace the oldest ones, up to a total size. Of the others, only a
 * stub is kept. The decision depends on the bindings alone, not on the order in which they arrive.
 */
import type { StoredBinding } from "../api/binding.ts";
import type { Limits } from "../api/limits.ts";
import { bindingLength, isStub, stubOf } from "../api/stub.ts";
import { insertionPoint } from "../apimachinery/insertion-point.ts";
import type { Entry, Keeper } from "./resource-store.ts";

/** What a binding exceeds: its own limit, or that of its namespace. */
export interface Excess {
  readonly limit: "bindingBytes" | "bindingBytesPerNamespace";
  /** The size of the binding. */
  readonly bytes: number;
}

interface Member {
  readonly entry: Entry<StoredBinding>;
  readonly bytes: number;
}

/** The bindings of a namespace from the oldest to the youngest. The first `fitting` ones have room, and `bytes` in all. */
interface Namespace {
  readonly members: Member[];
  fitting: number;
  bytes: number;
}

type RoomLimits = Pick<Limits, Excess["limit"]>;

export class BindingRoom implements Pick<Keeper<StoredBinding>, "put" | "removed"> {
  readonly #limits: RoomLimits;
  readonly #moved: (entry: Entry<StoredBinding>) => void;
  readonly #namespaces = new Map<string, Namespace>();

  /** `moved` is called with the entry of a binding that lost its room to another one, or has room again. */
  constructor(limits: RoomLimits, moved: (entry: Entry<StoredBinding>) => void) {
    this.#limits = limits;
    this.#moved = moved;
  }

  put(entry: Entry<StoredBinding>): void {
    const { namespace = "" } = entry.object.metadata;
    const there = this.#namespaces.get(namespace) ?? { members: [], fitting: 0, bytes: 0 };
    this.#namespaces.set(namespace, there);
    const at = positionOf(there, entry);
    const known = there.members[at];
    const isKnown = isStub(entry.object) && known?.entry === entry;
    const bytes = isKnown ? known.bytes : bindingLength(entry.object);
    if (known !== undefined && isSameObject(known.entry, entry)) this.#remove(there, at);
    there.members.splice(at, 0, { entry, bytes });
    if (at < there.fitting) {
      there.fitting++;
      there.bytes += this.#counted(bytes);
    }
    this.#fit(there, entry);
    if (at >= there.fitting || bytes > this.#limits.bindingBytes) reduce(entry);
  }

  removed(entry: Entry<StoredBinding>): void {
    const { namespace = "" } = entry.object.metadata;
    const there = this.#namespaces.get(namespace);
    if (there === undefined) return;
    const at = positionOf(there, entry);
    if (there.members[at]?.entry !== entry) return;
    this.#remove(there, at);
    this.#fit(there);
    if (there.members.length === 0) this.#namespaces.delete(namespace);
  }

  /** Undefined if the binding has room. Its entry is a stub nevertheless if it had none before. */
  excessOf(entry: Entry<StoredBinding>): Excess | undefined {
    const there = this.#namespaces.get(entry.object.metadata.namespace ?? "");
    const at = there === undefined ? 0 : positionOf(there, entry);
    const member = there?.members[at];
    if (there === undefined || member?.entry !== entry) return undefined;
    const { bytes } = member;
    if (bytes > this.#limits.bindingBytes) return { limit: "bindingBytes", bytes };
    return at < there.fitting ? undefined : { limit: "bindingBytesPerNamespace", bytes };
  }

  #remove(there: Namespace, at: number): void {
    const [member] = there.members.splice(at, 1);
    if (member === undefined || at >= there.fitting) return;
    there.fitting--;
    there.bytes -= this.#counted(member.bytes);
  }

  /** Of a binding that is too large by itself, nothing counts: only its stub is kept. */
  #counted(bytes: number): number {
    return bytes > this.#limits.bindingBytes ? 0 : bytes;
  }

  /** Moves the boundary between the bindings that have room and those that don't. */
  #fit(there: Namespace, own?: Entry<StoredBinding>): void {
    const { members } = there;
    while (there.bytes > this.#limits.bindingBytesPerNamespace) {
      const { entry, bytes } = members[--there.fitting] as Member;
      there.bytes -= this.#counted(bytes);
      if (entry !== own && reduce(entry)) this.#moved(entry);
    }
    for (let next = members[there.fitting]; next !== undefined; next = members[there.fitting]) {
      const bytes = there.bytes + this.#counted(next.bytes);
      if (bytes > this.#limits.bindingBytesPerNamespace) return;
      there.fitting++;
      there.bytes = bytes;
      if (next.entry !== own && isStub(next.entry.object)) this.#moved(next.entry);
    }
  }
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
