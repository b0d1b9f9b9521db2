/**
 * The keys of the queue and of the watcher: of a composition, of its status, of each of its claims, and of each namespace that it
 * watches. Pure.
 */

/** No name of an object contains it. */
const SEPARATOR = "|";

interface QueueKey {
  readonly composition: string;
  /** The key of a claim; empty for the status, undefined for the composition itself. */
  readonly claim: string | undefined;
}

/** The key of a composition is its name. */
export const statusKey = (composition: string): string => `${composition}${SEPARATOR}`;
export const claimKey = (composition: string, claim: string): string => `${composition}${SEPARATOR}${claim}`;

export function parseKey(key: string): QueueKey {
  const at = key.indexOf(SEPARATOR);
  return at < 0
    ? { composition: key, claim: undefined }
    : { composition: key.slice(0, at), claim: key.slice(at + SEPARATOR.length) };
}

/** The key of the watch of a composition in a namespace; the namespace is empty for a cluster-scoped kind. */
export const placeKey = claimKey;

/** The namespace and the name in the key of a claim. The namespace is empty for a cluster-scoped object. */
export function placeOfClaim(claim: string): { readonly namespace: string; readonly name: string } {
  const slash = claim.indexOf("/");
  return { namespace: claim.slice(0, Math.max(slash, 0)), name: claim.slice(slash + 1) };
}

/** Namespaces of claims take turns, and all compositions together are one more group. */
export function groupOf(key: string): string {
  const { composition, claim } = parseKey(key);
  if (claim === undefined) return "";
  return placeKey(composition, placeOfClaim(claim).namespace);
}
