/**
 * Where the consumers of Secrets are looked for comes in; where those are that mount them by a SecretProviderClass goes out
 * too, and what has to be watched to know. Where the account may not list such classes, nothing is found by them.
 */

import type { Resource } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { Member, Streams } from "../../cache/informers.ts";
import type { Collection } from "../../cache/subscription.ts";
import { attempt, READ_VERBS, streamRefusal } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import type { Identity } from "../../kube/identity.ts";
import { RareKind } from "../../kube/optional-kind.ts";
import { PROVIDER_CLASS, syncedBy } from "../../workloads/provider-class.ts";
import type { Lookup, RolloutReferences } from "./lookups.ts";

/** For one source. */
const MOST_CLASSES = 64;

/** With the classes that bring Secrets to pods, which have to be watched. */
export interface Followed extends RolloutReferences {
  classes: readonly Collection[];
}

export class ProviderClasses {
  /** Every binding that restarts consumers asks for it. */
  readonly #kind: RareKind;
  readonly #streams: Streams;

  constructor(discovery: Discovery, streams: Streams) {
    this.#kind = new RareKind(discovery, PROVIDER_CLASS);
    this.#streams = streams;
  }

  async followed(key: string, identity: Identity, references: RolloutReferences): Promise<Followed> {
    if (!references.lookups.some(isOfSecret)) return { ...references, classes: [] };
    const resource = await attempt(this.#kind.served());
    if (resource === undefined) return { ...references, classes: [] };
    if (resource instanceof Problem) return { ...references, classes: [], problem: references.problem ?? resource };
    const classes = new Map<string, Collection>();
    let { problem } = references;
    const lookups = references.lookups.flatMap((lookup): Lookup[] => {
      if (!isOfSecret(lookup)) return [lookup];
      const { namespace } = lookup;
      const watched = classes.get(namespace) ?? classesIn(identity, resource, namespace);
      classes.set(namespace, watched);
      const seen = this.#streams.members(key, watched);
      if (seen.phase === "failed" && seen.error.status !== 403)
        problem ??= streamRefusal(seen.error, { identity, ref: watched, verbs: READ_VERBS }, "list");
      const mounting = mountingOf(seen.members, lookup);
      if (mounting.length > MOST_CLASSES) problem ??= tooMany(mounting.length, lookup);
      return [lookup, ...mounting.slice(0, MOST_CLASSES)];
    });
    return { ...references, lookups, classes: [...classes.values()], problem };
  }
}

type OfSecret = Lookup & { find: Extract<Lookup["find"], { by: "reference" }> };

const isOfSecret = (lookup: Lookup): lookup is OfSecret =>
  lookup.find.by === "reference" && lookup.find.kind === "Secret";

/** Those of a lookup by the classes that there are. */
function mountingOf(classes: readonly Member[], { find, ...place }: OfSecret): Lookup[] {
  return classes.flatMap(({ name, version }) =>
    syncedBy(version.spec)
      .filter(({ secret }) => secret === find.name)
      .map(({ keys }): Lookup => {
        const by = { by: "reference", source: find.source, kind: "SecretProviderClass", name } as const;
        return { ...place, find: { ...by, ...(keys && { keys }) } };
      }),
  );
}

function tooMany(count: number, { find: { name } }: OfSecret): Problem {
  const what = `${count} SecretProviderClasses write the Secret ${name}, and Inlay follows ${MOST_CLASSES}`;
  const instead = "name the workloads in spec.rollout.targets";
  return new Problem("InvalidBinding", `spec.rollout.consumersOf: ${what}; ${instead}`, "event");
}

const classesIn = (identity: Identity, resource: Resource, namespace: string): Collection => ({
  identity,
  resource,
  namespace,
  labels: "",
  names: undefined,
  whole: true,
});
