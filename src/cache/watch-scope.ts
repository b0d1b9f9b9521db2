/** Decides how wide a stream for a dependency may be, by the permissions of its identity. */
import { setTimeout as sleep } from "node:timers/promises";
import { Answers } from "../apimachinery/answers.ts";
import { Counts } from "../apimachinery/maps.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { isImpersonation, STREAM_VERBS } from "../kube/access-error.ts";
import { allowedNames } from "../kube/access-rules.ts";
import { ApiError, isStatus } from "../kube/api-error.ts";
import { type Client, pathOf } from "../kube/client.ts";
import { CONTROLLER, homeOf, type Identity } from "../kube/identity.ts";
import type { Scope } from "../kube/list-watch.ts";
import type { AccessPlace, AccountRules } from "./account-rules.ts";
import {
  isCollection,
  isOfSources,
  namespaceOf,
  needsWholeObject,
  resourceKey,
  resourceOf,
  type Subscription,
  showsObjects,
} from "./subscription.ts";

/** From the widest to the narrowest stream: the controller's own, then those of the identity. Collections have none below `namespace`. */
export type WatchScope = "shared" | "sharedName" | "cluster" | "clusterName" | "namespace" | "name";

/** Kinds that the manifests allow the controller to watch for itself. This permission does not opt them in for other accounts. */
const OWN = [
  "inlay.dev/v1alpha1/secretbindings",
  "inlay.dev/v1alpha1/secretgrants",
  "inlay.dev/v1alpha1/bindingcompositions",
  "v1/namespaces",
];
const EVERYTHING = { group: "*", version: "*", plural: "*" };
/** How long an answer about a permission in all namespaces is used. */
const EVERYWHERE_LIVES_MS = 60_000;
const MAX_EVERYWHERE = 50_000;
const REVIEW_AGAIN_MS = 1_000;

type Kind = Pick<Resource, "group" | "version" | "plural">;
type NarrowScope = Extract<WatchScope, "namespace" | "name">;
type Names = ReadonlySet<string> | "all";

/** For all names of a kind in a namespace and one identity. */
interface Decision {
  scope: WatchScope;
  /** Only these names are allowed, if that is known; all others get `denied`. */
  names?: ReadonlySet<string>;
  denied?: ApiError;
  /** The reason why there is no stream at all. */
  refused?: ApiError;
}

interface Known {
  decision: Promise<Decision>;
  /** The widest scope that the server has not refused. */
  most: WatchScope | undefined;
  since: number;
}

export class WatchScopes {
  readonly #client: Pick<Client, "may">;
  readonly #reviews: Pick<AccountRules, "of" | "expire">;
  readonly #isNamespaced: boolean;
  readonly #decisions = new Map<string, Known>();
  /** The number of subscribers of each group. A decision is kept while there are any. */
  readonly #members = new Counts();
  /** Whether an identity may watch a kind, or one name of it, in all namespaces. */
  readonly #everywhere = new Answers<string, boolean>(MAX_EVERYWHERE, EVERYWHERE_LIVES_MS);
  #stopped = false;

  /** An installation for one namespace opens no wider streams, even for identities that may have them. */
  constructor(client: Pick<Client, "may">, reviews: Pick<AccountRules, "of" | "expire">, isNamespaced: boolean) {
    this.#client = client;
    this.#reviews = reviews;
    this.#isNamespaced = isNamespaced;
  }

  /** Call it for each subscriber before `of`. */
  join(dependency: Subscription): void {
    this.#members.add(groupKey(dependency), 1);
  }

  /** Call it for each subscriber that joined, when it is removed. Do not call `of` for the subscriber after that. */
  leave(dependency: Subscription): void {
    const key = groupKey(dependency);
    if (this.#members.add(key, -1) === 0) this.#decisions.delete(key);
  }

  /** Returns how wide a stream may be, or why there may be none. */
  async of(dependency: Subscription): Promise<WatchScope | ApiError> {
    const key = groupKey(dependency);
    const known = this.#decisions.get(key);
    const decision = await (known?.decision ?? this.#note(dependency));
    const { scope, names, refused } = decision;
    if (refused === undefined && !isDenied(names, dependency)) return scope;
    // Permissions may have been granted since. Another subscriber of the group may have asked again already.
    const isReplaced = () => this.#decisions.has(key) && this.#decisions.get(key) !== known;
    if (known !== undefined && (this.reconsider(dependency, REVIEW_AGAIN_MS) || isReplaced()))
      return this.of(dependency);
    if (refused !== undefined) return refused;
    decision.denied ??= forbiddenStream(dependency);
    return decision.denied;
  }

  /** Records that the server refused a stream: the scope is now `most` or narrower, if the identity may have that. */
  refused(dependency: Subscription, most: WatchScope): void {
    const known = this.#decisions.get(groupKey(dependency));
    // Of all subscribers of that stream, the first one starts the review.
    if (known !== undefined && known.most === most && known.since > Date.now() - REVIEW_AGAIN_MS) return;
    const place = placeOf(dependency);
    if (place !== undefined) this.#reviews.expire(place, REVIEW_AGAIN_MS);
    void this.#note(dependency, most);
  }

  /** Drops the answer, so that the next call of `of` reviews again. */
  forget(dependency: Subscription): void {
    this.#decisions.delete(groupKey(dependency));
  }

  /** Like `forget`, but keeps an answer younger than `sinceMs`, such as for another stream of the group. Returns whether it forgot. */
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

  /** Retries until there is an answer: a failed review is no reason to open a stream for every name. */
  async #ask(dependency: Subscription, most: WatchScope | undefined): Promise<Decision> {
    const narrowest = isCollection(dependency) ? "namespace" : "name";
    for (;;) {
      try {
        return await this.#review(dependency, most);
      } catch (error) {
        if (this.#stopped) return { scope: narrowest };
        // Without impersonation there is no stream. Without permission for reviews, the refusal of the narrowest stream is reported.
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
    const names = await this.#streamNames(dependency);
    if (name === undefined) return names instanceof Set ? refusedAs(dependency) : { scope: "namespace" };
    if (names instanceof Set) return { scope: "name", names };
    if (most === "namespace" || most === "name") return { scope: most };
    // A rules review does not show whether a permission is for all namespaces, so cluster-scoped kinds need another review.
    const isKnown = names === "all" && namespace !== undefined;
    const scope: NarrowScope =
      isKnown || (await this.#client.may(identity, "watch", resource, namespace)) ? "namespace" : "name";
    return { scope };
  }

  /** Like `#namesOf`. No older answer denies a stream, because permissions may have been granted since, unless reviews are slow. */
  async #streamNames(dependency: Subscription): Promise<Names | undefined> {
    const known = await this.#namesOf(dependency, STREAM_VERBS);
    const place = placeOf(dependency);
    if (place === undefined || !isDenied(known, dependency)) return known;
    this.#reviews.expire(place, REVIEW_AGAIN_MS);
    return this.#namesOf(dependency, STREAM_VERBS);
  }

  /** The names of a kind for which an identity has all of some verbs; undefined if they can't be listed. */
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
    // One answer serves many namespaces.
    const isEverywhere = wide && (await this.#mayEverywhere(identity, resource));
    // An account already knows the names that its binding contains.
    const mayKnow = async () => !showsObjects(dependency) || isEverywhere || (await this.#mayList(dependency));
    if (most === undefined && (await this.#isOptedIn(resource)) && (await mayKnow())) return "shared";
    if (isEverywhere) return "cluster";
    // Permission for one name in all namespaces is enough for one stream of that name.
    const isNamed = wide && name !== undefined && (await this.#mayEverywhere(identity, resource, name));
    return isNamed ? "clusterName" : undefined;
  }

  /** Whether an account may watch it in its own namespace, as with cluster-wide permissions. One review answers for all names. */
  async #mayAtHome(dependency: Subscription): Promise<boolean> {
    const { identity } = dependency;
    const namespace = homeOf(identity);
    if (namespace === undefined) return true;
    return !isDenied(await this.#namesOf(dependency, STREAM_VERBS, { identity, namespace }), dependency);
  }

  async #mayList(dependency: Subscription): Promise<boolean> {
    const namespace = namespaceOf(dependency);
    const names = await this.#namesOf(dependency, ["list"]);
    if (names instanceof Set || (names === "all" && namespace !== undefined)) return names === "all";
    return this.#client.may(dependency.identity, "list", resourceOf(dependency), namespace);
  }

  /** Whether the platform opted the kind in. A controller that may watch everything, such as an admin, has opted in no kind. */
  async #isOptedIn(resource: Resource): Promise<boolean> {
    if (OWN.includes(resourceKey(resource))) return false;
    return (await this.#mayEverywhere(CONTROLLER, resource)) && !(await this.#mayEverywhere(CONTROLLER, EVERYTHING));
  }

  #mayEverywhere(identity: Identity, resource: Kind, name?: string): Promise<boolean> {
    const key = `${identity}|${resourceKey(resource)}|${name ?? ""}`;
    const ask = () => this.#client.may(identity, "watch", resource, undefined, name);
    return this.#everywhere.get(key, EVERYWHERE_LIVES_MS, ask);
  }
}

const isDenied = (names: Names | undefined, dependency: Subscription): boolean =>
  names instanceof Set && (isCollection(dependency) || !names.has(dependency.ref.name));

const OF_ONE_NAME: readonly WatchScope[] = ["sharedName", "clusterName", "name"];

/** The scope that a stream requests from the API server. */
export function listWatchScope(scope: WatchScope, dependency: Subscription): Scope {
  const namespace = namespaceOf(dependency);
  const isNarrow = scope === "namespace" || scope === "name";
  // Changed values are for subscriptions by name, and those by labels have streams of their own.
  const isByLabels = isCollection(dependency) && dependency.labels !== "";
  const hasValues = isNarrow && !isByLabels && dependency.identity !== CONTROLLER && isOfSources(dependency);
  return {
    resource: resourceOf(dependency),
    form: needsWholeObject(dependency) ? "whole" : hasValues ? "changes" : "metadata",
    ...(isNarrow && namespace !== undefined && { namespace }),
    ...(!isCollection(dependency) && OF_ONE_NAME.includes(scope) && { name: dependency.ref.name }),
    ...(isByLabels && { labels: dependency.labels }),
  };
}

/** The next narrower stream that can carry it; undefined if there is none. */
export function narrowerScope(scope: WatchScope, dependency: Subscription): WatchScope | undefined {
  if (scope === "shared") return dependency.wide ? "cluster" : "namespace";
  if (scope === "cluster" || scope === "clusterName") return "namespace";
  return scope === "name" || isCollection(dependency) ? undefined : "name";
}

/** Where the permissions for a dependency are listed: its namespace, or for a cluster-scoped kind the namespace of its account. */
export function placeOf(dependency: Subscription): AccessPlace | undefined {
  const namespace = namespaceOf(dependency) ?? homeOf(dependency.identity);
  return namespace === undefined ? undefined : { identity: dependency.identity, namespace };
}

/** The error with which the API server would answer a list. */
function forbiddenStream(dependency: Subscription): ApiError {
  const { resource, namespace } = listWatchScope("name", dependency);
  return new ApiError(`LIST ${pathOf(resource, namespace)}`, 403, "Forbidden");
}

const refusedAs = (dependency: Subscription): Decision => ({
  scope: "namespace",
  refused: forbiddenStream(dependency),
});

/**
 * Subscribers with the same key share one answer: all names of a kind in a namespace, for one identity. For objects in many namespaces, the
 * name is part of the key. Subscribers that show objects have their own answer.
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
    showsObjects(dependency) ? "shows" : "",
  ].join("|");
