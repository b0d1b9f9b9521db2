/**
 * Finds the Secrets, with their keys, that the Secrets Store CSI driver writes for pods that mount a SecretProviderClass. No I/O.
 */
import { at, listAt, namesIn } from "../apimachinery/fields.ts";

export const PROVIDER_CLASS = { apiVersion: "secrets-store.csi.x-k8s.io/v1", kind: "SecretProviderClass" };

export interface SyncedSecret {
  readonly secret: string;
  /** Sorted. Undefined: all keys. */
  readonly keys: readonly string[] | undefined;
}

/** From the spec. A malformed part names nothing. */
export function syncedBy(spec: unknown): SyncedSecret[] {
  return listAt(spec, "secretObjects").flatMap((each): SyncedSecret[] => {
    const secret = at(each, "secretName");
    if (typeof secret !== "string" || secret === "") return [];
    const keys = namesIn(listAt(each, "data"), "key");
    return [{ secret, keys: keys && [...new Set(keys)].toSorted() }];
  });
}
