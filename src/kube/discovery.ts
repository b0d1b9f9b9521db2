/** Finds resources by kind or plural, as the API server serves them. */
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

/** How long an answer is used. A missing kind is looked up again soon: its CRD may be about to be installed. */
const FOUND_LIVES_MS = 300_000;
const MISSING_LIVES_MS = 1_000;

/** The limit of cached groups and versions; the oldest are dropped. */
const MAX_KNOWN = 1_000;

export class Discovery {
  readonly #transport: Pick<Transport, "request">;
  readonly #inVersion: (resource: Resource) => Promise<Resource>;
  #groups: { versions: Promise<Set<string>>; until: number } | undefined;
  readonly #versions = new Map<string, { resources: Promise<Resource[]>; until: number }>();

  /** `inVersion` returns the resource in the version to use, which may not be the named one. */
  constructor(transport: Pick<Transport, "request">, inVersion = async (resource: Resource) => resource) {
    this.#transport = transport;
    this.#inVersion = inVersion;
  }

  async byKind(apiVersion: string, kind: string): Promise<Resource | undefined> {
    const found = await this.#find(apiVersion, (resource) => resource.kind === kind);
    return found && this.#inVersion(found);
  }

  /** The kind in the named version, even if that version lacks fields. */
  byKindAsNamed(apiVersion: string, kind: string): Promise<Resource | undefined> {
    return this.#find(apiVersion, (resource) => resource.kind === kind);
  }

  async byPlural(apiVersion: string, plural: string): Promise<Resource | undefined> {
    return this.#find(apiVersion, (resource) => resource.plural === plural);
  }

  /** The kind in any served version of the group of `apiVersion`, the preferred version first. */
  async byKindInGroup(apiVersion: string, kind: string): Promise<Resource | undefined> {
    const { group } = parseApiVersion(apiVersion);
    if (group === "") return undefined;
    for (const served of await this.#versionsOf(group)) {
      // The group lists this version now, so a cached answer without the kind is outdated.
      const found = (await this.byKind(served, kind)) ?? (await this.#servedKind(served, kind));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Drops the cached answer for a group and version, after the server said that it does not serve them. */
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

  /** One list of all groups serves all callers, so an unknown group in a binding costs no request. */
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
