/** A binding that nothing made, or a VaultConnection, comes in; the account of its namespace, as which it acts, goes out, or why it can't. */
import type { Installation } from "../api/installation.ts";
import { RELOADER_ACCOUNT } from "../api/reloader.ts";
import type { ObjectMeta, ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { describeIdentity, serviceAccountIdentity, type WatchIdentity } from "../kube/identity.ts";

/** In Inlay's own namespace one name is the installation's, and may do in all others what nobody gave to the binding's author. */
export function actorOf(
  { metadata: { namespace = "" }, spec: { serviceAccountName: name } }: Acting,
  { ownNamespace }: Pick<Installation, "ownNamespace">,
): Actor | Problem {
  const identity = serviceAccountIdentity(namespace, name);
  if (namespace === ownNamespace && name === RELOADER_ACCOUNT)
    return new Problem(
      "ImpersonationForbidden",
      `${describeIdentity(identity)} acts for the annotations of Reloader alone; name another account in serviceAccountName`,
      "Terminal",
    );
  return { as: { identity }, account: { resource: SERVICE_ACCOUNTS, namespace, name } };
}

interface Acting {
  metadata: Pick<ObjectMeta, "namespace">;
  spec: { serviceAccountName: string };
}

/** As whom a binding is acted for: an account, which has to be there. */
export interface Actor {
  as: WatchIdentity;
  account: ObjectRef;
}
