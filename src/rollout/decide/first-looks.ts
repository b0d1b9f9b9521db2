/**
 * Decides whether the pods of a workload started with the present values of a source, from the versions and times of both. A rollout
 * needs that once for each pair, when it first sees the workload: from then on, it compares digests.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { claimsToBeGenerated } from "../../api/reloader.ts";
import type { RolloutStatus } from "../../api/rollout.ts";
import { setNewest } from "../../apimachinery/newest.ts";
import { isOlder } from "../../apimachinery/objects.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import type { Dependent, NamespaceProblem } from "../types.ts";

/** The values of a source that the pods of a workload started with. Undefined if that is unknown. */
export type StartedWith = "present" | "former" | undefined;

type Created = Pick<CachedObject, "createdAt" | "createdAs">;
type Workload = Created & Pick<CachedObject, "chosen">;
type Source = Created & Pick<CachedObject, "resourceVersion" | "dataAt" | "markedAt">;

/**
 * Times have a resolution of one second, so a change in the second of the creation and after it counts as missed. A removed key does not move
 * the time of the data, so it does not show that the pods have the present values, except if nothing else does. `counts`: whether a change
 * of the source counts as missed.
 */
export function startedWith(
  { createdAt, createdAs, chosen }: Workload,
  source: Source,
  counts: (source: Source) => boolean,
): StartedWith {
  const { dataAt } = source;
  if (createdAs !== undefined && isOlder(source, { resourceVersion: createdAs })) return "present";
  if (createdAt === undefined || dataAt === undefined) return undefined;
  if (createdAs === undefined && dataAt < createdAt) return "present";
  if (chosen === undefined || dataAt < chosen.at || isOlder(source, { resourceVersion: chosen.version }))
    return undefined;
  if (dataAt === source.markedAt || !counts(source)) return undefined;
  // Without the source, the pods could not start, so its own creation is no change for them.
  return dataAt === source.createdAt && isYounger(source, createdAs, createdAt) ? undefined : "former";
}

/** Whether the source may be younger than the workload. */
function isYounger(source: Source, createdAs: string | undefined, createdAt: number): boolean {
  if (source.createdAs !== undefined && createdAs !== undefined)
    return isOlder({ resourceVersion: createdAs }, { resourceVersion: source.createdAs });
  return (source.createdAt ?? 0) >= createdAt;
}

/** The first look at a pair, which is repeated until the status has its result. */
interface Look {
  result: StartedWith;
  digest: string;
  /** The revision of the rollout before. */
  revision: number;
}

const RECORDED = "recorded";
type Looks = Map<string, Look | typeof RECORDED>;

/** The looks at workloads that can't be seen are kept up to this number. The status of a binding has room for fewer workloads. */
const MAX_HIDDEN = 4_000;

/** How long before a binding a change counts, in seconds, if the binding is generated: it is always younger than its workload. */
const GENERATED_WITHIN_S = 60;

/** The state of a rollout that a look depends on. */
interface Rollout {
  binding: Pick<SecretBinding, "metadata" | "spec">;
  before: RolloutStatus | undefined;
  dependents: { readonly all: readonly Dependent[]; readonly unknown: readonly Pick<NamespaceProblem, "namespace">[] };
  digests: Readonly<Record<string, string>>;
  /** The source in the version that the digest is of, if it is known. */
  sourceOf(id: string): Source | undefined;
}

/** Remembers which pairs of a binding were judged. */
export class FirstLooks {
  /** By the uid of the workload and the id of the digest. Those that can be seen are the newest. */
  #looks: ReadonlyMap<string, { namespace: string | undefined; own: Looks }> | undefined;
  /** The generation of the binding, and its version when that was first seen; undefined for the first one. */
  #spec: { generation: number | undefined; version: string | undefined } | undefined;

  /** Returns a function that says which values of a digest's source a workload started with, until the status has the result. */
  judge({
    binding,
    before,
    dependents,
    digests,
    sourceOf,
  }: Rollout): (dependent: Dependent, id: string) => StartedWith {
    const counts = this.#countedBy(binding);
    // What is recorded from before this memory, the former one may have judged.
    const recorded = this.#looks === undefined ? before?.digests : undefined;
    const { all, unknown } = dependents;
    const hidden = new Set<string | undefined>(unknown.map(({ namespace }) => namespace));
    const looks = new Map([...(this.#looks ?? [])].filter(([, { namespace }]) => hidden.has(namespace)));
    for (const { ref, version, uses } of all) {
      const own: Looks = this.#looks?.get(version.uid)?.own ?? new Map();
      setNewest(looks, version.uid, { namespace: ref.namespace, own }, all.length + MAX_HIDDEN);
      for (const id of uses) {
        const [last, source, digest] = [own.get(id), sourceOf(id), digests[id]];
        if (last === RECORDED) continue;
        if (last !== undefined && isRecorded(last, version.uid, id, before)) own.set(id, RECORDED);
        // A key that appears later has its first value as the baseline.
        else if (source !== undefined && digest === undefined) own.set(id, RECORDED);
        else if (source !== undefined && digest !== undefined) {
          const result = startedWith(version, source, recorded?.[id] === undefined ? counts : () => false);
          own.set(id, { result, digest, revision: before?.revision ?? 0 });
        }
      }
    }
    this.#looks = looks;
    return ({ version }, id) => {
      const look = looks.get(version.uid)?.own.get(id);
      return look === RECORDED ? undefined : look?.result;
    };
  }

  /** A change counts if the binding existed before. A source that the spec names later has its present values as the baseline. */
  #countedBy({ metadata, spec }: Rollout["binding"]): (source: Source) => boolean {
    const { generation, resourceVersion, creationTimestamp = "" } = metadata;
    if (this.#spec === undefined) this.#spec = { generation, version: undefined };
    else if (this.#spec.generation !== generation) this.#spec = { generation, version: resourceVersion };
    const { version } = this.#spec;
    if (version !== undefined) return (source) => !isOlder(source, { resourceVersion: version });
    const since =
      Date.parse(creationTimestamp) / 1000 - (claimsToBeGenerated({ metadata, spec }) ? GENERATED_WITHIN_S : 0);
    return ({ dataAt = 0 }) => dataAt >= since;
  }
}

/** Whether the status has the result of that look, so that a later difference is an ordinary change. */
function isRecorded(
  { result, digest, revision }: Look,
  uid: string,
  id: string,
  before: RolloutStatus | undefined,
): boolean {
  const pending = before?.pending;
  if (result !== "former") return [before?.digests?.[id], pending?.digests?.[id]].includes(digest);
  return (before?.revision ?? 0) > revision || pending?.workloads?.some((each) => each.uid === uid) === true;
}
