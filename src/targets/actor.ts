/** Determines the service account of a binding that is neither composed nor generated, or of a VaultConnection, or why it has none. */
import type { Installation } from "../api/installation.ts";
import { RELOADER_ACCOUNT } from "../api/reloader.ts";
import type { ObjectMeta, ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { describeIdentity, serviceAccountIdentity, type WatchIdentity } from "../kube/identity.ts";

/**
 * The account inlay-reloader in Inlay's own namespace is reserved: it has permissions in all namespaces that no author
 * of a binding was granted.
 */
export function actorOf(
  { metadata: { namespace = "" }, spec: { serviceAccountName: name } }: Acting,
  { ownNamespace }: Pick<Installation, "ownNamespace">,
): Actor | Problem {
  const identity = serviceAccountIdentity(namespace, name);
  if (namespace === ownNamespace && name === RELOADER_ACCOUNT) {
    const message = `${describeIdentity(identity)} is reserved for the annotations of Reloader; set serviceAccountName to another account`;
    return new Problem("ImpersonationForbidden", message, "Terminal");
  }
  return { as: { identity }, account: { resource: SERVICE_ACCOUNTS, namespace, name } };
}

interface Acting {
  metadata: Pick<ObjectMeta, "namespace">;
  spec: { serviceAccountName: string };
}

/** The identity for a binding's requests, and its account, which must exist. */
export interface Actor {
  as: WatchIdentity;
  account: ObjectRef;
}
