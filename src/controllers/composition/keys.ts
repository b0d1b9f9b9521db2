/** The keys of the queue: of a composition, of its status, and of each of its claims. Pure. */

/** No name has it. */
const SEPARATOR = "|";

export interface QueueKey {
  readonly composition: string;
  /** The key of a claim; empty for the status. Undefined for the composition itself. */
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

/** Claims take turns by their namespaces, and compositions are a group of their own. */
export function groupOf(key: string): string {
  const { composition, claim } = parseKey(key);
  if (claim === undefined) return "";
  const slash = claim.indexOf("/");
  return claimKey(composition, slash < 0 ? "" : claim.slice(0, slash));
}
