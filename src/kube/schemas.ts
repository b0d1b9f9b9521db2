/**
 * A resource comes in, its OpenAPI v3 schema goes out, as the API server publishes it now. A document is fetched again
 * only when the hash in its address changes.
 */
import { apiVersionOf, type Resource } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { CONTROLLER } from "./identity.ts";
import type { Transport } from "./transport.ts";

export interface KindSchema {
  root: OpenApiSchema;
  /** Follows `#/components/schemas/X`. */
  resolve(ref: string): OpenApiSchema | undefined;
}

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

interface Document {
  url: string;
  schemas: Promise<Record<string, OpenApiSchema & { "x-kubernetes-group-version-kind"?: GroupVersionKind[] }>>;
}

interface GroupVersionKind {
  group: string;
  version: string;
  kind: string;
}

/** How long the index of hashes is believed. */
const INDEX_LIVES_MS = 5_000;
/** For how long, where a group is missing in it: its CRD may have been installed just now. */
const NEW_LIVES_MS = 500;
const PREFIX = "#/components/schemas/";

export class Schemas {
  readonly #transport: Transport;
  readonly #documents = new Map<string, Document>();
  #index: { content: Promise<Index>; since: number } | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Undefined for a kind that publishes no schema. */
  async of(resource: Resource): Promise<KindSchema | undefined> {
    const apiVersion = apiVersionOf(resource);
    const key = resource.group === "" ? `api/${apiVersion}` : `apis/${apiVersion}`;
    const url = (await this.#addressOf(key)) ?? (await this.#addressOf(key, NEW_LIVES_MS));
    if (url === undefined) return undefined;
    const schemas = await this.#document(key, url).schemas;
    const root = Object.values(schemas).find((schema) =>
      schema["x-kubernetes-group-version-kind"]?.some(
        (gvk) => gvk.group === resource.group && gvk.version === resource.version && gvk.kind === resource.kind,
      ),
    );
    if (root === undefined) return undefined;
    return { root, resolve: (ref) => (ref.startsWith(PREFIX) ? schemas[ref.slice(PREFIX.length)] : undefined) };
  }

  /** Where a group and version is published, by an index that is not older than that. */
  async #addressOf(key: string, livesMs = INDEX_LIVES_MS): Promise<string | undefined> {
    return (await this.#currentIndex(livesMs)).paths[key]?.serverRelativeURL;
  }

  async #currentIndex(livesMs: number): Promise<Index> {
    if (this.#index === undefined || this.#index.since + livesMs < Date.now()) {
      const content = this.#get<Index>("/openapi/v3");
      this.#index = { content, since: Date.now() };
      content.catch(() => {
        this.#index = undefined;
      });
    }
    return this.#index.content;
  }

  #document(key: string, url: string): Document {
    const known = this.#documents.get(key);
    if (known?.url === url) return known;
    const schemas = this.#get<{ components?: { schemas?: Awaited<Document["schemas"]> } }>(url).then(
      (document) => document.components?.schemas ?? {},
    );
    const document = { url, schemas };
    this.#documents.set(key, document);
    schemas.catch(() => this.#documents.delete(key));
    return document;
  }

  #get<T>(path: string): Promise<T> {
    return this.#transport.request<T>({ method: "GET", path, identity: CONTROLLER });
  }
}
