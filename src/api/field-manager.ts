/** The names under which Inlay stands in managedFields. */
import { createHash } from "node:crypto";
import type { SecretBinding } from "./binding.ts";

/** Writes to bindings themselves: finalizers and status. */
export const CONTROLLER_MANAGER = "inlay";

/** The API server takes no longer name. */
const MAX_LENGTH = 128;

/** The one manager of a binding: `inlay/<namespace>/<name>`, with a hash at its end where that is too long. */
export function fieldManagerOf(binding: SecretBinding): string {
  const full = `inlay/${binding.metadata.namespace}/${binding.metadata.name}`;
  if (full.length <= MAX_LENGTH) return full;
  const hash = createHash("sha256").update(full).digest("hex").slice(0, 16);
  return `${full.slice(0, MAX_LENGTH - hash.length - 1)}-${hash}`;
}
