/** A kind or a plural comes in, the resource as the API server serves it goes out; undefined when it serves none. */
import { setNewest } from "../apimachinery/newest.ts";
import { parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import { isStatus } from "./api-error.ts";
import { rootOf } from "./client.ts";
import { CONTROLLER } from "./identity.ts";
import type { Transport } from "./transport.ts";

type ApiResource = Pick<Resource, "kind" | "namespaced"> & { name: string };

interface ApiGroup {
  preferredVersion: { groupVersion: string };
  versions: { groupVersion: string }[];
}

/** How long an answer holds. A kind that is not there yet is asked for again soon: its CRD may be on its way. */
const FOUND_LIVES_MS = 300_000;
const MISSING_LIVES_MS = 1_000;

/** So many are kept; what was asked for first goes first. */
const MAX_KNOWN = 1_000;

export class Discovery {
  readonly #transport: Pick<Transport, "request">;
  readonly #inVersion: (resource: Resource) => Promise<Resource>;
  #groups: { versions: Promise<Set<string>>; until: number } | undefined;
  readonly #versions = new Map<string, { resources: Promise<Resource[]>; until: number }>();

  /** `inVersion` says in which version a kind is used that is named in some version. */
  constructor(transport: Pick<Transport, "request">, inVersion = async (resource: Resource) => resource) {
    this.#transport = transport;
    this.#inVersion = inVersion;
  }

  async byKind(apiVersion: string, kind: string): Promise<Resource | undefined> {
    const found = await this.#find(apiVersion, (resource) => resource.kind === kind);
    return found && this.#inVersion(found);
  }

  /** In the version that is named, though it may not show all fields. */
  byKindAsNamed(apiVersion: string, kind: string): Promise<Resource | undefined> {
    return this.#find(apiVersion, (resource) => resource.kind === kind);
  }

  async byPlural(apiVersion: string, plural: string): Promise<Resource | undefined> {
    return this.#find(apiVersion, (resource) => resource.plural === plural);
  }

  /** In any version that the group of `apiVersion` is served in, the preferred one first. */
  async byKindInGroup(apiVersion: string, kind: string): Promise<Resource | undefined> {
    const { group } = parseApiVersion(apiVersion);
    if (group === "") return undefined;
    for (const served of await this.#versionsOf(group)) {
      // The group says now that it is served, whatever was said a moment ago.
      const found = (await this.byKind(served, kind)) ?? (await this.#servedKind(served, kind));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Forgets what is known of a group and version, after the server denied knowing it. */
  forget(apiVersion: string): void {
    this.#versions.delete(apiVersion);
  }

  async #servedKind(apiVersion: string, kind: string): Promise<Resource | undefined> {
    const { resources } = this.#load(apiVersion, () => this.#resourcesOf(apiVersion));
    const found = (await resources).find((resource) => resource.kind === kind);
    return found && this.#inVersion(found);
  }

  async #find(apiVersion: string, matches: (resource: Resource) => boolean): Promise<Resource | undefined> {
    const known = this.#versions.get(apiVersion);
    const fresh = known !== undefined && known.until > Date.now() ? known : this.#load(apiVersion);
    const found = (await fresh.resources).find(matches);
    if (found === undefined) fresh.until = Math.min(fresh.until, Date.now() + MISSING_LIVES_MS);
    return found;
  }

  /** By one list of all groups for all who ask: whatever bindings name costs no request each. */
  async #isServed(apiVersion: string): Promise<boolean> {
    if (this.#groups === undefined || this.#groups.until < Date.now()) {
      const versions = this.#get<{ groups: ApiGroup[] }>("/apis").then(
        ({ groups }) => new Set(groups.flatMap((each) => each.versions.map(({ groupVersion }) => groupVersion))),
      );
      this.#groups = { versions, until: Date.now() + MISSING_LIVES_MS };
      versions.catch(() => {
        this.#groups = undefined;
      });
    }
    return (await this.#groups.versions).has(apiVersion);
  }

  async #versionsOf(group: string): Promise<string[]> {
    const served = await this.#getIfServed<ApiGroup>(`/apis/${group}`);
    if (served === undefined) return [];
    return [...new Set([served.preferredVersion, ...served.versions].map(({ groupVersion }) => groupVersion))];
  }

  #load(apiVersion: string, fetch = () => this.#fetch(apiVersion)): { resources: Promise<Resource[]>; until: number } {
    const entry = { resources: fetch(), until: Date.now() + FOUND_LIVES_MS };
    setNewest(this.#versions, apiVersion, entry, MAX_KNOWN);
    entry.resources.catch(() => {
      if (this.#versions.get(apiVersion) === entry) this.#versions.delete(apiVersion);
    });
    return entry;
  }

  async #fetch(apiVersion: string): Promise<Resource[]> {
    const { group } = parseApiVersion(apiVersion);
    return group === "" || (await this.#isServed(apiVersion)) ? this.#resourcesOf(apiVersion) : [];
  }

  async #resourcesOf(apiVersion: string): Promise<Resource[]> {
    const of = parseApiVersion(apiVersion);
    const { resources = [] } = (await this.#getIfServed<{ resources: ApiResource[] }>(rootOf(of))) ?? {};
    const names = new Set(resources.map(({ name }) => name));
    return resources
      .filter(({ name }) => !name.includes("/"))
      .map(({ name, kind, namespaced }) => {
        return { ...of, kind, namespaced, plural: name, hasStatus: names.has(`${name}/status`) };
      });
  }

  #get<T>(path: string): Promise<T> {
    return this.#transport.request<T>({ method: "GET", path, identity: CONTROLLER });
  }

  async #getIfServed<T>(path: string): Promise<T | undefined> {
    try {
      return await this.#get<T>(path);
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }
}
