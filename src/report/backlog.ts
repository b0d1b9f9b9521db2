/**
 * What waits to be told comes in, by whom it is about; what to tell next goes out. They take turns, so that nobody waits
 * behind a thousand targets of somebody else.
 */
export class Backlog<T> {
  readonly #most: number;
  /** By whom it is about, who is next at the beginning; then by what tells it from others. */
  readonly #queues = new Map<string, Map<string, T>>();
  #size = 0;

  /** Keeps so many at most. */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** What waits already stays where it is. Where too much waits, what came last of him of whom most does is dropped. */
  add(about: string, key: string, item: T): void {
    const queue = this.#queues.get(about) ?? new Map<string, T>();
    if (!queue.has(key)) this.#size++;
    queue.set(key, item);
    this.#queues.set(about, queue);
    if (this.#size > this.#most) this.#dropOne();
  }

  next(): T | undefined {
    const [first] = this.#queues;
    if (first === undefined) return undefined;
    const [about, queue] = first;
    const [[key, item]] = queue as unknown as [[string, T]];
    queue.delete(key);
    this.#size--;
    this.#queues.delete(about);
    if (queue.size > 0) this.#queues.set(about, queue);
    return item;
  }

  clear(): void {
    this.#queues.clear();
    this.#size = 0;
  }

  #dropOne(): void {
    const [about, longest] = [...this.#queues].reduce((most, each) => (each[1].size > most[1].size ? each : most));
    const last = [...longest.keys()].at(-1) as string;
    longest.delete(last);
    this.#size--;
    if (longest.size === 0) this.#queues.delete(about);
  }
}
