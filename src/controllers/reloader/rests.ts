/** Lets a namespace rest after a reconcile that took much processor time, so that others are reconciled first. */

/** A namespace rests for this many times as long as it worked. */
const REST = 10;
const MAX_REST_MS = 5_000;
/** Shorter work needs no rest. */
const SHORT_MS = 20;

/** The processor time of this thread, which a busy machine does not change. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Measures the processor time of one reconcile, in ms: everything but the time of `wait`, in which other reconciles work. */
export class OwnTime {
  #since = threadMs();
  #ms = 0;

  get ms(): number {
    return this.#ms + threadMs() - this.#since;
  }

  /** Awaits something else: the API server, or the turn of other work. */
  async wait<T>(other: Promise<T>): Promise<T> {
    this.#ms = this.ms;
    try {
      return await other;
    } finally {
      this.#since = threadMs();
    }
  }
}

export class Rests {
  /** By namespace, the end by the monotonic clock. */
  readonly #ends = new Map<string, number>();

  /** How many ms the namespace still rests; 0 or less if it does not. */
  leftMs(namespace: string): number {
    return (this.#ends.get(namespace) ?? 0) - performance.now();
  }

  /** Records how long a reconcile of the namespace worked. */
  worked(namespace: string, { ms }: Pick<OwnTime, "ms">): void {
    if (ms > SHORT_MS) this.#ends.set(namespace, performance.now() + Math.min(REST * ms, MAX_REST_MS));
  }

  forget(namespace: string): void {
    this.#ends.delete(namespace);
  }
}
