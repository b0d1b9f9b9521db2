/** Writes the decided restarts, or shares those of other bindings, and reports them. */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { restartLimitOf } from "../../api/installation.ts";
import type { RolloutStatus, WorkloadStatus } from "../../api/rollout.ts";
import { apiVersionOf, describeObject, type KubeObject, type ObjectMeta } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Identity } from "../../kube/identity.ts";
import { isJob } from "../../workloads/job-copy.ts";
import { isCronJob } from "../../workloads/manual-job.ts";
import { restartTimesText } from "../../workloads/restart-times.ts";
import { isMark } from "../../workloads/rollout-stamp.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import { withoutDisruptionBudget } from "../decide/disruption-budgets.ts";
import type { RolloutDecision } from "../decide/engine.ts";
import { textAt } from "../decide/reverts.ts";
import type { PlannedRestart } from "../decide/schedule.ts";
import type { RestartDependencies } from "../dependencies.ts";
import { type ValueDigests, writtenFor } from "../digest/values.ts";
import type { RolloutContext } from "../discover/dependents.ts";
import { unbudgetedEvent, unprobedEvent, workloadEvent } from "../event-messages.ts";
import type { RolloutMemory } from "../memory.ts";
import { restartNotification } from "../notifications.ts";
import type { Dependent } from "../types.ts";
import type { JobCopies } from "./job-copies.ts";
import type { RecentRestarts } from "./recent-restarts.ts";
import { recreateJob } from "./recreate-job.ts";
import { recreated } from "./recreated-jobs.ts";
import { reloadRecord } from "./reload-record.ts";
import { runCronJob } from "./run-cron-job.ts";
import { SharedStamps } from "./shared-stamps.ts";
import { stamp } from "./stamp.ts";

/** What the status records of a restart that was written, besides its stamp. */
export type RestartRecord = Pick<WorkloadStatus, "written" | "replaced" | "generation">;

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
        if (isJobRestart) return recreateJob(client, identity, dependent.ref, uid, mark, copies.of(uid));
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
    const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
    log.info({ binding: bindingKey(binding), workload: where, changedKeys: causes }, "restarted");
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
