/**
 * Reads the OpenAPI v3 schemas that the API server publishes. Fetches a document again only when the hash in its
 * address changes, and then calls listeners with the kinds whose schemas changed.
 */
import { Answers } from "../apimachinery/answers.ts";
import { sameJson } from "../apimachinery/json.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { Resource } from "../apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema } from "../apimachinery/openapi.ts";
import { MAX_DEFINITION_CHARACTERS } from "./answer-text.ts";
import { rootOf } from "./client.ts";
import { CONTROLLER } from "./identity.ts";
import type { RequestSender } from "./transport.ts";

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

type Components = Record<string, OpenApiSchema>;

interface Document {
  /** Undefined if it is not published yet, or could not be fetched again. */
  url: string | undefined;
  /** The schemas that were published last. */
  schemas: Promise<Components>;
}

/** Called with a group and version, and a test for kinds whose schema changed. */
type SchemaListener = (apiVersion: string, isChanged: (kind: string) => boolean) => void;

/** How long the index of hashes is used. */
const INDEX_LIVES_MS = 5_000;
/** How long it is used if it lacks a group: the group's CRD may have just been installed. */
const NEW_LIVES_MS = 500;
const INDEX = "/openapi/v3";
const PREFIX = "#/components/schemas/";

export class Schemas {
  readonly #transport: RequestSender;
  readonly #documents = new Map<string, Document>();
  readonly #listeners: SchemaListener[] = [];
  readonly #index = new Answers<typeof INDEX, Index>(1);
  #revision = 0;

  constructor(transport: RequestSender) {
    this.#transport = transport;
  }

  /**
   * The schema of a kind, as published last. A starting API server serves kinds of CRDs before it publishes their
   * schemas. Undefined for a kind without a schema. Throws ApiError.
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

  /** Listeners are called only for groups and versions of schemas that were read before. */
  onChange(listener: SchemaListener): void {
    this.#listeners.push(listener);
  }

  /** Changes when a document that was read before has been fetched again, because it changed. */
  get revision(): number {
    return this.#revision;
  }

  /** Fetches all changed documents that were read before. Throws ApiError. */
  async refresh(): Promise<void> {
    await this.#refresh(0);
  }

  /**
   * Like `refresh`, unless the hashes were read in the last 500 ms. Returns whether a document has changed since the `revision`, also if
   * another caller has fetched it. Throws ApiError.
   */
  async renew(revision: number): Promise<boolean> {
    await this.#refresh(NEW_LIVES_MS);
    return this.#revision !== revision;
  }

  async #refresh(livesMs: number): Promise<void> {
    const { paths } = await this.#indexOf(livesMs);
    const published = [...this.#documents.keys()].flatMap((key) => {
      const url = paths[key]?.serverRelativeURL;
      return url === undefined ? [] : this.#document(key, url).schemas;
    });
    await Promise.all(published);
  }

  /**
   * The addresses of a group's documents, by version. An address changes with its document. `isNew`: use an index of at
   * most 500 ms.
   */
  async addressesIn(group: string, isNew: boolean): Promise<Map<string, string>> {
    const prefix = `apis/${group}/`;
    const { paths } = await this.#indexOf(isNew ? NEW_LIVES_MS : INDEX_LIVES_MS);
    const published = Object.entries(paths).filter(([key]) => key.startsWith(prefix));
    return new Map(published.map(([key, { serverRelativeURL }]) => [key.slice(prefix.length), serverRelativeURL]));
  }

  /** The address of a group and version, by an index that is not older than `livesMs`. */
  async #addressOf(key: string, livesMs = INDEX_LIVES_MS): Promise<string | undefined> {
    return (await this.#indexOf(livesMs)).paths[key]?.serverRelativeURL;
  }

  #indexOf(livesMs: number): Promise<Index> {
    return this.#index.get(INDEX, livesMs, () => this.#get<Index>(INDEX));
  }

  #lastDocument(key: string): Document {
    return getOrInsert(this.#documents, key, () => ({ url: undefined, schemas: Promise.resolve({}) }));
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
      async (now) => {
        if (before === undefined) return;
        this.#revision++;
        this.#changed(key, changesOf(await before, now));
      },
      () => {
        if (this.#documents.get(key) !== document) return;
        // The next document is compared with the last one that was published.
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
    const maxCharacters = MAX_DEFINITION_CHARACTERS;
    return this.#transport.request<T>({ method: "GET", path, identity: CONTROLLER, maxCharacters });
  }
}

/** Which kinds of a document changed: all, if a type changed that kinds may share; undefined if none changed. */
function changesOf(before: Components | undefined, now: Components): ((kind: string) => boolean) | undefined {
  if (before === undefined) return () => true;
  const changed = Object.entries({ ...now, ...before }).filter(([name]) => !sameJson(before[name], now[name]));
  const kindsOf = (schema: OpenApiSchema) => schema["x-kubernetes-group-version-kind"]?.map(({ kind }) => kind) ?? [];
  const kinds = new Set(changed.flatMap(([, schema]) => kindsOf(schema)));
  const isShared = changed.some(([name, schema]) => Object.hasOwn(before, name) && kindsOf(schema).length === 0);
  return changed.length === 0 ? undefined : (kind) => isShared || kinds.has(kind);
}
