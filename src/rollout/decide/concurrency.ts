/**
 * Limits how many workloads roll out at once in the whole installation, and shares the slots fairly between namespaces. A free
 * slot is kept for the namespace that has the fewest slots, and among those for the one that has waited longest since its request
 * or its last slot. The state is that of this process: what rolls out is recorded in status, and restored from there.
 */
import type { Installation } from "../../api/installation.ts";
import { Counts, SetsByKey } from "../../apimachinery/maps.ts";
import { MAX_SLOT_MS } from "./schedule.ts";

export interface Limits {
  /** Undefined: no limit. */
  readonly maxConcurrent?: number;
  /** By default one less than `maxConcurrent`, and at least 1, so that no namespace can use all slots. */
  readonly maxConcurrentPerNamespace?: number;
}

/** An installation for one namespace has no other namespaces, so it needs no slots for them. */
export function limitsOf({ rollouts, scope }: Pick<Installation, "rollouts" | "scope">): Limits {
  const { maxConcurrent } = rollouts;
  if (scope === undefined || maxConcurrent === undefined) return rollouts;
  return { maxConcurrentPerNamespace: maxConcurrent, ...rollouts };
}

interface RollingWorkload {
  /** The same for all bindings, such as its uid. */
  readonly id: string;
  readonly namespace: string;
}

interface Rolling {
  readonly namespace: string;
  /** The bindings that roll it out: it has one slot for all of them. */
  readonly bindings: Set<string>;
  /** Releases the slot after an hour. A further restart of a workload that still rolls out does not extend it. */
  readonly lapse: NodeJS.Timeout;
}

interface Asked extends RollingWorkload {
  readonly bindingKey: string;
  /** Set while a slot is kept for it. */
  lapse?: NodeJS.Timeout | undefined;
}

/**
 * How long a slot is kept for a binding that was woken. The binding may not need it any more. If it is only late, it requests a
 * slot again.
 */
const KEEP_MS = 10_000;

export class ConcurrencyLimiter {
  readonly #limits: () => Limits;
  readonly #wake: (bindingKey: string) => void;
  /** By the id of the workload. */
  readonly #rolling = new Map<string, Rolling>();
  /** By the key of the binding: the ids of the workloads that it rolls out. */
  readonly #rolled = new SetsByKey<string, string>();
  /** Requests in the order of arrival, but namespaces and bindings that had a slot since are moved back. */
  readonly #asked = new Map<string, Asked>();
  /** The requests for which a slot is kept. */
  readonly #called = new Set<Asked>();

  /** `wake` must not call back synchronously; it requeues the binding. */
  constructor(limits: () => Limits, wake: (bindingKey: string) => void) {
    this.#limits = limits;
    this.#wake = wake;
  }

  /** Restores the slots of a binding after a start. They may exceed the limits, since these workloads do roll out. */
  restore(bindingKey: string, rolling: readonly RollingWorkload[]): void {
    for (const { id, namespace } of rolling) this.#hold(bindingKey, id, namespace);
    this.#callNext();
  }

  /**
   * Sets which workloads of a binding roll out now. A workload that rolls out without `take`, such as a Deployment that a user
   * resumed, gets a slot only if one is free and not kept for others. Otherwise it would overtake the waiting ones.
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

  /** Whether a binding may roll out a workload. If not, the binding is woken when a slot is free. */
  take(bindingKey: string, id: string, namespace: string): boolean {
    const asked = this.#asked.get(keyOf(bindingKey, id));
    const isRolling = this.#rolling.has(id);
    if (!isRolling && this.#isLimited && !this.#room({ bindingKey, id }).has(id, namespace)) {
      if (asked === undefined) this.#asked.set(keyOf(bindingKey, id), { bindingKey, id, namespace });
      // It was woken, and the limits were lowered since: it keeps its position, and its slot may suit another request.
      this.#withdrawCall(asked);
      if (asked !== undefined) this.#callNext();
      return false;
    }
    // A binding may use the slot that was kept for it for another of its workloads.
    const isOwn = (each: Asked) => each.bindingKey === bindingKey;
    if (!isRolling && asked?.lapse === undefined) this.#withdrawCall([...this.#called].find(isOwn));
    this.#hold(bindingKey, id, namespace);
    this.#callNext();
    return true;
  }

  /** The binding is deleted, or rolls out nothing any more. */
  forget(bindingKey: string): void {
    for (const asked of [...this.#asked.values()])
      if (asked.bindingKey === bindingKey) this.#withdraw(bindingKey, asked.id);
    this.update(bindingKey, []);
  }

  /** The limits may have changed. Higher limits free slots for waiting bindings; lower ones stop no running rollout. */
  limitsChanged(): void {
    this.#callNext();
  }

  /** The limits, who has a slot, and who waits for one. */
  get state() {
    const slots = [...this.#rolling].map(([id, { namespace, bindings }]) => ({
      id,
      namespace,
      bindings: [...bindings],
    }));
    const asked = [...this.#asked.values()].map(({ id, namespace, bindingKey }) => ({ id, namespace, bindingKey }));
    return { limits: this.#limits(), slots, asked };
  }

  #hold(bindingKey: string, id: string, namespace: string): void {
    this.#withdraw(bindingKey, id);
    const rolling = this.#rolling.get(id) ?? {
      namespace,
      bindings: new Set(),
      lapse: setTimeout(() => this.#lapse(id), MAX_SLOT_MS).unref(),
    };
    rolling.bindings.add(bindingKey);
    this.#rolling.set(id, rolling);
    this.#rolled.add(bindingKey, id);
  }

  #release(bindingKey: string, id: string): void {
    this.#rolled.remove(bindingKey, id);
    const rolling = this.#rolling.get(id);
    rolling?.bindings.delete(bindingKey);
    if (rolling?.bindings.size !== 0) return;
    clearTimeout(rolling.lapse);
    this.#rolling.delete(id);
    this.#moveToEnd(rolling.namespace, bindingKey);
  }

  #lapse(id: string): void {
    for (const bindingKey of this.#rolling.get(id)?.bindings ?? []) this.#release(bindingKey, id);
    this.#callNext();
  }

  #withdraw(bindingKey: string, id: string): void {
    const asked = this.#asked.get(keyOf(bindingKey, id));
    this.#asked.delete(keyOf(bindingKey, id));
    if (asked?.lapse === undefined) return;
    this.#withdrawCall(asked);
    this.#moveToEnd(asked.namespace, bindingKey);
  }

  /** Moves a namespace that had a slot, or had one kept, behind all others, and in the namespace the binding that had it. */
  #moveToEnd(namespace: string, bindingKey: string): void {
    const isOwn = (asked: Asked) => Number(asked.bindingKey === bindingKey);
    const there = [...this.#asked].filter(([, asked]) => asked.namespace === namespace);
    for (const [key, asked] of there.sort(([, a], [, b]) => isOwn(a) - isOwn(b))) {
      this.#asked.delete(key);
      this.#asked.set(key, asked);
    }
  }

  /** Wakes the requests for which there are slots, and keeps the slots for them. */
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

  #withdrawCall(asked: Asked | undefined): void {
    if (asked?.lapse === undefined) return;
    clearTimeout(asked.lapse);
    asked.lapse = undefined;
    this.#called.delete(asked);
  }

  get #isLimited(): boolean {
    const { maxConcurrent, maxConcurrentPerNamespace } = this.#limits();
    return (maxConcurrent ?? maxConcurrentPerNamespace) !== undefined;
  }

  /**
   * The free slots: all except those of rolling workloads and those kept for others. Slots kept for the asking binding, or for
   * the same workload, count as free.
   */
  #room(asking?: { bindingKey: string; id: string }) {
    const { maxConcurrent = Number.POSITIVE_INFINITY, ...limits } = this.#limits();
    const { maxConcurrentPerNamespace = Math.max(1, maxConcurrent - 1) } = limits;
    const ids = new Set<string>();
    const perNamespace = new Counts();
    const use = (id: string, namespace: string) => {
      if (ids.has(id)) return;
      ids.add(id);
      perNamespace.add(namespace, 1);
    };
    for (const [id, { namespace }] of this.#rolling) use(id, namespace);
    for (const { bindingKey, id, namespace } of this.#called) {
      if (bindingKey !== asking?.bindingKey && id !== asking?.id) use(id, namespace);
    }
    const isUsed = (id: string) => ids.has(id);
    const usedIn = (namespace: string) => perNamespace.get(namespace);
    const has = (id: string, namespace: string) =>
      ids.has(id) || (ids.size < maxConcurrent && usedIn(namespace) < maxConcurrentPerNamespace);
    return { has, use, isUsed, usedIn };
  }
}

const keyOf = (bindingKey: string, id: string) => `${bindingKey} ${id}`;
