/**
 * The words in status in place of a digest where there is no value. They are the same with every key for digests. Pure.
 */
import type { RolloutSpec } from "../../api/rollout.ts";
import type { LiveSource } from "../../transform/live-source.ts";

/** There is no such source. Only where restartOn makes that count. */
export const ABSENT = "absent";
/** No pod mounts the SecretProviderClass, so none has an old version of anything. */
export const UNMOUNTED = "unmounted";

export const isPresent = (digest: string | undefined): digest is string =>
  digest !== undefined && digest !== ABSENT && digest !== UNMOUNTED;

/** Undefined where the missing source says nothing, as when a grant was withdrawn: the source itself may be there. */
export function presenceOf(
  { problem, isUnmounted }: Extract<LiveSource, { kind: "absent" }>,
  { restartOn = [] }: Pick<RolloutSpec, "restartOn">,
): string | undefined {
  if (isUnmounted) return UNMOUNTED;
  return restartOn.length > 0 && problem.reason === "SourceNotFound" ? ABSENT : undefined;
}
