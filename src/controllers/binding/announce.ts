/**
 * Records a batch of writes before the first of them, in the status and by the finalizer, so that a crash leaves no write
 * unrecorded.
 */
import { heldPaths, type SecretBinding, type TargetStatus } from "../../api/binding.ts";
import { copiedSources } from "../../sources/grants.ts";
import type { WriteContext } from "../../targets/dependencies.ts";
import { acquires, grantedIn } from "../../targets/prepared.ts";
import type { StatusInProgress } from "./binding-status-writer.ts";
import type { Step } from "./dependencies.ts";

/** Adds the planned writes to the status, unless it has them. */
export async function announce(
  status: Pick<StatusInProgress, "stored" | "setFinalizer" | "write">,
  { parsedSources }: Pick<WriteContext, "parsedSources">,
  records: readonly TargetStatus[],
  batch: readonly Step[],
): Promise<void> {
  await status.setFinalizer(ownsAnything(records));
  if (batch.length === 0) return;
  const { stored } = status;
  const copied = copiedSources(stored, parsedSources, batch.flatMap(grantedIn));
  await status.write({ ...stored.status, targets: [...records], ...copied });
}

/**
 * Whether the status must be written before this step: the step creates an object, takes ownership of a field, or copies by a
 * grant.
 */
export function needsAnnouncement({ status }: SecretBinding, step: Step): boolean {
  return acquires(step) || grantedIn(step).some((source) => status?.copiedSources?.includes(source) !== true);
}

/**
 * Whether there is anything to release. The value of onRelease does not matter: it may change to Remove while no controller runs.
 * The finalizer keeps such a binding until it is released.
 */
export const ownsAnything = (records: readonly TargetStatus[]): boolean =>
  records.some((record) => record.created === true || heldPaths(record).length > 0);
