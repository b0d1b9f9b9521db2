/** Requests to reconcile an object now, by an annotation, and the record of the last one in its status. Pure. */

/**
 * Annotation of a SecretBinding, BindingComposition or VaultConnection. When its text changes, Inlay reconciles the object at once, and reads
 * everything again.
 */
export const REFRESH_ANNOTATION = "inlay.dev/refresh";

/** The limit of the text in the status, in characters. */
const MAX_LENGTH = 256;

interface Refreshable {
  metadata: { annotations?: Record<string, string> };
  status?: { lastHandledRefresh?: string };
}

/** The text of the annotation, as the status records it. */
export function refreshOf({ metadata }: Pick<Refreshable, "metadata">): string | undefined {
  const text = metadata.annotations?.[REFRESH_ANNOTATION];
  // By whole characters: half of one would be stored as another text.
  return text === undefined || text.length <= MAX_LENGTH ? text : [...text].slice(0, MAX_LENGTH).join("");
}

/** Whether the last request was not handled yet. */
export function isRefreshRequested(object: Refreshable): boolean {
  const text = refreshOf(object);
  return text !== undefined && text !== object.status?.lastHandledRefresh;
}

/** The part of a status that records the last handled request. */
export function handledRefresh(object: Refreshable, isHandled: boolean): { lastHandledRefresh?: string } {
  const last = (isHandled ? refreshOf(object) : undefined) ?? object.status?.lastHandledRefresh;
  return last === undefined ? {} : { lastHandledRefresh: last };
}
