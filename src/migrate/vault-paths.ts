/** What the VaultConnections of several tools have: the paths that bindings read with them, and what users must set. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import { withoutSlashes } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

const MAX_PATHS = 64;

/** The paths in Vault that bindings read. */
export class VaultPaths {
  readonly #paths = new Set<string>();
  readonly #mounts = new Set<string>();

  add(mount: string, path: string): void {
    this.#paths.add(`${mount}/${path}`);
    this.#mounts.add(`${mount}/*`);
  }

  /** The paths, or all of their mounts if there are too many. */
  get sorted(): string[] {
    return [...(this.#paths.size > MAX_PATHS ? this.#mounts : this.#paths)].sort();
  }
}

/** A path in Vault, without slashes around it. */
export function vaultPathAt(field: Tracked): string | undefined {
  const text = field.text();
  return text === undefined ? undefined : withoutSlashes(text);
}

/** The mount of an auth method. */
export const authMountAt = (field: Tracked): string | undefined => vaultPathAt(field)?.replace(/^auth\//, "");

/** What users must set for the server, and for logins with tokens of Kubernetes. */
export const connectionNotes = ({ address }: JsonObject, isDefaultAudience: boolean): string[] => [
  `Add ${String(address)} to vault.addresses in the configuration of Inlay.`,
  ...(isDefaultAudience
    ? ["Set audience=vault in the role in Vault: Inlay logs in with tokens for that audience."]
    : []),
];
