/**
 * The sources as they were read come in; a digest of each value that a workload uses goes out, of those that are there. They
 * are kept for as long as no source changes, so that nothing is read for a workload that is on its way.
 */
import { type Digests, digestParts, type RolloutSpec, type RolloutStatus } from "../../api/rollout.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { ResolvedSource } from "../../sources/source.ts";
import { newFilterEffort } from "../../transform/key-filter.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import { givenText, restartTime } from "../../workloads/restart-field.ts";
import type { PlannedRestart } from "../decide/schedule.ts";
import { type DigestKey, digestOf } from "./digest.ts";
import type { DigestKeys } from "./keys.ts";
import { presenceOf } from "./presence.ts";

/** The sources of a binding as they were read, and why they don't belong together, if they don't. */
export interface SourceReadings {
  sources: Sources;
  sourceMismatch: Problem | undefined;
}

type Sources = ReadonlyMap<string, LiveSource | Problem>;
type CountedChanges = Pick<RolloutSpec, "restartOn">;
type Places = ReadonlyMap<string, Pick<ResolvedSource, "place"> | Problem>;

export interface ValueDigests {
  /** What changes with every source. */
  sourceRevisions: string;
  used: ReadonlySet<string>;
  /** The id of the key that the digests are made with. */
  keyId: string;
  digests: Digests;
  /** The same by the key in status, where that is another one and still there. */
  former: Digests | undefined;
  /** Why nothing restarts for them yet. */
  sourceMismatch: Problem | undefined;
  /** The version of each source. */
  versions: ReadonlyMap<string, string>;
  /** The resourceVersion of each source that is an object of the cluster. */
  resourceVersions: ReadonlyMap<string, string>;
}

export class DigestCache {
  readonly #keys: Pick<DigestKeys, "primary" | "byId">;
  readonly #known = new Map<string, ValueDigests>();

  constructor(keys: Pick<DigestKeys, "primary" | "byId">) {
    this.#keys = keys;
  }

  /** What is known without reading anything; undefined if that is not all that is used. */
  known(binding: string, sourceRevisions: string, used: ReadonlySet<string>): ValueDigests | undefined {
    const known = this.#known.get(binding);
    if (known?.sourceRevisions !== sourceRevisions) return undefined;
    return [...used].every((id) => known.used.has(id)) ? known : undefined;
  }

  /** What is known, or what the sources say as they were read. Throws Problem: of one that could not be read, or of the keys. */
  async digests(
    binding: string,
    sourceRevisions: string,
    used: ReadonlySet<string>,
    places: Places,
    { sources, sourceMismatch }: SourceReadings,
    before: RolloutStatus | undefined,
    spec: CountedChanges = {},
  ): Promise<ValueDigests> {
    const same = this.known(binding, sourceRevisions, used);
    if (same !== undefined) return same;
    // Else it is over when a source changes.
    if (sourceMismatch !== undefined && sourceMismatch.retryPolicy !== "OnChange") throw sourceMismatch;
    const primary = await this.#keys.primary();
    const last =
      before === undefined || before.digestKeyID === primary.id ? undefined : await this.#keys.byId(before.digestKeyID);
    const former = last && digestsOf(last, binding, used, sources, places, spec);
    // What is under way goes on by the key that it began with, and what is not there can't be known by another.
    const isKept = former !== undefined && (before?.pending !== undefined || hasGone(before, used, former));
    const key = isKept && last !== undefined ? last : primary;
    const known: ValueDigests = {
      sourceRevisions,
      used,
      keyId: key.id,
      digests: isKept ? former : digestsOf(key, binding, used, sources, places, spec),
      former: isKept ? undefined : former,
      sourceMismatch,
      versions: versionsOf(sources, ({ version }) => version),
      resourceVersions: versionsOf(sources, (source) =>
        "resourceVersion" in source ? source.resourceVersion : undefined,
      ),
    };
    // What could not be read this time is read again, though nothing was digested of it.
    if ([...sources.values()].some((source) => source instanceof Problem)) this.#known.delete(binding);
    else this.#known.set(binding, known);
    return known;
  }

  forget(binding: string): void {
    this.#known.delete(binding);
  }
}

/** Whether something that is used and was known is not there. */
const hasGone = (before: RolloutStatus | undefined, used: ReadonlySet<string>, now: Digests): boolean =>
  Object.keys(before?.digests ?? {}).some((id) => used.has(id) && now[id] === undefined);

/** What is to be written for a restart. A second try after a crash comes to the same. */
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
  // What went back is no change any more, and of another version all the same.
  const id = ids.find((each) => pending?.digests?.[each] !== undefined) ?? ids[0];
  return (id === undefined ? undefined : resourceVersions.get(digestParts(id).source)) ?? stamp;
}

/** Of what is there, and of what counts although it is not. Throws the Problem of a source. */
export function digestsOf(
  key: DigestKey,
  binding: string,
  used: Iterable<string>,
  sources: Sources,
  places: Places,
  spec: CountedChanges = {},
): Digests {
  const digests: Record<string, string> = {};
  const effort = newFilterEffort();
  for (const id of used) {
    const { source: name, key: place } = digestParts(id);
    const [source, at] = [sources.get(name), places.get(name)];
    if (source instanceof Problem) throw source;
    if (source === undefined || at === undefined || at instanceof Problem) continue;
    const scope = { binding, source: at.place, key: place };
    const digest = source.kind === "absent" ? presenceOf(source, spec) : digestOf(key, scope, source, effort);
    if (digest !== undefined) digests[id] = digest;
  }
  return digests;
}

/** Of those that could be read. */
function versionsOf(sources: Sources, of: (source: LiveSource) => string | undefined): Map<string, string> {
  return new Map(
    [...sources].flatMap(([name, source]) => {
      const version = source instanceof Problem ? undefined : of(source);
      return version === undefined ? [] : [[name, version]];
    }),
  );
}
