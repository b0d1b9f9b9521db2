/** How queue, streams and lease are comes in; what is wrong with them goes out, as lines for the kubelet. Pure. */
import type { StreamState } from "../cache/reflector.ts";

/** A bookmark comes every minute, and a stream without a line for 100 s is begun anew: that should have helped by now. */
const SILENT_SECONDS = 120;
/** A stream that breaks is begun anew within some seconds, where that succeeds. */
const INTERRUPTED_SECONDS = 10;
/** A first list takes longer only where something is wrong. */
const PENDING_SECONDS = 30;
/** Every request has a deadline of seconds, so that a reconcile of this length waits for what will never come. */
const STUCK_SECONDS = 600;

/** Leader election as this replica sees it: a standby has nothing to do, which is why it is ready. */
export interface Election {
  mayWrite: boolean;
  inTouch: boolean;
}

/** Why the controller does not do its work at the moment, by state and kind. */
export function notReady(
  election: Election | undefined,
  bindings: StreamState,
  streams: readonly StreamState[],
): string[] {
  if (election?.inTouch === false) return ["out of reach: coordination.k8s.io/leases"];
  if (election?.mayWrite === false) return [];
  const wrong = new Map<string, number>();
  for (const { resource, state } of [
    { resource: bindings.resource, state: bindings.phase === "synced" ? stateOf(bindings) : bindings.phase },
    ...streams.map((stream) => ({ resource: stream.resource, state: stateOf(stream) })),
  ]) {
    if (state === undefined) continue;
    const what = `${state}: ${resource}`;
    wrong.set(what, (wrong.get(what) ?? 0) + 1);
  }
  return [...wrong].map(([what, count]) => (count === 1 ? what : `${what} (${count} watches)`));
}

/** Why the process should be started anew. */
export function notAlive(runningSeconds: readonly number[]): string[] {
  const longest = Math.max(0, ...runningSeconds);
  return longest > STUCK_SECONDS ? [`stuck: a reconcile has run for ${Math.round(longest)} s`] : [];
}

/** A stream that is refused is a matter of its binding's rights, which says so itself. */
function stateOf({ phase, refused, quietSeconds, interruptedSeconds }: StreamState): string | undefined {
  if (refused) return undefined;
  if (interruptedSeconds > INTERRUPTED_SECONDS) return "interrupted";
  if (phase !== "synced" && quietSeconds > PENDING_SECONDS) return phase;
  if (quietSeconds > SILENT_SECONDS) return "silent";
  return undefined;
}
