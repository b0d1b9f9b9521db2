/**
 * Writes the targets of a binding. Writes that create an object or take ownership of fields go in batches: the status announces
 * all writes of a batch before the first of them. All other writes happen as soon as they are decided.
 */
import type { TargetStatus } from "../../api/binding.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { RolloutResult } from "../../rollout/status.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import { deferToCompetingBinding } from "../../targets/precedence.ts";
import { sizeOfPrepared } from "../../targets/prepared.ts";
import type { TargetWithRecord } from "../../targets/records.ts";
import { explainProtection } from "../../targets/rejection.ts";
import { prepareTarget, syncTarget } from "../../targets/sync.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import { announce, needsAnnouncement } from "./announce.ts";
import type { Inputs, Step } from "./dependencies.ts";

/** How many characters of prepared and unwritten targets may be in memory. */
const MAX_BATCH_SIZE = 16 * 1024 ** 2;

const ROLLOUT_PENDING = new Problem(
  "RolloutPending",
  "waiting for every workload to roll out with the current values (when: AfterRollout); see the condition RolledOut",
);

/** Why targets with `when: AfterRollout` have to wait, if they do. */
export function rolloutPending(
  rollout: Pick<RolloutResult, "rolledOutFor"> | undefined,
  sources: ReadonlyMap<string, LiveSource | Problem>,
): Problem | undefined {
  const versions = rollout?.rolledOutFor;
  // The sources may have changed since the rollout was decided. The values that were read are the ones that would be written.
  const isSame = [...sources].every(
    ([name, source]) => source instanceof Problem || source.version === versions?.get(name),
  );
  return versions !== undefined && isSame ? undefined : ROLLOUT_PENDING;
}

/**
 * Writes some of the targets, unless they have their values. `others` are the records of all other targets. `blocked` says why
 * nothing may be written.
 */
export async function syncTargets(
  inputs: Inputs,
  targets: readonly TargetWithRecord[],
  others: readonly { record: TargetStatus }[],
  blocked?: Problem,
): Promise<TargetOutcome[]> {
  const { context, status, targets: all } = inputs;
  const outcomes = new Map<TargetWithRecord, TargetOutcome>();
  const write = async (each: Step) =>
    "result" in each ? { record: each.record, ...each.result } : syncTarget(context, each);
  do {
    const announced = new Map<TargetWithRecord, Step>();
    let size = 0;
    await mapConcurrent(targets, async (target) => {
      // A batch holds a thousand small objects or a few large ones.
      if (outcomes.has(target) || size >= MAX_BATCH_SIZE) return;
      const step = await prepare(inputs, target, blocked);
      if (!needsAnnouncement(status.stored, step)) return void outcomes.set(target, await write(step));
      announced.set(target, step);
      size += sizeOfPrepared(step);
    });
    const known = targets.map((target) => outcomes.get(target) ?? announced.get(target) ?? target);
    const records = [...known, ...all.kept, ...others].map(({ record }) => record);
    await announce(status, context, records, [...announced.values()]);
    await mapConcurrent([...announced], async ([target, step]) => outcomes.set(target, await write(step)));
    context.planning.forget();
  } while (outcomes.size < targets.length);
  return targets.map((target) => explainProtection(context, target.ref, outcomes.get(target) as TargetOutcome));
}

/** Decides what to write to a target, unless another binding has precedence or its result is known. */
async function prepare(
  { observation: { observed }, known, context, sources }: Inputs,
  target: TargetWithRecord,
  held: Problem | undefined,
): Promise<Step> {
  const result = known.get(target);
  if (result !== undefined) return { record: target.record, result };
  const blocked = observed.account ?? observed.problemOf(target.ref) ?? held;
  const deferred = blocked === undefined ? await deferToCompetingBinding(context, target) : undefined;
  return deferred ?? prepareTarget(context, target, sources, blocked);
}
