/**
 * Reads and composes the annotation of a workload with the times of its last restarts for changing values. It is on the workload itself, so
 * all bindings and every leader count the same restarts, and no other change of it restarts the workload. No I/O.
 */

export const RESTARTS_ANNOTATION = "inlay.dev/restarts";

/** The most restarts that `maxRestarts` of the configuration may permit, so that the annotation stays short. */
export const MOST_RESTARTS = 100;

/** The length of a time in ISO 8601 with milliseconds, and a blank. */
const LENGTH = 25;

/** In ms, ascending. Anyone who may change the workload may change the annotation, so other texts are ignored. */
export function restartTimesIn(text: unknown): readonly number[] {
  if (typeof text !== "string" || text.length > MOST_RESTARTS * LENGTH) return [];
  const times = text.split(" ").map((each) => Date.parse(each));
  return times.filter(Number.isFinite).sort((a, b) => a - b);
}

export const restartTimesText = (times: readonly number[]): string =>
  times.map((each) => new Date(each).toISOString()).join(" ");
