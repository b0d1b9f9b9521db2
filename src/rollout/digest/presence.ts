/** The words that the status has in place of a digest if there is no value. They do not depend on the digest key. Pure. */
import type { RolloutSpec } from "../../api/rollout.ts";
import type { LiveSource } from "../../transform/live-source.ts";

/** The source does not exist. Used only if restartOn makes that count. */
export const ABSENT = "absent";
/** No pod mounts the SecretProviderClass, so no pod has an old version of anything. */
const UNMOUNTED = "unmounted";

export const isPresent = (digest: string | undefined): digest is string =>
  digest !== undefined && digest !== ABSENT && digest !== UNMOUNTED;

/** Undefined if it is not known whether the source exists, as when a grant was withdrawn. */
export function presenceOf(
  { problem, isUnmounted }: Extract<LiveSource, { kind: "absent" }>,
  { restartOn = [] }: Pick<RolloutSpec, "restartOn">,
): string | undefined {
  if (isUnmounted) return UNMOUNTED;
  return restartOn.length > 0 && problem.reason === "SourceNotFound" ? ABSENT : undefined;
}
