/**
 * Every write to a target comes in, with the versions of all that it was made from; whether it may be made now goes
 * out. A write from the same inputs as the last one puts back what somebody changed: three times in a minute at once,
 * after that with pauses from one second to five minutes.
 */

const AT_ONCE = 3;
const WINDOW_MS = 60_000;
const PAUSE_MS = { first: 1_000, most: 300_000 };

interface Fight {
  /** What the last write was made from. */
  inputs: string;
  /** When something was put back, within the window. */
  corrections: number[];
  /** How many pauses there were; each is twice as long as the one before. 0: no fight. */
  pauses: number;
  /** Nothing is put back before this. */
  next: number;
  /** Who changed it, as managedFields names him. */
  by: string;
}

export class Contention {
  readonly #fights = new Map<string, Fight>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Milliseconds until `key` may be written; 0 means now. `takenBy` are the managers who hold what differs. */
  mayWrite(key: string, inputs: string, takenBy: readonly string[]): number {
    const fight = this.#fights.get(key);
    if (fight === undefined || fight.inputs !== inputs) return 0;
    const now = this.#now();
    fight.by = takenBy.join(", ") || "somebody";
    fight.corrections = fight.corrections.filter((at) => at > now - WINDOW_MS);
    if (fight.pauses === 0 && fight.corrections.length >= AT_ONCE) pause(fight, now);
    return Math.max(0, fight.next - now);
  }

  /** Notes a write that `mayWrite` allowed. */
  wrote(key: string, inputs: string): void {
    const fight = this.#fights.get(key);
    if (fight === undefined || fight.inputs !== inputs) {
      this.#fights.set(key, { corrections: [], pauses: 0, next: 0, by: "", ...fight, inputs });
      return;
    }
    const now = this.#now();
    fight.corrections.push(now);
    if (fight.pauses > 0) pause(fight, now);
  }

  /**
   * Whether there is a fight over `key`: it is over when nobody changed it for as long as the last pause, and for a
   * minute at least.
   */
  stateOf(key: string): { by: string; remainingMs: number } | undefined {
    const fight = this.#fights.get(key);
    if (fight === undefined || fight.pauses === 0) return undefined;
    const last = fight.corrections.at(-1) ?? 0;
    const remainingMs = Math.max(last + WINDOW_MS, fight.next) - this.#now();
    if (remainingMs > 0) return { by: fight.by, remainingMs };
    Object.assign(fight, { corrections: [], pauses: 0, next: 0 });
    return undefined;
  }
}

function pause(fight: Fight, now: number): void {
  fight.next = now + Math.min(PAUSE_MS.first * 2 ** fight.pauses, PAUSE_MS.most);
  fight.pauses++;
}
