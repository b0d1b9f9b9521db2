/**
 * Runs CPU-bound work in slices, so that answers, timers and probes are not delayed. Of the names that wait, the one that used the
 * least time lately goes first, and each gets at most a quarter of the time in the long run.
 */

/** Milliseconds of work after which the event loop gets a turn. */
const SLICE_MS = 10;
/** How much time one name may use at once, and its share of the time from then on. */
const BURST_MS = 200;
const SHARE = 1 / 4;
/** Beyond so many names, those that owe no time are forgotten. */
const MAX_NAMES = 10_000;
/** What `busiest` reports is about this long ago, and what was before counts less and less. */
const LATELY_MS = 60_000;

interface Account {
  readonly name: string;
  /** The time at which the name's share has paid for what it used. */
  paidAt: number;
  /** The used time as of `usedAt`, which decays. */
  usedMs: number;
  usedAt: number;
  /** Starts the waiting work, in the order in which it came. */
  first: Job | undefined;
  last: Job | undefined;
  /** The last quick one, which all other quick ones precede. */
  lastQuick: Job | undefined;
  jobs: number;
  /** Whether its first job is one of those that may go next, or has a timer. */
  isQueued: boolean;
}

interface Job {
  start: () => void;
  next: Job | undefined;
}

/** Runs a generator to its end, without interruption. */
export function finish<T>(work: Generator<unknown, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Runs a generator in slices, or at once. */
export type RunSteps = <T>(work: Generator<unknown, T>) => Promise<T>;

/** How much of the processor a name used. */
interface Usage {
  readonly name: string;
  /** Of one processor, over the last minute or so. */
  readonly share: number;
  /** How much work waits. */
  readonly waiting: number;
}

export class CpuScheduler {
  readonly #now: () => number;
  readonly #throttled: () => void;
  readonly #accounts = new Map<string, Account>();
  #maxAccounts = MAX_NAMES;
  /** Those of which a job may run. */
  readonly #ready = new Set<Account>();
  /** In this turn of the event loop. */
  #tookMs = 0;
  #isNextDue = false;

  /** `throttled` is called for work that waits because its name has used its share. */
  constructor(now = () => performance.now(), throttled: () => void = () => {}) {
    this.#now = now;
    this.#throttled = throttled;
  }

  /** Runs the work on behalf of a name, such as a namespace. */
  async run<T>(name: string, work: () => T): Promise<T> {
    const account = this.#accountOf(name);
    let began = this.#now();
    const isThrottled = overdrawnMs(account, began) > 0;
    if (isThrottled) this.#throttled();
    if (isThrottled || account.isQueued || this.#ready.size > 0 || this.#tookMs >= SLICE_MS) {
      await new Promise<void>((start) => this.#wait(account, start));
      began = this.#now();
    }
    return this.#charged(account, began, work);
  }

  /** Runs work of less than a millisecond, such as the parsing of a small text: at once, or first of all once its name may use more time. */
  async quick<T>(name: string, work: () => T): Promise<T> {
    const account = this.#accountOf(name);
    let began = this.#now();
    if (overdrawnMs(account, began) > 0) {
      this.#throttled();
      await new Promise<void>((start) => this.#waitQuick(account, start));
      began = this.#now();
    }
    return this.#charged(account, began, work);
  }

  /**
   * Runs the work on behalf of a name, and interrupts it where it yields once a slice is used. What it reads may change meanwhile. Returns
   * what the generator returns.
   */
  async steps<T>(name: string, work: Generator<unknown, T>): Promise<T> {
    const slice = () => {
      const endsAt = this.#now() + SLICE_MS - this.#tookMs;
      for (;;) {
        const step = work.next();
        if (step.done || this.#now() >= endsAt) return step;
      }
    };
    for (;;) {
      const step = await this.run(name, slice);
      if (step.done) return step.value;
    }
  }

  /** The names that used the most time lately, the first most of all. */
  busiest(most: number): Usage[] {
    const now = this.#now();
    return [...this.#accounts.values()]
      .map(({ name, usedMs, usedAt, jobs }) => ({
        name,
        share: decayed(usedMs, now - usedAt) / LATELY_MS,
        waiting: jobs,
      }))
      .sort((a, b) => b.share - a.share)
      .slice(0, most);
  }

  #accountOf(name: string): Account {
    const known = this.#accounts.get(name);
    if (known !== undefined) return known;
    const now = this.#now();
    if (this.#accounts.size >= this.#maxAccounts) this.#forgetPaid(now);
    const jobs = { first: undefined, last: undefined, lastQuick: undefined, jobs: 0, isQueued: false };
    const account: Account = { name, paidAt: now, usedMs: 0, usedAt: now, ...jobs };
    this.#accounts.set(name, account);
    return account;
  }

  #forgetPaid(now: number): void {
    for (const { name, paidAt, jobs } of this.#accounts.values())
      if (jobs === 0 && paidAt <= now) this.#accounts.delete(name);
    this.#maxAccounts = Math.max(MAX_NAMES, 2 * this.#accounts.size);
  }

  #charged<T>(account: Account, began: number, work: () => T): T {
    try {
      return work();
    } finally {
      this.#charge(account, began);
    }
  }

  #charge(account: Account, began: number): void {
    const now = this.#now();
    const tookMs = now - began;
    account.paidAt = Math.max(account.paidAt, began) + tookMs / SHARE;
    account.usedMs = decayed(account.usedMs, now - account.usedAt) + tookMs;
    account.usedAt = now;
    this.#tookMs += tookMs;
    this.#queue(account);
    if (this.#tookMs < SLICE_MS) this.#startNext();
    this.#continueLater();
  }

  #wait(account: Account, start: () => void): void {
    const job: Job = { start, next: undefined };
    if (account.last === undefined) account.first = job;
    else account.last.next = job;
    account.last = job;
    account.jobs++;
    this.#queue(account);
  }

  #waitQuick(account: Account, start: () => void): void {
    const before = account.lastQuick;
    const job = { start, next: before === undefined ? account.first : before.next };
    if (before === undefined) account.first = job;
    else before.next = job;
    if (job.next === undefined) account.last = job;
    account.lastQuick = job;
    account.jobs++;
    this.#queue(account);
  }

  /** Lets the next job of a name compete with those of other names, once the name may use more time. */
  #queue(account: Account): void {
    if (account.isQueued || account.jobs === 0) return;
    account.isQueued = true;
    const waitMs = overdrawnMs(account, this.#now());
    const compete = () => {
      this.#ready.add(account);
      this.#continueLater();
    };
    if (waitMs <= 0) compete();
    else setTimeout(compete, Math.ceil(waitMs));
  }

  /** Continues after everything that has arrived meanwhile. */
  #continueLater(): void {
    if (this.#isNextDue) return;
    this.#isNextDue = true;
    setImmediate(() => {
      this.#isNextDue = false;
      this.#tookMs = 0;
      this.#startNext();
    });
  }

  #startNext(): void {
    let next: Account | undefined;
    for (const each of this.#ready) if (next === undefined || each.paidAt < next.paidAt) next = each;
    const job = next?.first;
    if (next === undefined || job === undefined) return;
    this.#ready.delete(next);
    next.isQueued = false;
    next.first = job.next;
    if (next.first === undefined) next.last = undefined;
    if (next.lastQuick === job) next.lastQuick = undefined;
    next.jobs--;
    job.start();
    if (this.#ready.size > 0) this.#continueLater();
  }
}

/** How long the name must wait until it may use more time. */
const overdrawnMs = ({ paidAt }: Account, now: number): number => paidAt - now - BURST_MS / SHARE;

const decayed = (usedMs: number, forMs: number): number => (usedMs === 0 ? 0 : usedMs * Math.exp(-forMs / LATELY_MS));
