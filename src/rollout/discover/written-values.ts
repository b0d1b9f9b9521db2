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
  return { key, uses, usesOf: (of) => (isCopy ? [digestId(from.source, of)] : uses) };
}
