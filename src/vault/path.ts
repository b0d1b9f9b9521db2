/** Builds request paths from places in Vault. No part of a place can leave its mount. */
import { quoted } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";

/** In the paths and the role of a connection: replaced by the namespace of the binding that reads, or of its claim. */
export const NAMESPACE = "{namespace}";

/** Mounts that are reserved for Vault. No secrets engine can be there. */
export const OWN_MOUNTS: ReadonlySet<string> = new Set(["audit", "auth", "cubbyhole", "identity", "sys"]);

/** The namespace of a VaultConnection, from its `namespace/name`. */
export const namespaceOf = (key: string): string => key.slice(0, Math.max(0, key.indexOf("/")));

/** Encodes each segment of the parts, and joins them. Throws Problem for a segment that is empty, . or .. */
export function encodePath(...parts: readonly string[]): string {
  const segments = parts.flatMap((part) => part.split("/"));
  const isUsable = (segment: string) => segment !== "" && segment !== "." && segment !== ".." && segment.isWellFormed();
  if (!segments.every(isUsable)) {
    const where = quoted(parts.join("/"));
    throw new Problem("ForbiddenPath", `${where} is not a path in Vault; remove empty parts, . and ..`);
  }
  return segments.map(encodeURIComponent).join("/");
}
