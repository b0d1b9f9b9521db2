/** Checks the work queues, the streams and the lease. Returns a line for each failure, for the kubelet. Pure. */
import type { StreamState } from "../cache/reflector.ts";
import type { LeaderElection } from "./leader-election.ts";

/** A bookmark arrives every minute, and a stream without a line for 100 s is restarted, which should have helped by now. */
const SILENT_SECONDS = 120;
/** A broken stream is usually restarted within some seconds. */
const INTERRUPTED_SECONDS = 10;
/** A first list takes longer only if something is wrong. */
const PENDING_SECONDS = 30;
/** Every request has a deadline of seconds, so a reconcile of this length never ends. */
const STUCK_SECONDS = 600;

/**
 * Why the controllers do not work at the moment, by state and kind. `own` are the kinds that they reconcile. A standby has nothing to do,
 * so it is ready.
 */
export function notReady(
  election: Pick<LeaderElection, "mayWrite" | "inTouch"> | undefined,
  own: readonly StreamState[],
  others: readonly StreamState[],
): string[] {
  if (election?.inTouch === false) return ["unreachable: coordination.k8s.io/leases"];
  if (election?.mayWrite === false) return [];
  const wrong = [
    ...own.map((stream) => ({ ...stream, state: stream.phase === "synced" ? stateOf(stream) : stream.phase })),
    ...others.map((stream) => ({ ...stream, state: stateOf(stream) })),
  ].flatMap(({ resource, state }) => (state === undefined ? [] : [`${state}: ${resource}`]));
  return [...Map.groupBy(wrong, (what) => what)].map(([what, { length }]) =>
    length === 1 ? what : `${what} (${length} watches)`,
  );
}

/** Why the process should be restarted. */
export function notAlive(controller: string, runningSeconds: readonly number[]): string[] {
  const longest = Math.max(0, ...runningSeconds);
  return longest > STUCK_SECONDS ? [`stuck: a reconcile of ${controller} has run for ${Math.round(longest)} s`] : [];
}

/** A refused stream is a matter of its binding's permissions, and the binding reports it. */
function stateOf({ phase, refused, quietSeconds, interruptedSeconds }: StreamState): string | undefined {
  if (refused) return undefined;
  if (interruptedSeconds > INTERRUPTED_SECONDS) return "interrupted";
  if (phase !== "synced" && quietSeconds > PENDING_SECONDS) return phase;
  return quietSeconds > SILENT_SECONDS ? "silent" : undefined;
}
