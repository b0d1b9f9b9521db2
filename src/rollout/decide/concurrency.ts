/**
 * Who rolls which workload in the whole installation comes in, and whether one more may; whoever may not is woken when there
 * is a place, in the order of their asking. Of this process alone: what rolls is recorded in status, and restored from there.
 */

export interface Limits {
  /** Without one there is none. */
  readonly maxConcurrent?: number;
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
  /** In the order of asking. */
  readonly #asked = new Map<string, Asked>();
  /** Those of them that were woken. */
  readonly #called = new Set<Asked>();

  /** `wake` must not call back at once; the binding's next reconcile does. */
  constructor(limits: () => Limits, wake: (bindingKey: string) => void) {
    this.#limits = limits;
    this.#wake = wake;
  }

  /** What a binding has rolling, in place of what was known; beyond the limits too, since it does roll. */
  restore(bindingKey: string, rolling: readonly RollingWorkload[]): void {
    const ids = new Set(rolling.map(({ id }) => id));
    for (const id of this.#rolled.get(bindingKey) ?? []) if (!ids.has(id)) this.#release(bindingKey, id);
    for (const { id, namespace } of rolling) this.#hold(bindingKey, id, namespace);
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
    for (const asked of this.#asked.values()) if (asked.bindingKey === bindingKey) this.#withdraw(bindingKey, asked.id);
    this.restore(bindingKey, []);
  }

  /** Limits may be others now. Higher ones have places for those who wait; lower ones end nothing that rolls. */
  limitsChanged(): void {
    this.#callNext();
  }

  #hold(bindingKey: string, id: string, namespace: string): void {
    this.#withdraw(bindingKey, id);
    const rolling = this.#rolling.get(id) ?? { namespace, bindings: new Set() };
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
    if (rolling?.bindings.size === 0) this.#rolling.delete(id);
  }

  #withdraw(bindingKey: string, id: string): void {
    this.#uncall(this.#asked.get(keyOf(bindingKey, id)));
    this.#asked.delete(keyOf(bindingKey, id));
  }

  /** Wakes whoever waits for a place that there is, and keeps it for him. */
  #callNext(): void {
    if (this.#asked.size === 0) return;
    const room = this.#room();
    for (const asked of this.#asked.values()) {
      if (asked.lapse !== undefined || !room.has(asked.id, asked.namespace)) continue;
      room.use(asked.id, asked.namespace);
      this.#called.add(asked);
      asked.lapse = setTimeout(() => {
        this.#withdraw(asked.bindingKey, asked.id);
        this.#callNext();
      }, KEEP_MS).unref();
      this.#wake(asked.bindingKey);
    }
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
    const { maxConcurrent = Number.POSITIVE_INFINITY, maxConcurrentPerNamespace = Number.POSITIVE_INFINITY } =
      this.#limits();
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
    const has = (id: string, namespace: string) =>
      ids.has(id) || (ids.size < maxConcurrent && (perNamespace.get(namespace) ?? 0) < maxConcurrentPerNamespace);
    return { has, use };
  }
}

const keyOf = (bindingKey: string, id: string) => `${bindingKey} ${id}`;
