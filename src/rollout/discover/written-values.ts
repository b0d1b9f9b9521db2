/**
 * Finds the values that a binding writes before its rollout, in total and into the keys of a Secret or ConfigMap. A workload that reads that
 * object restarts for the values of the keys that it reads. Pure.
 */
import {
  copiesAll,
  type Field,
  fieldsOfTarget,
  isAfterRollout,
  type SecretBinding,
  sourcesIn,
  type Target,
} from "../../api/binding.ts";
import { digestId } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { getOrInsert, SetsByKey } from "../../apimachinery/maps.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import { parseSources } from "../../sources/registry.ts";
import { usesOf } from "../../sources/uses.ts";
import { type KeyFilter, keyFilter, newFilterEffort } from "../../transform/key-filter.ts";
import { compileTemplate } from "../../transform/template.ts";

/** The most different values for which one binding restarts workloads. */
export const MAX_USES = 5_000;

/** The ids of the digests behind some keys of an object; behind all keys if `keys` is undefined. */
export type UsesOfKeys = (keys: readonly string[] | undefined) => readonly string[];

/** The ids of the digests of the values that fields use, without those of targets that are written after the rollout. */
interface FieldUses {
  byField: ReadonlyMap<Field, readonly string[]>;
  /** Sorted. */
  all: ReadonlySet<string>;
}

/** By spec: one reconcile needs them several times, and parsing all templates takes up to half a second. */
const known = new WeakMap<SecretBinding["spec"], FieldUses | Problem>();

/** Returns Problem("InvalidBinding") for more than MAX_USES. Yields where it may be interrupted. */
export function* usesOfFields(binding: SecretBinding): Generator<void, FieldUses | Problem> {
  const uses = known.get(binding.spec) ?? (yield* findUses(binding));
  known.set(binding.spec, uses);
  return uses;
}

function* findUses(binding: SecretBinding): Generator<void, FieldUses | Problem> {
  const sources = parseSources(binding);
  const byField = new Map<Field, readonly string[]>();
  /** The same text for all fields. */
  const ids = new Map<string, string>();
  for (const target of binding.spec.targets) {
    if (isAfterRollout(target)) continue;
    for (const field of fieldsOfTarget(target)) {
      yield;
      const uses = usesOf(sources, field, (text) => compileTemplate(text).references).map(({ source, of }) => {
        const id = digestId(source, of);
        return getOrInsert(ids, id, () => id);
      });
      if (ids.size > MAX_USES) return tooManyUses();
      byField.set(field, uses);
    }
  }
  return { byField, all: new Set([...ids.keys()].sort()) };
}

export function tooManyUses(): Problem {
  const what = `spec.rollout: workloads restart for more than ${MAX_USES.toLocaleString("en")} different values`;
  const instead = "use fewer keys and fields of the sources, or split the binding";
  return new Problem("InvalidBinding", `${what}; ${instead}`, "OnChange");
}

/** The fields of Secrets and ConfigMaps that contain keys. */
const DATA = ["data", "stringData", "binaryData"];

/** The values behind some of the keys that a field writes. */
type Written = (key: string) => readonly string[];

/** For a target that is a Secret or ConfigMap. */
export function writtenUses({ byField }: FieldUses, target: Target): UsesOfKeys {
  const all = new Set<string>();
  /** Fields that write one key. */
  const byKey = new SetsByKey<string, string>();
  /** Fields that write all keys, by their path: a target with two fields for one path is never written. */
  const whole = new Map<string, Written>();
  for (const field of fieldsOfTarget(target)) {
    const at = keyAt(field);
    if (at === undefined) continue;
    const uses = byField.get(field) ?? [];
    for (const use of uses) all.add(use);
    if (at.key === undefined) {
      if (!whole.has(at.root)) whole.set(at.root, writtenToAll(field, uses));
    } else {
      for (const use of uses) byKey.add(at.key, use);
    }
  }
  const ofAll = [...all];
  return (keys) => {
    if (keys === undefined) return ofAll;
    const found = new Set<Iterable<string>>();
    for (const key of keys) {
      found.add(byKey.get(key) ?? []);
      for (const written of whole.values()) found.add(written(key));
    }
    return [...new Set([...found].flatMap((uses) => [...uses]))];
  };
}

/** The key that a field writes. Undefined for a field outside of the keys, and for an invalid path: the condition Ready reports that. */
function keyAt({ path: text }: Field): { root: string; key?: string } | undefined {
  const path = attemptSync(() => FieldPath.parse(text));
  if (path instanceof Problem) return undefined;
  const [root, below] = path.segments;
  if (root?.kind !== "key" || !DATA.includes(root.key)) return undefined;
  if (below === undefined) return { root: root.key };
  return below.kind === "key" ? { root: root.key, key: below.key } : undefined;
}

/** A copy of all data of a source keeps its keys. */
function writtenToAll(field: Field, uses: readonly string[]): Written {
  const { from } = field;
  if (from === undefined || !copiesAll(field)) return () => uses;
  const passes = passing(from);
  return (key) => (passes(key) ? sourcesIn(from).map((source) => digestId(source, key)) : []);
}

/** Whether include and exclude permit a key. If they are invalid, every key passes: at worst a workload restarts too often. */
function passing(filter: KeyFilter): (key: string) => boolean {
  const passes = attemptSync(() => keyFilter(filter, "from", newFilterEffort()));
  if (passes instanceof Problem) return () => true;
  // A thousand workloads read the same few keys.
  const known = new Map<string, boolean>();
  return (key) =>
    getOrInsert(known, key, () => {
      const found = attemptSync(() => passes(key));
      return found instanceof Problem || found;
    });
}
