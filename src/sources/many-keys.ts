/** Refuses a source with so many keys that it would delay others. Pure. */
import type { Limits } from "../api/limits.ts";
import { Problem } from "../apimachinery/problem.ts";

/** Not `TooLarge` for another reason: it is counted. */
export class TooManyKeys extends Problem {}

/** Throws TooManyKeys. Call it before the keys are processed. */
export function assertFewKeys(
  description: string,
  count: number,
  { keysPerSource }: Pick<Limits, "keysPerSource">,
): void {
  if (count <= keysPerSource) return;
  const most = `Inlay reads sources of at most ${keysPerSource} keys (limits.keysPerSource)`;
  throw new TooManyKeys("TooLarge", `${description} has ${count} keys, and ${most}; split it into several objects`);
}
