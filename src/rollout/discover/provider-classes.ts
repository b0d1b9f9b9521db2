/**
 * Extends the lookups for consumers of Secrets by those that mount them through a SecretProviderClass, and returns the watches
 * that this needs. If the account may not list the classes, no consumer is found by them.
 */
import { getOrInsert } from "../../apimachinery/maps.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { CollectionSubscription } from "../../cache/subscription.ts";
import type { ListedObject, Watcher } from "../../cache/watcher.ts";
import { attempt, READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { type OptionalKind, optionalKind } from "../../kube/discovery.ts";
import type { Identity } from "../../kube/identity.ts";
import { MAX_SYNCED, PROVIDER_CLASS, type SyncedSecret } from "../../workloads/provider-class.ts";
import type { RunSteps } from "../../workqueue/cpu-scheduler.ts";
import { MAX_LOOKUPS, type RolloutReferences, tooManyLookups, type WorkloadLookup } from "./lookups.ts";

/** The maximum for one source. */
const MAX_CLASSES = 64;

/** With the watches of the classes that bring Secrets to pods. */
export interface WorkloadQueries extends RolloutReferences {
  classes: readonly CollectionSubscription[];
}

export class ProviderClasses {
  /** Shared by all bindings that restart consumers. */
  readonly #kind: OptionalKind;
  readonly #watcher: Pick<Watcher, "list">;
  readonly #indexes = new WeakMap<readonly ListedObject[], ClassIndex>();

  constructor(discovery: Pick<Discovery, "byKind">, watcher: Pick<Watcher, "list">) {
    this.#kind = optionalKind(discovery, PROVIDER_CLASS);
    this.#watcher = watcher;
  }

  async followed(
    key: string,
    identity: Identity,
    references: RolloutReferences,
    steps: RunSteps,
  ): Promise<WorkloadQueries> {
    const resource = references.lookups.some(isByClasses) ? await attempt(this.#kind()) : undefined;
    if (resource === undefined) return { ...references, classes: [] };
    if (resource instanceof Problem) return { ...references, classes: [], problem: references.problem ?? resource };
    return steps(this.#extended(key, { identity, resource, labels: "", names: undefined, whole: true }, references));
  }

  /** Yields where it may be interrupted. */
  *#extended(
    key: string,
    all: Omit<CollectionSubscription, "namespace">,
    references: RolloutReferences,
  ): Generator<void, WorkloadQueries> {
    const classes = new Map<string, CollectionSubscription>();
    const closed = [...references.closed];
    const lookups: WorkloadLookup[] = [];
    const unreadAt = new Set<string>();
    for (const lookup of references.lookups) {
      lookups.push(lookup);
      if (!isByClasses(lookup)) continue;
      yield;
      const { namespace, step, wide, resource } = lookup;
      const watched = getOrInsert(classes, namespace, () => ({ ...all, namespace, ...(wide && { wide }) }));
      const seen = this.#watcher.list(key, watched);
      if (seen.phase === "failed" && seen.error.status !== 403) {
        const { identity } = all;
        const problem = streamRefusal(seen.error, { identity, ref: watched, verbs: READ_VERBS }, "list");
        closed.push({ namespace, step, problem });
      }
      const { bySecret, unread } = yield* this.#indexOf(seen.members);
      const mounting = bySecret.get(lookup.find.name) ?? [];
      lookups.push(...mounting.slice(0, MAX_CLASSES).map((each) => mountingOf(lookup, each)));
      // Once for all Secrets.
      const place = `${namespace} ${step} ${resource.kind} ${lookup.find.ways}`;
      const more = unreadAt.has(place) ? [] : unread;
      unreadAt.add(place);
      lookups.push(...more.slice(0, MAX_CLASSES).map((name) => unreadOf(lookup, name)));
      if (mounting.length > MAX_CLASSES)
        closed.push({ namespace, step, problem: tooMany(mounting, `write the Secret ${lookup.find.name}`) });
      if (more.length > MAX_CLASSES)
        closed.push({ namespace, step, problem: tooMany(more, `list more than ${MAX_SYNCED} Secrets and keys`) });
      if (lookups.length > MAX_LOOKUPS)
        return { ...references, lookups: [], classes: [...classes.values()], closed: [], problem: tooManyLookups() };
    }
    return { ...references, lookups, classes: [...classes.values()], closed };
  }

  /** Of the classes of a namespace. Made once for the bindings of an account, until one of the classes changes. */
  *#indexOf(members: readonly ListedObject[]): Generator<void, ClassIndex> {
    const known = this.#indexes.get(members);
    if (known !== undefined) return known;
    const bySecret = new Map<string, Bringing[]>();
    for (const { name, version } of members) {
      yield;
      for (const { secret, keys } of version.synced ?? [])
        getOrInsert(bySecret, secret, (): Bringing[] => []).push({ name, keys });
    }
    const unread = members.flatMap(({ name, version }) => (version.isTooLarge ? [name] : []));
    const index = { bySecret, unread };
    this.#indexes.set(members, index);
    return index;
  }
}

type OfSecret = WorkloadLookup & { find: Extract<WorkloadLookup["find"], { by: "reference" }> };

/** A class that brings a Secret to pods, with these keys of it. */
interface Bringing extends Pick<SyncedSecret, "keys"> {
  name: string;
}

interface ClassIndex {
  bySecret: ReadonlyMap<string, readonly Bringing[]>;
  /** The classes of which it is not known what they bring. */
  unread: readonly string[];
}

const isByClasses = (lookup: WorkloadLookup): lookup is OfSecret =>
  lookup.find.by === "reference" && lookup.find.kind === "Secret" && (lookup.find.ways?.includes("csi") ?? true);

/** The lookup for a class that writes the Secret of a lookup. */
function mountingOf({ find: { uses }, ...place }: OfSecret, { name, keys }: Bringing): WorkloadLookup {
  return { ...place, find: { by: "reference", kind: "SecretProviderClass", name, uses, ...(keys && { keys }) } };
}

function unreadOf({ find: { uses }, ...place }: OfSecret, name: string): WorkloadLookup {
  return { ...place, find: { by: "reference", kind: "SecretProviderClass", name, uses, isTooLarge: true } };
}

function tooMany({ length }: readonly unknown[], whatTheyDo: string): Problem {
  const what = `${length} SecretProviderClasses ${whatTheyDo}, and Inlay follows at most ${MAX_CLASSES}`;
  const instead = "name the workloads in spec.rollout.targets";
  return new Problem("InvalidBinding", { at: ["spec.rollout.consumersOf"], what, fix: instead }, "OnChange");
}
