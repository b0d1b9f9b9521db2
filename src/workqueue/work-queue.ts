/**
 * Keys come in as often as anything changes; each goes out to the worker, one at a time per key and a fixed number at
 * once. What changed goes before what is only looked at again, keys that failed leave places to the others, and so do
 * those of one group. A key that is added while it is being worked on runs once more after.
 */
import { ByTurns } from "./round-robin-queue.ts";

/**
 * What the worker says of a key: nothing more to do, or try again: with growing pauses, or at a set time. Of those that are
 * tried again `among` each other, only so many are in a second.
 */
export type WorkResult =
  | { retry: "never" }
  | { retry: "backoff"; among?: string }
  | { retry: "after"; ms: number; among?: string };

/** Why a key is added: something changed, or everything is looked at again, as after a start. */
export type Cause = "change" | "resync";

/** Where keys wait, the first to be served first; `retry` holds those whose last run failed, whatever adds them. */
const LANES = ["change", "resync", "retry"] as const;
export type LaneName = (typeof LANES)[number];

/** Two starts of eight begin with another lane, so that none waits for ever. */
const TURNS: readonly (readonly LaneName[])[] = [
  ...Array<readonly LaneName[]>(3).fill(LANES),
  ["resync", "change", "retry"],
  ...Array<readonly LaneName[]>(3).fill(LANES),
  ["retry", "change", "resync"],
];

/** What happens in the queue, for those who count it. Times are in seconds. */
export interface QueueHooks {
  added(): void;
  /** A key will be tried again by itself. */
  retried(): void;
  started(waited: number): void;
  ended(took: number, result: WorkResult["retry"] | "error"): void;
}

export interface WorkQueueOptions {
  concurrency: number;
  backoffMs: { first: number; most: number };
  work: (key: string) => Promise<WorkResult>;
  /** Whose a key is: groups take turns, and none takes all places. Without it all keys are of one that may. */
  groupOf?: (key: string) => string;
  /** Told of what `work` threw; the key is then retried with backoff. */
  onError: (key: string, error: unknown) => void;
  hooks?: QueueHooks;
}

/** Between two tries among the same: up to a hundred keys, that is no longer than they wait by themselves. */
const AMONG_MS = 50;

interface Waiting {
  key: string;
  lane: LaneName;
  since: number;
}

interface Running {
  lane: LaneName;
  since: number;
  done: Promise<void>;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #lanes: Readonly<Record<LaneName, ByTurns<Waiting>>> = {
    change: new ByTurns(),
    resync: new ByTurns(),
    retry: new ByTurns(),
  };
  readonly #waiting = new Map<string, Waiting>();
  readonly #running = new Map<string, Running>();
  /** Keys that were added while they ran. */
  readonly #again = new Map<string, Cause>();
  readonly #timers = new Map<string, { timer: NodeJS.Timeout; among: string | undefined }>();
  /** How many keys are to be tried again, among whom. */
  readonly #crowds = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  /** How many keys that failed may run at once: a quarter of the places is kept for the others. */
  readonly #mostRetries: number;
  #starts = 0;
  #stopped = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#mostRetries = Math.max(1, options.concurrency - Math.ceil(options.concurrency / 4));
  }

  /** How many keys wait for their turn. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** How many keys wait in each lane. */
  get depths(): Record<LaneName, number> {
    const { change, resync, retry } = this.#lanes;
    return { change: change.size, resync: resync.size, retry: retry.size };
  }

  /** For how many seconds each key that is being worked on has been. */
  get running(): number[] {
    return [...this.#running.values()].map(({ since }) => secondsSince(since));
  }

  add(key: string, cause: Cause = "change"): void {
    if (this.#stopped) return;
    this.#clearTimer(key);
    if (this.#running.has(key)) this.#again.set(key, this.#again.get(key) === "change" ? "change" : cause);
    else this.#enqueue(key, cause);
    this.#pump();
  }

  /** Takes no more keys and waits for those under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const key of [...this.#timers.keys()]) this.#clearTimer(key);
    for (const lane of LANES) this.#lanes[lane].clear();
    this.#waiting.clear();
    this.#again.clear();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #enqueue(key: string, cause: Cause): void {
    const lane = this.#failures.has(key) ? "retry" : cause;
    const known = this.#waiting.get(key);
    if (known === undefined) this.#options.hooks?.added();
    else if (known.lane === lane || lane !== "change") return;
    else this.#lanes[known.lane].delete(this.#groupOf(key), key);
    const waiting: Waiting = { key, lane, since: known?.since ?? performance.now() };
    this.#lanes[lane].set(this.#groupOf(key), key, waiting);
    this.#waiting.set(key, waiting);
  }

  #pump(): void {
    while (this.#running.size < this.#options.concurrency) {
      const waiting = this.#next();
      if (waiting === undefined) return;
      this.#start(waiting);
    }
  }

  /** Takes it out of its lane. */
  #next(): Waiting | undefined {
    const retries = [...this.#running.values()].filter(({ lane }) => lane === "retry").length;
    for (const lane of TURNS[this.#starts % TURNS.length] ?? LANES) {
      if (lane === "retry" && retries >= this.#mostRetries) continue;
      const next = this.#lanes[lane].next((group) => this.#mayBegin(group));
      if (next !== undefined) return next;
    }
    return undefined;
  }

  #groupOf(key: string): string {
    return this.#options.groupOf?.(key) ?? "";
  }

  /** A group leaves a quarter of the places that it finds to the others: some are always left for one that comes. */
  #mayBegin(group: string): boolean {
    const { groupOf, concurrency } = this.#options;
    if (groupOf === undefined) return true;
    const own = [...this.#running.keys()].filter((key) => groupOf(key) === group).length;
    return own < 3 * (concurrency - this.#running.size);
  }

  #start({ key, lane, since }: Waiting): void {
    this.#waiting.delete(key);
    this.#starts++;
    this.#options.hooks?.started(secondsSince(since));
    // Only once it counts as running: the worker may add its own key, or throw, before it first waits for anything.
    const done = Promise.resolve().then(() => this.#run(key));
    this.#running.set(key, { lane, since: performance.now(), done });
  }

  async #run(key: string): Promise<void> {
    const began = performance.now();
    let result: WorkResult;
    let threw = false;
    try {
      result = await this.#options.work(key);
    } catch (error) {
      this.#options.onError(key, error);
      result = { retry: "backoff" };
      threw = true;
    }
    this.#options.hooks?.ended(secondsSince(began), threw ? "error" : result.retry);
    this.#running.delete(key);
    if (result.retry === "backoff") this.#failures.set(key, (this.#failures.get(key) ?? 0) + 1);
    else this.#failures.delete(key);
    const again = this.#again.get(key);
    this.#again.delete(key);
    if (again !== undefined) this.add(key, again);
    else if (result.retry !== "never" && !this.#stopped) this.#addLater(key, result);
    this.#pump();
  }

  #addLater(key: string, result: Exclude<WorkResult, { retry: "never" }>): void {
    const { among } = result;
    const own = result.retry === "after" ? result.ms : this.#backoff(key);
    const crowd = among === undefined ? 0 : (this.#crowds.get(among) ?? 0) + 1;
    if (among !== undefined) this.#crowds.set(among, crowd);
    this.#options.hooks?.retried();
    const ms = Math.max(own, crowd * AMONG_MS * jitter());
    this.#timers.set(key, { among, timer: setTimeout(() => this.add(key, "resync"), ms) });
  }

  #clearTimer(key: string): void {
    const waiting = this.#timers.get(key);
    if (waiting === undefined) return;
    clearTimeout(waiting.timer);
    this.#timers.delete(key);
    const { among } = waiting;
    if (among === undefined) return;
    const left = (this.#crowds.get(among) ?? 1) - 1;
    if (left > 0) this.#crowds.set(among, left);
    else this.#crowds.delete(among);
  }

  #backoff(key: string): number {
    const { first, most } = this.#options.backoffMs;
    const failures = (this.#failures.get(key) ?? 1) - 1;
    return Math.min(first * 2 ** Math.min(failures, 20), most) * jitter();
  }
}

const jitter = () => 0.75 + Math.random() / 2;
const secondsSince = (time: number) => (performance.now() - time) / 1000;
