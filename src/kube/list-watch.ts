/** Lists and watches objects: pages of a list, and events of a watch. */
import type { KubeObject, Resource } from "../apimachinery/objects.ts";
import { beginningOfEvent, LARGE_CHARACTERS, MAX_CHARACTERS, parseAnswer } from "./answer-text.ts";
import { ApiError } from "./api-error.ts";
import { nameSelector, pages, pathOf } from "./client.ts";
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

/** After so many changes with so many characters in one watch, the next watch asks for metadata only. */
const MAX_LARGE_CHANGES = 8;

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
    const request = {
      path: (page: Record<string, string>) => this.#path(page),
      identity: this.#identity,
      accept: accept(this.#scope.form === "whole", "PartialObjectMetadataList"),
      acceptMetadata: accept(false, "PartialObjectMetadataList"),
      deadlineMs: 30_000,
    };
    for await (const page of pages(this.#transport, request, signal)) {
      const resourceVersion = page?.metadata?.resourceVersion;
      if (resourceVersion === undefined) throw new ApiError(`LIST ${bare(this.#path({}))}`, 0, "BrokenAnswer");
      yield { items: page.items ?? [], resourceVersion };
    }
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
    const read = function* (line: string) {
      return { event: line === "" ? undefined : yield* parse(line, path), length: line.length };
    };
    for await (const { event, length } of this.#transport.lines(request, signal, onOpen, read)) {
      if (event === undefined) continue;
      if (event.type === "ERROR") {
        throw ApiError.fromAnswer(`WATCH ${bare(path)}`, event.object.code ?? 500, JSON.stringify(event.object));
      }
      // An object of which only the metadata was read may be shown in a form that promises no more.
      if (event.type === "BOOKMARK") yield event;
      else yield { ...event, isWhole: isWhole && length <= MAX_CHARACTERS };
      if (form !== "changes" || !isWhole || length < LARGE_CHARACTERS) continue;
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

type ErrorEvent = { type: "ERROR"; object: { code?: number } };

/** Of a line that is too long, only the metadata of its object. */
function* parse(line: string, path: string): Generator<void, WatchEvent | ErrorEvent, void> {
  if (line.length > MAX_CHARACTERS) {
    const event = beginningOfEvent(line);
    if (event === undefined) throw new ApiError(`WATCH ${bare(path)}`, 200, "TooLarge");
    return event as WatchEvent;
  }
  try {
    const event = (yield* parseAnswer(line, "event")) as unknown as WatchEvent | ErrorEvent;
    if (event.type === "ERROR" || event.object.metadata.resourceVersion !== undefined) return event;
  } catch {
    // Thrown below: the parser's message quotes the line.
  }
  throw new ApiError(`WATCH ${bare(path)}`, 0, "BrokenLine");
}
