/** Who a request is made as: the controller itself, or a ServiceAccount by impersonation. */

/** The user name to impersonate, or `""` for the controller itself. A string, so that it can be part of a key. */
export type Identity = string;

export const CONTROLLER: Identity = "";

export function serviceAccountIdentity(namespace: string, name: string): Identity {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** `ServiceAccount registry/inlay`, for messages. */
export function describeIdentity(identity: Identity): string {
  const account = /^system:serviceaccount:([^:]+):(.+)$/.exec(identity);
  return account ? `ServiceAccount ${account[1]}/${account[2]}` : "Inlay's own account";
}

/** The namespace of an account; undefined for the controller itself. */
export const homeOf = (identity: Identity): string | undefined => identity.split(":")[2];

/** As whom something is watched. */
export interface WatchIdentity {
  identity: Identity;
  /**
   * It is one of many namespaces: they share a watch of the whole cluster, where the identity may have one. `named`: a binding names
   * this one namespace, other than its own, and many bindings of the identity may do so.
   */
  wide?: boolean | "named";
}

/** What a binding of `own` names in a namespace, or in none where the kind belongs to the cluster. */
export const wideIn = (namespace: string | undefined, own: string): { wide?: "named" } =>
  namespace === undefined || namespace === own ? {} : { wide: "named" };
