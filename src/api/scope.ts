/** Refuses objects outside of the one namespace that an installation is for. Pure. */
import { describeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";

/** A selection of objects in listed namespaces, or in all namespaces with matching labels. */
interface Selected extends Pick<ObjectRef, "resource"> {
  namespaces: readonly (string | undefined)[] | { labels: string };
}

/**
 * Throws Problem("OutOfScope"), whatever the account is allowed. Such an installation can't see what it must know about
 * other namespaces, such as whether one is being deleted.
 */
export function assertWithin(scope: string | undefined, at: ObjectRef | Selected): void {
  if (scope === undefined || isWithin(scope, at)) return;
  const { kind, namespaced } = at.resource;
  const elsewhere = namespaced ? "other namespaces" : "the cluster";
  const what = "name" in at ? describeObject(kind, at.namespace, at.name) : `${kind} selected in ${elsewhere}`;
  const message = `${what}: this Inlay is installed for the namespace ${scope} only; name an object in it, or ask for an Inlay for the whole cluster`;
  throw new Problem("OutOfScope", message);
}

function isWithin(scope: string, at: ObjectRef | Selected): boolean {
  if (!at.resource.namespaced) return false;
  if ("name" in at) return at.namespace === scope;
  const { namespaces } = at;
  return !("labels" in namespaces) && namespaces.every((namespace) => namespace === scope);
}
