/**
 * Computes the digests of all values that the workloads of a binding use, from the sources that were read. They are cached while
 * no source changes, so that a workload that rolls out causes no reads.
 */
import { namespaceIn } from "../../api/binding.ts";
import { type Digests, digestParts, type RolloutSpec, type RolloutStatus } from "../../api/rollout.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { ResolvedSource } from "../../sources/source.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import { givenText, restartTime } from "../../workloads/workload.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import type { PlannedRestart } from "../decide/schedule.ts";
import { type DigestKey, digestOf, newDigestEffort, presenceOf } from "./digest.ts";
import type { DigestKeys } from "./keys.ts";

/** The sources of a binding as they were read, and why they don't belong together, if they don't. */
export interface SourceReadings {
  sources: Sources;
  sourceMismatch: Problem | undefined;
  /** Why a source is not among `sources` although the binding names it. The others count. */
  unread?: Problem;
}

type Sources = ReadonlyMap<string, LiveSource | Problem>;
type CountedChanges = Pick<RolloutSpec, "restartOn">;
type Places = ReadonlyMap<string, Pick<ResolvedSource, "place"> | Problem>;

export interface ValueDigests {
  /** Changes with every source. */
  sourceRevisions: string;
  used: ReadonlySet<string>;
  /** The id of the key of the digests. */
  keyId: string;
  digests: Digests;
  /** The same digests with the key in the status, if that is another one and still exists. */
  former: Digests | undefined;
  /** Why nothing restarts for these values yet. */
  sourceMismatch: Problem | undefined;
  unread?: Problem;
  /** The version of each source. */
  versions: ReadonlyMap<string, string>;
  /** The resourceVersion of each source that is an object of the cluster. */
  resourceVersions: ReadonlyMap<string, string>;
}

export class DigestCache {
  readonly #keys: Pick<DigestKeys, "primary" | "byId">;
  readonly #cpu: Pick<CpuScheduler, "steps">;
  readonly #known = new Map<string, ValueDigests>();

  constructor(keys: Pick<DigestKeys, "primary" | "byId">, cpu: Pick<CpuScheduler, "steps">) {
    this.#keys = keys;
    this.#cpu = cpu;
  }

  /** The cached digests; undefined if they don't cover all used values. */
  known(binding: string, sourceRevisions: string, used: ReadonlySet<string>): ValueDigests | undefined {
    const known = this.#known.get(binding);
    if (known?.sourceRevisions !== sourceRevisions) return undefined;
    return [...used].every((id) => known.used.has(id)) ? known : undefined;
  }

  /** The cached digests, or new ones of the sources that were read. Throws Problem if a source or a key could not be read. */
  async digests(
    binding: string,
    sourceRevisions: string,
    used: ReadonlySet<string>,
    places: Places,
    readings: SourceReadings,
    before: RolloutStatus | undefined,
    spec: CountedChanges = {},
  ): Promise<ValueDigests> {
    const same = this.known(binding, sourceRevisions, used);
    if (same !== undefined) return same;
    const { sources, sourceMismatch } = readings;
    // A mismatch that ends when a source changes is returned below.
    if (sourceMismatch !== undefined && sourceMismatch.retryPolicy !== "OnChange") throw sourceMismatch;
    const primary = await this.#keys.primary();
    const last =
      before === undefined || before.digestKeyID === primary.id ? undefined : await this.#keys.byId(before.digestKeyID);
    const digestsBy = (key: DigestKey) =>
      this.#cpu.steps(namespaceIn(binding), digestsOf(key, binding, used, sources, places, spec));
    const former = last && (await digestsBy(last));
    // A rollout continues with the key that it began with, and a missing value can't be compared with another key.
    const isKept = former !== undefined && (before?.pending !== undefined || hasGone(before, used, former));
    const key = isKept && last !== undefined ? last : primary;
    const known: ValueDigests = {
      sourceRevisions,
      used,
      keyId: key.id,
      digests: isKept ? former : await digestsBy(key),
      former: isKept ? undefined : former,
      ...factsOf(readings),
    };
    // A source that could not be read is read again, even if no digest needs it.
    if ([...sources.values()].some((source) => source instanceof Problem)) this.#known.delete(binding);
    else this.#known.set(binding, known);
    return known;
  }

  /**
   * The digests of one source in another state, comparable with `present`. Undefined if their key is lost. Throws Problem.
   */
  async digestsIn(
    binding: string,
    { keyId }: Pick<ValueDigests, "keyId">,
    used: Iterable<string>,
    [name, source, resolved]: [name: string, source: LiveSource, resolved: ResolvedSource],
    spec: CountedChanges,
  ): Promise<Digests | undefined> {
    const key = await this.#keys.byId(keyId);
    if (key === undefined) return undefined;
    const digests = digestsOf(key, binding, used, new Map([[name, source]]), new Map([[name, resolved]]), spec);
    return this.#cpu.steps(namespaceIn(binding), digests);
  }

  forget(binding: string): void {
    this.#known.delete(binding);
  }
}

/** Whether a value is missing that is used and was known. */
const hasGone = (before: RolloutStatus | undefined, used: ReadonlySet<string>, now: Digests): boolean =>
  Object.keys(before?.digests ?? {}).some((id) => used.has(id) && now[id] === undefined);

/** The text to write for a restart. A second try after a crash gives the same text. */
export function writtenFor(
  { stamp: { value } }: RolloutSpec,
  { dependent, stamp }: PlannedRestart,
  { pending }: RolloutStatus,
  { resourceVersions }: ValueDigests,
): string {
  const text = givenText(dependent);
  if (text === "true") return text;
  if (text === "time") return restartTime(pending?.lastChangeTime ?? "");
  if (value === "Revision") return stamp;
  if (value === "Time") return pending?.lastChangeTime ?? stamp;
  const ids = [...dependent.uses].sort();
  // A value that changed back is no change any more, but the version of its source differs.
  const id = ids.find((each) => pending?.digests?.[each] !== undefined) ?? ids[0];
  return (id === undefined ? undefined : resourceVersions.get(digestParts(id).source)) ?? stamp;
}

/** Of the values that exist, and of missing ones that count. Throws the Problem of a source, and as `digestOf`. Yields for each. */
export function* digestsOf(
  key: DigestKey,
  binding: string,
  used: Iterable<string>,
  sources: Sources,
  places: Places,
  spec: CountedChanges = {},
): Generator<void, Digests> {
  const digests: Record<string, string> = {};
  const effort = newDigestEffort();
  for (const id of used) {
    yield;
    const { source: name, key: place } = digestParts(id);
    const [source, at] = [sources.get(name), places.get(name)];
    if (source instanceof Problem) throw source;
    if (source === undefined || at === undefined || at instanceof Problem) continue;
    const scope = { binding, source: at.place, key: place };
    const digest = source.kind === "absent" ? presenceOf(source, spec) : yield* digestOf(key, scope, source, effort);
    if (digest !== undefined) digests[id] = digest;
  }
  return digests;
}

/** What the digests of sources have besides the digests. */
export const factsOf = ({ sources, sourceMismatch, unread }: SourceReadings) => ({
  sourceMismatch,
  ...(unread !== undefined && { unread }),
  versions: versionsOf(sources, ({ version }) => version),
  resourceVersions: versionsOf(sources, (source) => ("resourceVersion" in source ? source.resourceVersion : undefined)),
});

/** Of the sources that could be read. */
function versionsOf(sources: Sources, of: (source: LiveSource) => string | undefined): Map<string, string> {
  return new Map(
    [...sources].flatMap(([name, source]) => {
      const version = source instanceof Problem ? undefined : of(source);
      return version === undefined ? [] : [[name, version]];
    }),
  );
}
