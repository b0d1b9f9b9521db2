/**
 * A resource comes in, its OpenAPI v3 schema goes out, as the API server publishes it now. A document is fetched again
 * only when the hash in its address changes.
 */
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

interface Document {
  url: string;
  schemas: Promise<Record<string, OpenApiSchema>>;
}

/** How long the index of hashes is believed. */
const INDEX_LIVES_MS = 5_000;
/** For how long, where a group is missing in it: its CRD may have been installed just now. */
const NEW_LIVES_MS = 500;
const PREFIX = "#/components/schemas/";

export class Schemas {
  readonly #transport: Pick<Transport, "request">;
  readonly #documents = new Map<string, Document>();
  #index: { content: Promise<Index>; since: number } | undefined;

  constructor(transport: Pick<Transport, "request">) {
    this.#transport = transport;
  }

  /** Undefined for a kind that publishes no schema. */
  async of(resource: Resource): Promise<KindSchema | undefined> {
    const key = rootOf(resource).slice(1);
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
    if (this.#index === undefined || this.#index.since + livesMs < Date.now()) {
      const content = this.#get<Index>("/openapi/v3");
      this.#index = { content, since: Date.now() };
      content.catch(() => {
        this.#index = undefined;
      });
    }
    return (await this.#index.content).paths[key]?.serverRelativeURL;
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
