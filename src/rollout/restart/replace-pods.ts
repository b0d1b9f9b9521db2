/** What was decided of a rollout comes in; of each workload whose pods nobody else replaces one is, if it is time, and what it waits for goes out. */

import type { Dependent } from "../../api/rollout.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { sideBySide } from "../../workqueue/map-concurrent.ts";
import type { Decided } from "../decide/engine.ts";
import { saying } from "../decide/intent-status.ts";
import type { RollingRun } from "../discover/dependents.ts";
import { replaceNext } from "./evict-pod.ts";

/** When it is tried again what the API server refused. */
const TRIED_AGAIN_MS = 10_000;

/**
 * Those that were restarted and are not through, also one that failed: its old pods are of no use. `isSeen` says whether a workload is shown as
 * our stamp left it.
 */
export async function replaceDue(
  client: Client,
  { identity, dependents }: RollingRun,
  decided: Decided,
  isSeen: (dependent: Dependent) => boolean,
): Promise<{ done: Decided; problem?: Problem }> {
  const under = decided.status.pending?.workloads?.filter(({ state }) => state === "Rolling" || state === "Failed");
  const uids = new Set(under?.map(({ uid }) => uid));
  const due = dependents.all.flatMap((dependent) => {
    const { replacing, progress } = dependent.workload;
    const isDue = progress.state !== "Done" && uids.has(dependent.version.uid) && isSeen(dependent);
    return replacing !== undefined && isDue ? [{ dependent, replacing }] : [];
  });
  if (due.length === 0) return { done: decided };
  const messages = new Map<string, string>();
  let againMs = decided.againMs ?? Number.POSITIVE_INFINITY;
  let problem: Problem | undefined;
  await sideBySide(due, async ({ dependent, replacing }) => {
    const replaced = await attempt(replaceNext(client, identity, dependent, replacing, Date.now()));
    if (replaced instanceof Problem) problem ??= replaced;
    againMs = Math.min(againMs, replaced instanceof Problem ? TRIED_AGAIN_MS : replaced.againMs);
    if (replaced.message !== undefined) messages.set(dependent.version.uid, replaced.message);
  });
  return { done: { ...saying(messages, decided), againMs }, ...(problem && { problem }) };
}
