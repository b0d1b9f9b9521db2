/**
 * Finds the version of a kind in which a write loses no fields. If versions have no conversion (strategy `None`), each
 * write drops the fields that the schema of the request's version or of the stored version lacks. So the schemas are
 * compared whenever they change.
 */
import { createHash } from "node:crypto";
import { Answers } from "../apimachinery/answers.ts";
import { BoundedMap, getOrInsert } from "../apimachinery/maps.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { apiVersionOf, type KubeObject, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import { droppedPaths, lacksFields } from "../transform/dropped-fields.ts";
import { isNotFound, isStatus } from "./api-error.ts";
import { METADATA_ONLY, pathOf } from "./client.ts";
import { listedKind } from "./discovery.ts";
import { CONTROLLER, type Identity } from "./identity.ts";
import type { Schemas } from "./schemas.ts";
import type { RequestSender } from "./transport.ts";

interface Version extends KindSchema {
  name: string;
}

/** What a writer must know about the served versions of a kind. */
interface Versions {
  /** The versions in which a write drops fields of other versions. */
  dropping: ReadonlyMap<string, { own: Version; others: readonly Version[] }>;
  /** The versions with fields that the stored version lacks. */
  unstored: ReadonlyMap<string, Version>;
  /** A version that drops nothing. */
  whole: string | undefined;
  /** The version in which objects are stored, if known. */
  stored: Version | undefined;
  /** Whether the conversion strategy is known to be `None`. */
  isKnown: boolean;
}

interface Crd extends KubeObject {
  spec: {
    conversion?: { strategy?: string };
    preserveUnknownFields?: boolean;
    versions: { name: string; served: boolean; storage: boolean; schema?: { openAPIV3Schema?: OpenApiSchema } }[];
  };
}

/** The limit of paths in a message. */
const MAX_NAMED = 5;

const NOTHING_DROPS: Versions = {
  dropping: new Map(),
  unstored: new Map(),
  whole: undefined,
  stored: undefined,
  isKnown: true,
};

/** Compares the versions of a CustomResourceDefinition. */
function versionsIn({ spec }: Crd): Versions {
  if ((spec.conversion?.strategy ?? "None") !== "None" || spec.preserveUnknownFields) return NOTHING_DROPS;
  const all = spec.versions.map(({ name, schema, served, storage }) => {
    return { name, root: schema?.openAPIV3Schema ?? {}, resolve: () => undefined, served, storage };
  });
  const served = all.filter((each) => each.served);
  const stored = all.find(({ storage }) => storage);
  return compared(served, stored, true);
}

/** Compares served versions. `isKnown`: their conversion strategy is known to be `None`. */
function compared(all: readonly Version[], stored: Version | undefined, isKnown: boolean): Versions {
  const drops = (by: Version | undefined, other: Version) => by !== undefined && by !== other && lacksFields(by, other);
  const found = all.map((own) => ({ own, others: all.filter((other) => drops(own, other) || drops(stored, other)) }));
  const unstored = new Map(all.flatMap((own) => (drops(stored, own) ? [[own.name, own] as const] : [])));
  const dropping = new Map(found.filter(({ others }) => others.length > 0).map((each) => [each.own.name, each]));
  return { dropping, unstored, whole: all.find(({ name }) => !dropping.has(name))?.name, stored, isKnown };
}

/** The paths of the object that a write in version `own` would drop. `views`: the object in several versions. */
function lostIn(own: Version, views: ReadonlyMap<Version, KubeObject>, stored: Version | undefined): string[] {
  const drops = (by: Version | undefined, other: Version, object: KubeObject) =>
    by === undefined || by === other ? [] : [...droppedPaths(object, by, other)];
  const lost = [...views].flatMap(([other, object]) => [...drops(own, other, object), ...drops(stored, other, object)]);
  return [...new Set(lost)];
}

/**
 * The problem of a write that would drop fields of the object. `lacking`: the names of the versions that have to get the
 * fields if no version has them all.
 */
function dropsFields(
  { resource }: Pick<ObjectRef, "resource">,
  lost: readonly string[],
  better: Version | undefined,
  lacking: readonly string[],
  isKnown: boolean,
): Problem {
  const what = `the object has ${firstOf(lost, MAX_NAMED)}`;
  const why = `which any write in ${apiVersionOf(resource)} removes, because the versions of the kind have no conversion`;
  const then = better
    ? `name apiVersion: ${apiVersionOf({ ...resource, version: better.name })} in the binding`
    : addTo(resource, lacking);
  const unknown = isKnown
    ? ""
    : `. If a webhook converts the versions, allow Inlay's own account to get customresourcedefinitions/${resource.plural}.${resource.group}`;
  const message = `${what}, ${why}. Nothing was written; ${then}, or remove the fields from the object${unknown}`;
  return new Problem("VersionDropsFields", message);
}

/** Another storage version is no advice: with the next write of an object, the API server drops what that one lacks. */
function addTo(resource: Resource, versions: readonly string[]): string {
  const named = versions.map((version) => apiVersionOf({ ...resource, version })).join(" and ");
  return `add the fields to the schema of ${named} in the CRD`;
}

/** The written paths that the stored version drops. */
function unstoredIn(written: readonly object[], version: string, { unstored, stored }: Versions): string[] {
  const own = unstored.get(version);
  return own === undefined || stored === undefined
    ? []
    : written.flatMap((each) => [...droppedPaths(each, stored, own)]);
}

/** The problem of a write of fields that the stored version lacks. */
function notStored({ resource }: Pick<ObjectRef, "resource">, lost: readonly string[], stored: Version): Problem {
  const storage = apiVersionOf({ ...resource, version: stored.name });
  const what = `${firstOf(lost, MAX_NAMED)}: the API server stores the kind as ${storage}, which lacks these fields`;
  const then = `remove the fields from the binding, or ${addTo(resource, [stored.name])}`;
  return new Problem("VersionDropsFields", `${what}. Nothing was written; ${then}`);
}

/** The content of a CustomResourceDefinition; `versions` is undefined if Inlay may not read it. */
interface Answer {
  uid?: string;
  generation?: number | undefined;
  versions: Versions | undefined;
}

/** What the published schemas show, without a CustomResourceDefinition. */
interface Published {
  addresses: string;
  /** Empty if no version lacks fields of another. */
  published: Promise<Version[]>;
  /** By the names of the stored version and those that are served. */
  versions: Map<string, Versions>;
}

/**
 * How long an answer is used: for the lookup of a kind, and for a write. An API server needs as long to apply a change.
 */
const FOUND_LIVES_MS = 5_000;
const WRITE_LIVES_MS = 50;
/** The limit of cached kinds; the oldest are dropped. */
const MAX_KNOWN = 1_000;

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** Inlay's own kinds have one version. */
const OURS = "inlay.dev";

export class WriteVersions {
  readonly #transport: RequestSender;
  readonly #schemas: Pick<Schemas, "of" | "addressesIn">;
  readonly #mayReadCrds: boolean;
  readonly #crds = new Answers<string, Answer>(MAX_KNOWN);
  /** The last CRD that was found for each path, whether its answer counts or not: while its generation stays, it need not be read whole. */
  readonly #last = new BoundedMap<string, Answer>(MAX_KNOWN);
  readonly #published = new BoundedMap<string, Published>(MAX_KNOWN);

  /**
   * Without permission to read CustomResourceDefinitions, it uses the published schemas, which change a moment later.
   */
  constructor(transport: RequestSender, schemas: Pick<Schemas, "of" | "addressesIn">, mayReadCrds: boolean) {
    this.#transport = transport;
    this.#schemas = schemas;
    this.#mayReadCrds = mayReadCrds;
  }

  /** The kind in a version that drops nothing, if there is one and the kind's own version drops fields. */
  async wholeOf(resource: Resource): Promise<Resource> {
    const { dropping, whole = resource.version } = await this.#versionsOf(resource, FOUND_LIVES_MS);
    if (dropping.size === 0) return resource;
    return { ...resource, version: dropping.has(resource.version) ? whole : resource.version, hasLossyVersions: true };
  }

  /**
   * Checks before a write whether the object loses no fields in the version of `ref`, and whether everything `written`
   * would be stored. Returns the resourceVersion that this holds for; undefined if it holds for all. Throws Problem and
   * ApiError.
   */
  async assertKeepsAll(
    identity: Identity,
    ref: Omit<ObjectRef, "name"> & { name?: string },
    written: readonly object[] = [],
  ): Promise<string | undefined> {
    const { resource, namespace, name } = ref;
    const versions = await this.#versionsOf(resource, WRITE_LIVES_MS);
    const unstored = versions.isKnown ? unstoredIn(written, resource.version, versions) : [];
    if (unstored.length > 0) throw notStored(ref, unstored, versions.stored as Version);
    const found = versions.dropping.get(resource.version);
    if (found === undefined) return undefined;
    if (versions.whole !== undefined)
      throw new Problem("Unavailable", `the versions of ${resource.kind} have changed; Inlay retries`);
    if (name === undefined) return undefined;
    const views = new Map<Version, KubeObject>();
    for (const other of found.others) {
      const path = pathOf({ ...resource, version: other.name }, namespace, name);
      const object = await this.#find<KubeObject>(path, { identity });
      if (object === undefined) return undefined;
      views.set(other, object);
    }
    const lost = lostIn(found.own, views, versions.stored);
    // The first of several reads: if the object changed in between, the write is a conflict.
    const [first] = views.values();
    if (lost.length === 0) return first?.metadata.resourceVersion;
    if (!versions.isKnown && (await this.#byCrd(resource, WRITE_LIVES_MS))?.dropping.size === 0) return undefined;
    const better = found.others.find((other) => lostIn(other, views, versions.stored).length === 0);
    const { stored = found.own } = versions;
    const lacking = [...new Set([found.own, stored])].filter((each) => lostIn(each, views, undefined).length > 0);
    throw dropsFields(
      ref,
      lost,
      better,
      lacking.map((each) => each.name),
      versions.isKnown,
    );
  }

  /** Requests what writes in the next moment depend on, so that they need not wait for it. If that fails, the write reports it. */
  expectWrite(resource: Resource): void {
    if (this.#mayReadCrds && mayDropFields(resource)) this.#byCrd(resource, WRITE_LIVES_MS).catch(() => {});
  }

  async #versionsOf(resource: Resource, livesMs: number): Promise<Versions> {
    if (!mayDropFields(resource)) return NOTHING_DROPS;
    const byCrd = this.#mayReadCrds ? await this.#byCrd(resource, livesMs) : undefined;
    return byCrd ?? (await this.#byPublished(resource, livesMs));
  }

  /** Undefined if Inlay may not read it. */
  async #byCrd({ plural, group }: Resource, livesMs: number): Promise<Versions | undefined> {
    const path = `${CRDS}/${plural}.${group}`;
    return (await this.#crds.get(path, livesMs, () => this.#readCrd(path))).versions;
  }

  /** An unchanged generation means an unchanged answer. Reading only that takes little. */
  async #readCrd(path: string): Promise<Answer> {
    const last = this.#last.get(path);
    try {
      if (last?.uid !== undefined) {
        // From the API server's cache, which shows a change before the API server applies it.
        const now = await this.#find<KubeObject>(`${path}?resourceVersion=0`, { accept: METADATA_ONLY });
        if (now?.metadata.uid === last.uid && now.metadata.generation === last.generation) return last;
      }
      const crd = await this.#find<Crd>(path);
      // Kinds of an aggregated API server, which converts its versions itself.
      if (crd === undefined) return { versions: NOTHING_DROPS };
      const { uid, generation } = crd.metadata;
      const answer = { uid, generation, versions: versionsIn(crd) };
      this.#last.set(path, answer);
      return answer;
    } catch (error) {
      if (isStatus(error, 403)) return { versions: undefined };
      throw error;
    }
  }

  async #byPublished(resource: Resource, livesMs: number): Promise<Versions> {
    const found = await this.#schemas.addressesIn(resource.group, livesMs < FOUND_LIVES_MS);
    if (found.size < 2) return NOTHING_DROPS;
    const key = `${resource.group}/${resource.kind}`;
    const addresses = [...found].join();
    let known = this.#published.get(key);
    if (known?.addresses !== addresses) {
      known = { addresses, published: this.#publishedIn(resource, [...found.keys()]), versions: new Map() };
      this.#published.set(key, known);
    }
    try {
      const published = await known.published;
      if (published.length === 0) return NOTHING_DROPS;
      const { served, stored } = await this.#discovered(resource, published);
      const names = [stored?.name, ...served.map(({ name }) => name)].join();
      return getOrInsert(known.versions, names, () => compared(served, stored, false));
    } catch (error) {
      if (this.#published.get(key) === known) this.#published.delete(key);
      throw error;
    }
  }

  async #publishedIn(resource: Resource, versions: readonly string[]): Promise<Version[]> {
    const read = async (version: string): Promise<Version[]> => {
      const schema = await this.#schemas.of({ ...resource, version });
      return schema === undefined ? [] : [{ name: version, ...schema }];
    };
    const published = (await Promise.all(versions.map(read))).flat();
    return compared(published, undefined, false).dropping.size === 0 ? [] : published;
  }

  /**
   * Of the published versions, those that discovery lists, and the stored one by its hash there. The API server goes on publishing the
   * schema of a version that was removed from its CustomResourceDefinition.
   */
  async #discovered(
    resource: Resource,
    published: readonly Version[],
  ): Promise<{ served: Version[]; stored: Version | undefined }> {
    const look = async (version: Version) => {
      const entry = await listedKind(this.#transport, { ...resource, version: version.name });
      return entry === undefined ? [] : [{ version, hash: entry.storageVersionHash }];
    };
    const found = (await Promise.all(published.map(look))).flat();
    const isStored = ({ version: { name }, hash }: (typeof found)[number]) =>
      hashOf(`${resource.group}/${name}/${resource.kind}`) === hash;
    return { served: found.map(({ version }) => version), stored: found.find(isStored)?.version };
  }

  /** Undefined if there is no such object. */
  async #find<T>(path: string, more: { identity?: Identity; accept?: string } = {}): Promise<T | undefined> {
    try {
      return await this.#transport.request<T>({ method: "GET", path, identity: CONTROLLER, ...more });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** The API server accepts no CustomResourceDefinition of a group without a dot: such groups are built in. */
export const mayDropFields = ({ group }: Resource) => group.includes(".") && group !== OURS;

/** The hash as the API server computes it. */
const hashOf = (kind: string) => createHash("sha256").update(kind).digest().subarray(0, 8).toString("base64");
