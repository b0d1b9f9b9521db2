/** Resolved sources for unit tests that don't read them. */
import { describeObject, type ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { WatchedSource } from "../../../src/sources/source.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";

/** A source that is this object, with its reader. */
export function watched(
  ref: ObjectRef,
  read: () => Promise<LiveSource | Problem> = async () => new Problem("Unavailable", "the test reads nothing"),
  needsGrant = false,
): WatchedSource {
  const { resource, namespace = "", name } = ref;
  const policy = { onMissing: "Wait" as const, optional: false };
  const place = [resource.group, resource.kind, namespace, name] as const;
  const description = describeObject(resource.kind, namespace, name);
  const fromObject = () => {
    throw new Error("the test reads no former version");
  };
  return { place, description, policy, watched: ref, ...(needsGrant && { grantedObject: ref }), fromObject, read };
}
