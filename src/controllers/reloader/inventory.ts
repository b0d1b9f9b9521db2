/**
 * Watches, as the account for Reloader's annotations, which namespaces there are and which workloads and sources each contains.
 * A kind that it may not list is left out, and the others count. Reports a namespace only when all others are known.
 */
import { isDeepStrictEqual } from "node:util";
import type { Installation } from "../../api/installation.ts";
import type { ReloaderKind } from "../../api/reloader-rules.ts";
import { isGlob } from "../../apimachinery/glob.ts";
import { selectorText } from "../../apimachinery/label-selector.ts";
import { apiVersionOf, type Resource, resourceName } from "../../apimachinery/objects.ts";
import { CONFIG_MAPS, NAMESPACES, SECRETS } from "../../apimachinery/resources.ts";
import type { CollectionSubscription } from "../../cache/subscription.ts";
import type { ListedObject, Watcher } from "../../cache/watcher.ts";
import { READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { type OptionalKind, optionalKind } from "../../kube/discovery.ts";
import { CONTROLLER, type WatchIdentity } from "../../kube/identity.ts";
import type { Log } from "../../observability/log.ts";
import { PROVIDER_CLASS } from "../../workloads/provider-class.ts";
import { WORKLOAD_KINDS } from "../../workloads/workload.ts";
import { SOURCE_KINDS } from "./annotations.ts";
import type { Present } from "./sources.ts";

/** The kinds that the account may restart, if they are served; Jobs only if the configuration says so. */
const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Rollout"] as const;
const WITH_JOBS = [...KINDS, "Job"] as const;
/** The key for the list of namespaces and kinds. No namespace has this name. */
export const ALL = "*";
const SOURCES = { Secret: SECRETS, ConfigMap: CONFIG_MAPS };
const EVERYTHING = { labels: "", names: undefined };
/** Followed by a namespace, the key of its SecretProviderClasses. */
const CLASSES = "+";
const FORBIDDEN = 403;

interface Kind {
  resource: Resource;
  template: string;
}

/** The workloads and sources of a namespace. */
export interface InventoryResult {
  /** Kinds whose objects can't be known. */
  unseen: string[];
  workloads: (ListedObject & Kind)[];
  present: Present[];
  /** The kinds of sources that the account may not list. */
  refused: ReadonlySet<string>;
}

interface Listed {
  members: readonly ListedObject[];
  isRefused: boolean;
}

interface InventoryServices {
  installation: Installation;
  watcher: Watcher;
  discovery: Pick<Discovery, "byKind" | "forget">;
  log: Pick<Log, "error">;
}

export class Inventory {
  readonly #services: InventoryServices;
  readonly #as: WatchIdentity;
  /** Requeues a namespace, or ALL. */
  readonly #requeue: (key: string) => void;
  readonly #classes: OptionalKind;
  /** Whether annotations apply to a kind here. */
  readonly #isMeant: (kind: ReloaderKind) => boolean;
  #kinds: Kind[] = [];
  /** Undefined until known. */
  #namespaces: ReadonlySet<string> | undefined;
  /** The namespaces that need SecretProviderClasses, with the kind as it was served then. */
  readonly #mounting = new Map<string, Resource | undefined>();
  /** By resource, the keys under which it can't be listed, with the status of the failure. */
  readonly #failures = new Map<string, Map<string, number>>();

  constructor(deps: InventoryServices, as: WatchIdentity, requeue: (key: string) => void) {
    this.#services = deps;
    this.#as = as;
    this.#requeue = requeue;
    this.#classes = optionalKind(deps.discovery, PROVIDER_CLASS);
    this.#isMeant = (kind) => !deps.installation.reloader?.ignoreKinds?.includes(kind);
  }

  /** In how many namespaces the account may not list a resource, by resource. */
  get refused(): ReadonlyMap<string, number> {
    const counts = [...this.#failures].map(([resource, failures]): [string, number] => [
      resource,
      [...failures.values()].filter((status) => status === FORBIDDEN).length,
    ]);
    return new Map(counts.filter(([, count]) => count > 0));
  }

  has(namespace: string): boolean {
    return this.#namespaces?.has(namespace) === true;
  }

  /** Whether a namespace is known not to have the selected labels. */
  isUnselected(namespace: string): boolean {
    const { reloader } = this.#services.installation;
    return reloader?.namespaceSelector !== undefined && this.#namespaces?.has(namespace) === false;
  }

  /** The key to requeue when a watch with that key reports a change: a namespace, or ALL. */
  static subjectOf(key: string): string {
    return key.startsWith(CLASSES) ? key.slice(CLASSES.length) : key;
  }

  /** Finds out which namespaces and kinds there are; false while that is not known. */
  async look(): Promise<boolean> {
    const kinds = await this.#servedKinds();
    const classes = this.#mounting.size === 0 ? undefined : await this.#classes();
    const now = this.#named() ?? this.#matched();
    if (now === undefined) return false;
    const isOther = !isDeepStrictEqual(kinds, this.#kinds);
    this.#kinds = kinds;
    const before = this.#namespaces ?? new Set();
    this.#namespaces = now;
    for (const namespace of new Set([...before, ...now])) {
      const hasOther = this.#mounting.has(namespace) && !isDeepStrictEqual(this.#mounting.get(namespace), classes);
      if (isOther || hasOther || before.has(namespace) !== now.has(namespace)) this.#requeue(namespace);
    }
    return true;
  }

  async #servedKinds(): Promise<Kind[]> {
    const found = await Promise.all(
      (this.#services.installation.reloader?.jobs ? WITH_JOBS : KINDS).filter(this.#isMeant).map(async (kind) => {
        const { apiVersion, template } = WORKLOAD_KINDS[kind];
        const resource = await this.#services.discovery.byKind(apiVersion, kind);
        return resource === undefined ? [] : [{ resource, template }];
      }),
    );
    return found.flat();
  }

  /**
   * The namespaces in the configuration, if it has neither globs nor a selector: the account then needs no permission to list
   * namespaces.
   */
  #named(): Set<string> | undefined {
    const { installation } = this.#services;
    if (installation.reloader?.namespaceSelector !== undefined) return undefined;
    const names = installation.scope === undefined ? (installation.reloader?.namespaces ?? []) : [installation.scope];
    return names.some(isGlob) ? undefined : new Set(names.filter((each) => installation.isReloading(each)));
  }

  /** Undefined while not known. */
  #matched(): Set<string> | undefined {
    const { installation } = this.#services;
    const { namespaces: names, exceptNamespaces: exceptNames, namespaceSelector = {} } = installation.reloader ?? {};
    const labels = selectorText(namespaceSelector);
    const all = { resource: NAMESPACES, namespace: undefined, labels, names, exceptNames, choice: true as const };
    const [seen] = this.#listed(ALL, [{ ...all, identity: CONTROLLER }]) ?? [];
    if (seen === undefined || seen.isRefused) return undefined;
    return new Set(seen.members.map(({ name }) => name).filter((name) => installation.isReloading(name)));
  }

  /**
   * The workloads and sources of a namespace; undefined until all that the account may list is known. Of sources that it may not list
   * any more, those that it saw before.
   */
  in(namespace: string): InventoryResult | undefined {
    const of = { ...EVERYTHING, ...this.#as, namespace, choice: true as const };
    const kinds = SOURCE_KINDS.filter(this.#isMeant);
    const all: CollectionSubscription[] = [
      ...this.#kinds.map(({ resource, template }) => ({ ...of, resource, workload: { template } })),
      ...kinds.map((kind) => ({ ...of, resource: SOURCES[kind] })),
    ];
    const listed = this.#listed(namespace, all);
    if (listed === undefined) return undefined;
    const workloads = this.#kinds.map((kind, at) => ({ kind, ...listed[at] }));
    const sources = kinds.map((kind, at) => ({ kind, ...listed[workloads.length + at] }));
    const served = this.#kinds.map(({ resource }) => resource.kind);
    const refused = workloads.flatMap(({ kind, members = [], isRefused }) =>
      isRefused || members.some(({ version }) => version.isTooLarge) ? [kind.resource.kind] : [],
    );
    return {
      unseen: [...KINDS.filter((kind) => this.#isMeant(kind) && !served.includes(kind)), ...refused],
      refused: new Set(sources.flatMap(({ kind, isRefused }) => (isRefused ? kind : []))),
      workloads: workloads.flatMap(({ kind, members = [], isRefused }) =>
        isRefused ? [] : currentWorkloads(members).map((each) => ({ ...each, ...kind })),
      ),
      present: sources.flatMap(({ kind, members = [] }) =>
        members.map(({ name, version: { mark } }): Present => ({ kind, name, mark })),
      ),
    };
  }

  /**
   * The SecretProviderClasses of a namespace; undefined until known. If the account may not list them, the ones that it saw
   * before.
   */
  async classesIn(namespace: string): Promise<{ present: Present[]; isRefused: boolean } | undefined> {
    const { watcher } = this.#services;
    const key = `${CLASSES}${namespace}`;
    const isByVersions = this.#services.installation.reloader?.providerClasses === true;
    const resource = await this.#classes();
    this.#mounting.set(namespace, resource);
    if (resource === undefined) {
      watcher.subscribe(key, []);
      return { present: [], isRefused: false };
    }
    const watched: CollectionSubscription = { ...EVERYTHING, ...this.#as, resource, namespace, whole: true };
    const [listed] = this.#listed(key, [watched]) ?? [];
    if (listed === undefined) return undefined;
    const { members, isRefused } = listed;
    const present = members.map(({ name, version: { mark, synced = [], isTooLarge } }): Present => {
      const kind = "SecretProviderClass";
      if (isTooLarge) return { kind, name, mark, isTooLarge };
      const writes = synced.map(({ secret }) => secret);
      return { kind, name, mark, writes, hasVersions: writes.length === 0 && isByVersions };
    });
    return { present, isRefused };
  }

  /**
   * The members of each subscription, and whether the account may not list them; undefined until all others are known, so that an
   * object that can't be seen does not count as absent.
   */
  #listed(key: string, subscriptions: readonly CollectionSubscription[]): Listed[] | undefined {
    const { watcher } = this.#services;
    watcher.subscribe(key, subscriptions);
    const states = subscriptions.map((watched) => ({ watched, ...watcher.list(key, watched) }));
    for (const state of states) {
      if (state.phase === "failed") this.#failed(key, state.watched, state.error);
      else if (state.phase === "synced") this.#listable(key, resourceName(state.watched.resource));
    }
    const all = states.map((state) => {
      const isRefused = state.phase === "failed" && state.error.status === FORBIDDEN;
      return state.phase === "synced" || isRefused ? { members: state.members, isRefused } : undefined;
    });
    return all.every((each) => each !== undefined) ? all : undefined;
  }

  /** No workload of the namespace needs SecretProviderClasses any more. */
  forgetClasses(namespace: string): void {
    if (!this.#mounting.delete(namespace)) return;
    this.#services.watcher.subscribe(`${CLASSES}${namespace}`, []);
    this.#forgetRefusals(`${CLASSES}${namespace}`);
  }

  forget(namespace: string): void {
    this.#services.watcher.subscribe(namespace, []);
    this.#forgetRefusals(namespace);
    this.forgetClasses(namespace);
  }

  #forgetRefusals(key: string): void {
    for (const resource of [...this.#failures.keys()]) this.#listable(key, resource);
  }

  #listable(key: string, resource: string): void {
    const failures = this.#failures.get(resource);
    if (failures?.delete(key) && failures.size === 0) this.#failures.delete(resource);
  }

  /**
   * Logs each resource once, until all namespaces have it: a missing rule of a ClusterRole concerns all of them. The first refusal
   * after another failure is logged too, because it says which permission is missing.
   */
  #failed(key: string, watched: CollectionSubscription, error: Parameters<typeof streamRefusal>[0]): void {
    const { identity, resource, namespace } = watched;
    const { message } = streamRefusal(error, { identity, ref: { resource, namespace }, verbs: READ_VERBS }, "list");
    // The kind was served a moment ago.
    if (error.status === 404) this.#services.discovery.forget(apiVersionOf(resource));
    if (error.status === 404 && key !== ALL) this.#requeue(ALL);
    const name = resourceName(resource);
    const failures = this.#failures.get(name);
    this.#failures.set(name, new Map(failures).set(key, error.status));
    const isFirstRefusal = error.status === FORBIDDEN && ![...(failures?.values() ?? [])].includes(FORBIDDEN);
    if (failures !== undefined && !isFirstRefusal) return;
    const details = { namespace, resource: name, error: message };
    if (error.status !== FORBIDDEN) {
      const where = namespace === undefined ? "" : ` in namespace ${namespace}`;
      this.#services.log.error(
        details,
        `${name} can't be listed, so Reloader's annotations wait${where}; see the error`,
      );
      return;
    }
    const file = `deploy/${this.#services.installation.scope ? "namespaced" : "manifests"}/optional/reloader.yaml`;
    const isIgnorable = [...SOURCE_KINDS, ...KINDS].some((kind) => kind === resource.kind);
    const instead = isIgnorable ? `, or add ${resource.kind} to reloader.ignoreKinds` : "";
    const what = `${name} can't be listed, so Reloader's annotations have no effect on them`;
    this.#services.log.error(details, `${what}; apply ${file} and bind its role${instead}`);
  }
}

/**
 * The workloads that annotations apply to. While a Job is recreated, its copy represents it: a watch shows the copy before the
 * Job is deleted, and the new Job before the copy is deleted.
 */
export function currentWorkloads<T extends Pick<ListedObject, "name" | "version">>(workloads: readonly T[]): T[] {
  const names = new Set(workloads.map(({ name }) => name));
  return workloads.flatMap((each) => {
    const { isPassing, copied } = each.version.workload ?? {};
    if (copied === undefined) return isPassing ? [] : [each];
    const { name, uid } = copied;
    return names.has(name) ? [] : [{ ...each, name, version: { ...each.version, uid } }];
  });
}
