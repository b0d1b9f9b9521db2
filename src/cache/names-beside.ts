/** Lists the names beside a workload, to suggest one for a misspelt name. */
import { nameIn } from "./cached-object.ts";
import type { Stream } from "./stream.ts";
import type { ObjectSubscription } from "./subscription.ts";

/**
 * All names in its namespace that the stream of a workload shows. An account has a stream with other names than that of the workload
 * only if it may list the kind there.
 */
export function* namesBeside(
  stream: Stream | undefined,
  { ref, workload }: ObjectSubscription,
): Generator<string, void> {
  if (stream?.reflector === undefined || workload === undefined) return;
  for (const key of stream.index.keysOf(`${ref.namespace}/`, stream.reflector)) yield nameIn(key);
}
