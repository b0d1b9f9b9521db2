/**
 * Limits how many workloads roll at once in the whole installation, and shares the places fairly between namespaces: a place
 * that becomes free is kept for the namespace that has the fewest, and of those for the one that has waited longest since it
 * asked or last had one. Of this process alone: what rolls is recorded in status, and restored from there.
 */
import { MAX_PLACE_MS } from "./schedule.ts";

export interface Limits {
  /** Without one there is none. */
  readonly maxConcurrent?: number;
  /** Unless given, one less than `maxConcurrent`, but at least 1: no namespace keeps all others waiting. */
  readonly maxConcurrentPerNamespace?: number;
}

interface RollingWorkload {
  /** The same for all bindings, such as its uid. */
  readonly id: string;
  readonly namespace: string;
}

interface Rolling {
  readonly namespace: string;
  /** The bindings that roll it: it has one place for all of them. */
  readonly bindings: Set<string>;
  /** Ends its hour, which no further restart of a workload that still rolls renews. */
  readonly lapse: NodeJS.Timeout;
}

interface Asked extends RollingWorkload {
  readonly bindingKey: string;
  /** Set while a place is kept for it. */
  lapse?: NodeJS.Timeout | undefined;
}

/** How long a place is kept for a binding that was woken. It may want it no more; if it is only late, it asks anew. */
const KEEP_MS = 10_000;

export class ConcurrencyLimiter {
  readonly #limits: () => Limits;
  readonly #wake: (bindingKey: string) => void;
  /** By the workload's id. */
  readonly #rolling = new Map<string, Rolling>();
  /** By the binding: the ids of what it rolls. */
  readonly #rolled = new Map<string, Set<string>>();
  /** In the order of asking, but who has had a place since is behind who has not. */
  readonly #asked = new Map<string, Asked>();
  /** Those of them that were woken. */
  readonly #called = new Set<Asked>();

  /** `wake` must not call back at once; the binding's next reconcile does. */
  constructor(limits: () => Limits, wake: (bindingKey: string) => void) {
    this.#limits = limits;
    this.#wake = wake;
  }

  /** What a binding had rolling before the start: that has its places beyond the limits too, since it does roll. */
  restore(bindingKey: string, rolling: readonly RollingWorkload[]): void {
    for (const { id, namespace } of rolling) this.#hold(bindingKey, id, namespace);
    this.#callNext();
  }

  /**
   * What a binding has rolling now, in place of what was known. What did not begin by `take`, such as a Deployment that
   * somebody resumed, has a place only where there is one that is not kept for others: else it would pass those who wait.
   */
  update(bindingKey: string, rolling: readonly RollingWorkload[]): void {
    const ids = new Set(rolling.map(({ id }) => id));
    const held = new Set(this.#rolled.get(bindingKey));
    for (const id of held) if (!ids.has(id)) this.#release(bindingKey, id);
    this.#callNext();
    const others = rolling.filter(({ id }) => !held.has(id));
    if (others.length === 0) return;
    const room = this.#room();
    for (const { id, namespace } of others) {
      if (!room.has(id, namespace)) continue;
      room.use(id, namespace);
      this.#hold(bindingKey, id, namespace);
    }
    this.#callNext();
  }

  /** Whether a binding may roll a workload. If not, it is woken when there is a place. */
  take(bindingKey: string, id: string, namespace: string): boolean {
    const asked = this.#asked.get(keyOf(bindingKey, id));
    const isRolling = this.#rolling.has(id);
    if (!isRolling && this.#isLimited && !this.#room({ bindingKey, id }).has(id, namespace)) {
      if (asked === undefined) this.#asked.set(keyOf(bindingKey, id), { bindingKey, id, namespace });
      // It was woken, and limits were lowered since: it waits on where it was, and its place may suit another.
      this.#uncall(asked);
      if (asked !== undefined) this.#callNext();
      return false;
    }
    // A binding may use the place that was kept for it for another of its workloads.
    const isOwn = (each: Asked) => each.bindingKey === bindingKey;
    if (!isRolling && asked?.lapse === undefined) this.#uncall([...this.#called].find(isOwn));
    this.#hold(bindingKey, id, namespace);
    this.#callNext();
    return true;
  }

  /** The binding is gone, or rolls nothing any more. */
  forget(bindingKey: string): void {
    for (const asked of [...this.#asked.values()])
      if (asked.bindingKey === bindingKey) this.#withdraw(bindingKey, asked.id);
    this.update(bindingKey, []);
  }

  /** Limits may be others now. Higher ones have places for those who wait; lower ones end nothing that rolls. */
  limitsChanged(): void {
    this.#callNext();
  }

  #hold(bindingKey: string, id: string, namespace: string): void {
    this.#withdraw(bindingKey, id);
    const rolling = this.#rolling.get(id) ?? {
      namespace,
      bindings: new Set(),
      lapse: setTimeout(() => this.#lapse(id), MAX_PLACE_MS).unref(),
    };
    rolling.bindings.add(bindingKey);
    this.#rolling.set(id, rolling);
    this.#rolled.set(bindingKey, (this.#rolled.get(bindingKey) ?? new Set()).add(id));
  }

  #release(bindingKey: string, id: string): void {
    const own = this.#rolled.get(bindingKey);
    own?.delete(id);
    if (own?.size === 0) this.#rolled.delete(bindingKey);
    const rolling = this.#rolling.get(id);
    rolling?.bindings.delete(bindingKey);
    if (rolling?.bindings.size !== 0) return;
    clearTimeout(rolling.lapse);
    this.#rolling.delete(id);
    this.#goBehind(rolling.namespace, bindingKey);
  }

  #lapse(id: string): void {
    for (const bindingKey of this.#rolling.get(id)?.bindings ?? []) this.#release(bindingKey, id);
    this.#callNext();
  }

  #withdraw(bindingKey: string, id: string): void {
    const asked = this.#asked.get(keyOf(bindingKey, id));
    this.#asked.delete(keyOf(bindingKey, id));
    if (asked?.lapse === undefined) return;
    this.#uncall(asked);
    this.#goBehind(asked.namespace, bindingKey);
  }

  /** A namespace that had a place, or had one kept, waits behind all others from then on; and in it the binding that did. */
  #goBehind(namespace: string, bindingKey: string): void {
    const isOwn = (asked: Asked) => Number(asked.bindingKey === bindingKey);
    const there = [...this.#asked].filter(([, asked]) => asked.namespace === namespace);
    for (const [key, asked] of there.sort(([, a], [, b]) => isOwn(a) - isOwn(b))) {
      this.#asked.delete(key);
      this.#asked.set(key, asked);
    }
  }

  /** Wakes those for whom there are places, and keeps these for them. */
  #callNext(): void {
    if (this.#asked.size === 0) return;
    const room = this.#room();
    let next: Asked | undefined;
    do {
      next = undefined;
      for (const asked of this.#asked.values()) {
        if (asked.lapse !== undefined || !room.has(asked.id, asked.namespace)) continue;
        if (room.isUsed(asked.id)) this.#call(asked);
        else if (next === undefined || room.usedIn(asked.namespace) < room.usedIn(next.namespace)) next = asked;
      }
      if (next !== undefined) {
        room.use(next.id, next.namespace);
        this.#call(next);
      }
    } while (next !== undefined);
  }

  #call(asked: Asked): void {
    this.#called.add(asked);
    asked.lapse = setTimeout(() => {
      this.#withdraw(asked.bindingKey, asked.id);
      this.#callNext();
    }, KEEP_MS).unref();
    this.#wake(asked.bindingKey);
  }

  #uncall(asked: Asked | undefined): void {
    if (asked?.lapse === undefined) return;
    clearTimeout(asked.lapse);
    asked.lapse = undefined;
    this.#called.delete(asked);
  }

  get #isLimited(): boolean {
    const { maxConcurrent, maxConcurrentPerNamespace } = this.#limits();
    return (maxConcurrent ?? maxConcurrentPerNamespace) !== undefined;
  }

  /** What is left beside all that rolls and the places that are kept, but for those of who asks, and of the same workload. */
  #room(asking?: { bindingKey: string; id: string }) {
    const { maxConcurrent = Number.POSITIVE_INFINITY, ...limits } = this.#limits();
    const { maxConcurrentPerNamespace = Math.max(1, maxConcurrent - 1) } = limits;
    const ids = new Set<string>();
    const perNamespace = new Map<string, number>();
    const use = (id: string, namespace: string) => {
      if (ids.has(id)) return;
      ids.add(id);
      perNamespace.set(namespace, (perNamespace.get(namespace) ?? 0) + 1);
    };
    for (const [id, { namespace }] of this.#rolling) use(id, namespace);
    for (const { bindingKey, id, namespace } of this.#called) {
      if (bindingKey !== asking?.bindingKey && id !== asking?.id) use(id, namespace);
    }
    const isUsed = (id: string) => ids.has(id);
    const usedIn = (namespace: string) => perNamespace.get(namespace) ?? 0;
    const has = (id: string, namespace: string) =>
      ids.has(id) || (ids.size < maxConcurrent && usedIn(namespace) < maxConcurrentPerNamespace);
    return { has, use, isUsed, usedIn };
  }
}

const keyOf = (bindingKey: string, id: string) => `${bindingKey} ${id}`;
