/** Writes the targets of a binding batch by batch: status announces the writes of a batch before the first of them. */
import type { TargetStatus } from "../../api/binding.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { RolloutResult } from "../../rollout/status.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import { deferToCompetingBinding } from "../../targets/precedence.ts";
import { sizeOfPrepared } from "../../targets/prepared.ts";
import type { TargetWithRecord } from "../../targets/records.ts";
import { prepareTarget, syncTarget } from "../../targets/sync.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import { MAX_CONCURRENT, mapConcurrent } from "../../workqueue/map-concurrent.ts";
import { announce } from "./announce.ts";
import type { BindingStatusWriter } from "./binding-status-writer.ts";
import type { Inputs, Observation, Step } from "./dependencies.ts";

/** How much may be held in memory for targets that are prepared and not written yet, in characters. */
const MAX_BATCH_SIZE = 16 * 1024 ** 2;

const ROLLOUT_PENDING = new Problem(
  "RolloutPending",
  "it is written when every workload has rolled out for the current values (when: AfterRollout); see the condition RolledOut",
);

/** Why targets that are written after the rollout have to wait, if they do. */
export function rolloutPending(
  rollout: Pick<RolloutResult, "rolledOutFor"> | undefined,
  sources: ReadonlyMap<string, LiveSource | Problem>,
): Problem | undefined {
  const versions = rollout?.rolledOutFor;
  // The sources may have changed since the rollout was decided: the values that were read are the ones that would be written.
  const isSame = [...sources].every(
    ([name, source]) => source instanceof Problem || source.version === versions?.get(name),
  );
  return versions !== undefined && isSame ? undefined : ROLLOUT_PENDING;
}

/**
 * Writes some of the targets, unless they hold their values. `others` are the records of all others. `blocked` says why nothing may be
 * written. The observation gets the binding as the last write of status leaves it.
 */
export async function syncTargets(
  status: BindingStatusWriter,
  observation: Observation,
  inputs: Inputs,
  targets: readonly TargetWithRecord[],
  others: readonly { record: TargetStatus }[],
  blocked?: Problem,
): Promise<TargetOutcome[]> {
  const synced: TargetOutcome[] = [];
  do {
    const prepared = await prepareBatch(observation, inputs, targets.slice(synced.length), blocked);
    const later = targets.slice(synced.length + prepared.length);
    const records = [...synced, ...prepared, ...later, ...inputs.targets.kept, ...others].map(({ record }) => record);
    observation.stored = await announce(status, observation.stored, inputs.context, records, prepared);
    const write = async (each: Step) =>
      "result" in each ? { record: each.record, ...each.result } : syncTarget(inputs.context, each);
    synced.push(...(await mapConcurrent(prepared, write)));
    inputs.context.planning.forget();
  } while (synced.length < targets.length);
  return synced;
}

/** Prepares targets until what they hold in memory is large: a batch has a thousand small objects, or a few large ones. */
async function prepareBatch(
  observation: Observation,
  inputs: Inputs,
  targets: readonly TargetWithRecord[],
  blocked: Problem | undefined,
): Promise<Step[]> {
  const steps: Step[] = [];
  let size = 0;
  while (size < MAX_BATCH_SIZE && steps.length < targets.length) {
    const next = targets.slice(steps.length, steps.length + MAX_CONCURRENT);
    const prepared = await mapConcurrent(next, (each) => prepare(observation, inputs, each, blocked));
    for (const each of prepared) size += sizeOfPrepared(each);
    steps.push(...prepared);
  }
  return steps;
}

/** Decides what to write to a target, unless another binding has precedence or its result is known. */
async function prepare(
  { observed }: Observation,
  { known, context, sources }: Inputs,
  target: TargetWithRecord,
  held: Problem | undefined,
): Promise<Step> {
  const result = known.get(target);
  if (result !== undefined) return { record: target.record, result };
  const blocked = observed.account ?? observed.problemOf(target.ref) ?? held;
  const deferred = blocked === undefined ? await deferToCompetingBinding(context, target) : undefined;
  return deferred ?? prepareTarget(context, target, sources, blocked);
}
