/** What a binding reads comes in, with how far it can be; each source as it was read goes out, or why it was not. */
import type { ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { View } from "../controllers/binding/observed-state.ts";
import type { References } from "../targets/references.ts";
import type { LiveSource } from "../transform/live-source.ts";

/** Stands in for sources that no target can be written from. Each target has a problem of its own that is told first. */
const NOT_READ = new Problem("Unavailable", "the source was not read");

/**
 * Each source is read once, so that all targets, and the workloads that restart, take their values from the same state of it. It
 * is not read for targets alone of which none can be written.
 */
export async function readSources(
  { sources }: Pick<References, "sources">,
  view: Pick<View, "account" | "members" | "problemOf">,
  isForRollout: boolean,
  read: (ref: ObjectRef, name: string) => Promise<LiveSource | Problem>,
): Promise<Map<string, LiveSource | Problem>> {
  const blocked =
    !isForRollout && view.members.length > 0 && view.members.every(({ ref }) => view.problemOf(ref) !== undefined);
  const entries = [...sources].map(async ([name, ref]) => {
    const problem = view.account ?? view.problemOf(ref) ?? (blocked ? NOT_READ : undefined);
    return [name, problem ?? (await read(ref as ObjectRef, name))] as const;
  });
  return new Map(await Promise.all(entries));
}
