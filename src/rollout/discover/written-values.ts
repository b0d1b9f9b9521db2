/**
 * Finds the values that a binding writes into the keys of a Secret or ConfigMap, so that a workload which reads that object restarts
 * for the values behind the keys that it reads. Pure.
 */
import type { Field, Target } from "../../api/binding.ts";
import { digestId } from "../../api/rollout.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import type { ParsedSource } from "../../sources/source.ts";
import { usesOf } from "../../sources/uses.ts";
import { type KeyFilter, keyFilter, newFilterEffort } from "../../transform/key-filter.ts";
import { compileTemplate } from "../../transform/template.ts";

/** The ids of the digests behind some keys of an object; behind all of its keys where `keys` is undefined. */
export type UsesOfKeys = (keys: readonly string[] | undefined) => readonly string[];

/** Where Secrets and ConfigMaps have their keys. */
const DATA = ["data", "stringData", "binaryData"];

/** What a field writes: into one key, or into all of them. */
interface WrittenData {
  key: string | undefined;
  /** Behind one of the keys that it writes. */
  usesOf(key: string): readonly string[];
  /** Behind all of them. */
  uses: readonly string[];
}

/** Of a target that is a Secret or ConfigMap. */
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

/** Undefined for a field outside of the keys, and for a path that can't be parsed: the condition Ready says what is wrong with it. */
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
  // All data of a source keeps its keys.
  const isCopy = key === undefined && from !== undefined && from.key === undefined && from.fieldPath === undefined;
  if (!isCopy) return { key, uses, usesOf: () => uses };
  const passes = passing(from);
  return { key, uses, usesOf: (of) => (passes(of) ? [digestId(from.source, of)] : []) };
}

/** Whether include and exclude let a key through. Where they can't tell, it passes: at worst a workload restarts too often. */
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
