/**
 * A resource comes in, its OpenAPI v3 schema goes out, as the API server publishes it now. A document is fetched again
 * only when the hash in its address changes; then listeners learn which kinds have another schema than before.
 */
import { sameJson } from "../apimachinery/json.ts";
import type { Resource } from "../apimachinery/objects.ts";
import type { OpenApiSchema, ResolveRef } from "../apimachinery/openapi.ts";
import { rootOf } from "./client.ts";
import { CONTROLLER } from "./identity.ts";
import type { Transport } from "./transport.ts";

export interface KindSchema {
  root: OpenApiSchema;
  /** Follows `#/components/schemas/X`. */
  resolve: ResolveRef;
}

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

type Components = Record<string, OpenApiSchema>;

interface Document {
  /** Undefined where it was not published yet, or could not be fetched anew. */
  url: string | undefined;
  /** As they were published last. */
  schemas: Promise<Components>;
}

/** Called with a group and version, and which of its kinds have another schema than before. */
export type SchemaListener = (apiVersion: string, isChanged: (kind: string) => boolean) => void;

/** How long the index of hashes is believed. */
const INDEX_LIVES_MS = 5_000;
/** For how long, where a group is missing in it: its CRD may have been installed just now. */
const NEW_LIVES_MS = 500;
const PREFIX = "#/components/schemas/";

export class Schemas {
  readonly #transport: Pick<Transport, "request">;
  readonly #documents = new Map<string, Document>();
  readonly #listeners: SchemaListener[] = [];
  #index: { content: Promise<Index>; since: number } | undefined;

  constructor(transport: Pick<Transport, "request">) {
    this.#transport = transport;
  }

  /**
   * The schema of a kind as it was published last. While an API server starts, it serves kinds of CRDs whose schemas it does not
   * publish yet. Undefined for a kind that publishes none. Throws ApiError.
   */
  async of(resource: Resource): Promise<KindSchema | undefined> {
    const key = rootOf(resource).slice(1);
    const url = (await this.#addressOf(key)) ?? (await this.#addressOf(key, NEW_LIVES_MS));
    const schemas = await (url === undefined ? this.#lastDocument(key) : this.#document(key, url)).schemas;
    const root = Object.values(schemas).find((schema) =>
      schema["x-kubernetes-group-version-kind"]?.some(
        (gvk) => gvk.group === resource.group && gvk.version === resource.version && gvk.kind === resource.kind,
      ),
    );
    if (root === undefined) return undefined;
    return { root, resolve: (ref) => (ref.startsWith(PREFIX) ? schemas[ref.slice(PREFIX.length)] : undefined) };
  }

  /** Listeners are called for groups and versions of which a schema was asked for before. */
  onChange(listener: SchemaListener): void {
    this.#listeners.push(listener);
  }

  /** Fetches what was published anew of all that was asked for before. Throws ApiError. */
  async refresh(): Promise<void> {
    const { paths } = await this.#indexOf(0);
    const published = [...this.#documents.keys()].flatMap((key) => {
      const url = paths[key]?.serverRelativeURL;
      return url === undefined ? [] : this.#document(key, url).schemas;
    });
    await Promise.all(published);
  }

  /** The addresses of a group's documents, by version: each changes with its document. `isNew`: by an index of just now. */
  async addressesIn(group: string, isNew: boolean): Promise<Map<string, string>> {
    const prefix = `apis/${group}/`;
    const { paths } = await this.#indexOf(isNew ? NEW_LIVES_MS : INDEX_LIVES_MS);
    const published = Object.entries(paths).filter(([key]) => key.startsWith(prefix));
    return new Map(published.map(([key, { serverRelativeURL }]) => [key.slice(prefix.length), serverRelativeURL]));
  }

  /** Where a group and version is published, by an index that is not older than that. */
  async #addressOf(key: string, livesMs = INDEX_LIVES_MS): Promise<string | undefined> {
    return (await this.#indexOf(livesMs)).paths[key]?.serverRelativeURL;
  }

  #indexOf(livesMs: number): Promise<Index> {
    if (this.#index === undefined || this.#index.since + livesMs <= Date.now()) {
      const content = this.#get<Index>("/openapi/v3");
      this.#index = { content, since: Date.now() };
      content.catch(() => {
        this.#index = undefined;
      });
    }
    return this.#index.content;
  }

  #lastDocument(key: string): Document {
    const document = this.#documents.get(key) ?? { url: undefined, schemas: Promise.resolve({}) };
    this.#documents.set(key, document);
    return document;
  }

  #document(key: string, url: string): Document {
    const known = this.#documents.get(key);
    if (known?.url === url) return known;
    const schemas = this.#get<{ components?: { schemas?: Components } }>(url).then(
      (document) => document.components?.schemas ?? {},
    );
    const document = { url, schemas };
    this.#documents.set(key, document);
    const before = known?.schemas.catch(() => undefined);
    schemas.then(
      async (now) => before && this.#changed(key, changesOf(await before, now)),
      () => {
        if (this.#documents.get(key) !== document) return;
        // The next one is compared with what was published last.
        if (known) this.#documents.set(key, { ...known, url: undefined });
        else this.#documents.delete(key);
      },
    );
    return document;
  }

  #changed(key: string, isChanged: ((kind: string) => boolean) | undefined): void {
    if (isChanged === undefined) return;
    for (const listener of this.#listeners) listener(key.replace(/^apis?\//, ""), isChanged);
  }

  #get<T>(path: string): Promise<T> {
    return this.#transport.request<T>({ method: "GET", path, identity: CONTROLLER });
  }
}

/** Which kinds of a document have another schema: all, where a type changed that several may share; undefined if none has. */
function changesOf(before: Components | undefined, now: Components): ((kind: string) => boolean) | undefined {
  if (before === undefined) return () => true;
  const changed = Object.entries({ ...now, ...before }).filter(([name]) => !sameJson(before[name], now[name]));
  const kindsOf = (schema: OpenApiSchema) => schema["x-kubernetes-group-version-kind"]?.map(({ kind }) => kind) ?? [];
  const kinds = new Set(changed.flatMap(([, schema]) => kindsOf(schema)));
  const isShared = changed.some(([name, schema]) => Object.hasOwn(before, name) && kindsOf(schema).length === 0);
  return changed.length === 0 ? undefined : (kind) => isShared || kinds.has(kind);
}
