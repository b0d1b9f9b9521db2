/**
 * Limits how many streams are open, for each namespace and in total, and how many different parts of the objects of one kind they keep.
 * Streams without a slot wait, and namespaces take turns.
 */
import { RoundRobinQueue } from "../workqueue/round-robin-queue.ts";

export interface StreamLimits {
  namespace: number;
  installation: number;
}

/** A stream takes 29 KB, and the pod has 1 GiB. */
export const STREAM_LIMITS: StreamLimits = { namespace: 1_000, installation: 12_000 };
/** Limits of streams that are being opened. A list and a watch take the API server some ms, during which it serves nothing else. */
export const OPENING_LIMITS: StreamLimits = { namespace: 8, installation: 32 };
/**
 * A namespace may take at most this part of the free slots, so most stay free for others. About forty namespaces with a thousand streams
 * each are needed to use up all slots.
 */
const PART_OF_THE_REST = 1 / 4;

interface Waiting {
  namespace: string;
  open: () => void;
}

export class StreamSlots {
  readonly #limits: StreamLimits;
  /** The number of slots in use, by namespace. */
  readonly #taken = new Map<string, number>();
  #total = 0;
  readonly #waiting = new RoundRobinQueue<Waiting>();

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Calls `open`: at once, or when a slot is free. */
  take(namespace: string, key: string, open: () => void): void {
    this.#waiting.set(namespace, key, { namespace, open });
    this.#admit();
  }

  /** Releases the slot of a key, or removes the key from the queue. */
  release(namespace: string, key: string, isOpen: boolean): void {
    this.#waiting.delete(namespace, key);
    if (!isOpen) return;
    this.#count(namespace, -1);
    this.#admit();
  }

  /** Opens nothing from now on. */
  stop(): void {
    this.#waiting.clear();
  }

  #admit(): void {
    const { installation, namespace: most } = this.#limits;
    const hasRoom = (namespace: string) => {
      const rest = installation - this.#total;
      return (this.#taken.get(namespace) ?? 0) < Math.min(most, rest * PART_OF_THE_REST);
    };
    for (let next = this.#waiting.next(hasRoom); next !== undefined; next = this.#waiting.next(hasRoom)) {
      this.#count(next.namespace, 1);
      next.open();
    }
  }

  #count(namespace: string, more: 1 | -1): void {
    this.#total += more;
    const taken = (this.#taken.get(namespace) ?? 0) + more;
    if (taken > 0) this.#taken.set(namespace, taken);
    else this.#taken.delete(namespace);
  }
}

/** For a kind, the paths of pod templates and restart fields that the bindings of one namespace may name, besides the usual ones. */
export const MAX_PROJECTIONS = 8;

/** Limits the different projections of a group. The streams with one projection share its slot. */
export class ProjectionSlots {
  readonly #slots = new StreamSlots({ namespace: MAX_PROJECTIONS, installation: Number.POSITIVE_INFINITY });
  /** The streams of each projection that has or needs a slot, with what opens them. */
  readonly #streams = new Map<string, { isOpen: boolean; openers: Map<string, () => void> }>();

  /** Calls `open`: at once, or when the projection has a slot. */
  take(group: string, projection: string, stream: string, open: () => void): void {
    const id = idOf(group, projection);
    const known = this.#streams.get(id);
    if (known !== undefined) {
      known.openers.set(stream, open);
      if (known.isOpen) open();
      return;
    }
    const first = { isOpen: false, openers: new Map([[stream, open]]) };
    this.#streams.set(id, first);
    this.#slots.take(group, projection, () => {
      first.isOpen = true;
      for (const each of first.openers.values()) each();
    });
  }

  /** Removes a stream. The last one of a projection releases its slot. */
  release(group: string, projection: string, stream: string): void {
    const id = idOf(group, projection);
    const known = this.#streams.get(id);
    if (!known?.openers.delete(stream) || known.openers.size > 0) return;
    this.#streams.delete(id);
    this.#slots.release(group, projection, known.isOpen);
  }

  /** Opens nothing from now on. */
  stop(): void {
    this.#slots.stop();
  }
}

const idOf = (group: string, projection: string) => `${group}|${projection}`;
