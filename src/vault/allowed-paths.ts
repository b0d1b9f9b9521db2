/** Decides which paths a binding may read through a VaultConnection, whatever Vault's own policies allow. Pure. */
import { isGlob, nameMatcher } from "../apimachinery/glob.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACE, OWN_MOUNTS } from "./path.ts";
import type { KvPlace } from "./types.ts";

/** What is read: `kv` is absent for metadata. */
type Place = KvPlace & { readonly kv?: 1 | 2 };

/** What a secrets engine of KV version 2 puts between its mount and the path. */
const OF_VERSION_2 = new Set(["data", "metadata"]);
/** The request that answers with the token that sends it, also where a namespace of Vault is before it. */
const OWN_TOKEN = /(^|\/)auth\/token\/lookup-self$/;
const NOT_IN_PATHS = new Set(["", ".", "..", "+"]);
const MAX_NAMED = 3;

/**
 * Throws Problem("ForbiddenPath") unless one of `paths` allows the place. `namespace` is what {namespace} stands for: the
 * binding's, or that of its claim. `connection` is the namespace and name of the VaultConnection, for messages.
 */
export function assertAllowedPath(paths: readonly string[], place: Place, namespace: string, connection: string): void {
  const [mount, path] = [place.mount.split("/"), place.path.split("/")];
  const text = `${place.mount}/${place.path}`;
  const called = `VaultConnection ${connection}`;
  if (paths.length === 0)
    throw forbidden(`${called} has no paths, so bindings read only health through it; add auth and paths to its spec`);
  if ([...mount, ...path].some((part) => NOT_IN_PATHS.has(part)) || isGlob(text))
    throw forbidden(`${text} does not name one place; leave out empty parts, ., .., +, * and ? between slashes`);
  if (OWN_MOUNTS.has(mount[0] ?? "") || (place.kv === 1 && OWN_TOKEN.test(text)))
    throw forbidden(`${text} is a place of Vault itself, and not of a KV secrets engine; name the mount of one`);
  // The name of a namespace is a part of a path, and no pattern.
  const known = namespace === "" || /[*?/]/.test(namespace) ? [] : paths;
  const allowed = known.map((each) => each.replaceAll(NAMESPACE, () => namespace));
  const isAllowed = nameMatcher(allowed);
  const what = `${called} allows ${firstOf(allowed, MAX_NAMED) || "nothing"}`;
  if (!isAllowed(text))
    throw forbidden(`${what}, and not ${text}; name a path that it allows, or add this one to its spec.paths`);
  const other = otherReadings(mount, path, place.kv).find((each) => !isAllowed(each));
  if (other === undefined) return;
  const why = `the request for ${text} reads ${other} if the engine has another mount or version than the source says`;
  throw forbidden(`${what}, and ${why}; correct mount and kv of the source, or add ${other} to spec.paths too`);
}

/**
 * What the request would read if the mount, or the version of its engine, is another one than the source says. So a namespace
 * called `data` does not reach `kv/b` by the path `data/b` and `kv: 1`, where bindings may read kv/{namespace}/*.
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
