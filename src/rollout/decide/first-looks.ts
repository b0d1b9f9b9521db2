/**
 * Decides whether the pods of a workload started with the present values of a source, from the versions and times of both. A rollout
 * needs that once for each pair, when it first sees the workload: from then on, it compares digests.
 */
import type { RolloutStatus } from "../../api/rollout.ts";
import { isOlder } from "../../apimachinery/objects.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import type { Dependent } from "../types.ts";

/** The values of a source that the pods of a workload started with. Undefined if that is unknown. */
export type StartedWith = "present" | "former" | undefined;

type Created = Pick<CachedObject, "createdAt" | "createdAs">;
type Source = Created & Pick<CachedObject, "resourceVersion" | "dataAt" | "markedAt">;

/**
 * `since`, in seconds of the epoch: earlier changes do not count as missed. If the creation of the workload was not observed,
 * a younger source may or may not have been read, so only an older one decides. Times have a resolution of one second, so a change
 * in the second of the creation and after it counts as missed.
 */
export function startedWith({ createdAt, createdAs }: Created, source: Source, since: number): StartedWith {
  const { dataAt } = source;
  if (createdAs !== undefined && isOlder(source, { resourceVersion: createdAs })) return "present";
  if (createdAt === undefined || dataAt === undefined) return undefined;
  if (dataAt < createdAt) return "present";
  if (createdAs === undefined || dataAt < since || dataAt === source.markedAt) return undefined;
  // Without the source, the pods could not start, so its own creation is no change for them.
  return isYounger(source, createdAs, createdAt) && dataAt === source.createdAt ? undefined : "former";
}

function isYounger(source: Source, createdAs: string, createdAt: number): boolean {
  if (source.createdAs !== undefined)
    return isOlder({ resourceVersion: createdAs }, { resourceVersion: source.createdAs });
  return (source.createdAt ?? 0) > createdAt;
}

/** The first look at a pair. */
interface Look {
  isFormer: boolean;
  /** The revision of the rollout before. */
  revision: number;
}

/** Remembers which pairs of a binding were judged. */
export class FirstLooks {
  #looks: ReadonlyMap<string, Look> = new Map();

  /**
   * Returns a function that says which values of a digest's source a workload started with: `former` only until the rollout with that
   * workload is recorded in `before`. `sourceOf` returns the source in the version that the digest is of, if it is known.
   */
  judge(
    dependents: readonly Dependent[],
    before: RolloutStatus | undefined,
    since: number,
    sourceOf: (id: string) => Source | undefined,
  ): (dependent: Dependent, id: string) => StartedWith {
    const looks = new Map<string, Look>();
    const results = new Map<string, StartedWith>();
    for (const { version, uses } of dependents)
      for (const id of uses) {
        const source = sourceOf(id);
        if (source === undefined) continue;
        const pair = pairOf(version, id);
        const last = this.#looks.get(pair);
        const result = startedWith(version, source, since);
        const isKnown = last !== undefined && isRecorded(last, version.uid, id, before);
        looks.set(pair, isKnown ? last : { isFormer: result === "former", revision: before?.revision ?? 0 });
        if (!(isKnown && result === "former")) results.set(pair, result);
      }
    this.#looks = looks;
    return ({ version }, id) => results.get(pairOf(version, id));
  }
}

const pairOf = ({ uid }: Pick<CachedObject, "uid">, id: string) => `${uid} ${id}`;

/** Whether the status has the result of that look, so that a later difference is an ordinary change. */
function isRecorded({ isFormer, revision }: Look, uid: string, id: string, before: RolloutStatus | undefined): boolean {
  if (before?.digests?.[id] === undefined) return false;
  if (!isFormer) return true;
  return before.revision > revision || before.pending?.workloads?.some((each) => each.uid === uid) === true;
}
