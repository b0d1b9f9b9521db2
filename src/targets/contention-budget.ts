/**
 * Limits writes to a target that could continue forever. There are three kinds, each with its own budget. A correction
 * has the same source revisions as the last write, and reverts changes of others. An echo has new revisions of an
 * object that a binding wrote, so the binding may cause it itself. Other writes have new revisions, which the binding
 * may cause through another client. Each minute allows a number of writes at once; further writes wait.
 */
import { BoundedMap } from "../apimachinery/maps.ts";

const CORRECTIONS_AT_ONCE = 3;
const ECHOES_AT_ONCE = 5;
const CHANGES_AT_ONCE = 60;
const WINDOW_MS = 60_000;
const PAUSE_MS = { first: 1_000, most: 300_000, mostForChanges: 60_000 };
/** How long a write is remembered, for contention and for echoes. Longer than any pause. */
const REMEMBERED_MS = 2 * PAUSE_MS.most;

/** Corrections, writes of values that a binding wrote, or writes of other changes of sources. */
type WriteKind = "corrections" | "echoes" | "changes";

interface Contention {
  of: WriteKind;
  /** The managers that change the target, and the changed paths. */
  by: string;
  /** Time until the contention ends if nothing else happens. */
  remainingMs: number;
}

interface Contender {
  /** The time of the last write. */
  at: number;
  /** The revisions of the sources of the last write. */
  sourceRevisions: string;
  budgets: Record<WriteKind, Budget>;
  by: string;
}

export class ContentionBudget {
  /** By key, the latest at the end. */
  readonly #contenders = new BoundedMap<string, Contender>(Number.POSITIVE_INFINITY);
  /** The time of the last write to each object, the latest at the end. */
  readonly #written = new BoundedMap<string, { at: number }>(Number.POSITIVE_INFINITY);
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * Milliseconds until `key` may be written; 0 means now. `takenBy` are the managers that own the differing fields,
   * `sources` the uids of the objects that the values come from, `paths` the differing paths.
   */
  mayWrite(
    key: string,
    sourceRevisions: string,
    takenBy: readonly string[],
    sources: readonly string[] = [],
    paths: readonly string[] = [],
  ): number {
    const contender = this.#contenders.get(key);
    if (contender === undefined) return 0;
    const kind = this.#kindOf(contender, sourceRevisions, sources);
    const what = paths.length === 0 ? "" : `, at ${paths.join(", ")},`;
    if (kind === "corrections") contender.by = `${takenBy.join(", ") || "another client"}${what}`;
    return contender.budgets[kind].wait(this.#now());
  }

  /** Forgets the writes of a binding, for a user who knows that the contention has ended. `prefix` begins its keys. */
  forget(prefix: string): void {
    for (const key of this.#contenders.keys()) if (key.startsWith(prefix)) this.#contenders.delete(key);
  }

  /** Counts a write to the object `target` that `mayWrite` allowed. */
  wrote(key: string, sourceRevisions: string, target = "", sources: readonly string[] = []): void {
    const now = this.#now();
    const before = this.#contenders.get(key);
    if (before !== undefined) before.budgets[this.#kindOf(before, sourceRevisions, sources)].spend(now);
    const { by, budgets } = before ?? {
      by: "",
      budgets: {
        corrections: new Budget(CORRECTIONS_AT_ONCE, PAUSE_MS.most),
        echoes: new Budget(ECHOES_AT_ONCE, PAUSE_MS.most),
        changes: new Budget(CHANGES_AT_ONCE, PAUSE_MS.mostForChanges),
      },
    };
    putLast(this.#contenders, key, { at: now, sourceRevisions, budgets, by }, now);
    putLast(this.#written, target, { at: now }, now);
  }

  /**
   * The contention over `key`, if any. It ends after a time without changes: as long as the last pause, and at least as long as a pause
   * between writes that each minute allows.
   */
  stateOf(key: string): Contention | undefined {
    const contender = this.#contenders.get(key);
    if (contender === undefined) return undefined;
    const now = this.#now();
    const kinds = ["corrections", "echoes", "changes"] as const;
    const remaining = kinds.map((of) => ({ of, ms: contender.budgets[of].remaining(now) }));
    const first = remaining.find(({ ms }) => ms > 0);
    return first && { of: first.of, by: contender.by, remainingMs: Math.max(...remaining.map(({ ms }) => ms)) };
  }

  #kindOf(before: Contender, sourceRevisions: string, sources: readonly string[]): WriteKind {
    if (before.sourceRevisions === sourceRevisions) return "corrections";
    const since = this.#now() - REMEMBERED_MS;
    return sources.some((uid) => (this.#written.get(uid)?.at ?? since) > since) ? "echoes" : "changes";
  }
}

/** Puts an entry at the end of a map that is sorted by time, and drops entries that are too old to count. */
function putLast<T extends { at: number }>(map: BoundedMap<string, T>, key: string, entry: T, now: number): void {
  map.dropOutdated(({ at }) => at <= now - REMEMBERED_MS);
  map.set(key, entry);
}

/** A number of writes per minute is free. After that come pauses, each twice as long as the one before. */
class Budget {
  readonly #free: number;
  readonly #longestMs: number;
  /** The times of the writes in the window. */
  #spent: number[] = [];
  /** The number of pauses so far. 0: no contention. */
  #pauses = 0;
  /** The end of the current pause. */
  #next = 0;

  constructor(free: number, longestMs: number) {
    this.#free = free;
    this.#longestMs = longestMs;
  }

  /** Milliseconds until the next write is allowed. */
  wait(now: number): number {
    this.#spent = this.#spent.filter((at) => at > now - WINDOW_MS);
    if (this.#pauses === 0 && this.#spent.length >= this.#free) this.#pause(now);
    return Math.max(0, this.#next - now);
  }

  spend(now: number): void {
    this.#spent.push(now);
    if (this.#pauses > 0) this.#pause(now);
  }

  /** Milliseconds until the budget is free again, if it is used up. */
  remaining(now: number): number {
    if (this.#pauses === 0) return 0;
    const left = Math.max((this.#spent.at(-1) ?? 0) + WINDOW_MS / this.#free, this.#next) - now;
    if (left > 0) return left;
    // The writes of the last minute still count.
    this.#pauses = 0;
    this.#next = 0;
    return 0;
  }

  #pause(now: number): void {
    this.#next = now + Math.min(PAUSE_MS.first * 2 ** this.#pauses, this.#longestMs);
    this.#pauses++;
  }
}
