/** The identity of a request: the controller itself, or an impersonated ServiceAccount. */

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

/** The identity of a watch. */
export interface WatchIdentity {
  identity: Identity;
  /**
   * Whether the namespace is one of many: then the identity shares one watch of the whole cluster, if it is allowed.
   * `named`: the binding names this namespace, which is not its own, and many bindings of the identity may do so.
   */
  wide?: boolean | "named";
}

/** Whether a binding in namespace `own` names another namespace. Undefined `namespace`: the kind is cluster-scoped. */
export const wideIn = (namespace: string | undefined, own: string): { wide?: "named" } =>
  namespace === undefined || namespace === own ? {} : { wide: "named" };
