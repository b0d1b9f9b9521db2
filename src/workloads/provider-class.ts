/**
 * A SecretProviderClass of the Secrets Store CSI driver comes in; the Secrets that the driver writes for pods which mount it
 * go out, with the keys of each. No I/O.
 */
import { at, listAt, namesIn } from "../apimachinery/fields.ts";

export const PROVIDER_CLASS = { apiVersion: "secrets-store.csi.x-k8s.io/v1", kind: "SecretProviderClass" };

export interface SyncedSecret {
  readonly secret: string;
  /** In order. Undefined: all that it has. */
  readonly keys: readonly string[] | undefined;
}

/** Of its spec. What is not as it should be names nothing. */
export function syncedBy(spec: unknown): SyncedSecret[] {
  return listAt(spec, "secretObjects").flatMap((each): SyncedSecret[] => {
    const secret = at(each, "secretName");
    if (typeof secret !== "string" || secret === "") return [];
    const keys = namesIn(listAt(each, "data"), "key");
    return [{ secret, keys: keys && [...new Set(keys)].toSorted() }];
  });
}
