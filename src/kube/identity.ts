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

/**
 * The mark of a request as an account: the binding for which Inlay sends it, under this key in the extra fields of the user. Policies and the
 * audit log see it. Only Inlay may set it, so a request without it is of another client that acts as the account.
 */
export const MARK_KEY = "inlay.dev/binding";

/** The header of the mark. A header has no slash, so the key is percent-encoded. */
export const MARK_HEADER = `impersonate-extra-${encodeURIComponent(MARK_KEY).toLowerCase()}`;

/** `namespace/name/uid` of a binding. The policies in deploy/policies/protect.yaml compare it. */
export const markOf = ({ namespace, name, uid }: { namespace?: string; name: string; uid: string }): string =>
  `${namespace}/${name}/${uid}`;

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
