/** Writes the decided restarts as the account of the binding, or shares those of other bindings, and reports them. */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { restartLimitOf } from "../../api/installation.ts";
import { claimsToBeGenerated, LAST_RELOADED_FROM, namedObject } from "../../api/reloader.ts";
import { digestParts, ROLLOUT_MANAGER, type RolloutStatus, type WorkloadStatus } from "../../api/rollout.ts";
import type { FieldPath } from "../../apimachinery/field-path.ts";
import { at, fieldsAt, listAt, valueAt } from "../../apimachinery/fields.ts";
import { BoundedMap } from "../../apimachinery/maps.ts";
import {
  apiVersionOf,
  describeRef,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  type ObjectMeta,
  type ObjectRef,
} from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { JOBS } from "../../apimachinery/resources.ts";
import { attempt, refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { isCronJob, isJob, isSuspended, manualJobName, manualJobOf } from "../../workloads/jobs.ts";
import { type PodReference, podReferences } from "../../workloads/pod-references.ts";
import { isMark } from "../../workloads/rollout-stamp.ts";
import { RESTARTS_ANNOTATION, restartText, restartTimesText } from "../../workloads/workload.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import { withoutDisruptionBudget } from "../decide/disruption-budgets.ts";
import type { RolloutDecision } from "../decide/engine.ts";
import { textAt } from "../decide/reverts.ts";
import type { PlannedRestart } from "../decide/schedule.ts";
import type { RestartDependencies } from "../dependencies.ts";
import { type ValueDigests, writtenFor } from "../digest/values.ts";
import type { RolloutContext } from "../discover/dependents.ts";
import { restartNotification, unbudgetedEvent, unprobedEvent, workloadEvent } from "../events.ts";
import type { RecentRestarts, RolloutMemory } from "../memory.ts";
import type { Dependent } from "../types.ts";
import { isTaken, JOB_VERBS, type JobCopies, recreated, recreateJob } from "./recreate-job.ts";

/** Reloader's names of the kinds. */
const TYPES = { Secret: "SECRET", ConfigMap: "CONFIGMAP", SecretProviderClass: "SECRETPROVIDERCLASS" };

interface Restarted {
  binding: SecretBinding;
  planned: Pick<PlannedRestart, "dependent" | "causes">;
  /** The text of the restart annotation. */
  text: string;
  pending: RolloutStatus["pending"];
}

/**
 * The record that Reloader would write, without a hash of values. A later write to the template would be another restart.
 * `now` is the workload before the restart. If it has that restart annotation already, an interrupted request had arrived, and
 * its record stays: another time would change the template again. Otherwise, a binding that no annotations generated has no record.
 */
export function reloadRecord({ binding, planned, text, pending }: Restarted, now: KubeObject): string | undefined {
  const { stampAt } = planned.dependent;
  // The path ends with metadata.annotations[key].
  const [template, annotations] = [3, 1].map((count) => valueAt(now, stampAt.upTo(stampAt.segments.length - count)));
  const stamp = stampAt.segments.at(-1);
  const noted = at(annotations, LAST_RELOADED_FROM);
  if (stamp?.kind === "key" && at(annotations, stamp.key) === text)
    return typeof noted === "string" ? noted : undefined;
  const source = claimsToBeGenerated(binding) ? sourceOf(binding, planned.causes) : undefined;
  if (source === undefined) return undefined;
  const container = containerOf(at(template, "spec"), source);
  return JSON.stringify({
    type: TYPES[source.kind],
    name: source.name,
    namespace: binding.metadata.namespace,
    hash: text,
    containerRefs: container === undefined ? [] : [container],
    observedAt: Math.floor(Date.parse(pending?.lastChangeTime ?? "") / 1000),
  });
}

/** The first source that changed: Reloader records one. */
function sourceOf({ spec }: SecretBinding, causes: readonly string[]): ReturnType<typeof namedObject> {
  const changed = causes.map((id) => digestParts(id).source);
  const source = spec.sources.find(({ name = "" }) => changed.includes(name));
  return source && namedObject(source);
}

/** The first container that reads it. If only an init container or none reads it, the first of all, as in Reloader. */
function containerOf(podSpec: unknown, { kind, name }: Pick<PodReference, "kind" | "name">): string | undefined {
  const volumes = listAt(podSpec, "volumes");
  const reads = (container: unknown) => {
    const mounted = listAt(container, "volumeMounts").map((mount) => at(mount, "name"));
    const own = volumes.filter((volume) => mounted.includes(at(volume, "name")));
    return podReferences({ containers: [fieldsAt(container)], volumes: own }).some(
      (each) => each.kind === kind && each.name === name,
    );
  };
  const containers = listAt(podSpec, "containers");
  const called = at(containers.find(reads) ?? containers[0], "name");
  return typeof called === "string" ? called : undefined;
}

type Stamped = Pick<Dependent, "ref" | "version" | "workload" | "stampAt" | "isRestartField">;

/** A workload whose status changes more often than that during a few requests is retried later. */
const MAX_TRIES = 5;

/**
 * A stamp is never released, so it needs no apply: a merge patch costs the API server less.
 * Returns the workload afterwards: its metadata. A controller that was paused and wakes while another one leads may have an older
 * stamp than the present one. So the write requires the version that was decided on, or a later one with the same spec; otherwise
 * it returns `stale`, and the restart is decided again. Throws Problem. `recordOf` returns the record to write beside the stamp. If
 * it returns undefined, the former record is removed. Without `recordOf`, no record changes. `restarts` is the annotation with the
 * times of the last restarts.
 */
export async function stamp(
  client: Pick<Client, "get" | "mergeFields">,
  identity: Identity,
  dependent: Stamped,
  value: string,
  recordOf?: (now: KubeObject) => string | undefined,
  restarts?: string,
): Promise<KubeObject | "stale"> {
  const { ref, version, stampAt } = dependent;
  const use = { identity, ref, verbs: WRITE_VERBS };
  let { resourceVersion } = version;
  try {
    let beside: JsonObject = {};
    if (recordOf !== undefined) {
      const now = await getIfExists({ client, ...use });
      if (now === undefined || !isAsDecided(now, dependent)) return "stale";
      resourceVersion = now.metadata.resourceVersion;
      beside = { [LAST_RELOADED_FROM]: recordOf(now) ?? null };
    }
    const leaves = withRestarts(nested(stampAt, value, beside), restarts);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      try {
        const patch = guarded(leaves, { uid: version.uid, resourceVersion });
        return await client.mergeFields(identity, ref, patch, ROLLOUT_MANAGER);
      } catch (error) {
        if (isNotFound(error)) return "stale";
        // Also of a workload that was recreated under the same name: the API server compares resourceVersions first.
        if (!isStatus(error, 409)) throw error;
        const now = await getIfExists({ client, ...use });
        if (now === undefined || !isAsDecided(now, dependent)) return "stale";
        resourceVersion = now.metadata.resourceVersion;
      }
    }
  } catch (error) {
    const problem = refusal(error, use, "patch");
    // Its message names no object: a target has its name before it.
    const isNameless = problem.reason === "VersionDropsFields";
    throw isNameless ? problem.within(describeRef(ref)) : problem;
  }
  const message = `${ref.resource.kind} ${ref.name} changes faster than it can be restarted; Inlay retries`;
  throw new Problem("Unavailable", message);
}

/** The stamp may be another annotation of the workload itself. */
function withRestarts(leaves: JsonObject, restarts: string | undefined): JsonObject {
  if (restarts === undefined) return leaves;
  const metadata = fieldsAt(leaves, "metadata");
  const annotations = { [RESTARTS_ANNOTATION]: restarts, ...fieldsAt(metadata, "annotations") };
  return { ...leaves, metadata: { ...metadata, annotations } };
}

const guarded = (leaves: JsonObject, guard: JsonObject): JsonObject => ({
  ...leaves,
  metadata: { ...(leaves["metadata"] as JsonObject | undefined), ...guard },
});

/** By its generation, which a change of metadata does not increment. */
function isAsDecided(now: KubeObject, { version, workload, stampAt, isRestartField }: Stamped): boolean {
  const { uid, generation } = now.metadata;
  const isSameSpec = uid === version.uid && generation !== undefined && generation === version.generation;
  return isSameSpec && (!isRestartField || restartText(now, stampAt) === workload.restart);
}

/** `{spec: {restartAt: value}}` for `spec.restartAt`, with `beside` added at the last level. */
function nested(path: FieldPath, value: string, beside: JsonObject): JsonObject {
  const last = path.segments.length - 1;
  return path.segments.reduceRight<JsonValue>((below, segment, position) => {
    if (segment.kind !== "key") throw new Error(`${path} goes through a list`);
    return { ...(position === last && beside), [segment.key]: below };
  }, value) as JsonObject;
}

interface Written {
  by: string;
  /** The field that was written. */
  place: string;
  text: string;
  /** By the monotonic clock. */
  sentAt: number;
  answer: Promise<KubeObject | "stale">;
}

/** How many workloads are remembered. The oldest are forgotten. */
const MAX_SIZE = 20_000;

/** The restarts of this process that bindings share. After a start nothing is shared, and at worst a workload restarts once more. */
class SharedStamps {
  /** By the uid of the workload. */
  readonly #written = new BoundedMap<string, Written>(MAX_SIZE);

  /**
   * Returns the workload's metadata after the restart, or what `write` returns instead, and the text that was written. `readyAt` is
   * when this process had seen the change and everything that the pods need was ready. Throws what `write` throws.
   */
  async write(
    uid: string,
    { by, place, text, readyAt }: { by: string; place: string; text: string; readyAt: number },
    write: () => Promise<KubeObject | "stale">,
  ): Promise<{ answer: KubeObject | "stale"; text: string; isShared?: true }> {
    const last = this.#written.get(uid);
    if (last !== undefined && last.by !== by && last.place === place && last.sentAt >= readyAt) {
      const shared = await last.answer;
      if (shared !== "stale") return { answer: shared, text: last.text, isShared: true };
    }
    const sentAt = performance.now();
    const answer = write();
    this.#written.set(uid, { by, place, text, sentAt, answer: answer.catch(() => "stale" as const) });
    return { answer: await answer, text };
  }
}

/**
 * Runs before the annotation is written: after a crash in between, the second try finds the same Job, and the run is not lost.
 * `stamp` identifies the restart. Returns `stale` if the CronJob was recreated. Throws Problem.
 */
export async function runCronJob(
  client: Pick<Client, "get" | "createObject">,
  identity: Identity,
  { ref, version }: Pick<Dependent, "ref" | "version">,
  { annotation, stamp }: { annotation: string; stamp: string },
): Promise<"stale" | undefined> {
  const cronJob = await getIfExists({ client, identity, ref, verbs: WRITE_VERBS });
  if (cronJob?.metadata.uid !== version.uid) return "stale";
  if (isSuspended(cronJob)) return undefined;
  const namespace = ref.namespace as string;
  const job: ObjectRef = { resource: JOBS, namespace, name: manualJobName(cronJob, stamp) };
  try {
    await client.createObject(identity, job, manualJobOf(cronJob, { [annotation]: stamp }), ROLLOUT_MANAGER);
  } catch (error) {
    // An earlier try has created it.
    if (isTaken(error)) return undefined;
    throw refusal(error, { identity, ref: { resource: JOBS, namespace }, verbs: ["create"] }, "create");
  }
  return undefined;
}

/** What the status records of a restart that was written, besides its stamp. */
type RestartRecord = Pick<WorkloadStatus, "written" | "replaced" | "generation">;

interface Restarts {
  /** Those that could not be written, and why. `stale`: the workload has changed since the decision. */
  unwritten: Map<Dependent, Problem | "stale">;
  /** By the uids of the workloads. */
  records: Map<string, RestartRecord>;
}

export class Restarter {
  readonly #deps: RestartDependencies;
  readonly #recent: RecentRestarts;
  readonly #stamps = new SharedStamps();

  constructor(deps: RestartDependencies, recent: RecentRestarts) {
    this.#deps = deps;
    this.#recent = recent;
  }

  async stamp(
    { binding, identity, spec }: RolloutContext,
    { stamps, status }: RolloutDecision,
    known: ValueDigests,
    memory: RolloutMemory,
    copies: JobCopies,
  ): Promise<Restarts> {
    const { client, propagation } = this.#deps;
    const key = bindingKey(binding);
    const unwritten = new Map<Dependent, Problem | "stale">();
    const records = new Map<string, RestartRecord>();
    const repeated = new Set(
      status.pending?.workloads?.flatMap(({ uid, reverts }) => (reverts === undefined ? [] : uid)),
    );
    const restarted = new Map<Dependent, ObjectMeta>();
    await mapConcurrent(stamps, async (planned) => {
      const { dependent, causes } = planned;
      const { uid } = dependent.version;
      const text = writtenFor(spec, planned, status, known);
      const isJobRestart = isJob(dependent.ref.resource);
      const runs = spec.runCronJobs === true && isCronJob(dependent.ref.resource);
      // A restart that ran no Job is not shared if a Job must run.
      const place = `${dependent.stampAt}${runs ? " and a run" : ""}`;
      // A restart that was reverted is not shared.
      const readyAt = repeated.has(uid) ? Number.POSITIVE_INFINITY : memory.readyAt;
      const sharing = { by: key, place, text, readyAt };
      const mark = { annotation: spec.stamp.annotation, stamp: planned.stamp };
      // A repeated restart is for the same values.
      const times = repeated.has(uid) ? undefined : this.#timesAfter(dependent);
      const restart = async () => {
        const access = { client, identity, ref: dependent.ref, verbs: JOB_VERBS };
        if (isJobRestart) return recreateJob(access, uid, mark, copies.of(uid));
        const run = runs ? await runCronJob(client, identity, dependent, mark) : undefined;
        const record = this.#recordFor(binding, planned, text, status);
        return run ?? stamp(client, identity, dependent, text, record, times && restartTimesText(times));
      };
      const write = async () => {
        const answer = await restart();
        if (answer !== "stale" && times !== undefined) this.#recent.remember(dependent, times);
        return answer;
      };
      const written = await attempt(this.#stamps.write(uid, sharing, write));
      const answer = written instanceof Problem ? written : written.answer;
      if (answer instanceof Problem || answer === "stale") return void unwritten.set(dependent, answer);
      const { generation, resourceVersion } = answer.metadata;
      if (!isJobRestart && !(written instanceof Problem)) records.set(uid, recordOf(planned, written, generation));
      memory.stamped.set(uid, { uid, generation, resourceVersion, text });
      if (isJobRestart) {
        memory.settled.add(uid);
        memory.recreated.set(uid, recreated(dependent, answer, planned.stamp));
      }
      propagation.wrote(key);
      // The annotation may be there already: an interrupted request had arrived. The binding that wrote a shared restart reports it.
      const isShared = !(written instanceof Problem) && written.isShared;
      if (!isShared && resourceVersion !== dependent.version.resourceVersion)
        this.#recordRestart(binding, dependent, answer.metadata, causes, memory);
      restarted.set(dependent, answer.metadata);
    });
    if (!spec.requireDisruptionBudget) await this.#warnUnbudgeted(identity, restarted, memory.asked);
    return { unwritten, records };
  }

  /** The times of its restarts with this one; undefined if they are not limited. */
  #timesAfter(dependent: Dependent): readonly number[] | undefined {
    const limit = restartLimitOf(this.#deps.installation.rollouts);
    return limit && this.#recent.after(dependent, Date.now(), limit);
  }

  /** If the configuration says so. */
  #recordFor(binding: SecretBinding, planned: PlannedRestart, text: string, { pending }: RolloutStatus) {
    if (!this.#deps.installation.reloader?.recordOnWorkloads || planned.dependent.isRestartField) return undefined;
    return (now: KubeObject) => reloadRecord({ binding, planned, text, pending }, now);
  }

  /** One warning for each workload. If the budgets can't be read, there is no reason for a warning. */
  async #warnUnbudgeted(
    identity: Identity,
    restarted: ReadonlyMap<Dependent, ObjectMeta>,
    asked: Set<string>,
  ): Promise<void> {
    const { client, events } = this.#deps;
    const due = [...restarted.keys()].filter(({ workload, version }) => workload.isMany && !asked.has(version.uid));
    for (const { version } of due) asked.add(version.uid);
    const found = await attempt(withoutDisruptionBudget(client, identity, due));
    for (const dependent of found instanceof Problem ? [] : found.without)
      events.recordOn(regarding(dependent, restarted.get(dependent) as ObjectMeta), unbudgetedEvent());
  }

  #recordRestart(
    binding: SecretBinding,
    dependent: Dependent,
    metadata: ObjectMeta,
    causes: readonly string[],
    { warned }: RolloutMemory,
  ): void {
    const { events, log, notifier, rollouts } = this.#deps;
    const { ref, workload } = dependent;
    log.info({ binding: bindingKey(binding), workload: describeRef(ref), changedKeys: causes }, "restarted");
    rollouts.restarted();
    events.recordOn(regarding(dependent, metadata), workloadEvent(binding, causes));
    notifier.notify(restartNotification(binding, dependent, metadata, causes));
    if (workload.unprobed.length === 0 || warned.has(metadata.uid)) return;
    warned.add(metadata.uid);
    events.recordOn(regarding(dependent, metadata), unprobedEvent(workload.unprobed));
  }
}

/** The text before a restart is the one that this binding saw, also where another binding wrote the restart. */
function recordOf(
  { dependent, stamp: planned }: PlannedRestart,
  { text }: { text: string },
  generation: number | undefined,
): RestartRecord {
  const before = textAt(dependent);
  // The status repeats no other text: a restart field may have had any.
  const isKept = before !== undefined && before !== text && isMark(before);
  return {
    ...(text !== planned && { written: text }),
    ...(isKept && { replaced: before }),
    ...(generation !== undefined && !dependent.ref.resource.hasStatus && { generation }),
  };
}

function regarding({ ref: { resource } }: Dependent, metadata: ObjectMeta) {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata };
}
