/** Applies a patch: reads fields of one object, computes a value, and writes it into the other object. */
import { FieldPath, type Segment } from "../../apimachinery/field-path.ts";
import { stringifyJson } from "../../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { CompiledPatch } from "./compile.ts";
import { expandWildcards, getField, removeField } from "./fields.ts";
import { copyJson, mergeValue } from "./merge.ts";
import { isConcrete } from "./path.ts";

/** More characters of JSON than the API server accepts. Without a limit, wildcards could multiply a large value beyond the memory. */
const MAX_WRITTEN_LENGTH = 4 * 1024 * 1024;

/** `paths`: the fields that the patch wrote, or removed because the value is null. `path`: the first missing field. */
export type PatchOutcome = { outcome: "written"; paths: FieldPath[] } | { outcome: "missing"; path: string };

/**
 * Changes `into`, which never shares structure with `from`. Throws Problem("InvalidValue") with the place of the patch, the path and the
 * rule; then `into` may be partly changed.
 */
export function applyPatch(patch: CompiledPatch, from: JsonObject, into: JsonObject): PatchOutcome {
  const values: JsonValue[] = [];
  for (const { segments, text } of patch.reads) {
    const value = atPlace(`${patch.place}: can't read ${text}`, () => getField(from, segments));
    if (value === undefined) return { outcome: "missing", path: text };
    values.push(value);
  }
  const source = `${patch.place}, ${patch.reads.map(({ text }) => text).join(" and ")}`;
  const value = atPlace(source, () => {
    const [given = null] = patch.combine === undefined ? values : [patch.combine(values)];
    return patch.transforms.apply(given);
  });
  const target = `${patch.place}: can't write ${patch.writes.text}`;
  return { outcome: "written", paths: atPlace(target, () => writeValue(patch, value, into)) };
}

function writeValue({ writes, merge }: CompiledPatch, value: JsonValue, into: JsonObject): FieldPath[] {
  const paths = isConcrete(writes) ? [writes.segments] : expandWildcards(into, writes.segments);
  if (paths.length === 0)
    throw new Problem("InvalidValue", "[*] matches no field; it matches only existing fields, so write them first");
  if (value === null) {
    // From the last to the first, because removing an element changes the indices after it.
    for (const path of paths.toReversed()) removeField(into, path);
  } else {
    if (paths.length > 1 && stringifyJson(value).length * paths.length > MAX_WRITTEN_LENGTH)
      throw new Problem("InvalidValue", "the value is too large for so many fields; write fewer of them");
    for (const path of paths) mergeValue(into, path, copyJson(value), merge);
  }
  return paths.map((path) => new FieldPath(path as readonly Segment[]));
}

function atPlace<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new Problem("InvalidValue", `${place}: ${error.message}`);
  }
}
