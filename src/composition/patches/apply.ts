/** Applies a patch: reads fields of one object, computes a value, and writes it into the other object. */
import { FieldPath, type Segment } from "../../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import type { CompiledPatch } from "./compile.ts";
import { expandWildcards, getField, removeField } from "./fields.ts";
import { invalid } from "./go/value.ts";
import { copyJson, mergeValue } from "./merge.ts";
import { type CompositePath, isConcrete } from "./path.ts";
import type { Work } from "./work.ts";

/**
 * `paths`: the fields that the patch wrote, or removed because the value is null; none if the list of a wildcard is empty. `path`: the
 * first missing field.
 */
export type PatchOutcome = { outcome: "written"; paths: FieldPath[] } | { outcome: "missing"; path: string };

/**
 * Changes `into`, which never shares structure with `from`. Throws Problem("InvalidValue"), or "TooLarge" if it needs more than the `work`,
 * with the place of the patch, the path and the rule; then `into` may be partly changed.
 */
export function applyPatch(patch: CompiledPatch, from: JsonObject, into: JsonObject, work: Work): PatchOutcome {
  const values: JsonValue[] = [];
  for (const { segments, text } of patch.reads) {
    const value = atPlace(patch, `can't read ${text}`, () => getField(from, segments));
    if (value === undefined) return { outcome: "missing", path: text };
    atPlace(patch, `can't read ${text}`, () => assertFits(value, patch, work));
    values.push(value);
  }
  const source = patch.reads.map(({ text }) => text).join(" and ");
  const value = atPlace(patch, source, () => {
    const [given = null] = patch.combine === undefined ? values : [patch.combine(values)];
    return patch.transforms.apply(given, work);
  });
  const write = () => writeValue(patch, value, into, work);
  return { outcome: "written", paths: atPlace(patch, `can't write ${patch.writes.text}`, write) };
}

/** Checks a value before it is converted and copied. */
function assertFits(value: JsonValue, { maxItems = Infinity, transforms, combine }: CompiledPatch, work: Work): void {
  const isWritten = combine === undefined && (transforms.isNone || transforms.elements !== undefined);
  if (isWritten) assertShort(value, maxItems);
  work.value(value);
}

function assertShort(value: JsonValue, maxItems = Infinity): void {
  if (Array.isArray(value) && value.length > maxItems)
    throw invalid(`the list has ${value.length} elements, and the binding takes at most ${maxItems}`);
}

function writeValue(patch: CompiledPatch, value: JsonValue, into: JsonObject, work: Work): FieldPath[] {
  const { writes, merge, maxItems } = patch;
  assertShort(value, maxItems);
  const paths = isConcrete(writes) ? [writes.segments] : expandWildcards(into, writes.segments);
  if (paths.length === 0 && (patch.isRequired || hasElements(writes, into)))
    throw invalid("[*] matches no field; it matches only existing fields, so write them first");
  if (value === null) {
    // From the last to the first, because removing an element changes the indices after it.
    for (const path of paths.toReversed()) removeField(into, path);
  } else {
    work.value(value, paths.length);
    for (const path of paths) {
      if (merge !== undefined) work.value(getField(into, path) ?? null);
      mergeValue(into, path, copyJson(value), merge);
    }
  }
  return paths.map((path) => new FieldPath(path as readonly Segment[]));
}

/** Whether the wildcards themselves match: then all elements lack the field. */
function hasElements({ segments }: CompositePath, into: JsonObject): boolean {
  const end = segments.findLastIndex(({ kind }) => kind === "wildcard");
  return expandWildcards(into, segments.slice(0, end + 1)).length > 0;
}

function atPlace<T>({ place }: CompiledPatch, what: string, work: () => T): T {
  const result = attemptSync(work);
  if (result instanceof Problem) throw result.within(place, what);
  return result;
}
