/**
 * Remembers the rollout of each binding by its uid, so that a recreated binding starts without a memory, and the restarts of each workload.
 */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import type { RestartLimit } from "../api/installation.ts";
import type { RolloutStatus } from "../api/rollout.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { BoundedMap } from "../apimachinery/maps.ts";
import { idOf, isOlder, type ObjectRef, type Version } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { FirstLooks } from "./decide/first-looks.ts";
import type { Revert } from "./decide/reverts.ts";
import type { RecreatedJob } from "./restart/recreate-job.ts";
import type { Dependent } from "./types.ts";

const COUNTED_FOR_MS = 100;
/**
 * The list of workloads mostly arrives together with the others, so waiting for it spares a second reconcile. Fields wait no
 * longer.
 */
const PATIENCE_MS = 2_000;

interface Stamped extends Version {
  text: string;
}

/** A target that has the present values, and the version in which a write or a read showed that. */
export interface WrittenTarget {
  ref: ObjectRef;
  version: Version;
}

const METADATA = FieldPath.parse("metadata");

export class RolloutMemory {
  readonly uid: string;
  /** Since when the sources are unchanged and every target has their values, by the monotonic clock. */
  readyAt = Number.POSITIVE_INFINITY;
  /** The versions of workloads after their restarts, by uid. */
  readonly stamped = new Map<string, Stamped>();
  /** The recreated Jobs, by the uids of the former Jobs. */
  readonly recreated = new Map<string, RecreatedJob>();
  /** The uids of Jobs that were recreated, or reported as lost. */
  readonly settled = new Set<string>();
  /** The uids of workloads whose last restart the API server refused. */
  readonly refused = new Set<string>();
  /** The uids of workloads for which the warning about a missing readiness probe was recorded. */
  readonly warned = new Set<string>();
  /** The uids of workloads for which the PodDisruptionBudgets were read. */
  readonly asked = new Set<string>();
  /** What was read of workloads that do not bear their restarts, by uid, with the version for which it counts. */
  readonly reverts = new Map<string, { version: string; revert: Revert }>();
  /** Whether the pods of workloads are younger than a change, by uid, with the template and the change for which it counts. */
  readonly ages = new Map<string, { of: string; isYounger: boolean }>();
  readonly firstLooks = new FirstLooks();
  /** The decided status that is not written yet, and since when. */
  unreported: { status: RolloutStatus; since: number } | undefined;
  /** What the present rollout waits for. */
  waits: string | undefined;
  /** The last request to try again that was taken up. */
  asking: string | undefined;
  /** The generation of the binding whose restart fields were checked. */
  checked: number | undefined;
  /** The sources and the spec, since when they are unchanged, and the mistake in the pace settings of that spec. */
  observed: { sourceRevisions: string; since: number; wrong: Problem | undefined } | undefined;
  #written = { sourceRevisions: "", versions: new Map<string, Version>() };
  /** Since when workloads are waited for. */
  #pendingSince: number | undefined;

  constructor(uid: string) {
    this.uid = uid;
  }

  /** Records the sources and the spec. Returns the mistake in the pace settings, which are checked once for each. */
  observe(sourceRevisions: string, check: () => Problem | undefined): Problem | undefined {
    if (this.observed?.sourceRevisions !== sourceRevisions) {
      this.observed = { sourceRevisions, since: performance.now(), wrong: check() };
      this.readyAt = Number.POSITIVE_INFINITY;
    }
    return this.observed.wrong;
  }

  /**
   * Records the versions in which targets have the present values, and returns the first one of each: later generations may be those of a
   * status.
   */
  setWritten(sourceRevisions: string, written: readonly WrittenTarget[]): ReadonlyMap<string, Version> {
    if (this.#written.sourceRevisions !== sourceRevisions) this.#written = { sourceRevisions, versions: new Map() };
    const { versions } = this.#written;
    for (const { ref, version } of written)
      if (versions.get(idOf(ref))?.uid !== version.uid) versions.set(idOf(ref), version);
    return versions;
  }

  /** The first version in which a target has the present values, if that is known. */
  writtenIn(ref: ObjectRef): string | undefined {
    return this.#written.versions.get(idOf(ref))?.resourceVersion;
  }

  /** How many ms to wait for the workloads. `pending`: they are not known yet. */
  patienceMs(pending: boolean): number {
    const now = performance.now();
    this.#pendingSince = pending ? (this.#pendingSince ?? now) : undefined;
    return this.#pendingSince === undefined ? 0 : Math.max(0, this.#pendingSince + PATIENCE_MS - now);
  }

  /** Records whether everything that the pods need is ready, and since when. The first time counts. */
  setReady(isReady: boolean, since = performance.now()): void {
    this.readyAt = isReady ? Math.min(this.readyAt, since) : Number.POSITIVE_INFINITY;
  }

  /** The last decided status, which may not be written yet. */
  before({ status }: SecretBinding): RolloutStatus | undefined {
    return this.unreported?.status ?? status?.rollout;
  }

  /**
   * Whether the watch shows a workload at least as new as its last restart. A write into metadata does not change the generation.
   */
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
  #unreported = { count: 0, until: Number.NEGATIVE_INFINITY };

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

  /** About how many bindings have a status that is not written yet. Cached, because each of them asks. */
  get unreported(): number {
    const now = performance.now();
    if (now < this.#unreported.until) return this.#unreported.count;
    const count = [...this.#all.values()].filter(({ unreported }) => unreported !== undefined).length;
    this.#unreported = { count, until: now + COUNTED_FOR_MS };
    return count;
  }

  /** The bindings with a rollout: the key, and the reason why it waits. */
  *waits(): Generator<[key: string, reason: string]> {
    for (const [key, { waits }] of this.#all) if (waits !== undefined) yield [key, waits];
  }
}

/** How many workloads are remembered. The oldest are forgotten. */
const MAX_SIZE = 20_000;
const NONE: readonly never[] = [];

type Restarted = Pick<Dependent, "ref" | "workload">;

/**
 * Knows when workloads last restarted for changing values, by all bindings. Their annotations have these times, which another leader reads.
 * Jobs lose their annotation, and operators may remove it, so this process remembers its own restarts as well.
 */
export class RecentRestarts {
  /** By workload. */
  readonly #own = new BoundedMap<string, readonly number[]>(MAX_SIZE);

  /** In ms, ascending. */
  timesOf({ ref, workload: { restarts = NONE } }: Restarted): readonly number[] {
    const own = this.#own.get(idOf(ref));
    if (own === undefined) return restarts;
    return [...new Set([...restarts, ...own])].sort((a, b) => a - b);
  }

  /** The times after a restart at `now`, without those that do not matter any more. */
  after(dependent: Restarted, now: number, { max, windowMs }: RestartLimit): readonly number[] {
    const recent = this.timesOf(dependent).filter((each) => each < now && each + windowMs > now);
    return [...recent, now].slice(-max);
  }

  /** The restart was written. */
  remember({ ref }: Restarted, times: readonly number[]): void {
    this.#own.set(idOf(ref), times);
  }
}
