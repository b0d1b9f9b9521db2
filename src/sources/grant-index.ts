/** Finds the SecretGrants of a namespace by the objects that they cover. Only the oldest grants count, up to a limit. */
import type { Limits } from "../api/limits.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { ListedObject } from "../cache/watcher.ts";
import { type Asker, namesAsker } from "./grant-rules.ts";

type Spec = SecretGrant["spec"];

export interface Grant {
  readonly name: string;
  /** Its resourceVersion. */
  readonly version: string;
  readonly createdAt: number;
  readonly spec: Spec;
}

export type GrantLimits = Pick<Limits, "grantsPerNamespace" | "grantsPerSource">;

/** How often a walk over many grants may be interrupted. */
const STEP = 256;

export class GrantIndex {
  /** The grants that name an object, by its kind and name, and those that select objects, by kind. */
  readonly #covering = new Map<string, Grant[]>();
  /** The grants that don't count because the namespace has too many. */
  readonly uncounted: readonly ListedObject[];
  /** The grants that don't count because each is too large. */
  readonly tooLarge: readonly ListedObject[];

  constructor(counted: readonly Grant[], uncounted: readonly ListedObject[], tooLarge: readonly ListedObject[]) {
    this.uncounted = uncounted;
    this.tooLarge = tooLarge;
    for (const grant of counted) {
      const keys = grant.spec.to.map(({ kind, name }) => (name === undefined ? kind : `${kind}/${name}`));
      for (const key of new Set(keys)) getOrInsert(this.#covering, key, () => []).push(grant);
    }
  }

  /** The grants that name or select the object's kind and name the binding in some way, the oldest first. */
  for(asker: Asker, { resource: { kind }, name }: Pick<ObjectRef, "resource" | "name">): Grant[] {
    const found = [`${kind}/${name}`, kind].flatMap((key) => this.#covering.get(key) ?? []);
    return [...new Set(found)].filter(({ spec }) => namesAsker(spec, asker)).sort(byAge);
  }
}

const byAge = (a: Pick<Grant, "createdAt" | "name">, b: Pick<Grant, "createdAt" | "name">) =>
  a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);

/** By the members of a collection, which are the same array until one of them changes. */
const indexes = new WeakMap<readonly ListedObject[], GrantIndex>();

/** The index of the grants of a namespace, and whether it is new. */
export function* indexOf(
  members: readonly ListedObject[],
  { grantsPerNamespace }: GrantLimits,
): Generator<void, { index: GrantIndex; isNew: boolean }> {
  const known = indexes.get(members);
  if (known !== undefined) return { index: known, isNew: false };
  // Grants that are being deleted permit nothing, and finalizers can keep thousands of them.
  const present = members.filter(({ version }) => version.isDeleted === undefined);
  yield;
  const isCounted = oldest(present, grantsPerNamespace);
  yield;
  const counted: Grant[] = [];
  const [uncounted, tooLarge]: [ListedObject[], ListedObject[]] = [[], []];
  for (const [at, each] of present.entries()) {
    if (at % STEP === STEP - 1) yield;
    const { createdAt = 0, resourceVersion, spec } = each.version;
    if (!isCounted(each)) uncounted.push(each);
    else if (spec === undefined) tooLarge.push(each);
    else counted.push({ name: each.name, version: resourceVersion, createdAt, spec: spec as Spec });
  }
  const index = new GrantIndex(counted.sort(byAge), uncounted, tooLarge);
  indexes.set(members, index);
  return { index, isNew: true };
}

/** Whether an object is among the oldest. Those that were created in one second count in the order of their names. */
function oldest(members: readonly ListedObject[], most: number): (member: ListedObject) => boolean {
  if (members.length <= most) return () => true;
  const timeOf = ({ version: { createdAt = 0 } }: ListedObject) => createdAt;
  const times = Float64Array.from(members, timeOf).sort();
  const last = times[most - 1] as number;
  const older = times.indexOf(last);
  const names = members.flatMap((each) => (timeOf(each) === last ? [each.name] : [])).sort();
  const counted = new Set(names.slice(0, most - older));
  return (member) => timeOf(member) < last || (timeOf(member) === last && counted.has(member.name));
}
