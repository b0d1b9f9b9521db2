/**
 * Limits the writes to a target that could go on for ever; each kind has its own budget. A write from the same sourceRevisions as the
 * last one corrects what others changed. One from an object that a binding wrote may come round to where it began. One from
 * any other new sourceRevisions may too, through somebody who is no binding. So many per minute are written at once, the others after
 * pauses.
 */

const CORRECTIONS_AT_ONCE = 3;
const ECHOES_AT_ONCE = 5;
const CHANGES_AT_ONCE = 60;
const WINDOW_MS = 60_000;
const PAUSE_MS = { first: 1_000, most: 300_000, mostForChanges: 60_000 };
/** How long a write counts: for contention, and for what is made from the object that it went to. Longer than any pause. */
const REMEMBERED_MS = 2 * PAUSE_MS.most;

/** What there is too much of: corrections, writes from what a binding wrote, or changes of sources. */
type WriteKind = "corrections" | "echoes" | "changes";

interface Contention {
  of: WriteKind;
  /** Who changes the target, as managedFields name the manager, and which paths. */
  by: string;
  /** When it will be over if nothing more happens. */
  remainingMs: number;
}

interface Contender {
  /** When the last write was. */
  at: number;
  /** What the last write was made from. */
  sourceRevisions: string;
  budgets: Record<WriteKind, Budget>;
  by: string;
}

export class ContentionBudget {
  /** By key, the latest at the end. */
  readonly #contenders = new Map<string, Contender>();
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
    sourceRevisions: string,
    takenBy: readonly string[],
    sources: readonly string[] = [],
    paths: readonly string[] = [],
  ): number {
    const contender = this.#contenders.get(key);
    if (contender === undefined) return 0;
    const kind = this.#kindOf(contender, sourceRevisions, sources);
    const what = paths.length === 0 ? "" : `, at ${paths.join(", ")},`;
    if (kind === "corrections") contender.by = `${takenBy.join(", ") || "somebody"}${what}`;
    return contender.budgets[kind].wait(this.#now());
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

  /** The contention over `key`, if any: it is over after as long as the last pause, and a minute at least, without changes. */
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
  /** How many pauses there were. 0: no contention. */
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
