/**
 * Remembers writes and removals that were reverted, because whatever changes the object would repeat them at once. Remembers which
 * fields of a rejected write are refused alone, because a rejected write is repeated every half minute and finding that
 * takes up to twenty-one requests. Limits how often that is tried.
 */
import { BoundedMap } from "../apimachinery/maps.ts";
import type { Problem } from "../apimachinery/problem.ts";

/** How long a result is used. The rules of the cluster may change in the meantime. */
const USED_FOR_MS = 600_000;
/** Nothing but a change of the binding or its sources leads to another trial of a target within this time. */
const PAUSE_MS = 60_000;
/**
 * Nothing but a change of the binding or its sources repeats a reverted write within this time, which is shorter than the
 * interval of slow retries.
 */
const REVERTED_FOR_MS = 25_000;
/** How many trials a namespace may have at once, and how often one more. */
const BURST = 10;
const EVERY_MS = 6_000;
/** The limit of remembered targets and namespaces; the oldest are dropped. */
const MAX_KNOWN = 1_000;

/** A rejected write. */
export interface RejectedWrite {
  /** The namespace of the binding. */
  namespace: string;
  /** The binding and the target. */
  key: string;
  /** Changes with the binding and its sources. */
  sourceRevisions: string;
  /** The generation of the target; undefined for kinds without one. */
  generation: number | undefined;
  /** Changes with the reason for the refusal. */
  answer: string;
}

/** What the trial of each field shows. */
export interface Trial {
  findings: readonly string[];
  /** The findings explain the refusal without its answer. */
  isWhole: boolean;
}

interface Known extends Omit<RejectedWrite, "namespace" | "key"> {
  at: number;
  trial: Trial | undefined;
}

interface Reverted {
  at: number;
  sourceRevisions: string;
  problem: Problem;
}

export class Rejections {
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);
  /** By binding and target. */
  readonly #reverted = new BoundedMap<string, Reverted>(MAX_KNOWN);
  /** When each namespace will have made use of all its trials until then. */
  readonly #usedUntil = new BoundedMap<string, number>(MAX_KNOWN);
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** The trial of the write. Undefined if it had no result, or may not be tried now. `attempt` returns undefined for no result. */
  async trial(write: RejectedWrite, attempt: () => Promise<Trial | undefined>): Promise<Trial | undefined> {
    const { namespace, key, ...state } = write;
    const known = this.#known.get(key);
    const now = this.#now();
    const isOurs = known?.sourceRevisions === state.sourceRevisions;
    const usable = isOurs && known.answer === state.answer ? known.trial : undefined;
    if (isOurs) {
      const isDue = usable === undefined || known.generation !== state.generation || now - known.at >= USED_FOR_MS;
      if (!isDue || now - known.at < PAUSE_MS) return usable;
    }
    if (!this.#mayTry(namespace, now)) return usable;
    const trial = await attempt();
    this.#known.set(key, { ...state, at: now, trial });
    return trial;
  }

  /** Remembers a write that the API server accepted without storing its values. */
  reverted(key: string, sourceRevisions: string, problem: Problem): void {
    this.#reverted.set(key, { at: this.#now(), sourceRevisions, problem });
  }

  /** The problem of the last write of these values, if it was reverted and may not be repeated yet. */
  reversion(key: string, sourceRevisions: string): Problem | undefined {
    const last = this.#reverted.get(key);
    const isRecent = last?.sourceRevisions === sourceRevisions && this.#now() - last.at < REVERTED_FOR_MS;
    return isRecent ? last.problem : undefined;
  }

  /** Forgets what was reverted, for a user who knows that the rule has changed. `prefix` begins the keys of a binding. */
  forget(prefix: string): void {
    for (const key of this.#reverted.keys()) if (key.startsWith(prefix)) this.#reverted.delete(key);
  }

  #mayTry(namespace: string, now: number): boolean {
    const used = Math.max(this.#usedUntil.get(namespace) ?? 0, now);
    if (used - now > (BURST - 1) * EVERY_MS) return false;
    this.#usedUntil.set(namespace, used + EVERY_MS);
    return true;
  }
}
