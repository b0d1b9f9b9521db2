/** How many streams may be open: of each namespace, and of all. What there is no room for waits, and namespaces take turns. */
import { RoundRobinQueue } from "../workqueue/round-robin-queue.ts";

export interface StreamLimits {
  namespace: number;
  installation: number;
}

/** A stream takes 29 KB, and the pod has 1 GiB. */
export const STREAM_LIMITS: StreamLimits = { namespace: 1_000, installation: 12_000 };
/** Of those that are being opened: a list and a watch take the API server some ms, in which it does nothing for others. */
export const OPENING_LIMITS: StreamLimits = { namespace: 8, installation: 32 };
/**
 * A namespace has no more than such a part of what is free, so that each leaves most of it to others: it takes about forty
 * namespaces that want a thousand streams each to use up all.
 */
const PART_OF_THE_REST = 1 / 4;

interface Waiting {
  namespace: string;
  open: () => void;
}

export class StreamSlots {
  readonly #limits: StreamLimits;
  /** How many are open, by namespace. */
  readonly #taken = new Map<string, number>();
  #total = 0;
  readonly #waiting = new RoundRobinQueue<Waiting>();

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  /** Calls `open`: now, or as soon as there is room. */
  take(namespace: string, key: string, open: () => void): void {
    this.#waiting.set(namespace, key, { namespace, open });
    this.#admit();
  }

  /** What was taken under a key is open no more, or waits no more. */
  release(namespace: string, key: string, isOpen: boolean): void {
    this.#waiting.delete(namespace, key);
    if (!isOpen) return;
    this.#count(namespace, -1);
    this.#admit();
  }

  /** Nothing is opened any more. */
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
