/** Writes to a target as often as contention with others allows, and reports contention. */
import { bindingKey } from "../api/binding.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt } from "../kube/access-error.ts";
import type { SyncContext } from "./dependencies.ts";
import type { TargetOutcome } from "./outcome.ts";

interface TargetWrite {
  /** What contention is counted by. */
  contender: string;
  /** The target for messages. */
  target: string;
  /** The object as the decision found it; undefined if the write creates it. */
  live: KubeObject | undefined;
  decision: { takenBy: readonly string[]; differing?: readonly string[] };
  send(): Promise<KubeObject | "stale">;
  /** What the event says of the write, and the log. */
  event: { reason: "Created" | "Adopted" | "Written"; note: string };
  log: { message: string; paths?: readonly string[] };
}

/** Writes, or returns the milliseconds to wait because of contention; `stale` if the object changed since the decision. */
export async function writeWithinBudget(
  { deps, binding, sourceRevisions, sourceUids }: SyncContext,
  { contender, target, live, decision, send, event, log: { message, ...what } }: TargetWrite,
): Promise<KubeObject | "stale" | number | Problem> {
  const { takenBy, differing } = decision;
  const wait = deps.contention.mayWrite(contender, sourceRevisions, takenBy, sourceUids, differing);
  if (wait > 0) return wait;
  const written = await attempt(send());
  if (written === "stale" || written instanceof Problem) return written;
  deps.propagation.wrote(bindingKey(binding));
  // The API server normalizes the value, and it was there already.
  if (written.metadata.resourceVersion === live?.metadata.resourceVersion) return written;
  deps.contention.wrote(contender, sourceRevisions, written.metadata.uid, sourceUids);
  deps.log.info({ binding: bindingKey(binding), target, ...what }, message);
  deps.events.record(binding, { type: "Normal", action: "Sync", ...event });
  return written;
}

/** Contention that is not over is reported even while the target has the binding's value. `what` says what others do. */
export function contentionProblem(
  { deps }: SyncContext,
  contender: string,
  what: string,
): Pick<TargetOutcome, "problem" | "requeueAfterMs"> {
  const state = deps.contention.stateOf(contender);
  if (state === undefined) return {};
  const messages = {
    corrections: `${state.by} keeps ${what}`,
    echoes:
      "what this binding writes comes back to it as a new value, through another binding or as its own source; it is written more and more rarely. Break the circle",
    changes:
      "the sources changed sixty times in a minute; what they say is written more and more rarely. If they change because this binding writes, through somebody who copies it back, break that circle",
  };
  return { problem: new Problem("Contended", messages[state.of]), requeueAfterMs: state.remainingMs };
}
