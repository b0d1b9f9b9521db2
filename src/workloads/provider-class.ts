/**
 * Finds the Secrets, with their keys, that the Secrets Store CSI driver writes for pods that mount a SecretProviderClass. No I/O.
 */
import { at, listAt, namesIn } from "../apimachinery/fields.ts";
import { MAX_NAME_LENGTH } from "../apimachinery/objects.ts";

export const PROVIDER_CLASS = { apiVersion: "secrets-store.csi.x-k8s.io/v1", kind: "SecretProviderClass" };

/** The most Secrets and keys together that the controller keeps of one class. */
export const MAX_SYNCED = 1_000;

export interface SyncedSecret {
  readonly secret: string;
  /** Sorted. Undefined: all keys. */
  readonly keys: readonly string[] | undefined;
}

/** From the spec, one for each Secret. A malformed part names nothing. Undefined for more than `most` Secrets and keys together. */
export function syncedBy(spec: unknown, most = Number.POSITIVE_INFINITY): SyncedSecret[] | undefined {
  const found = new Map<string, Set<string> | "all">();
  let count = 0;
  for (const each of listAt(spec, "secretObjects")) {
    const secret = at(each, "secretName");
    if (typeof secret !== "string" || secret === "" || secret.length > MAX_NAME_LENGTH) continue;
    const known = found.get(secret) ?? new Set();
    if (!found.has(secret)) count++;
    const keys = known === "all" ? undefined : namesIn(listAt(each, "data"), "key");
    if (known === "all" || keys === undefined) found.set(secret, "all");
    else {
      const before = known.size;
      for (const key of keys) if (key.length <= MAX_NAME_LENGTH) known.add(key);
      found.set(secret, known);
      count += known.size - before;
    }
    if (count > most) return undefined;
  }
  return [...found].map(([secret, keys]) => ({ secret, keys: keys === "all" ? undefined : [...keys].toSorted() }));
}
