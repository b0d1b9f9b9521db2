/** Reads the pages of a list. A page that is too large to be read is requested again with fewer objects. */
import { type List, MAX_CHARACTERS } from "./answer-text.ts";
import { ApiError } from "./api-error.ts";
import type { Identity } from "./identity.ts";
import type { Request, Transport } from "./transport.ts";

/** What a list asks for. */
interface PagesRequest extends Pick<Request, "deadlineMs"> {
  identity: Identity;
  /** The path with the parameters of a page. */
  path: (page: Record<string, string>) => string;
  accept?: string;
  /** The form that shows only the metadata of objects. A single object that is too large is shown in this form, or fails the list. */
  acceptMetadata?: string;
}

const PAGE_SIZE = 500;
const MAX_PAGE_CHARACTERS = 4 * 1024 ** 2;
/** A page of the next size should have about so many characters. */
const AIM = MAX_PAGE_CHARACTERS / 2;

/** Throws ApiError; `TooLarge` for an object that is larger than MAX_CHARACTERS. */
export async function* pages(
  transport: Pick<Transport, "request">,
  { path, acceptMetadata, ...request }: PagesRequest,
  signal?: AbortSignal,
): AsyncGenerator<List, void, void> {
  let next: string | undefined;
  let limit = PAGE_SIZE;
  let onlyMetadata = false;
  for (;;) {
    const page: Request = {
      method: "GET",
      ...request,
      path: path({ limit: String(limit), ...(next && { continue: next }) }),
      form: "list",
      // A single object may be larger.
      ...(limit > 1 && { maxCharacters: MAX_PAGE_CHARACTERS }),
      ...(onlyMetadata && acceptMetadata && { accept: acceptMetadata }),
    };
    let list: List;
    try {
      list = await transport.request<List>(page, signal);
    } catch (error) {
      if (!isTooLarge(error) || onlyMetadata) throw error;
      if (limit > 1) limit = Math.floor(limit / 4) || 1;
      else if (acceptMetadata === undefined) throw error;
      else onlyMetadata = true;
      continue;
    }
    // Callers see that the object is larger than it looks.
    if (onlyMetadata) list = { ...list, lengths: (list.items ?? []).map(() => MAX_CHARACTERS + 1) };
    yield list;
    onlyMetadata = false;
    limit = nextLimit(limit, list);
    next = list?.metadata?.continue;
    if (!next) return;
  }
}

export const isTooLarge = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.reason === "TooLarge";

/** At most twice as many as before, and fewer if the page was large. */
function nextLimit(limit: number, list: List | undefined): number {
  const characters = (list?.lengths ?? []).reduce((sum, each) => sum + each, 0);
  const fitting = characters === 0 ? Number.POSITIVE_INFINITY : Math.floor((limit * AIM) / characters);
  return Math.max(1, Math.min(PAGE_SIZE, 2 * limit, fitting));
}
