/**
 * Finds the values that a binding writes into the keys of a Secret or ConfigMap. A workload that reads that object restarts for
 * the values of the keys that it reads. Pure.
 */
import type { Field, Target } from "../../api/binding.ts";
import { digestId } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import type { ParsedSource } from "../../sources/source.ts";
import { usesOf } from "../../sources/uses.ts";
import { type KeyFilter, keyFilter, newFilterEffort } from "../../transform/key-filter.ts";
import { compileTemplate } from "../../transform/template.ts";

/** The ids of the digests behind some keys of an object; behind all keys if `keys` is undefined. */
export type UsesOfKeys = (keys: readonly string[] | undefined) => readonly string[];

/** The fields of Secrets and ConfigMaps that contain keys. */
const DATA = ["data", "stringData", "binaryData"];

/** What a field writes: one key, or all keys. */
interface WrittenData {
  key: string | undefined;
  /** The values behind one of the keys that it writes. */
  usesOf(key: string): readonly string[];
  /** The values behind all of them. */
  uses: readonly string[];
}

/** For a target that is a Secret or ConfigMap. */
export function writtenUses(sources: readonly ParsedSource[], target: Target): UsesOfKeys {
  const written = target.fields.flatMap((field) => writtenBy(sources, field) ?? []);
  const all = [...new Set(written.flatMap(({ uses }) => uses))];
  return (keys) => {
    if (keys === undefined) return all;
    const found = keys.flatMap((key) =>
      written.flatMap((each) => (each.key === undefined || each.key === key ? each.usesOf(key) : [])),
    );
    return [...new Set(found)];
  };
}

/** Undefined for a field outside of the keys, and for an invalid path: the condition Ready reports that. */
function writtenBy(sources: readonly ParsedSource[], field: Field): WrittenData | undefined {
  const path = attemptSync(() => FieldPath.parse(field.path));
  if (path instanceof Problem) return undefined;
  const [root, below] = path.segments;
  if (root?.kind !== "key" || !DATA.includes(root.key)) return undefined;
  const uses = usesOf(sources, field, (text) => compileTemplate(text).references).map(({ source, of }) =>
    digestId(source, of),
  );
  const key = below?.kind === "key" ? below.key : undefined;
  const { from } = field;
  // A copy of all data of a source keeps its keys.
  const isCopy = key === undefined && from !== undefined && from.key === undefined && from.fieldPath === undefined;
  if (!isCopy) return { key, uses, usesOf: () => uses };
  const passes = passing(from);
  return { key, uses, usesOf: (of) => (passes(of) ? [digestId(from.source, of)] : []) };
}

/** Whether include and exclude permit a key. If they are invalid, every key passes: at worst a workload restarts too often. */
function passing(filter: KeyFilter): (key: string) => boolean {
  const passes = attemptSync(() => keyFilter(filter, "from", newFilterEffort()));
  if (passes instanceof Problem) return () => true;
  // A thousand workloads read the same few keys.
  const known = new Map<string, boolean>();
  return (key) => {
    const found = known.get(key) ?? attemptSync(() => passes(key));
    const isPassed = found instanceof Problem || found;
    known.set(key, isPassed);
    return isPassed;
  };
}
