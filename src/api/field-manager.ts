/** The names of Inlay's field managers in managedFields. */
import { createHash } from "node:crypto";
import type { SecretBinding } from "./binding.ts";

/** The field manager of writes to bindings themselves: finalizers and status. */
export const CONTROLLER_MANAGER = "inlay";

/** The field manager of a user's changes by the command line. */
export const COMMAND_LINE_MANAGER = "inlay-cli";

const OF_BINDING = "inlay/";

/** Whether the field manager is that of a binding, which need not exist any more. */
export const isOfBinding = (manager: string): boolean => manager.startsWith(OF_BINDING);

/** The namespace of the binding with that field manager. The name may be cut. */
export const namespaceOfManager = (manager: string): string => manager.split("/")[1] ?? "";

/** The API server rejects longer names. */
const MAX_LENGTH = 128;

/**
 * The field manager of a binding: `inlay/<namespace>/<name>`. If that is too long, the name is cut and ends in a hash.
 */
export function fieldManagerOf(binding: { metadata: Pick<SecretBinding["metadata"], "namespace" | "name"> }): string {
  const full = `${OF_BINDING}${binding.metadata.namespace}/${binding.metadata.name}`;
  if (full.length <= MAX_LENGTH) return full;
  const hash = createHash("sha256").update(full).digest("hex").slice(0, 16);
  return `${full.slice(0, MAX_LENGTH - hash.length - 1)}-${hash}`;
}
