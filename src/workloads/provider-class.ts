/**
 * A SecretProviderClass of the Secrets Store CSI driver comes in; the Secrets that the driver writes for pods which mount it
 * go out, with the keys of each. No I/O.
 */
import { isObject } from "../apimachinery/json.ts";

export const PROVIDER_CLASS = { apiVersion: "secrets-store.csi.x-k8s.io/v1", kind: "SecretProviderClass" };

export interface Synced {
  readonly secret: string;
  /** In order. Undefined: all that it has. */
  readonly keys: readonly string[] | undefined;
}

/** Of its spec. What is not as it should be names nothing. */
export function syncedBy(spec: unknown): Synced[] {
  return listIn(spec, "secretObjects").flatMap((each): Synced[] => {
    const name = isObject(each) ? each["secretName"] : undefined;
    if (typeof name !== "string" || name === "") return [];
    const keys = listIn(each, "data").map((item) => (isObject(item) ? item["key"] : undefined));
    const isExact = keys.length > 0 && keys.every((key) => typeof key === "string");
    return [{ secret: name, keys: isExact ? [...new Set(keys)].toSorted() : undefined }];
  });
}

function listIn(value: unknown, field: string): readonly unknown[] {
  const found = isObject(value) ? value[field] : undefined;
  return Array.isArray(found) ? found : [];
}
