/** Maps that remove what is not needed any more: with a limit, of counts, and of sets. Pure. */

/** The value of a key. If it has none, it gets what `make` returns. */
export function getOrInsert<K, V>(map: Insertable<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined || map.has(key)) return known as V;
  const made = make();
  map.set(key, made);
  return made;
}

/** Computes the value of each object once, and keeps it as long as the object. */
export function oncePerObject<K extends object, V>(compute: (object: K) => V): (object: K) => V {
  const known = new WeakMap<K, V>();
  return (object) => getOrInsert(known, object, () => compute(object));
}

interface Insertable<K, V> {
  get(key: K): V | undefined;
  has(key: K): boolean;
  set(key: K, value: V): unknown;
}

/** Keeps its newest entries, up to a number of them and up to a total size. Iterates from the oldest to the newest. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number;
  readonly #maxSize: number;
  readonly #sizeOf: (value: V, key: K) => number;
  #totalSize = 0;

  /** The size of an entry must not change. */
  constructor(most: number, maxSize = Number.POSITIVE_INFINITY, sizeOf: (value: V, key: K) => number = () => 0) {
    super();
    this.#most = most;
    this.#maxSize = maxSize;
    this.#sizeOf = sizeOf;
  }

  /** Sets an entry as the newest one, and removes the oldest entries beyond the limits. */
  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    this.#totalSize += this.#sizeOf(value, key);
    for (const oldest of this.keys()) {
      if (this.size <= this.#most && this.#totalSize <= this.#maxSize) break;
      this.delete(oldest);
    }
    return this;
  }

  override delete(key: K): boolean {
    if (!this.has(key)) return false;
    this.#totalSize -= this.#sizeOf(this.get(key) as V, key);
    return super.delete(key);
  }

  /** Removes the oldest entries, up to the first one that is not outdated. */
  dropOutdated(isOutdated: (value: V) => boolean): void {
    for (const [key, value] of this) {
      if (!isOutdated(value)) return;
      this.delete(key);
    }
  }
}

const MAX_REMEMBERED = 256;
const MAX_LENGTH = 128;

/** Keeps what was computed for a few hundred texts, and for no long ones. */
export class Remembered<V> {
  readonly #known = new BoundedMap<string, V>(MAX_REMEMBERED);

  /** The value of a text, computed unless it is known. */
  get(text: string, compute: () => V): V {
    return text.length <= MAX_LENGTH ? getOrInsert(this.#known, text, compute) : compute();
  }
}

/** Counts by key. A key without an entry counts 0. */
export class Counts<K = string> extends Map<K, number> {
  override get(key: K): number {
    return super.get(key) ?? 0;
  }

  /** Returns the new count. A count of 0 has no entry. */
  add(key: K, more: number): number {
    const count = this.get(key) + more;
    if (count > 0) this.set(key, count);
    else this.delete(key);
    return count;
  }
}

/** Sets by key, none of them empty. */
export class SetsByKey<K, V> extends Map<K, Set<V>> {
  add(key: K, value: V): void {
    getOrInsert(this, key, () => new Set<V>()).add(value);
  }

  /** Returns whether the value was there. */
  remove(key: K, value: V): boolean {
    const values = this.get(key);
    const wasThere = values?.delete(value) === true;
    if (values?.size === 0) this.delete(key);
    return wasThere;
  }
}
