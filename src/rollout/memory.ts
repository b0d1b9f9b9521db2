/** A binding comes in; what is remembered of its rollout goes out, of that very binding: of one that was made anew nothing is known. */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { Recreated } from "./restart/recreated-jobs.ts";
import type { Restarted } from "./restart/restart.ts";
import type { Saying } from "./status.ts";

const COUNTED_FOR_MS = 100;

export interface Memory extends Restarted, Saying {
  uid: string;
  /** The generation of the binding whose fields to restart by are known to be there. */
  checked?: number | undefined;
  /** Since when workloads are waited for. */
  pendingSince?: number;
  /** The sources and the spec, since when they are seen to be as they are, and what is wrong with the pace of that spec. */
  seen?: { inputs: string; since: number; wrong: Problem | undefined };
}

export class Memories {
  readonly #all = new Map<string, Memory>();
  #unsaid = { count: 0, until: Number.NEGATIVE_INFINITY };

  of(binding: SecretBinding): Memory {
    const [key, { uid }] = [bindingKey(binding), binding.metadata];
    const known = this.#all.get(key);
    if (known?.uid === uid) return known;
    const memory: Memory = {
      uid,
      readyAt: Number.POSITIVE_INFINITY,
      stamped: new Map(),
      recreated: new Map<string, Recreated>(),
      warned: new Set(),
      asked: new Set(),
    };
    this.#all.set(key, memory);
    return memory;
  }

  /** Returns what was remembered. */
  forget(key: string): Memory | undefined {
    const memory = this.#all.get(key);
    this.#all.delete(key);
    return memory;
  }

  /** About how many have something to say that is not in status yet: each of them asks. */
  get unsaid(): number {
    const now = performance.now();
    if (now < this.#unsaid.until) return this.#unsaid.count;
    let count = 0;
    for (const { unsaid } of this.#all.values()) if (unsaid !== undefined) count++;
    this.#unsaid = { count, until: now + COUNTED_FOR_MS };
    return count;
  }

  /** Of the bindings whose rollouts are under way: the key, and what it waits for. */
  *waits(): Generator<[key: string, reason: string]> {
    for (const [key, { waits }] of this.#all) if (waits !== undefined) yield [key, waits];
  }
}
