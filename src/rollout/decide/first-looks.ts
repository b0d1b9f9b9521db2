/**
 * Decides whether the pods of a workload started with the present values of a source: by the versions of both, and by what the source
 * contained when the workload was created. If that can't be read, times decide. A rollout needs that once for each pair, when it first sees
 * the workload: from then on, it compares digests.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { claimsToBeGenerated } from "../../api/reloader.ts";
import type { RolloutSpec, RolloutStatus } from "../../api/rollout.ts";
import { BoundedMap } from "../../apimachinery/maps.ts";
import { isOlder } from "../../apimachinery/objects.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import { ABSENT, isPresent } from "../digest/digest.ts";
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
  restartOn: RolloutSpec["restartOn"] = [],
): StartedWith {
  const { dataAt } = source;
  if (createdAs !== undefined && isOlder(source, { resourceVersion: createdAs })) return "present";
  if (createdAt === undefined || dataAt === undefined) return undefined;
  if (createdAs === undefined && dataAt < createdAt) return "present";
  if (chosen === undefined || dataAt < chosen.at || isOlder(source, { resourceVersion: chosen.version }))
    return undefined;
  if (dataAt === source.markedAt || !counts(source)) return undefined;
  if (dataAt !== source.createdAt || !isYounger(source, createdAs, createdAt)) return "former";
  const isCertain = createdAs !== undefined && source.createdAs !== undefined;
  return isCertain && restartOn.includes("SourceCreated") ? "former" : undefined;
}

/**
 * The same, by the digest of what the source contained in the version of the workload's creation, or of a later one in which the rollout
 * was about to watch both. Undefined for a value that was missing then.
 */
export function startedWithDigest(
  then: string | undefined,
  now: string,
  restartOn: RolloutSpec["restartOn"] = [],
): StartedWith {
  if (then === now) return "present";
  if (then === undefined) return undefined;
  if (isPresent(then) && isPresent(now)) return "former";
  // Without the source, the pods could not start, so its creation is a change for them only if the binding says so.
  return restartOn.includes(isPresent(now) ? "SourceCreated" : "SourceDeleted") ? "former" : undefined;
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

/** The looks at one workload. */
interface Looked {
  namespace: string | undefined;
  /** By the ids of the digests. */
  open: Map<string, Look>;
  /** The ids of those whose result is recorded: the same set for workloads of which all are, because there may be thousands. */
  recorded: ReadonlySet<string>;
}

/** The looks at workloads that can't be seen are kept up to this number. The status of a binding has room for fewer workloads. */
const MAX_HIDDEN = 4_000;
const NONE: ReadonlySet<string> = new Set();

/** How long before a binding a change counts, in seconds, if the binding is generated: it is always younger than its workload. */
const GENERATED_WITHIN_S = 60;

/** The state of a rollout that a look depends on. */
interface Rollout {
  binding: Pick<SecretBinding, "metadata" | "spec">;
  before: RolloutStatus | undefined;
  dependents: { readonly all: readonly Dependent[]; readonly unknown: readonly Pick<NamespaceProblem, "namespace">[] };
  digests: Readonly<Record<string, string>>;
  /** The source in the version that the digest is of, if it is known; ABSENT if it does not exist. */
  sourceOf(id: string): Source | typeof ABSENT | undefined;
}

/** The digest of a former state: of the source of a digest, in that version of the cluster. */
export interface FormerState {
  id: string;
  version: string;
}

/** A digest, undefined if the value was missing then. `unknown`: the state could not be read. */
export type FormerValue = { digest: string | undefined } | "unknown";

/** The most former states that one decision reads. Beyond them, versions and times decide. */
const MAX_READ = 100;
const keyOf = ({ id, version }: FormerState) => `${version} ${id}`;

/** Remembers which pairs of a binding were judged. */
export class FirstLooks {
  /** By the uid of the workload. Those that can be seen are the newest. */
  #looks: ReadonlyMap<string, Looked> | undefined;
  /** The generation of the binding, and its version when that was first seen. */
  #spec: { generation: number | undefined; version: string; isFirst: boolean } | undefined;
  /** What was read for the looks of the last decision. */
  #former: ReadonlyMap<string, FormerValue> = new Map();

  /** The former states that `judge` needs and that are not known yet. Pass each result to `learn`. Yields for each workload. */
  *needed(rollout: Rollout): Generator<void, FormerState[]> {
    const { binding, before, dependents, digests, sourceOf } = rollout;
    this.#specOf(binding);
    const needed = new Map<string, FormerState>();
    const pending = pendingIn(before);
    for (const { version, uses } of dependents.all) {
      yield;
      const known = this.#looks?.get(version.uid);
      const from = this.#from(version, binding);
      if (from === undefined || known?.recorded === uses) continue;
      for (const id of uses) {
        if (known?.recorded.has(id)) continue;
        const [last, source] = [known?.open.get(id), sourceOf(id)];
        if (last !== undefined && isRecorded(last, pending.has(version.uid), id, before)) continue;
        if (source === undefined || digests[id] === undefined || this.#judged(before, id)) continue;
        // Most sources are older than the workload.
        if (source !== ABSENT && isOlder(source, { resourceVersion: from })) continue;
        const state = { id, version: from };
        if (needed.size < MAX_READ) needed.set(keyOf(state), state);
      }
    }
    this.#former = new Map([...this.#former].filter(([key]) => needed.has(key)));
    return [...needed.values()].filter((each) => !this.#former.has(keyOf(each)));
  }

  learn(state: FormerState, value: FormerValue): void {
    this.#former = new Map(this.#former).set(keyOf(state), value);
  }

  /**
   * Returns a function that says which values of a digest's source a workload started with, until the status has the result. Yields for each
   * workload.
   */
  *judge(rollout: Rollout): Generator<void, (dependent: Dependent, id: string) => StartedWith> {
    const { binding, before, dependents, digests, sourceOf } = rollout;
    const { all, unknown } = dependents;
    this.#specOf(binding);
    const hidden = new Set<string | undefined>(unknown.map(({ namespace }) => namespace));
    const looks = new BoundedMap<string, Looked>(all.length + MAX_HIDDEN);
    for (const [uid, looked] of this.#looks ?? []) if (hidden.has(looked.namespace)) looks.set(uid, looked);
    const pending = pendingIn(before);
    for (const { ref, version, uses } of all) {
      yield;
      const known = this.#looks?.get(version.uid);
      const open = known?.open ?? new Map<string, Look>();
      let recorded = known?.recorded ?? NONE;
      if (recorded !== uses) {
        const now = new Set(recorded);
        for (const id of uses) {
          if (now.has(id)) continue;
          const [last, source, digest] = [open.get(id), sourceOf(id), digests[id]];
          const isOver = last !== undefined && isRecorded(last, pending.has(version.uid), id, before);
          // A key that appears later has its first value as the baseline.
          if (isOver || (source !== undefined && digest === undefined)) {
            now.add(id);
            open.delete(id);
          } else if (source !== undefined && digest !== undefined) {
            const result = this.#result(rollout, version, { id, source, digest });
            open.set(id, { result, digest, revision: before?.revision ?? 0 });
          }
        }
        recorded = now.size === uses.size && [...uses].every((id) => now.has(id)) ? uses : now;
      }
      looks.set(version.uid, { namespace: ref.namespace, open, recorded });
    }
    this.#looks = looks;
    return ({ version }, id) => looks.get(version.uid)?.open.get(id)?.result;
  }

  #result(
    { binding, before }: Rollout,
    workload: Workload,
    { id, source, digest }: { id: string; source: Source | typeof ABSENT; digest: string },
  ): StartedWith {
    const { restartOn } = binding.spec.rollout ?? {};
    const from = this.#from(workload, binding);
    const former = from === undefined ? undefined : this.#former.get(keyOf({ id, version: from }));
    if (former !== undefined && former !== "unknown") {
      const isChosenLater = source !== ABSENT && source.markedAt !== undefined && source.markedAt === source.dataAt;
      return isChosenLater ? undefined : startedWithDigest(former.digest, digest, restartOn);
    }
    if (source === ABSENT) return undefined;
    const counts = this.#judged(before, id) ? () => false : this.#countedBy(binding);
    return startedWith(workload, source, counts, restartOn);
  }

  /** What is recorded from before this memory, the former one may have judged. */
  #judged(before: RolloutStatus | undefined, id: string): boolean {
    return this.#looks === undefined && before?.digests?.[id] !== undefined;
  }

  /** The version from which on the binding and the workload ask for a restart. Undefined if the watch has not shown the workload's. */
  #from({ chosen }: Workload, binding: Rollout["binding"]): string | undefined {
    const { version, isFirst } = this.#specOf(binding);
    // The binding of an annotation is always younger than its workload.
    if (chosen === undefined || (isFirst && claimsToBeGenerated(binding))) return chosen?.version;
    return isOlder({ resourceVersion: chosen.version }, { resourceVersion: version }) ? version : chosen.version;
  }

  #specOf({ metadata: { generation, resourceVersion } }: Rollout["binding"]) {
    if (this.#spec === undefined || this.#spec.generation !== generation)
      this.#spec = { generation, version: resourceVersion, isFirst: this.#spec === undefined };
    return this.#spec;
  }

  /** A change counts if the binding existed before. A source that the spec names later has its present values as the baseline. */
  #countedBy(binding: Rollout["binding"]): (source: Source) => boolean {
    const { version, isFirst } = this.#specOf(binding);
    if (!isFirst) return (source) => !isOlder(source, { resourceVersion: version });
    const { creationTimestamp = "" } = binding.metadata;
    const since = Date.parse(creationTimestamp) / 1000 - (claimsToBeGenerated(binding) ? GENERATED_WITHIN_S : 0);
    return ({ dataAt = 0 }) => dataAt >= since;
  }
}

/** The uids of the workloads of a rollout that has not ended. */
const pendingIn = (before: RolloutStatus | undefined): ReadonlySet<string> =>
  new Set(before?.pending?.workloads?.map(({ uid }) => uid));

/** Whether the status has the result of that look, so that a later difference is an ordinary change. */
function isRecorded(
  { result, digest, revision }: Look,
  isPending: boolean,
  id: string,
  before: RolloutStatus | undefined,
): boolean {
  if (result === "former") return isPending || (before?.revision ?? 0) > revision;
  return [before?.digests?.[id], before?.pending?.digests?.[id]].includes(digest);
}
