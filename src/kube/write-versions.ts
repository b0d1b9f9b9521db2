/**
 * A kind comes in, or an object that is to be written; the version that loses none of its fields goes out, or why there is none.
 *
 * Where versions of a kind convert by `None`, the API server drops with every write what the schema of the request's version lacks,
 * and what that of the stored version lacks. So the schemas are compared, once for each change of them.
 */
import { createHash } from "node:crypto";
import { setNewest } from "../apimachinery/newest.ts";
import type { KubeObject, ObjectRef, Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { isNotFound, isStatus } from "./api-error.ts";
import { METADATA_ONLY, pathOf, rootOf } from "./client.ts";
import { CONTROLLER, type Identity } from "./identity.ts";
import type { Schemas } from "./schemas.ts";
import type { Transport } from "./transport.ts";
import {
  type Crd,
  compared,
  dropsFields,
  lostIn,
  NOTHING_DROPS,
  notStored,
  unstoredIn,
  type Version,
  type Versions,
  versionsIn,
} from "./version-comparison.ts";

/** What was read of a CustomResourceDefinition; `versions` is undefined where it may not be read. */
interface Answer {
  uid?: string;
  generation?: number | undefined;
  versions: Versions | undefined;
}

interface Known {
  /** When the answer was asked for. */
  since: number;
  answer: Promise<Answer>;
  /** The last that came. */
  last: Answer | undefined;
}

/** What is known without a CustomResourceDefinition. */
interface Published {
  addresses: string;
  /** Empty if none lacks what another has. */
  served: Promise<Version[]>;
  versions: Map<string, Versions>;
}

/** For how long an answer is believed where a kind is looked for, and where one is about to write. An API server needs as long to heed a change. */
const FOUND_LIVES_MS = 5_000;
const WRITE_LIVES_MS = 50;
/** So many kinds are kept; what was asked for first goes first. */
const MAX_KNOWN = 1_000;

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** Kinds of ours are written in their only version. */
const OURS = "inlay.dev";

export class WriteVersions {
  readonly #transport: Pick<Transport, "request">;
  readonly #schemas: Pick<Schemas, "of" | "addressesIn">;
  readonly #mayReadCrds: boolean;
  readonly #crds = new Map<string, Known>();
  readonly #published = new Map<string, Published>();

  /** Without the right to read CustomResourceDefinitions, it goes by what the API server publishes a moment later. */
  constructor(
    transport: Pick<Transport, "request">,
    schemas: Pick<Schemas, "of" | "addressesIn">,
    mayReadCrds: boolean,
  ) {
    this.#transport = transport;
    this.#schemas = schemas;
    this.#mayReadCrds = mayReadCrds;
  }

  /** The kind in a version that drops nothing, if its own does, and there is one. */
  async wholeOf(resource: Resource): Promise<Resource> {
    const { dropping, whole = resource.version } = await this.#versionsOf(resource, FOUND_LIVES_MS);
    if (dropping.size === 0) return resource;
    return { ...resource, version: dropping.has(resource.version) ? whole : resource.version, hasLossyVersions: true };
  }

  /**
   * Looks before a write whether the object, or one that is made, loses nothing in the version of `ref`, and whether all that is
   * `written` would be stored. Returns the resourceVersion that this is true for; undefined where it is for all. Throws Problem, and
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
      throw new Problem("Unavailable", `the versions of ${resource.kind} have changed; it is tried again`);
    if (name === undefined) return undefined;
    const views = new Map<Version, KubeObject>();
    for (const other of found.others) {
      const path = pathOf({ ...resource, version: other.name }, namespace, name);
      const object = await this.#find<KubeObject>(path, { identity });
      if (object === undefined) return undefined;
      views.set(other, object);
    }
    const lost = lostIn(found.own, views, versions.stored);
    // Of several reads the first: an object that changed in between has another one by now.
    const [first] = views.values();
    if (lost.length === 0) return first?.metadata.resourceVersion;
    if (!versions.isKnown && (await this.#byCrd(resource, WRITE_LIVES_MS))?.dropping.size === 0) return undefined;
    const better = found.others.find((other) => lostIn(other, views, versions.stored).length === 0);
    throw dropsFields(ref, lost, better, versions.isKnown);
  }

  async #versionsOf(resource: Resource, livesMs: number): Promise<Versions> {
    const { group } = resource;
    // The API server takes no CustomResourceDefinition of a group without a dot: those are its own.
    if (!group.includes(".") || group === OURS) return NOTHING_DROPS;
    const byCrd = this.#mayReadCrds ? await this.#byCrd(resource, livesMs) : undefined;
    return byCrd ?? (await this.#byPublished(resource, livesMs));
  }

  /** Undefined where it may not be read. */
  async #byCrd({ plural, group }: Resource, livesMs: number): Promise<Versions | undefined> {
    const name = `${plural}.${group}`;
    const known = this.#crds.get(name);
    if (known !== undefined && known.since + livesMs > Date.now()) return (await known.answer).versions;
    // What has not come yet is not waited for: it may be slow, and is older than what comes next.
    const answer = this.#readCrd(`${CRDS}/${name}`, known?.last);
    const next: Known = { since: Date.now(), answer, last: known?.last };
    setNewest(this.#crds, name, next, MAX_KNOWN);
    try {
      next.last = await answer;
      return next.last.versions;
    } catch (error) {
      if (this.#crds.get(name) === next) this.#crds.delete(name);
      throw error;
    }
  }

  /** What is known is true while the generation is the same, which is a small answer. */
  async #readCrd(path: string, last: Answer | undefined): Promise<Answer> {
    try {
      if (last?.uid !== undefined) {
        // From the API server's memory, which knows of a change before the API server heeds it.
        const now = await this.#find<KubeObject>(`${path}?resourceVersion=0`, { accept: METADATA_ONLY });
        if (now?.metadata.uid === last.uid && now.metadata.generation === last.generation) return last;
      }
      const crd = await this.#find<Crd>(path);
      // What an API server of somebody else's serves, that converts.
      if (crd === undefined) return { versions: NOTHING_DROPS };
      const { uid, generation } = crd.metadata;
      return { uid, generation, versions: versionsIn(crd) };
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
      known = { addresses, served: this.#servedIn(resource, [...found.keys()]), versions: new Map() };
      setNewest(this.#published, key, known, MAX_KNOWN);
    }
    try {
      const served = await known.served;
      if (served.length === 0) return NOTHING_DROPS;
      const stored = await this.#storedOf(resource, served);
      const versions = known.versions.get(stored?.name ?? "") ?? compared(served, stored, false);
      known.versions.set(stored?.name ?? "", versions);
      return versions;
    } catch (error) {
      if (this.#published.get(key) === known) this.#published.delete(key);
      throw error;
    }
  }

  async #servedIn(resource: Resource, versions: readonly string[]): Promise<Version[]> {
    const read = async (version: string): Promise<Version[]> => {
      const schema = await this.#schemas.of({ ...resource, version });
      return schema === undefined ? [] : [{ name: version, ...schema }];
    };
    const served = (await Promise.all(versions.map(read))).flat();
    return compared(served, undefined, false).dropping.size === 0 ? [] : served;
  }

  /** By the hash that discovery has in place of its name. Undefined if it is none of these. */
  async #storedOf(resource: Resource, served: readonly Version[]): Promise<Version | undefined> {
    const list = await this.#find<{ resources?: { name: string; storageVersionHash?: string }[] }>(rootOf(resource));
    const hash = list?.resources?.find(({ name }) => name === resource.plural)?.storageVersionHash;
    return served.find(({ name }) => hashOf(`${resource.group}/${name}/${resource.kind}`) === hash);
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

/** As the API server makes it. */
const hashOf = (kind: string) => createHash("sha256").update(kind).digest().subarray(0, 8).toString("base64");
