/**
 * Keys come in as often as anything changes; each goes out to the worker, one at a time per key and a fixed number at
 * once. A key that is added while it is being worked on runs once more after.
 */

/** What the worker says of a key: nothing more to do, or try again: with growing pauses, or at a set time. */
export type WorkResult = { retry: "never" } | { retry: "backoff" } | { retry: "after"; ms: number };

export interface WorkQueueOptions {
  concurrency: number;
  backoffMs: { first: number; most: number };
  work: (key: string) => Promise<WorkResult>;
  /** Told of what `work` threw; the key is then retried with backoff. */
  onError: (key: string, error: unknown) => void;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  /** Keys that were added while they ran. */
  readonly #again = new Set<string>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #failures = new Map<string, number>();
  #stopped = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** How many keys wait for their turn. */
  get depth(): number {
    return this.#waiting.size;
  }

  add(key: string): void {
    if (this.#stopped) return;
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    if (this.#running.has(key)) this.#again.add(key);
    else this.#waiting.add(key);
    this.#pump();
  }

  /** Takes no more keys and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#waiting.clear();
    this.#again.clear();
    await Promise.all(this.#running.values());
  }

  #pump(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#options.concurrency) return;
      this.#waiting.delete(key);
      // Only once it counts as running: the worker may add its own key, or throw, before it first waits for anything.
      this.#running.set(
        key,
        Promise.resolve().then(() => this.#run(key)),
      );
    }
  }

  async #run(key: string): Promise<void> {
    let result: WorkResult;
    try {
      result = await this.#options.work(key);
    } catch (error) {
      this.#options.onError(key, error);
      result = { retry: "backoff" };
    }
    this.#running.delete(key);
    if (result.retry !== "backoff") this.#failures.delete(key);
    if (this.#again.delete(key)) this.add(key);
    else if (result.retry !== "never" && !this.#stopped) this.#addLater(key, result);
    this.#pump();
  }

  #addLater(key: string, result: Exclude<WorkResult, { retry: "never" }>): void {
    const ms = result.retry === "after" ? result.ms : this.#backoff(key);
    this.#timers.set(
      key,
      setTimeout(() => this.add(key), ms),
    );
  }

  #backoff(key: string): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const { first, most } = this.#options.backoffMs;
    return Math.min(first * 2 ** Math.min(failures, 20), most) * (0.75 + Math.random() / 2);
  }
}
