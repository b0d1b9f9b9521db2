/** A dependency comes in; how wide a stream may carry it, by the rights of its identity, goes out. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Resource } from "../apimachinery/objects.ts";
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER, type Identity } from "../kube/identity.ts";
import type { Scope } from "../kube/list-watch.ts";
import { isCollection, isTelling, namespaceOf, resourceKey, resourceOf, type Subscription } from "./subscription.ts";

/**
 * From the widest to the narrowest stream that can carry a dependency: the controller's own, then those of its identity.
 * A collection ends at `namespace`.
 */
export type WatchScope = "shared" | "sharedName" | "cluster" | "namespace" | "name";

/** What the manifests let the controller watch for its own ends: nobody opened these kinds for others. */
const OWN = ["inlay.dev/v1alpha1/secretbindings", "inlay.dev/v1alpha1/secretgrants", "v1/namespaces"];
const EVERYTHING = { group: "*", version: "*", plural: "*" };
/** How long it is believed what somebody may watch everywhere. */
const EVERYWHERE_LIVES_MS = 60_000;
const REVIEW_AGAIN_MS = 1_000;

type Kind = Pick<Resource, "group" | "version" | "plural">;

export class WatchScopes {
  readonly #client: Pick<Client, "may">;
  readonly #isNamespaced: boolean;
  /** How wide a stream may be, for all names of a kind in a namespace and one identity. */
  readonly #scopes = new Map<string, { scope: Promise<WatchScope>; since: number }>();
  /** Whether somebody may watch a kind, or one name of it, everywhere. */
  readonly #everywhere = new Map<string, { allowed: Promise<boolean>; until: number }>();
  #stopped = false;

  /** An installation for one namespace has no stream of more, whoever could have one. */
  constructor(client: Pick<Client, "may">, isNamespaced: boolean) {
    this.#client = client;
    this.#isNamespaced = isNamespaced;
  }

  of(dependency: Subscription): Promise<WatchScope> {
    return this.#scopes.get(groupKey(dependency))?.scope ?? this.#note(dependency, this.#ask(dependency));
  }

  /** Takes note that a stream was refused: the next narrower one is right. */
  refused(dependency: Subscription, scope: WatchScope): void {
    const next = narrowerScope(scope, dependency);
    if (next !== undefined) void this.#note(dependency, Promise.resolve(next));
  }

  /** Asks again for it the next time. */
  forget(dependency: Subscription): void {
    this.#scopes.delete(groupKey(dependency));
  }

  /** The same, unless it was found out less than so long ago, as for another stream of the group. Returns whether it will be. */
  reconsider(dependency: Subscription, sinceMs: number): boolean {
    const known = this.#scopes.get(groupKey(dependency));
    const isOld = known !== undefined && known.since <= Date.now() - sinceMs;
    if (isOld) this.forget(dependency);
    return isOld;
  }

  stop(): void {
    this.#stopped = true;
  }

  #note(dependency: Subscription, scope: Promise<WatchScope>): Promise<WatchScope> {
    this.#scopes.set(groupKey(dependency), { scope, since: Date.now() });
    return scope;
  }

  /** Asks until there is an answer: a failed review is no reason to open a stream for every name. */
  async #ask(dependency: Subscription): Promise<WatchScope> {
    for (;;) {
      try {
        return await this.#review(dependency);
      } catch (error) {
        // One that may not be impersonated gets the narrowest stream, whose own refusal is reported.
        if (isStatus(error, 403) || this.#stopped) return isCollection(dependency) ? "namespace" : "name";
        await sleep(REVIEW_AGAIN_MS);
      }
    }
  }

  async #review(dependency: Subscription): Promise<WatchScope> {
    const { identity } = dependency;
    const [resource, namespace] = [resourceOf(dependency), namespaceOf(dependency)];
    const name = isCollection(dependency) ? undefined : dependency.ref.name;
    const wider = this.#isNamespaced ? undefined : await this.#beyondNamespace(dependency, resource, name);
    if (wider !== undefined) return wider;
    if (name === undefined || (await this.#client.may(identity, "watch", resource, namespace))) return "namespace";
    return "name";
  }

  async #beyondNamespace(dependency: Subscription, resource: Resource, name?: string): Promise<WatchScope | undefined> {
    const { identity, wide } = dependency;
    if (identity === CONTROLLER)
      return (await this.#mayEverywhere(CONTROLLER, resource, name)) ? "sharedName" : undefined;
    // A name he knows already.
    const mayKnow = () =>
      !isTelling(dependency) || this.#client.may(identity, "list", resource, namespaceOf(dependency));
    if ((await this.#isOptedIn(resource)) && (await mayKnow())) return "shared";
    return wide && (await this.#mayEverywhere(identity, resource)) ? "cluster" : undefined;
  }

  /** Whether the platform opened a kind. Someone who may watch everything, such as an admin, was not asked about any. */
  async #isOptedIn(resource: Resource): Promise<boolean> {
    if (OWN.includes(resourceKey(resource))) return false;
    return (await this.#mayEverywhere(CONTROLLER, resource)) && !(await this.#mayEverywhere(CONTROLLER, EVERYTHING));
  }

  #mayEverywhere(identity: Identity, resource: Kind, name?: string): Promise<boolean> {
    const key = `${identity}|${resourceKey(resource)}|${name ?? ""}`;
    let known = this.#everywhere.get(key);
    if (known === undefined || known.until < Date.now()) {
      const allowed = this.#client.may(identity, "watch", resource, undefined, name);
      known = { allowed, until: Date.now() + EVERYWHERE_LIVES_MS };
      this.#everywhere.set(key, known);
      allowed.catch(() => this.#everywhere.delete(key));
    }
    return known.allowed;
  }
}

/** What a stream on that scope is asked for. */
export function listWatchScope(scope: WatchScope, dependency: Subscription): Scope {
  const namespace = namespaceOf(dependency);
  return {
    resource: resourceOf(dependency),
    form: isWhole(dependency) ? "whole" : "metadata",
    ...((scope === "namespace" || scope === "name") && namespace !== undefined && { namespace }),
    ...(!isCollection(dependency) && (scope === "sharedName" || scope === "name") && { name: dependency.ref.name }),
    ...(isCollection(dependency) && dependency.labels !== "" && { labels: dependency.labels }),
  };
}

/** Whether more than metadata is looked at, of which there may be much. Little of it is kept. */
const isWhole = (dependency: Subscription) =>
  dependency.workload !== undefined || (isCollection(dependency) && dependency.whole);

/** The next narrower stream that can carry it; undefined if there is none. */
export function narrowerScope(scope: WatchScope, dependency: Subscription): WatchScope | undefined {
  if (scope === "shared") return dependency.wide ? "cluster" : "namespace";
  if (scope === "cluster") return "namespace";
  return scope === "name" || isCollection(dependency) ? undefined : "name";
}

/** What shares one answer: all names of a kind in a namespace, for one identity. Who looks into objects may be told less. */
export const groupKey = (dependency: Subscription) =>
  [
    dependency.identity,
    resourceKey(resourceOf(dependency)),
    namespaceOf(dependency) ?? "",
    dependency.wide ? "wide" : "",
    isCollection(dependency) ? "collection" : dependency.identity === CONTROLLER ? dependency.ref.name : "",
    isTelling(dependency) ? "telling" : "",
  ].join("|");
