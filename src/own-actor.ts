/** A binding that nothing made comes in; the account of its namespace, as which it acts, goes out, or why it can't act as that one. */
import { describeIdentity, serviceAccountIdentity } from "./kube/identity.ts";
import type { SecretBinding } from "./model/binding.ts";
import type { Installation } from "./model/installation.ts";
import { SERVICE_ACCOUNTS } from "./model/kinds.ts";
import { Problem } from "./model/problem.ts";
import { RELOADER_ACCOUNT } from "./model/reloader.ts";
import type { Actor } from "./parts.ts";

/** In Inlay's own namespace one name is the installation's, and may do in all others what nobody gave to the binding's author. */
export function ownActor(
  { metadata: { namespace = "" }, spec: { serviceAccountName: name } }: SecretBinding,
  { ownNamespace }: Pick<Installation, "ownNamespace">,
): Actor | Problem {
  const identity = serviceAccountIdentity(namespace, name);
  if (namespace === ownNamespace && name === RELOADER_ACCOUNT)
    return new Problem(
      "ImpersonationForbidden",
      `${describeIdentity(identity)} acts for the annotations of Reloader alone; name another account in serviceAccountName`,
      "edit",
    );
  return { as: { identity }, account: { resource: SERVICE_ACCOUNTS, namespace, name } };
}
