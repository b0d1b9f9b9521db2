/**
 * Extends the lookups for consumers of Secrets by those that mount them through a SecretProviderClass, and returns the watches
 * that this needs. If the account may not list the classes, no consumer is found by them.
 */
import { Problem } from "../../apimachinery/problem.ts";
import type { CollectionSubscription } from "../../cache/subscription.ts";
import type { ListedObject, Watcher } from "../../cache/watcher.ts";
import { attempt, READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import type { Identity } from "../../kube/identity.ts";
import { OptionalKind } from "../../kube/optional-kind.ts";
import { PROVIDER_CLASS, syncedBy } from "../../workloads/provider-class.ts";
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

  constructor(discovery: Pick<Discovery, "byKind">, watcher: Pick<Watcher, "list">) {
    this.#kind = new OptionalKind(discovery, PROVIDER_CLASS);
    this.#watcher = watcher;
  }

  async followed(
    key: string,
    identity: Identity,
    references: RolloutReferences,
    steps: RunSteps,
  ): Promise<WorkloadQueries> {
    const resource = references.lookups.some(isByClasses) ? await attempt(this.#kind.served()) : undefined;
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
    for (const lookup of references.lookups) {
      lookups.push(lookup);
      if (!isByClasses(lookup)) continue;
      yield;
      const { namespace, step, wide } = lookup;
      const watched = classes.get(namespace) ?? { ...all, namespace, ...(wide && { wide }) };
      classes.set(namespace, watched);
      const seen = this.#watcher.list(key, watched);
      if (seen.phase === "failed" && seen.error.status !== 403) {
        const { identity } = all;
        const problem = streamRefusal(seen.error, { identity, ref: watched, verbs: READ_VERBS }, "list");
        closed.push({ namespace, step, problem });
      }
      const mounting = mountingOf(seen.members, lookup);
      if (mounting.length > MAX_CLASSES) closed.push({ namespace, step, problem: tooMany(mounting.length, lookup) });
      lookups.push(...mounting.slice(0, MAX_CLASSES));
      if (lookups.length > MAX_LOOKUPS)
        return { ...references, lookups: [], classes: [...classes.values()], closed: [], problem: tooManyLookups() };
    }
    return { ...references, lookups, classes: [...classes.values()], closed };
  }
}

type OfSecret = WorkloadLookup & { find: Extract<WorkloadLookup["find"], { by: "reference" }> };

const isByClasses = (lookup: WorkloadLookup): lookup is OfSecret =>
  lookup.find.by === "reference" && lookup.find.kind === "Secret" && (lookup.find.ways?.includes("csi") ?? true);

/** The lookups for the classes that write the Secret of a lookup. */
function mountingOf(classes: readonly ListedObject[], { find, ...place }: OfSecret): WorkloadLookup[] {
  return classes.flatMap(({ name, version }) =>
    syncedBy(version.spec)
      .filter(({ secret }) => secret === find.name)
      .map(({ keys }): WorkloadLookup => {
        const by = { by: "reference", kind: "SecretProviderClass", name, uses: find.uses } as const;
        return { ...place, find: { ...by, ...(keys && { keys }) } };
      }),
  );
}

function tooMany(count: number, { find: { name } }: OfSecret): Problem {
  const what = `${count} SecretProviderClasses write the Secret ${name}, and Inlay follows at most ${MAX_CLASSES}`;
  const instead = "name the workloads in spec.rollout.targets";
  return new Problem("InvalidBinding", `spec.rollout.consumersOf: ${what}; ${instead}`, "OnChange");
}
