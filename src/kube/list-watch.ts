/** Lists and watches objects: pages of a list, and events of a watch. */
import { parseJson } from "../apimachinery/json.ts";
import type { KubeObject, Resource } from "../apimachinery/objects.ts";
import { ApiError } from "./api-error.ts";
import { nameSelector, pathOf } from "./client.ts";
import type { Identity } from "./identity.ts";
import type { Transport } from "./transport.ts";

/**
 * The objects to list or watch: all of a kind, those of a namespace, or those of one name (in one or all namespaces);
 * further restricted by labels.
 */
export interface Scope {
  resource: Resource;
  namespace?: string | undefined;
  name?: string;
  labels?: string;
  /** A field selector; not together with a name. */
  fields?: string;
  /** What to get of objects: all of it, only their metadata, or all of it for changes and otherwise their metadata. */
  form: "whole" | "metadata" | "changes";
}

export type WatchEvent =
  | { type: "ADDED" | "MODIFIED" | "DELETED"; object: KubeObject; isWhole?: boolean }
  | { type: "BOOKMARK"; object: { metadata: { resourceVersion: string } } };

export interface Page {
  items: KubeObject[];
  resourceVersion: string;
}

interface List {
  items?: KubeObject[];
  metadata: { resourceVersion: string; continue?: string };
}

const PAGE_SIZE = 500;
/** After so many changes with so many characters in one watch, the next watch asks for metadata only. */
const MAX_LARGE_CHANGES = 8;
export const LARGE_CHARACTERS = 64 * 1024;

/** The part of the transport for lists and watches. */
export type WatchTransport = Pick<Transport, "request" | "lines">;

export class ListWatch {
  readonly #transport: WatchTransport;
  readonly #identity: Identity;
  readonly #scope: Scope;
  /** The last watch ended because it showed too many large changes. */
  #wasLarge = false;

  constructor(transport: WatchTransport, identity: Identity, scope: Scope) {
    this.#transport = transport;
    this.#identity = identity;
    this.#scope = scope;
  }

  /** Every page of a list, all of the same resourceVersion. */
  async *list(signal: AbortSignal): AsyncGenerator<Page, void, void> {
    let next: string | undefined;
    do {
      const request = {
        method: "GET" as const,
        path: this.#path({ limit: String(PAGE_SIZE), ...(next && { continue: next }) }),
        identity: this.#identity,
        accept: accept(this.#scope.form === "whole", "PartialObjectMetadataList"),
        deadlineMs: 30_000,
      };
      const page = await this.#transport.request<List>(request, signal);
      if (page?.metadata?.resourceVersion === undefined)
        throw new ApiError(`LIST ${bare(request.path)}`, 0, "BrokenAnswer");
      yield { items: page.items ?? [], resourceVersion: page.metadata.resourceVersion };
      next = page.metadata.continue;
    } while (next);
  }

  /**
   * Events after `resourceVersion`. Calls `onOpen` when the server has accepted the watch, before the first event.
   * Throws an ERROR event as an ApiError.
   */
  async *watch(
    resourceVersion: string,
    timeoutSeconds: number,
    signal: AbortSignal,
    onOpen: () => void,
  ): AsyncGenerator<WatchEvent, void> {
    const window = { resourceVersion, timeoutSeconds: String(timeoutSeconds) };
    const path = this.#path({ watch: "true", allowWatchBookmarks: "true", ...window });
    const { form } = this.#scope;
    const isWhole = form === "whole" || (form === "changes" && !this.#wasLarge);
    this.#wasLarge = false;
    let large = 0;
    const request = {
      method: "GET" as const,
      path,
      identity: this.#identity,
      accept: accept(isWhole, "PartialObjectMetadata"),
    };
    for await (const line of this.#transport.lines(request, signal, onOpen)) {
      if (line === "") continue;
      const event = parse(line, path);
      if (event.type === "ERROR") {
        throw ApiError.fromAnswer(`WATCH ${bare(path)}`, event.object.code ?? 500, JSON.stringify(event.object));
      }
      yield event.type === "BOOKMARK" ? event : { ...event, isWhole };
      if (form !== "changes" || !isWhole || line.length < LARGE_CHARACTERS) continue;
      this.#wasLarge = ++large >= MAX_LARGE_CHANGES;
      if (this.#wasLarge) return;
    }
  }

  #path(query: Record<string, string>): string {
    const { resource, namespace, name, labels, fields } = this.#scope;
    const parameters = new URLSearchParams(query);
    const fieldSelector = name === undefined ? fields : nameSelector(name);
    if (fieldSelector !== undefined) parameters.set("fieldSelector", fieldSelector);
    if (labels !== undefined) parameters.set("labelSelector", labels);
    return `${pathOf(resource, namespace)}?${parameters}`;
  }
}

const accept = (isWhole: boolean, kind: "PartialObjectMetadata" | "PartialObjectMetadataList") =>
  isWhole ? "application/json" : `application/json;as=${kind};g=meta.k8s.io;v=v1`;

const bare = (path: string) => path.split("?")[0];

function parse(line: string, path: string): WatchEvent | { type: "ERROR"; object: { code?: number } } {
  try {
    const event = parseJson(line) as unknown as ReturnType<typeof parse>;
    if (event.type === "ERROR" || event.object.metadata.resourceVersion !== undefined) return event;
  } catch {
    // Thrown below: the parser's message quotes the line.
  }
  throw new ApiError(`WATCH ${bare(path)}`, 0, "BrokenLine");
}
