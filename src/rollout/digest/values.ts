/**
 * The sources as they were read come in; a digest of each value that a workload uses goes out, of those that are there. They
 * are kept for as long as no source changes, so that nothing is read for a workload that is on its way.
 */

import type { Digests, RolloutSpec, RolloutStatus } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import type { ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { ALL_KEYS } from "../../sources/uses.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import { givenText, restartTime } from "../../workloads/restart-field.ts";
import type { Ordered } from "../decide/schedule.ts";
import { type DigestKey, digestOf } from "./digest.ts";
import type { DigestKeys } from "./keys.ts";

/** The sources of a binding as they were read, and why they don't belong together, if they don't. */
export interface Read {
  sources: Sources;
  differ: Problem | undefined;
}

type Sources = ReadonlyMap<string, LiveSource | Problem>;
type Refs = ReadonlyMap<string, ObjectRef | Problem>;

export interface Known {
  /** What changes with every source. */
  inputs: string;
  used: ReadonlySet<string>;
  /** The id of the key that the digests are made with. */
  keyId: string;
  digests: Digests;
  /** The same by the key in status, where that is another one and still there. */
  former: Digests | undefined;
  /** Why nothing restarts for them yet. */
  differ: Problem | undefined;
  /** The resourceVersion of each source. */
  versions: ReadonlyMap<string, string>;
}

export class Values {
  readonly #keys: DigestKeys;
  readonly #known = new Map<string, Known>();

  constructor(keys: DigestKeys) {
    this.#keys = keys;
  }

  /** What is known without reading anything; undefined if that is not all that is used. */
  known(binding: string, inputs: string, used: ReadonlySet<string>): Known | undefined {
    const known = this.#known.get(binding);
    return known?.inputs === inputs && [...used].every((id) => known.used.has(id)) ? known : undefined;
  }

  /** Throws Problem: of a source that could not be read, or of the keys. */
  async read(
    binding: string,
    inputs: string,
    used: ReadonlySet<string>,
    refs: Refs,
    { sources, differ }: Read,
    before: RolloutStatus | undefined,
  ): Promise<Known> {
    // Else it is over when a source changes.
    if (differ !== undefined && differ.healing !== "event") throw differ;
    const primary = await this.#keys.primary();
    const last = before === undefined || before.key === primary.id ? undefined : await this.#keys.byId(before.key);
    const former = last && digestsOf(last, binding, used, sources, refs);
    // What is under way goes on by the key that it began with, and what is not there can't be known by another.
    const isKept = former !== undefined && (before?.pending !== undefined || hasGone(before, used, former));
    const key = isKept && last !== undefined ? last : primary;
    const known: Known = {
      inputs,
      used,
      keyId: key.id,
      digests: isKept ? former : digestsOf(key, binding, used, sources, refs),
      former: isKept ? undefined : former,
      differ,
      versions: versionsOf(sources),
    };
    this.#known.set(binding, known);
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
  { dependent, stamp }: Ordered,
  { pending }: RolloutStatus,
  { versions }: Known,
): string {
  const text = givenText(dependent);
  if (text === "true") return text;
  if (text === "time") return restartTime(pending?.changed ?? "");
  if (value === "Revision") return stamp;
  if (value === "Time") return pending?.changed ?? stamp;
  const ids = [...dependent.uses].sort();
  // What went back is no change any more, and of another version all the same.
  const id = ids.find((each) => pending?.digests?.[each] !== undefined) ?? ids[0];
  return (id === undefined ? undefined : versions.get(partsOf(id).source)) ?? stamp;
}

/** What is not there has no digest: nobody restarts into a value that is missing. Throws the Problem of a source. */
export function digestsOf(
  key: DigestKey,
  binding: string,
  used: Iterable<string>,
  sources: Sources,
  refs: Refs,
): Digests {
  const digests: Record<string, string> = {};
  for (const id of used) {
    const { source: name, key: place } = partsOf(id);
    const [source, ref] = [sources.get(name), refs.get(name)];
    if (source instanceof Problem) throw source;
    if (source === undefined || ref === undefined || ref instanceof Problem || !isThere(source, place)) continue;
    digests[id] = digestOf(key, { binding, ref, key: place }, source);
  }
  return digests;
}

/** `bucket/accessKeyID`: a source's name has no slash. */
function partsOf(id: string): { source: string; key: string } {
  const slash = id.indexOf("/");
  return { source: id.slice(0, slash), key: id.slice(slash + 1) };
}

/** As where values are read: null is as good as nothing. Throws Problem("ElementNotUnique"). */
function isThere(source: LiveSource, place: string): boolean {
  if (source.kind === "absent") return false;
  if (place === ALL_KEYS) return true;
  if (source.kind === "data") return source.data.has(place);
  return (FieldPath.parse(place).get(source.object.reveal()) ?? undefined) !== undefined;
}

/** A source's version is its uid and its resourceVersion. */
function versionsOf(sources: Sources): Map<string, string> {
  const read = [...sources].flatMap(([name, source]) =>
    source instanceof Problem ? [] : [[name, source.version] as const],
  );
  return new Map(read.map(([name, version]) => [name, version.slice(version.indexOf("/") + 1)]));
}
