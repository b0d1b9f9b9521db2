/**
 * Work that takes a while comes in; it is done when its turn comes, and only so much of it before whatever else waits, such
 * as answers, timers and probes, gets a turn too. Of those who wait, who has taken the least time goes first.
 */

/** Milliseconds of work after which the others have their turn. */
const TURN_MS = 20;

/** Whoever takes turns: what they took so far counts. */
export interface Taker {
  tookMs: number;
}

interface Waiting {
  taker: Taker;
  go: () => void;
}

export class Turns {
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  /** Of this turn of the event loop. */
  #tookMs = 0;
  #isNextDue = false;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  async take<T>(taker: Taker, work: () => T): Promise<T> {
    if (this.#tookMs >= TURN_MS || this.#waiting.length > 0) {
      await new Promise<void>((go) => {
        this.#waiting.push({ taker, go });
        this.#comeBack();
      });
    }
    const began = this.#now();
    try {
      return work();
    } finally {
      const took = this.#now() - began;
      taker.tookMs += took;
      this.#tookMs += took;
      if (this.#tookMs < TURN_MS) this.#callNext();
      this.#comeBack();
    }
  }

  /** After all that has come meanwhile. */
  #comeBack(): void {
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
    if (this.#waiting.length > 0) this.#comeBack();
  }
}
