/** Remembers the rollout of each binding by its uid, so that a recreated binding begins without a memory. */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import type { RolloutStatus } from "../api/rollout.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { isOlder, type Version } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { RecreatedJob } from "./restart/recreated-jobs.ts";
import type { Dependent } from "./types.ts";

const COUNTED_FOR_MS = 100;
/** The first list of workloads mostly comes with those of all else, and spares a second look; the fields wait no longer for it. */
const PATIENCE_MS = 2_000;

interface Stamped extends Version {
  text: string;
}

const METADATA = FieldPath.parse("metadata");

export class RolloutMemory {
  readonly uid: string;
  /** When the sources were as they are now, and every target held their values, by the monotonic clock. */
  readyAt = Number.POSITIVE_INFINITY;
  /** What stamps made of workloads, by their uids. */
  readonly stamped = new Map<string, Stamped>();
  /** The recreated Jobs, by the uids of the former ones. */
  readonly recreated = new Map<string, RecreatedJob>();
  /** The uids of Jobs that were recreated, or reported as lost. */
  readonly settled = new Set<string>();
  /** The uids of workloads whose last restart the API server refused. */
  readonly refused = new Set<string>();
  /** Those for which the warning was written that they have no readiness probe. */
  readonly warned = new Set<string>();
  /** Those of which it was asked whether a PodDisruptionBudget selects their pods. */
  readonly asked = new Set<string>();
  /** What was decided and is not in status yet, and since when that is the case. */
  unsaid: { status: RolloutStatus; since: number } | undefined;
  /** What a rollout that is under way waits for. */
  waits: string | undefined;
  /** The generation of the binding whose fields to restart by are known to be there. */
  checked: number | undefined;
  /** The sources and the spec, since when they are seen to be as they are, and what is wrong with the pace of that spec. */
  observed: { sourceRevisions: string; since: number; wrong: Problem | undefined } | undefined;
  /** Since when workloads are waited for. */
  #pendingSince: number | undefined;

  constructor(uid: string) {
    this.uid = uid;
  }

  /** Notes the sources and the spec as they are now. Returns what is wrong with its pace, which is checked once for each. */
  observe(sourceRevisions: string, check: () => Problem | undefined): Problem | undefined {
    if (this.observed?.sourceRevisions !== sourceRevisions) {
      this.observed = { sourceRevisions, since: performance.now(), wrong: check() };
      this.readyAt = Number.POSITIVE_INFINITY;
    }
    return this.observed.wrong;
  }

  /** How long it is to be waited for the workloads, which are `pending` or not. */
  patienceMs(pending: boolean): number {
    const now = performance.now();
    this.#pendingSince = pending ? (this.#pendingSince ?? now) : undefined;
    return this.#pendingSince === undefined ? 0 : Math.max(0, this.#pendingSince + PATIENCE_MS - now);
  }

  /** Whether all that the pods need is in its place, and since when. What is ready stays so since the first time. */
  setReady(isReady: boolean, since = performance.now()): void {
    this.readyAt = isReady ? Math.min(this.readyAt, since) : Number.POSITIVE_INFINITY;
  }

  /** What was decided last, although status may not say so yet. */
  before({ status }: SecretBinding): RolloutStatus | undefined {
    return this.unsaid?.status ?? status?.rollout;
  }

  /** Whether a workload is shown as our last stamp left it, or later. What is written into metadata makes no other generation. */
  isSeen({ version, workload, stampAt }: Dependent): boolean {
    const stamped = this.stamped.get(version.uid);
    if (stamped === undefined) return true;
    const { generation = 0 } = stamped;
    if (!stampAt.startsWith(METADATA)) return (version.generation ?? generation) >= generation;
    return workload.restart === stamped.text || !isOlder(version, stamped);
  }
}

export class RolloutMemories {
  readonly #all = new Map<string, RolloutMemory>();
  #unsaid = { count: 0, until: Number.NEGATIVE_INFINITY };

  of(binding: SecretBinding): RolloutMemory {
    const [key, { uid }] = [bindingKey(binding), binding.metadata];
    const known = this.#all.get(key);
    if (known?.uid === uid) return known;
    const memory = new RolloutMemory(uid);
    this.#all.set(key, memory);
    return memory;
  }

  /** Returns what was remembered. */
  forget(key: string): RolloutMemory | undefined {
    const memory = this.#all.get(key);
    this.#all.delete(key);
    return memory;
  }

  /** About how many have something to say that is not in status yet: each of them asks. */
  get unsaid(): number {
    const now = performance.now();
    if (now < this.#unsaid.until) return this.#unsaid.count;
    const count = [...this.#all.values()].filter(({ unsaid }) => unsaid !== undefined).length;
    this.#unsaid = { count, until: now + COUNTED_FOR_MS };
    return count;
  }

  /** Of the bindings whose rollouts are under way: the key, and what it waits for. */
  *waits(): Generator<[key: string, reason: string]> {
    for (const [key, { waits }] of this.#all) if (waits !== undefined) yield [key, waits];
  }
}
