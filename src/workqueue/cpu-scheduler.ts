/**
 * Runs CPU-bound work in turns, so that answers, timers and probes are not delayed. Of the waiting ones, the one that used the
 * least time lately goes first, and each gets at most a quarter of the time in the long run.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds of work after which the event loop gets a turn. */
const TURN_MS = 20;
/** How much time one name may use at once, and its share of the time from then on. */
const BURST_MS = 200;
const SHARE = 1 / 4;
/** How many names are remembered. */
const MAX_TAKERS = 10_000;

interface Taker {
  /** The used time, less the share of the time that passed, as of `at`. */
  tookMs: number;
  at: number;
}

interface Waiting {
  taker: Taker;
  go: () => void;
}

export class CpuScheduler {
  readonly #now: () => number;
  readonly #takers = new Map<string, Taker>();
  readonly #waiting: Waiting[] = [];
  /** In this turn of the event loop. */
  #tookMs = 0;
  #isNextDue = false;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** Runs the work on behalf of a name, such as a namespace. */
  async run<T>(name: string, work: () => T): Promise<T> {
    for (let over = this.#lately(name).tookMs - BURST_MS; over > 0; over = this.#lately(name).tookMs - BURST_MS) {
      await sleep(Math.ceil(over / SHARE));
    }
    const taker = this.#lately(name);
    if (this.#tookMs >= TURN_MS || this.#waiting.length > 0) {
      await new Promise<void>((go) => {
        this.#waiting.push({ taker, go });
        this.#continueLater();
      });
    }
    const began = this.#now();
    try {
      return work();
    } finally {
      const took = this.#now() - began;
      this.#lately(name).tookMs += took;
      this.#tookMs += took;
      if (this.#tookMs < TURN_MS) this.#callNext();
      this.#continueLater();
    }
  }

  #lately(name: string): Taker {
    const now = this.#now();
    if (this.#takers.size > MAX_TAKERS) this.#takers.clear();
    const taker = this.#takers.get(name) ?? { tookMs: 0, at: now };
    taker.tookMs = Math.max(0, taker.tookMs - (now - taker.at) * SHARE);
    taker.at = now;
    this.#takers.set(name, taker);
    return taker;
  }

  /** Continues after everything that has arrived meanwhile. */
  #continueLater(): void {
    if (this.#isNextDue) return;
    this.#isNextDue = true;
    setImmediate(() => {
      this.#isNextDue = false;
      this.#tookMs = 0;
      this.#callNext();
    });
  }

  #callNext(): void {
    const [first, ...others] = this.#waiting;
    if (first === undefined) return;
    const next = others.reduce((least, each) => (each.taker.tookMs < least.taker.tookMs ? each : least), first);
    this.#waiting.splice(this.#waiting.indexOf(next), 1);
    next.go();
    if (this.#waiting.length > 0) this.#continueLater();
  }
}
