/** A dependency comes in; how wide a stream may carry it, by the rights of its identity, goes out. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Resource } from "../apimachinery/objects.ts";
import { isImpersonation } from "../kube/access-error.ts";
import { allowedNames } from "../kube/access-rules.ts";
import { ApiError, isStatus } from "../kube/api-error.ts";
import { type Client, pathOf } from "../kube/client.ts";
import { CONTROLLER, homeOf, type Identity } from "../kube/identity.ts";
import type { Scope } from "../kube/list-watch.ts";
import type { AccessPlace, AccountRules } from "./account-rules.ts";
import {
  isCollection,
  isTelling,
  looksAtWhole,
  namespaceOf,
  resourceKey,
  resourceOf,
  type Subscription,
} from "./subscription.ts";

/**
 * From the widest to the narrowest stream that can carry a dependency: the controller's own, then those of its identity.
 * A collection ends at `namespace`.
 */
export type WatchScope = "shared" | "sharedName" | "cluster" | "clusterName" | "namespace" | "name";

/** What the manifests let the controller watch for its own ends: nobody opened these kinds for others. */
const OWN = [
  "inlay.dev/v1alpha1/secretbindings",
  "inlay.dev/v1alpha1/secretgrants",
  "inlay.dev/v1alpha1/bindingcompositions",
  "v1/namespaces",
];
const EVERYTHING = { group: "*", version: "*", plural: "*" };
/** How long it is believed what somebody may watch everywhere. */
const EVERYWHERE_LIVES_MS = 60_000;
const REVIEW_AGAIN_MS = 1_000;

type Kind = Pick<Resource, "group" | "version" | "plural">;
type NarrowScope = Extract<WatchScope, "namespace" | "name">;
type Names = ReadonlySet<string> | "all";

/** For all names of a kind in a namespace and one identity. */
interface Decision {
  scope: WatchScope;
  /** Only these are allowed, if that is known; of others, `denied` is said. */
  names?: ReadonlySet<string>;
  denied?: ApiError;
  /** Why there is no stream at all. */
  refused?: ApiError;
}

interface Known {
  decision: Promise<Decision>;
  /** No wider, since the server refused a stream that was. */
  most: WatchScope | undefined;
  since: number;
}

export class WatchScopes {
  readonly #client: Pick<Client, "may">;
  readonly #reviews: Pick<AccountRules, "of" | "expire">;
  readonly #isNamespaced: boolean;
  readonly #decisions = new Map<string, Known>();
  /** How many subscribers each group has. A decision is kept while there are any. */
  readonly #members = new Map<string, number>();
  /** Whether somebody may watch a kind, or one name of it, everywhere. From the oldest answer to the newest. */
  readonly #everywhere = new Map<string, { allowed: Promise<boolean>; until: number }>();
  #stopped = false;

  /** An installation for one namespace has no stream of more, whoever could have one. */
  constructor(client: Pick<Client, "may">, reviews: Pick<AccountRules, "of" | "expire">, isNamespaced: boolean) {
    this.#client = client;
    this.#reviews = reviews;
    this.#isNamespaced = isNamespaced;
  }

  /** To be called for each subscriber before `of`. */
  join(dependency: Subscription): void {
    const key = groupKey(dependency);
    this.#members.set(key, (this.#members.get(key) ?? 0) + 1);
  }

  /** To be called for each subscriber that joined, when it is gone. `of` is not called for it after that. */
  leave(dependency: Subscription): void {
    const key = groupKey(dependency);
    const left = (this.#members.get(key) ?? 0) - 1;
    if (left > 0) return void this.#members.set(key, left);
    this.#members.delete(key);
    this.#decisions.delete(key);
  }

  /** How wide a stream may be, or why there may be none. */
  async of(dependency: Subscription): Promise<WatchScope | ApiError> {
    const known = this.#decisions.get(groupKey(dependency))?.decision;
    const decision = await (known ?? this.#note(dependency));
    const { scope, names, refused } = decision;
    if (refused !== undefined) return refused;
    const isAllowed = names === undefined || (!isCollection(dependency) && names.has(dependency.ref.name));
    if (isAllowed) return scope;
    decision.denied ??= forbiddenStream(dependency);
    return decision.denied;
  }

  /** Takes note that the server refused a stream: one of `most`, or a narrower one, is right, if the identity may have that. */
  refused(dependency: Subscription, most: WatchScope): void {
    const known = this.#decisions.get(groupKey(dependency));
    // Of all who were on that stream, the first asks.
    if (known !== undefined && known.most === most && known.since > Date.now() - REVIEW_AGAIN_MS) return;
    const place = placeOf(dependency);
    if (place !== undefined) this.#reviews.expire(place, REVIEW_AGAIN_MS);
    void this.#note(dependency, most);
  }

  /** Asks again for it the next time. */
  forget(dependency: Subscription): void {
    this.#decisions.delete(groupKey(dependency));
  }

  /** The same, unless it was found out less than so long ago, as for another stream of the group. Returns whether it will be. */
  reconsider(dependency: Subscription, sinceMs: number): boolean {
    const known = this.#decisions.get(groupKey(dependency));
    const isOld = known !== undefined && known.since <= Date.now() - sinceMs;
    const place = placeOf(dependency);
    if (isOld) this.forget(dependency);
    if (isOld && place !== undefined) this.#reviews.expire(place, sinceMs);
    return isOld;
  }

  stop(): void {
    this.#stopped = true;
  }

  #note(dependency: Subscription, most?: WatchScope): Promise<Decision> {
    const decision = this.#ask(dependency, most);
    this.#decisions.set(groupKey(dependency), { decision, most, since: Date.now() });
    return decision;
  }

  /** Asks until there is an answer: a failed review is no reason to open a stream for every name. */
  async #ask(dependency: Subscription, most: WatchScope | undefined): Promise<Decision> {
    const narrowest = isCollection(dependency) ? "namespace" : "name";
    for (;;) {
      try {
        return await this.#review(dependency, most);
      } catch (error) {
        if (this.#stopped) return { scope: narrowest };
        // One that may not be impersonated has no stream. Who may not even ask gets the narrowest, whose own refusal is reported.
        if (isStatus(error, 403)) {
          const { identity } = dependency;
          const isReported = isImpersonation(error, { identity, ref: { resource: resourceOf(dependency) } });
          return { scope: narrowest, ...(isReported && { refused: error }) };
        }
        await sleep(REVIEW_AGAIN_MS);
      }
    }
  }

  async #review(dependency: Subscription, most: WatchScope | undefined): Promise<Decision> {
    const { identity } = dependency;
    const [resource, namespace] = [resourceOf(dependency), namespaceOf(dependency)];
    const name = isCollection(dependency) ? undefined : dependency.ref.name;
    const isNarrow = this.#isNamespaced || most === "namespace" || most === "name";
    const wider = isNarrow ? undefined : await this.#beyondNamespace(dependency, resource, name, most);
    if (wider !== undefined) return { scope: wider };
    const names = await this.#namesOf(dependency, ["list", "watch"]);
    if (name === undefined) return names instanceof Set ? refusedAs(dependency) : { scope: "namespace" };
    if (names instanceof Set) return { scope: "name", names };
    if (most === "namespace" || most === "name") return { scope: most };
    // A right in the namespace is told like one in all of them, so it says nothing for certain of what belongs to the cluster.
    const isKnown = names === "all" && namespace !== undefined;
    const scope: NarrowScope =
      isKnown || (await this.#client.may(identity, "watch", resource, namespace)) ? "namespace" : "name";
    return { scope };
  }

  /** On which names of a kind an identity may do all of some verbs; undefined if that can't be listed. */
  async #namesOf(dependency: Subscription, verbs: string[], place = placeOf(dependency)): Promise<Names | undefined> {
    if (place === undefined) return undefined;
    const rules = await this.#reviews.of(place);
    const names = allowedNames(rules, verbs, resourceOf(dependency));
    return rules.incomplete && names !== "all" ? undefined : names;
  }

  async #beyondNamespace(
    dependency: Subscription,
    resource: Resource,
    name: string | undefined,
    most: WatchScope | undefined,
  ): Promise<WatchScope | undefined> {
    const { identity } = dependency;
    if (identity === CONTROLLER)
      return (await this.#mayEverywhere(CONTROLLER, resource, name)) ? "sharedName" : undefined;
    const wide = dependency.wide === true || (dependency.wide === "named" && (await this.#mayAtHome(dependency)));
    // One answer for all of many namespaces.
    const isEverywhere = wide && (await this.#mayEverywhere(identity, resource));
    // A name is known to its account already.
    const mayKnow = async () => !isTelling(dependency) || isEverywhere || (await this.#mayList(dependency));
    if (most === undefined && (await this.#isOptedIn(resource)) && (await mayKnow())) return "shared";
    if (isEverywhere) return "cluster";
    // Rights on one name in all namespaces are enough for one stream of that name.
    const isNamed = wide && name !== undefined && (await this.#mayEverywhere(identity, resource, name));
    return isNamed ? "clusterName" : undefined;
  }

  /** Whether an account may watch it at home, as with rights everywhere. One review answers for all names, before each name is asked about. */
  async #mayAtHome(dependency: Subscription): Promise<boolean> {
    const { identity } = dependency;
    const namespace = homeOf(identity);
    const names = namespace && (await this.#namesOf(dependency, ["list", "watch"], { identity, namespace }));
    return !(names instanceof Set) || (!isCollection(dependency) && names.has(dependency.ref.name));
  }

  async #mayList(dependency: Subscription): Promise<boolean> {
    const namespace = namespaceOf(dependency);
    const names = await this.#namesOf(dependency, ["list"]);
    if (names instanceof Set || (names === "all" && namespace !== undefined)) return names === "all";
    return this.#client.may(dependency.identity, "list", resourceOf(dependency), namespace);
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
      for (const [each, { until }] of this.#everywhere) {
        if (until >= Date.now()) break;
        this.#everywhere.delete(each);
      }
      const allowed = this.#client.may(identity, "watch", resource, undefined, name);
      known = { allowed, until: Date.now() + EVERYWHERE_LIVES_MS };
      this.#everywhere.set(key, known);
      allowed.catch(() => this.#everywhere.delete(key));
    }
    return known.allowed;
  }
}

const OF_ONE_NAME: readonly WatchScope[] = ["sharedName", "clusterName", "name"];

/** What a stream on that scope is asked for. */
export function listWatchScope(scope: WatchScope, dependency: Subscription): Scope {
  const namespace = namespaceOf(dependency);
  return {
    resource: resourceOf(dependency),
    form: looksAtWhole(dependency) ? "whole" : "metadata",
    ...((scope === "namespace" || scope === "name") && namespace !== undefined && { namespace }),
    ...(!isCollection(dependency) && OF_ONE_NAME.includes(scope) && { name: dependency.ref.name }),
    ...(isCollection(dependency) && dependency.labels !== "" && { labels: dependency.labels }),
  };
}

/** The next narrower stream that can carry it; undefined if there is none. */
export function narrowerScope(scope: WatchScope, dependency: Subscription): WatchScope | undefined {
  if (scope === "shared") return dependency.wide ? "cluster" : "namespace";
  if (scope === "cluster" || scope === "clusterName") return "namespace";
  return scope === "name" || isCollection(dependency) ? undefined : "name";
}

/** Where the rights to a dependency are listed: that of a kind of the cluster, where its account is. */
export function placeOf(dependency: Subscription): AccessPlace | undefined {
  const namespace = namespaceOf(dependency) ?? homeOf(dependency.identity);
  return namespace === undefined ? undefined : { identity: dependency.identity, namespace };
}

/** As the API server would answer to a list. */
function forbiddenStream(dependency: Subscription): ApiError {
  const { resource, namespace } = listWatchScope("name", dependency);
  return new ApiError(`LIST ${pathOf(resource, namespace)}`, 403, "Forbidden");
}

const refusedAs = (dependency: Subscription): Decision => ({
  scope: "namespace",
  refused: forbiddenStream(dependency),
});

/**
 * What shares one answer: all names of a kind in a namespace, for one identity; of objects in many namespaces, one name. Who looks into
 * objects may be told less.
 */
export const groupKey = (dependency: Subscription) =>
  [
    dependency.identity,
    resourceKey(resourceOf(dependency)),
    namespaceOf(dependency) ?? "",
    dependency.wide ? "wide" : "",
    isCollection(dependency)
      ? "collection"
      : dependency.identity === CONTROLLER || dependency.wide
        ? dependency.ref.name
        : "",
    isTelling(dependency) ? "telling" : "",
  ].join("|");
