/** Finds resources by kind or plural, as the API server serves them. */
import { Answers } from "../apimachinery/answers.ts";
import { type KubeObject, parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { attempt, type KindName, kindAdvice, kindNotFound, type ServedKind } from "./access-error.ts";
import { MAX_DEFINITION_CHARACTERS } from "./answer-text.ts";
import { ifFound } from "./api-error.ts";
import { rootOf } from "./client.ts";
import { CONTROLLER } from "./identity.ts";
import type { RequestSender } from "./transport.ts";

type ApiResource = Pick<Resource, "kind" | "namespaced"> & { name: string };

interface ApiGroup {
  preferredVersion: { groupVersion: string };
  versions: { groupVersion: string }[];
}

/** What a group and version lists of a kind. */
interface ListedKind {
  name: string;
  verbs: readonly string[];
  storageVersionHash?: string;
}

/** A kind that the cluster serves, and what users may do with its objects. */
export interface ServedResource extends ServedKind {
  namespaced: boolean;
  verbs: readonly string[];
}

/** All groups with their kinds, in one answer. */
interface AggregatedGroups {
  items?: { metadata?: { name?: string }; versions: AggregatedVersion[] }[];
}

interface AggregatedVersion {
  version: string;
  resources?: {
    resource: string;
    responseKind?: { kind: string } | null;
    scope?: string;
    verbs?: string[];
  }[];
}

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/** How long the list of all kinds is used. It only serves advice. */
const ALL_LIVE_MS = 10_000;

/** How long an answer is used. A missing kind is looked up again soon: its CRD may be about to be installed. */
const FOUND_LIVES_MS = 300_000;
const MISSING_LIVES_MS = 1_000;

/** The limit of cached groups and versions; the oldest are dropped. */
const MAX_KNOWN = 1_000;

export class Discovery {
  readonly #transport: RequestSender;
  readonly #inVersion: (resource: Resource) => Promise<Resource>;
  /** The groups and versions that are served. */
  readonly #groups = new Answers<"all", Set<string>>(1);
  readonly #kinds = new Answers<"all", ServedKind[] | Problem>(1);
  /** By group and version. */
  readonly #resources = new Answers<string, Resource[]>(MAX_KNOWN);

  /** `inVersion` returns the resource in the version to use, which may not be the named one. */
  constructor(transport: RequestSender, inVersion = async (resource: Resource) => resource) {
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

  /** The Problem of a kind or plural that is not served, with the kind that was probably meant. */
  async kindNotFound(apiVersion: string, wanted: string, by: KindName = "kind"): Promise<Problem> {
    const served = await this.#kinds.get("all", ALL_LIVE_MS, () => attempt(this.allKinds()));
    return kindNotFound(
      apiVersion,
      wanted,
      Array.isArray(served) ? kindAdvice(apiVersion, wanted, by, served) : undefined,
    );
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
    this.#resources.forget(apiVersion);
  }

  async #servedKind(apiVersion: string, kind: string): Promise<Resource | undefined> {
    const resources = await this.#resources.get(apiVersion, 0, () => this.#resourcesOf(apiVersion));
    const found = resources.find((resource) => resource.kind === kind);
    return found && this.#inVersion(found);
  }

  async #find(apiVersion: string, matches: (resource: Resource) => boolean): Promise<Resource | undefined> {
    const findIn = async (withinMs: number) =>
      (await this.#resources.get(apiVersion, withinMs, () => this.#fetch(apiVersion))).find(matches);
    const began = Date.now();
    // What this call has requested itself is new, however long the answer took.
    return (await findIn(FOUND_LIVES_MS)) ?? findIn(Math.max(MISSING_LIVES_MS, Date.now() - began + 1));
  }

  /** One list of all groups serves all callers, so an unknown group in a binding costs no request. */
  async #isServed(apiVersion: string): Promise<boolean> {
    const served = await this.#groups.get("all", MISSING_LIVES_MS, async () => {
      const { groups } = await this.#get<{ groups: ApiGroup[] }>("/apis");
      return new Set(groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => groupVersion)));
    });
    return served.has(apiVersion);
  }

  /** All kinds, in each group the preferred version first. An API server without aggregated discovery answers with no items. */
  async allKinds(): Promise<ServedResource[]> {
    const read = (path: string) => this.#get<AggregatedGroups>(path, AGGREGATED);
    const groups = (await Promise.all(["/api", "/apis"].map(read))).flatMap(({ items = [] }) => items);
    return groups.flatMap(({ metadata: { name: group = "" } = {}, versions }) =>
      versions.flatMap(({ version, resources = [] }) =>
        resources.flatMap(({ resource: plural, responseKind, scope, verbs = [] }) =>
          responseKind
            ? [{ group, version, kind: responseKind.kind, plural, namespaced: scope !== "Cluster", verbs }]
            : [],
        ),
      ),
    );
  }

  async #versionsOf(group: string): Promise<string[]> {
    const served = await this.#getIfServed<ApiGroup>(`/apis/${group}`);
    if (served === undefined) return [];
    return [...new Set([served.preferredVersion, ...served.versions].map(({ groupVersion }) => groupVersion))];
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

  #get<T>(path: string, accept?: string): Promise<T> {
    const maxCharacters = MAX_DEFINITION_CHARACTERS;
    const how = { method: "GET" as const, identity: CONTROLLER, maxCharacters, ...(accept && { accept }) };
    return this.#transport.request<T>({ ...how, path });
  }

  #getIfServed<T>(path: string): Promise<T | undefined> {
    return ifFound(this.#get<T>(path));
  }
}

/** What the API server lists of a kind in this version now; undefined if it does not serve it. Throws ApiError. */
export async function listedKind(transport: RequestSender, resource: Resource): Promise<ListedKind | undefined> {
  const how = { method: "GET", path: rootOf(resource), identity: CONTROLLER } as const;
  const list = await ifFound(transport.request<{ resources?: ListedKind[] }>(how));
  return list?.resources?.find(({ name }) => name === resource.plural);
}

const OPTIONAL_MISSING_LIVES_MS = 60_000;

/** Undefined while the cluster does not serve the kind. */
export type OptionalKind = () => Promise<Resource | undefined>;

/** Finds a kind that most clusters lack. While it is missing, asks once a minute. */
export function optionalKind(
  discovery: Pick<Discovery, "byKind">,
  { apiVersion, kind }: Pick<KubeObject, "apiVersion" | "kind">,
): OptionalKind {
  let missingUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() < missingUntil) return undefined;
    const found = await discovery.byKind(apiVersion, kind);
    if (found === undefined) missingUntil = performance.now() + OPTIONAL_MISSING_LIVES_MS;
    return found;
  };
}
