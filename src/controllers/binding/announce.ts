/** Announces a batch of writes before the first of them, so that a crash leaves nothing unrecorded: in the status, and by the finalizer. */
import { heldPaths, type SecretBinding, type TargetStatus } from "../../api/binding.ts";
import { copiedSources } from "../../sources/grants.ts";
import type { WriteContext } from "../../targets/dependencies.ts";
import { acquires, grantedIn } from "../../targets/prepared.ts";
import type { BindingStatusWriter } from "./binding-status-writer.ts";
import type { Step } from "./dependencies.ts";

/** Writes status for what is to be written, which it does not have yet. Returns the binding as it is then. */
export async function announce(
  writer: Pick<BindingStatusWriter, "setFinalizer" | "writeStatus">,
  binding: SecretBinding,
  { parsedSources }: Pick<WriteContext, "parsedSources">,
  records: readonly TargetStatus[],
  batch: readonly Step[],
): Promise<SecretBinding> {
  const stored = await writer.setFinalizer(binding, holdsAnything(records));
  if (batch.length === 0) return stored;
  const copied = copiedSources(stored, parsedSources, batch.flatMap(grantedIn));
  return writer.writeStatus(stored, { ...stored.status, targets: [...records], ...copied });
}

/** Whether status has to say something before the write: that it makes something the binding's, or copies by a grant. */
export function needsAnnouncement({ status }: SecretBinding, step: Step): boolean {
  return acquires(step) || grantedIn(step).some((source) => status?.copiedSources?.includes(source) !== true);
}

/**
 * Whether there is anything to release, by whatever onRelease: that may change to Remove while no controller runs. Such a binding is not
 * gone before it is released.
 */
export const holdsAnything = (records: readonly TargetStatus[]): boolean =>
  records.some((record) => record.created === true || heldPaths(record).length > 0);
