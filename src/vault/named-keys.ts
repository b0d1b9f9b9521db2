/** The keys of Secrets and ConfigMaps that a VaultConnection names, and what its account needs to read them and to log in. Pure. */
import type { KeyReference, VaultConnection } from "../api/connection.ts";
import { idOf, type ObjectRef } from "../apimachinery/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../apimachinery/resources.ts";

/** A key that a connection names. */
export interface NamedKey {
  /** The field that names it. */
  readonly field: string;
  readonly ref: ObjectRef;
  readonly key: string;
}

type Named = Pick<VaultConnection, "spec"> & { metadata: { namespace?: string } };

/** The objects that a connection names, without duplicates. */
export function namedObjects(connection: Named): ObjectRef[] {
  const refs = Object.values(namedKeys(connection)).flatMap((each) => each?.ref ?? []);
  return [...new Map(refs.map((ref) => [idOf(ref), ref])).values()];
}

/** Whether the account of a connection logs in. */
export const logsIn = ({ spec: { auth } }: Named): boolean => auth?.kubernetes?.as === "Connection";

/** Whether Inlay impersonates the account of a connection: it names an object, or logs in as the account. */
export const needsAccount = (connection: Named): boolean => logsIn(connection) || namedObjects(connection).length > 0;

export function namedKeys({ metadata: { namespace = "" }, spec: { tls, auth } }: Named) {
  const named = (field: string, reference: KeyReference | undefined): NamedKey | undefined => {
    if (reference === undefined) return undefined;
    const { secret, configMap } = reference;
    const { name, key } = secret ?? configMap;
    return { field, key, ref: { resource: secret === undefined ? CONFIG_MAPS : SECRETS, namespace, name } };
  };
  return {
    ca: named("spec.tls.ca", tls?.ca),
    secretID: named("spec.auth.appRole.secretID", auth?.appRole && { secret: auth.appRole.secretID.secret }),
    token: named("spec.auth.token", auth?.token),
  };
}
