/** What a binding names comes in; an installation for one namespace refuses what lies outside of it. Pure. */
import { describeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";

/** What is selected, in which namespaces: those that are listed, or all that match. */
interface Selected extends Pick<ObjectRef, "resource"> {
  namespaces: readonly (string | undefined)[] | { labels: string };
}

/**
 * Throws Problem("OutOfScope"), whatever the account may: as itself, such an installation can't see beyond its namespace
 * what it would have to know, such as whether another one is being deleted.
 */
export function assertWithin(scope: string | undefined, at: ObjectRef | Selected): void {
  if (scope === undefined || isWithin(scope, at)) return;
  const { kind, namespaced } = at.resource;
  const elsewhere = namespaced ? "other namespaces" : "the cluster";
  const what = "name" in at ? describeObject(kind, at.namespace, at.name) : `${kind} selected in ${elsewhere}`;
  const message = `${what}: this Inlay is installed for the namespace ${scope} alone, and takes up nothing outside of it; name an object there, or ask for an Inlay of the whole cluster`;
  throw new Problem("OutOfScope", message);
}

function isWithin(scope: string, at: ObjectRef | Selected): boolean {
  if (!at.resource.namespaced) return false;
  if ("name" in at) return at.namespace === scope;
  const { namespaces } = at;
  return !("labels" in namespaces) && namespaces.every((namespace) => namespace === scope);
}
