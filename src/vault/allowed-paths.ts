/** Decides which paths a binding may read through a VaultConnection, in addition to Vault's own policies. Pure. */

import { isGlob, nameMatcher } from "../apimachinery/glob.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { plainPath } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACE, OWN_MOUNTS } from "./path.ts";
import type { KvPlace } from "./types.ts";

/** A path to read: `kv` is absent for metadata. */
type Place = KvPlace & { readonly kv?: 1 | 2 };

/** The segments that a secrets engine of KV version 2 inserts between its mount and the path. */
const OF_VERSION_2 = new Set(["data", "metadata"]);
/** Matches the request that returns its own token, also below a namespace of Vault. */
const OWN_TOKEN = /(^|\/)auth\/token\/lookup-self$/;
const NOT_IN_PATHS = new Set(["", ".", "..", "+"]);
const MAX_NAMED = 3;

/**
 * Throws Problem("ForbiddenPath") unless one of `paths` allows the place. `namespace` replaces {namespace}: the binding's namespace, or its
 * claim's. `connection` is the namespace and name of the VaultConnection, for messages.
 */
export function assertAllowedPath(paths: readonly string[], place: Place, namespace: string, connection: string): void {
  const [mount, path] = [place.mount.split("/"), place.path.split("/")];
  const text = `${place.mount}/${place.path}`;
  const shown = plainPath(text);
  const called = `VaultConnection ${connection}`;
  if (paths.length === 0)
    throw forbidden(
      `${called} has no paths, so bindings may read only health through it; add auth and paths to its spec`,
    );
  if ([...mount, ...path].some((part) => NOT_IN_PATHS.has(part)) || isGlob(text))
    throw forbidden(`${shown} does not name exactly one path; remove empty parts, ., .., +, * and ? between slashes`);
  if (OWN_MOUNTS.has(mount[0] ?? "") || (place.kv === 1 && OWN_TOKEN.test(text)))
    throw forbidden(
      `${shown} belongs to Vault itself, not to a KV secrets engine; set the mount of a KV secrets engine`,
    );
  // A name of a namespace with wildcards must not become a pattern.
  const known = namespace === "" || /[*?/]/.test(namespace) ? [] : paths;
  const allowed = known.map((each) => each.replaceAll(NAMESPACE, () => namespace));
  const isAllowed = nameMatcher(allowed);
  const what = `${called} allows ${firstOf(allowed.map(plainPath), MAX_NAMED) || "nothing"}`;
  if (!isAllowed(text))
    throw forbidden(`${what}, but not ${shown}; read an allowed path, or add this path to its spec.paths`);
  const other = otherReadings(mount, path, place.kv).find((each) => !isAllowed(each));
  if (other === undefined) return;
  const why = `the request for ${shown} would read ${plainPath(other)} if the engine has another mount or version than the source`;
  throw forbidden(
    `${what}, but ${why}; correct mount and kv of the source, or add ${plainPath(other)} to spec.paths too`,
  );
}

/**
 * The paths that the request would read if the engine has another mount or version than the source. So a namespace with the name `data`
 * can't reach `kv/b` by the path `data/b` and `kv: 1`, where bindings may read kv/{namespace}/*.
 */
function otherReadings(mount: readonly string[], path: readonly string[], kv: Place["kv"]): string[] {
  const inserted = kv === 1 ? [] : [kv === 2 ? "data" : "metadata"];
  const parts = [...mount, ...inserted, ...path];
  const length = kv === 1 ? parts.length - 1 : mount.length;
  return parts
    .slice(0, length)
    .flatMap((part, at) => (at > 0 && OF_VERSION_2.has(part) ? [parts.toSpliced(at, 1).join("/")] : []));
}

const forbidden = (message: string): Problem => new Problem("ForbiddenPath", message);
