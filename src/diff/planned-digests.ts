/**
 * Says for `inlay diff` which values of a binding would change. The user has no digest key, so a value that the files do not change counts as
 * the one that the controller has recorded. Every other value gets a digest of a key of this process.
 */
import { randomBytes } from "node:crypto";
import { type Digests, digestParts } from "../api/rollout.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { isPresent } from "../rollout/digest/digest.ts";
import { type DigestCache, digestsOf, factsOf, type ValueDigests } from "../rollout/digest/values.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";

const KEY = { id: "diff", bytes: new SecretValue<Uint8Array>(randomBytes(32)) };

/** What the files mean for the sources of one binding. */
export interface SourceChanges {
  /** The names of sources that stay the same object with the same data. */
  readonly same: ReadonlySet<string>;
  /** The sources whose data is in the files, as they are in the cluster. */
  readonly live: ReadonlyMap<string, LiveSource | Problem>;
}

type Values = Pick<DigestCache, keyof DigestCache>;

export class PlannedDigests implements Values {
  readonly #changes = new Map<string, SourceChanges>();

  set(binding: string, changes: SourceChanges): void {
    this.#changes.set(binding, changes);
  }

  async digests(...args: Parameters<Values["digests"]>): Promise<ValueDigests> {
    const [binding, sourceRevisions, used, places, readings, before, spec] = args;
    const { sources } = readings;
    const { same, live } = this.#changes.get(binding) as SourceChanges;
    const recorded: Digests = { ...before?.digests, ...before?.pending?.digests };
    const isKnown = (id: string) => {
      const { source } = digestParts(id);
      return same.has(source) && recorded[id] !== undefined && sources.get(source) instanceof Problem;
    };
    const of = (from: typeof sources, isIn: (id: string) => boolean) =>
      finish(digestsOf(KEY, binding, [...used].filter(isIn), from, places, spec));
    const own = of(sources, (id) => !isKnown(id));
    const former = of(live, (id) => live.has(digestParts(id).source));
    const digests: Record<string, string> = {};
    for (const id of used) {
      const [now, last] = [own[id], recorded[id]];
      const isSame = same.has(digestParts(id).source) || (now !== undefined && former[id] === now);
      const isLast = last !== undefined && (isKnown(id) || (isSame && isPresent(last) && isPresent(now)));
      const digest = isLast ? last : now;
      if (digest !== undefined) digests[id] = digest;
    }
    return {
      sourceRevisions,
      used,
      keyId: before?.digestKeyID ?? KEY.id,
      digests,
      former: undefined,
      ...factsOf(readings),
    };
  }

  /** Lists don't show since when a workload uses a value, so no decision asks for a former state. */
  async digestsIn(): Promise<undefined> {}

  /** Nothing is cached: each binding is decided once. */
  known(): undefined {}

  forget(binding: string): void {
    this.#changes.delete(binding);
  }
}
