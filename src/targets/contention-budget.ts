/**
 * Every write to a target comes in, with the versions of all that it was made from; whether it may be made now goes
 * out. Three kinds of write could go on for ever, and each has a budget of its own: one from the same inputs as the last
 * puts back what somebody changed; one from an object that a binding wrote may come round to where it began; and one from
 * any other new inputs may too, through somebody who is no binding, though few sources change that often by themselves. So
 * many in a minute are made at once, after that with pauses from one second to five minutes, or to one.
 */

const CORRECTIONS_AT_ONCE = 3;
const ECHOES_AT_ONCE = 5;
const CHANGES_AT_ONCE = 60;
const WINDOW_MS = 60_000;
const PAUSE_MS = { first: 1_000, most: 300_000, mostForChanges: 60_000 };
/** How long a write counts: for a fight, and for what is made from the object that it went to. Longer than any pause. */
const REMEMBERED_MS = 2 * PAUSE_MS.most;

export interface Fight {
  /** What is too much: corrections, writes from what a binding wrote, or changes of sources. */
  of: "corrections" | "echoes" | "changes";
  /** Who changes the target, as managedFields names him, and what of it. */
  by: string;
  /** When it will be over if nothing more happens. */
  remainingMs: number;
}

interface Writes {
  /** When the last was. */
  at: number;
  /** What the last write was made from. */
  inputs: string;
  corrections: Budget;
  echoes: Budget;
  changes: Budget;
  by: string;
}

export class Contention {
  /** By key, the latest at the end. */
  readonly #writes = new Map<string, Writes>();
  /** When each object was last written, the latest at the end. */
  readonly #written = new Map<string, { at: number }>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * Milliseconds until `key` may be written; 0 means now. `takenBy` are the managers who hold what differs, `sources`
   * the uids of the objects that the values come from, `paths` what differs.
   */
  mayWrite(
    key: string,
    inputs: string,
    takenBy: readonly string[],
    sources: readonly string[] = [],
    paths: readonly string[] = [],
  ): number {
    const writes = this.#writes.get(key);
    if (writes === undefined) return 0;
    if (writes.inputs === inputs) {
      const what = paths.length === 0 ? "" : `, at ${paths.join(", ")},`;
      writes.by = `${takenBy.join(", ") || "somebody"}${what}`;
      return writes.corrections.wait(this.#now());
    }
    return (this.#isEcho(sources) ? writes.echoes : writes.changes).wait(this.#now());
  }

  /** Notes a write to the object `target` that `mayWrite` allowed. */
  wrote(key: string, inputs: string, target = "", sources: readonly string[] = []): void {
    const now = this.#now();
    const before = this.#writes.get(key);
    if (before?.inputs === inputs) before.corrections.spend(now);
    else (this.#isEcho(sources) ? before?.echoes : before?.changes)?.spend(now);
    const budgets = before ?? {
      corrections: new Budget(CORRECTIONS_AT_ONCE, PAUSE_MS.most),
      echoes: new Budget(ECHOES_AT_ONCE, PAUSE_MS.most),
      changes: new Budget(CHANGES_AT_ONCE, PAUSE_MS.mostForChanges),
      by: "",
    };
    putLast(this.#writes, key, { ...budgets, inputs, at: now }, now);
    putLast(this.#written, target, { at: now }, now);
  }

  /**
   * Whether there is a fight over `key`: it is over when nobody changed it for as long as the last pause, and for a
   * minute at least.
   */
  stateOf(key: string): Fight | undefined {
    const writes = this.#writes.get(key);
    if (writes === undefined) return undefined;
    const now = this.#now();
    const kinds = ["corrections", "echoes", "changes"] as const;
    const fights = kinds.map((of) => ({ of, by: writes.by, remainingMs: writes[of].remaining(now) }));
    const [first] = fights.filter(({ remainingMs }) => remainingMs > 0);
    return first && { ...first, remainingMs: Math.max(...fights.map(({ remainingMs }) => remainingMs)) };
  }

  #isEcho(sources: readonly string[]): boolean {
    return sources.some(
      (uid) => (this.#written.get(uid)?.at ?? Number.NEGATIVE_INFINITY) > this.#now() - REMEMBERED_MS,
    );
  }
}

/** Puts an entry at the end of a map that is in the order of its times, and drops what is too old to count. */
function putLast<T extends { at: number }>(map: Map<string, T>, key: string, entry: T, now: number): void {
  for (const [old, { at }] of map) {
    if (at > now - REMEMBERED_MS) break;
    map.delete(old);
  }
  map.delete(key);
  map.set(key, entry);
}

/** So many in a minute are free; after them come pauses, each twice as long as the one before. */
class Budget {
  readonly #free: number;
  readonly #longestMs: number;
  /** When it was spent, within the window. */
  #spent: number[] = [];
  /** How many pauses there were. 0: no fight. */
  #pauses = 0;
  /** Nothing is spent before this. */
  #next = 0;

  constructor(free: number, longestMs: number) {
    this.#free = free;
    this.#longestMs = longestMs;
  }

  /** Milliseconds until it may be spent. */
  wait(now: number): number {
    this.#spent = this.#spent.filter((at) => at > now - WINDOW_MS);
    if (this.#pauses === 0 && this.#spent.length >= this.#free) this.#pause(now);
    return Math.max(0, this.#next - now);
  }

  spend(now: number): void {
    this.#spent.push(now);
    if (this.#pauses > 0) this.#pause(now);
  }

  /** Milliseconds until all of it is free again, if it is used up. */
  remaining(now: number): number {
    if (this.#pauses === 0) return 0;
    const left = Math.max((this.#spent.at(-1) ?? 0) + WINDOW_MS, this.#next) - now;
    if (left > 0) return left;
    this.#spent = [];
    this.#pauses = 0;
    this.#next = 0;
    return 0;
  }

  #pause(now: number): void {
    this.#next = now + Math.min(PAUSE_MS.first * 2 ** this.#pauses, this.#longestMs);
    this.#pauses++;
  }
}
