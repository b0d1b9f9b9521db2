/**
 * Watches the claims of every composition as its account, and caches only the fields that the composition needs. A claim that the
 * account can't see counts as unknown, never as absent.
 */
import type { CompositionSpec } from "../../api/composition.ts";
import type { Installation } from "../../api/installation.ts";
import { CREATED_BY } from "../../api/manifest.ts";
import type { Resource } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { NAMESPACES } from "../../apimachinery/resources.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import type { Informers } from "../../cache/informers.ts";
import { AgeRanks, type Ranked } from "../../cache/oldest-first.ts";
import { objectKey } from "../../cache/reflector.ts";
import type { CollectionSubscription } from "../../cache/subscription.ts";
import type { Watcher } from "../../cache/watcher.ts";
import { type ClaimMatcher, claimMatcher, namespaceMatcher } from "../../composition/claim-selection.ts";
import { READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import type { ApiError } from "../../kube/api-error.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import type { AcceptedComposition } from "./composition-state.ts";
import { parseKey, placeKey, placeOfClaim } from "./keys.ts";

/** Called when a composition or one of its claims must be reconciled. */
type ClaimHandler = (composition: string, claim: string | undefined, cause: "change" | "resync") => void;

/** What a composition watches. */
interface Following extends Pick<AcceptedComposition, "resource" | "identity"> {
  /** Paths of keys without list indexes. */
  readonly fields: readonly string[];
  readonly isClaim: ClaimMatcher;
  /** The claims of each namespace by age, from the first use. */
  readonly ranks: Map<string, AgeRanks>;
  /** The watched namespaces; for a cluster-scoped kind, the empty name alone. */
  places: ReadonlySet<string>;
  /** Whether all namespaces are known. */
  isComplete: boolean;
}

/** The state of a claim: absent (or not selected), unknown, or the object. */
type ClaimState = "absent" | "unknown" | CachedObject;

const ALL_NAMESPACES: CollectionSubscription = {
  identity: CONTROLLER,
  resource: NAMESPACES,
  namespace: undefined,
  labels: "",
  names: undefined,
};

export class Claims {
  readonly #watcher: Watcher;
  readonly #installation: Pick<Installation, "closedNamespace" | "limits">;
  readonly #following = new Map<string, Following>();

  constructor(
    informers: Pick<Informers, "watcher">,
    installation: Pick<Installation, "closedNamespace" | "limits">,
    changed: ClaimHandler,
  ) {
    this.#installation = installation;
    this.#watcher = informers.watcher((key, cause, name) => {
      const { composition, claim: namespace } = parseKey(key);
      if (namespace === undefined || name === undefined) {
        this.#following.get(composition)?.ranks.delete(namespace ?? "");
        return changed(composition, undefined, cause);
      }
      const claim = objectKey(namespace, name);
      changed(composition, claim, cause);
      const other = this.#rank(composition, namespace, claim);
      if (other !== undefined) changed(composition, other, cause);
    });
  }

  /** Watches the claims of a composition. Call it again when the claims or the namespaces may have changed. */
  follow(
    composition: string,
    { selector, namespaceSelector }: CompositionSpec["for"],
    { compiled, resource, identity }: Pick<AcceptedComposition, "compiled" | "resource" | "identity">,
  ): void {
    const before = this.#following.get(composition);
    const places = this.#placesFor(composition, resource, namespaceSelector);
    const read = [...compiled.reads, ...compiled.writes].map(String);
    const following: Following = {
      resource,
      identity,
      fields: [...new Set([...read, ...selectorFields(selector), CREATED_BY_PATH])].sort(),
      isClaim: claimMatcher(selector),
      ranks: new Map(),
      places: places ?? before?.places ?? new Set(),
      isComplete: places !== undefined,
    };
    this.#following.set(composition, following);
    for (const place of following.places)
      this.#watcher.subscribe(placeKey(composition, place), [collectionOf(following, place)]);
    for (const place of before?.places ?? [])
      if (!following.places.has(place)) this.#watcher.subscribe(placeKey(composition, place), []);
  }

  forget(composition: string): void {
    for (const place of this.#following.get(composition)?.places ?? [])
      this.#watcher.subscribe(placeKey(composition, place), []);
    this.#watcher.subscribe(composition, []);
    this.#following.delete(composition);
  }

  /** The keys of the claims that exist. */
  *keysOf(composition: string): Generator<string> {
    const following = this.#following.get(composition);
    for (const place of following?.places ?? [])
      for (const { key } of this.#claimsIn(composition, following as Following, place)) yield key;
  }

  get(composition: string, claim: string): ClaimState {
    const following = this.#following.get(composition);
    if (following === undefined) return "unknown";
    const { namespace: place, name } = placeOfClaim(claim);
    if (!following.places.has(place)) return following.isComplete ? "absent" : "unknown";
    const { phase, version } = this.#stateOf(composition, following, place, name);
    if (phase !== "synced") return "unknown";
    return version !== undefined && isSelected(following, name, version) ? version : "absent";
  }

  /**
   * Why a claim gets no binding, although it is selected: the namespace has too many claims, or they are too large. Cluster-scoped claims
   * have no limit, because only cluster admins create them.
   */
  excess(composition: string, claim: string, { isTooLarge }: CachedObject): Problem | undefined {
    const { namespace: place } = placeOfClaim(claim);
    if (isTooLarge)
      return new Problem(
        "TooLarge",
        `the fields of the claims in namespace ${place} that compositions read are too large together; make them smaller, then change this claim`,
      );
    if (place === "" || this.#ranksOf(composition, place).counts(claim)) return undefined;
    const { claimsPerNamespace: most } = this.#installation.limits;
    return new Problem(
      "LimitExceeded",
      `namespace ${place} has more than ${most} claims of the composition, and the oldest ones count; delete claims that are not needed, or ask the administrator of Inlay to raise limits.claimsPerNamespace`,
    );
  }

  #ranksOf(composition: string, place: string): AgeRanks {
    const following = this.#following.get(composition) as Following;
    const known = following.ranks.get(place);
    if (known !== undefined) return known;
    const ranks = new AgeRanks(this.#installation.limits.claimsPerNamespace);
    ranks.reset(this.#claimsIn(composition, following, place));
    following.ranks.set(place, ranks);
    return ranks;
  }

  /** Returns the key of another claim that counts now, or no longer. */
  #rank(composition: string, place: string, claim: string): string | undefined {
    const ranks = this.#following.get(composition)?.ranks.get(place);
    const state = ranks === undefined ? "unknown" : this.get(composition, claim);
    if (state === "absent") return ranks?.remove(claim);
    return state === "unknown" ? undefined : ranks?.add({ key: claim, createdAt: state.createdAt ?? 0 });
  }

  *#claimsIn(composition: string, following: Following, place: string): Generator<Ranked> {
    const { members } = this.#watcher.list(placeKey(composition, place), collectionOf(following, place));
    for (const { name, version } of members)
      if (isSelected(following, name, version))
        yield { key: objectKey(place, name), createdAt: version.createdAt ?? 0 };
  }

  /** Whether every list is complete or was refused. */
  isListed(composition: string): boolean {
    const following = this.#following.get(composition);
    if (following?.isComplete !== true) return false;
    return [...following.places].every((place) => this.#stateOf(composition, following, place).phase !== "pending");
  }

  /**
   * Why no claim can be seen, if all namespaces refuse: a single one may be closed to the account. The first refusal, but others come
   * before a missing permission.
   */
  refusal(composition: string): Problem | undefined {
    const following = this.#following.get(composition);
    if (following === undefined) return undefined;
    let found: { place: string; error: ApiError } | undefined;
    for (const place of following.places) {
      const state = this.#stateOf(composition, following, place);
      if (state.phase !== "failed") return undefined;
      if (found === undefined || (found.error.status === 403 && state.error.status !== 403))
        found = { place, error: state.error };
    }
    if (found === undefined) return undefined;
    const { identity, resource, places } = following;
    const isOne = resource.namespaced && places.size === 1;
    const ref = { resource, ...(isOne && { namespace: found.place }) };
    return streamRefusal(found.error, { identity, ref, verbs: READ_VERBS }, "list");
  }

  /** Whether the API server no longer serves the kind. */
  isUnserved(composition: string): boolean {
    const following = this.#following.get(composition);
    return [...(following?.places ?? [])].some((place) => {
      const state = this.#stateOf(composition, following as Following, place);
      return state.phase === "failed" && state.error.status === 404;
    });
  }

  /** The state of the watch of a namespace, and the version of the object with that name there. */
  #stateOf(composition: string, following: Following, place: string, name = "") {
    return this.#watcher.get(placeKey(composition, place), collectionOf(following, place), name);
  }

  /** The namespaces of the claims; undefined while they are not known. */
  #placesFor(
    composition: string,
    resource: Resource,
    selector: CompositionSpec["for"]["namespaceSelector"],
  ): Set<string> | undefined {
    if (!resource.namespaced) {
      this.#watcher.subscribe(composition, []);
      return new Set([""]);
    }
    this.#watcher.subscribe(composition, [ALL_NAMESPACES]);
    const { phase, members } = this.#watcher.list(composition, ALL_NAMESPACES);
    if (phase !== "synced") return undefined;
    const isMatched = namespaceMatcher(selector);
    const isOpen = (name: string) => this.#installation.closedNamespace(name) === undefined;
    return new Set(
      members.filter(({ name, version }) => isMatched(name, version.labels) && isOpen(name)).map(({ name }) => name),
    );
  }
}

/** The claims of one namespace. The namespaces share one stream if the account may watch all of them. */
const collectionOf = ({ resource, identity, fields }: Following, place: string): CollectionSubscription => ({
  identity,
  wide: resource.namespaced,
  resource,
  namespace: resource.namespaced ? place : undefined,
  labels: "",
  names: undefined,
  fields,
});

/** Of an object whose fields are not kept, only the name is known. */
const isSelected = ({ isClaim }: Following, name: string, { fields = {}, isTooLarge }: CachedObject): boolean =>
  isClaim(name, isTooLarge ? "unknown" : (fields["metadata"] as Parameters<ClaimMatcher>[1]));

/** The label of an object that a binding created. */
const CREATED_BY_PATH = `metadata.labels["${CREATED_BY}"]`;

/** The fields that selectors need, in addition to those that patches read. */
function selectorFields({
  matchLabels,
  matchExpressions,
  annotations,
}: CompositionSpec["for"]["selector"] = {}): string[] {
  return [
    ...((matchLabels ?? matchExpressions) === undefined ? [] : ["metadata.labels"]),
    ...(annotations === undefined ? [] : ["metadata.annotations"]),
  ];
}
