/**
 * Runs the work for keys: one run at a time for each key, and a fixed number of runs at once. Changed keys go first, and groups
 * of keys take turns. A key that is added while it runs is run once more afterwards.
 */
import { Counts } from "../apimachinery/maps.ts";
import { RoundRobinQueue } from "./round-robin-queue.ts";

/**
 * What `reconcile` returns for a key: do not retry, retry with exponential backoff, of at most `mostMs` if the limit of the queue does
 * not apply, or retry after a time. Retries with the same `rateLimitGroup` share a rate limit.
 */
export type WorkResult =
  | { retry: "never" }
  | { retry: "backoff"; mostMs?: number; rateLimitGroup?: string }
  | { retry: "after"; ms: number; rateLimitGroup?: string };

export const DONE: WorkResult = { retry: "never" };
export const AT_ONCE: WorkResult = { retry: "after", ms: 0 };
export const BACKOFF: WorkResult = { retry: "backoff" };

/**
 * `reconcile` throws this if the object of the key was changed or deleted after it was read, so the API server refused a write. That is no
 * failure: the key is reconciled again.
 */
export class Outdated extends Error {
  override readonly name = "Outdated";
}

/** The highest first. A key whose last run failed has the priority `retry`, whatever adds it. */
const PRIORITIES = ["change", "resync", "retry"] as const;
type Priority = (typeof PRIORITIES)[number];
/** The priorities with which a key is added: something changed, or everything is reconciled, as after a start. */
type AddedPriority = Exclude<Priority, "retry">;

/** Two starts of eight serve a lower priority first, so that no key waits forever. */
const SERVED_FIRST: readonly Priority[] = PRIORITIES.flatMap((each) =>
  each === "change" ? [] : ["change", "change", "change", each],
);

/** What happens in the queue, for metrics. Times are in seconds. */
export interface QueueHooks {
  added(): void;
  /** The queue will retry a key. */
  retried(): void;
  started(waited: number): void;
  ended(took: number, result: WorkResult["retry"] | "error"): void;
}

/** Reconciles the keys, such as a controller. */
export interface Worker {
  reconcile(key: string): Promise<WorkResult>;
}

export interface StartOptions {
  /** Called with the error that `reconcile` threw, except Outdated; the key is then retried with backoff. */
  onError(key: string, error: unknown): void;
  hooks?: QueueHooks;
}

type Started = StartOptions & { worker: Worker };

export interface WorkQueueOptions {
  concurrency: number;
  backoffMs: { first: number; most: number };
  /** The group of a key, such as its namespace. Without it, groups limit nothing. */
  groupOf?: (key: string) => string;
}

const FEW_RUNS = 4;

/** The rate limit of a group, as a pause. For up to a hundred keys it is no longer than their own backoff. */
const RATE_LIMIT_MS = 50;

interface Waiting {
  key: string;
  priority: Priority;
  since: number;
}

interface Running {
  priority: Priority;
  since: number;
  done: Promise<void>;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  #started: Started | undefined;
  readonly #queues: Readonly<Record<Priority, RoundRobinQueue<Waiting>>> = {
    change: new RoundRobinQueue(),
    resync: new RoundRobinQueue(),
    retry: new RoundRobinQueue(),
  };
  readonly #waiting = new Map<string, Waiting>();
  readonly #running = new Map<string, Running>();
  /** The number of runs of each group. */
  readonly #runs = new Counts();
  /** Keys that were added while they ran. */
  readonly #dirty = new Map<string, AddedPriority>();
  readonly #timers = new Map<string, { timer: NodeJS.Timeout; rateLimitGroup: string | undefined }>();
  /** The number of timers of each rate limit group. */
  readonly #pendingRetries = new Counts();
  readonly #failures = new Counts();
  #starts = 0;
  #stopped = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  get concurrency(): number {
    return this.#options.concurrency;
  }

  /** Starts to work, including the keys that were added before. */
  start(worker: Worker, options: StartOptions): void {
    this.#started = { worker, ...options };
    for (const _ of this.#waiting) options.hooks?.added();
    this.#startRuns();
  }

  /** How many keys wait for a run, by priority. */
  get depths(): Record<Priority, number> {
    const { change, resync, retry } = this.#queues;
    return { change: change.size, resync: resync.size, retry: retry.size };
  }

  /** For how many seconds each run has lasted. */
  get running(): number[] {
    return [...this.#running.values()].map(({ since }) => secondsSince(since));
  }

  /** What waits, runs and fails, for people who look for a problem. At most `most` keys of each. */
  state(most: number) {
    const running = [...this.#running].map(([key, { since }]) => ({ key, seconds: secondsSince(since) }));
    const waiting = [...this.#waiting.values()].map(({ since, ...each }) => ({
      ...each,
      seconds: secondsSince(since),
    }));
    const failing = [...this.#failures].map(([key, failures]) => ({ key, failures }));
    return {
      concurrency: this.#options.concurrency,
      depths: this.depths,
      retries: this.#timers.size,
      running: running.slice(0, most),
      waiting: waiting.slice(0, most),
      failing: failing.slice(0, most),
    };
  }

  add(key: string, priority: AddedPriority = "change"): void {
    if (this.#stopped) return;
    this.#clearTimer(key);
    if (this.#running.has(key)) this.#dirty.set(key, this.#dirty.get(key) === "change" ? "change" : priority);
    else this.#enqueue(key, this.#failures.has(key) ? "retry" : priority);
    this.#startRuns();
  }

  /** Accepts no more keys, and waits for the present runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const key of [...this.#timers.keys()]) this.#clearTimer(key);
    for (const queue of Object.values(this.#queues)) queue.clear();
    this.#waiting.clear();
    this.#dirty.clear();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #enqueue(key: string, priority: Priority): void {
    const known = this.#waiting.get(key);
    if (known === undefined) this.#started?.hooks?.added();
    else if (known.priority === priority || priority !== "change") return;
    else this.#queues[known.priority].delete(this.#groupOf(key), key);
    const waiting: Waiting = { key, priority, since: known?.since ?? performance.now() };
    this.#queues[priority].set(this.#groupOf(key), key, waiting);
    this.#waiting.set(key, waiting);
  }

  #groupOf(key: string): string {
    return this.#options.groupOf?.(key) ?? "";
  }

  #startRuns(): void {
    const started = this.#started;
    while (started !== undefined && (this.#running.size < this.#options.concurrency || this.#hasRoomForGroup)) {
      const next = this.#next();
      if (next === undefined) return;
      this.#startRun(next, started);
    }
  }

  /** Removes the next key from its queue. */
  #next(): Waiting | undefined {
    const first = SERVED_FIRST[this.#starts % SERVED_FIRST.length] as Priority;
    for (const priority of new Set([first, ...PRIORITIES])) {
      if (priority === "retry" && !this.#mayRetry()) continue;
      const next = this.#queues[priority].next((group) => this.#mayStart(group));
      if (next !== undefined) return next;
    }
    return undefined;
  }

  /** Retries leave a quarter of all runs to other keys. */
  #mayRetry(): boolean {
    const { concurrency } = this.#options;
    const retries = [...this.#running.values()].filter(({ priority }) => priority === "retry").length;
    return retries < Math.max(1, concurrency - Math.ceil(concurrency / 4));
  }

  /**
   * The keys of a group take a quarter of the runs that they find free, or up to four runs if they leave a quarter free. The rest is for
   * groups that are added later: many requests of one group at once delay those of others at the API server. A group of which no key runs
   * need not wait for groups that have several slow ones: until so many groups run, it may start beyond the number of runs.
   */
  #mayStart(group: string): boolean {
    const { concurrency } = this.#options;
    const own = this.#runs.get(group);
    const free = concurrency - this.#running.size;
    if (own === 0) return free > 0 || this.#hasRoomForGroup;
    return this.#options.groupOf === undefined ? free > 0 : own < (own < FEW_RUNS ? 3 * free : free / 3);
  }

  get #hasRoomForGroup(): boolean {
    const { concurrency, groupOf } = this.#options;
    if (groupOf === undefined) return false;
    return this.#runs.size < concurrency && this.#running.size < 2 * concurrency;
  }

  #startRun({ key, priority, since }: Waiting, started: Started): void {
    this.#waiting.delete(key);
    this.#starts++;
    started.hooks?.started(secondsSince(since));
    // Only after it counts as running: the worker may add its own key, or throw, before its first await.
    const done = Promise.resolve().then(() => this.#run(key, started));
    this.#running.set(key, { priority, since: performance.now(), done });
    this.#runs.add(this.#groupOf(key), 1);
  }

  async #run(key: string, { worker, onError, hooks }: Started): Promise<void> {
    const began = performance.now();
    let result: WorkResult = { retry: "backoff" };
    let hasFailed = false;
    try {
      result = await worker.reconcile(key);
    } catch (error) {
      hasFailed = !(error instanceof Outdated);
      if (hasFailed) onError(key, error);
    }
    hooks?.ended(secondsSince(began), hasFailed ? "error" : result.retry);
    this.#running.delete(key);
    this.#runs.add(this.#groupOf(key), -1);
    if (result.retry === "backoff") this.#failures.add(key, 1);
    else this.#failures.delete(key);
    const dirty = this.#dirty.get(key);
    this.#dirty.delete(key);
    if (dirty !== undefined) this.add(key, dirty);
    else if (result.retry !== "never" && !this.#stopped) this.#addRateLimited(key, result);
    this.#startRuns();
  }

  #addRateLimited(key: string, result: Exclude<WorkResult, { retry: "never" }>): void {
    const { rateLimitGroup } = result;
    const ownMs = result.retry === "after" ? result.ms : this.#backoffMs(key, result.mostMs);
    const retries = rateLimitGroup === undefined ? 0 : this.#pendingRetries.add(rateLimitGroup, 1);
    const groupMs = retries * RATE_LIMIT_MS * jitter();
    this.#started?.hooks?.retried();
    const timer = setTimeout(() => this.add(key, "resync"), Math.min(Math.max(ownMs, groupMs), MAX_TIMER_MS));
    this.#timers.set(key, { timer, rateLimitGroup });
  }

  #clearTimer(key: string): void {
    const pending = this.#timers.get(key);
    if (pending === undefined) return;
    clearTimeout(pending.timer);
    this.#timers.delete(key);
    if (pending.rateLimitGroup !== undefined) this.#pendingRetries.add(pending.rateLimitGroup, -1);
  }

  #backoffMs(key: string, mostMs: number | undefined): number {
    const { first, most } = this.#options.backoffMs;
    const failures = Math.max(0, this.#failures.get(key) - 1);
    return Math.min(first * 2 ** Math.min(failures, 20), mostMs ?? most) * jitter();
  }
}

/** Node fires a longer timer after 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const jitter = () => 0.75 + Math.random() / 2;
const secondsSince = (time: number) => (performance.now() - time) / 1000;
