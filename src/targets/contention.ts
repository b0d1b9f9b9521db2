/** Writes to a target as often as contention with other clients allows, and reports contention. */
import { bindingKey } from "../api/binding.ts";
import { describeRef, type KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt } from "../kube/access-error.ts";
import type { SyncContext } from "./dependencies.ts";
import type { TargetOutcome } from "./outcome.ts";
import { reversionIn, type Write } from "./reverted.ts";

interface TargetWrite {
  /** The key for counting contention. */
  contender: string;
  /** What the answer is compared with. */
  write: Write;
  decision: { takenBy: readonly string[]; differing?: readonly string[] };
  send(): Promise<KubeObject | "stale">;
  /** The reason and note of the event, and the text for the log. */
  event: { reason: "Created" | "Adopted" | "Written"; note: string };
  log: { message: string; paths?: readonly string[] };
}

/**
 * Writes, or returns the milliseconds to wait because of contention; `stale` if the object changed since the decision.
 */
export async function writeWithinBudget(
  { deps, binding, sourceRevisions, sourceUids }: SyncContext,
  { contender, write, decision, send, event, log: { message, ...what } }: TargetWrite,
): Promise<KubeObject | "stale" | number | Problem> {
  const { ref, live } = write;
  const { takenBy, differing } = decision;
  // A deleted object is created again at once.
  const before = live && deps.rejections.reversion(contender, sourceRevisions);
  if (before !== undefined) return before;
  const wait = deps.contention.mayWrite(contender, sourceRevisions, takenBy, sourceUids, differing);
  if (wait > 0) return wait;
  const written = await attempt(send());
  if (written === "stale" || written instanceof Problem) return written;
  const isChanged = written.metadata.resourceVersion !== live?.metadata.resourceVersion;
  if (isChanged) deps.contention.wrote(contender, sourceRevisions, written.metadata.uid, sourceUids);
  const reversion = reversionIn(write, written);
  if (reversion !== undefined) {
    deps.rejections.reverted(contender, sourceRevisions, reversion);
    return reversion;
  }
  deps.propagation.wrote(bindingKey(binding));
  // The write changed nothing: the API server normalizes the value, and it was already there.
  if (!isChanged) return written;
  deps.log.info({ binding: bindingKey(binding), target: describeRef(ref), ...what }, message);
  deps.events.record(binding, { type: "Normal", action: "Sync", ...event });
  return written;
}

/** Reports contention until it ends, even while the target has the binding's value. `what` says what the others do. */
export function contentionProblem(
  { deps, binding }: Pick<SyncContext, "deps" | "binding">,
  contender: string,
  what: string,
): Pick<TargetOutcome, "problem" | "requeueAfterMs"> {
  const state = deps.contention.stateOf(contender);
  if (state === undefined) return {};
  const { name, namespace } = binding.metadata;
  const messages = {
    corrections: `${state.by} keeps ${what}. If it has stopped, continue at once with: inlay sync ${name} -n ${namespace}`,
    echoes:
      "the values that this binding writes change its own sources, perhaps through another binding, so Inlay writes less and less often. Break this loop",
    changes:
      "the sources changed sixty times in a minute, so Inlay writes less and less often. If another client copies the written values back to the sources, stop that client",
  };
  return { problem: new Problem("Contended", messages[state.of]), requeueAfterMs: state.remainingMs };
}
