/** Finds all mistakes of a composition, and not only the first: replaces each mistake by a valid value to find the next one. Pure. */
import type { CompositionSpec } from "../api/composition.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { attemptSync, type Problem } from "../apimachinery/problem.ts";
import type { ClaimKind } from "../composition/allowed-paths.ts";
import { type CompiledComposition, compileComposition } from "../composition/compile.ts";
import { placeOf, removeAt, type Step, stepsIn } from "./place.ts";

const MAX_MISTAKES = 100;
/** A field that every object has, and one that every patch may write. */
const READABLE = "metadata.name";
const WRITABLE = "metadata.annotations[example.com/x]";
const PATCH: JsonObject = { fromFieldPath: READABLE, toFieldPath: WRITABLE };
const TRANSFORM: JsonObject = { type: "string", string: { type: "Format", fmt: "%v" } };
/** Values that are valid anywhere in a patch. For other fields, the whole patch is replaced. */
const REPLACEMENTS: Readonly<Record<string, JsonValue>> = {
  fromFieldPath: READABLE,
  toFieldPath: WRITABLE,
  policy: {},
};

export function compiledOrMistakes(spec: CompositionSpec, kind: ClaimKind): CompiledComposition | Problem[] {
  const draft = structuredClone(spec);
  const problems: Problem[] = [];
  while (problems.length < MAX_MISTAKES) {
    const compiled = attemptSync(() => compileComposition(draft, kind));
    if (!(compiled instanceof Error)) return problems.length === 0 ? compiled : problems;
    // The same message again means that the replacement did not correct the mistake.
    if (compiled.message === problems.at(-1)?.message) break;
    problems.push(compiled);
    if (!correct(draft as unknown as JsonObject, stepsIn(compiled.message))) break;
  }
  return problems;
}

/** Replaces the mistake by a valid value, or removes it. Returns whether that was possible. */
function correct(spec: JsonObject, steps: readonly Step[]): boolean {
  const depth = steps.findIndex((step, at) => step === "patches" && typeof steps[at + 1] === "number");
  if (depth >= 0) return correctPatch(spec, steps.slice(0, depth + 2), steps.slice(depth + 2));
  const [list, name, ...below] = steps;
  const entries = spec[list as string];
  // If two entries have the same name, the last one is removed.
  if (list === "bindings" && below.length === 0 && Array.isArray(entries)) {
    const twice = entries.findLastIndex((each) => isObject(each) && each["name"] === name);
    return twice >= 0 && entries.splice(twice, 1).length > 0;
  }
  if (below.at(-1) === "namespace" && valueAt(spec, steps) === undefined) {
    const metadata = valueAt(spec, steps.slice(0, -1)) ?? put(spec, steps.slice(0, -1), {});
    if (isObject(metadata)) metadata["namespace"] = "any";
    return isObject(metadata);
  }
  return removeAt(spec, steps);
}

function correctPatch(spec: JsonObject, steps: readonly Step[], within: readonly Step[]): boolean {
  const [field, index] = within;
  const replacement = Object.hasOwn(REPLACEMENTS, field ?? "") ? REPLACEMENTS[field as string] : undefined;
  if (field === "transforms" && typeof index === "number")
    return put(spec, [...steps, "transforms", index], TRANSFORM) !== undefined;
  if (replacement !== undefined) return put(spec, [...steps, field as string], replacement) !== undefined;
  return put(spec, steps, PATCH) !== undefined;
}

function valueAt(value: JsonValue | undefined, steps: readonly Step[]): JsonValue | undefined {
  return steps.reduce<JsonValue | undefined>((from, step) => {
    const place = placeOf(from, step);
    return place === undefined ? undefined : (from as JsonObject)[place];
  }, value);
}

/** Sets an existing field or element. Returns the value, or undefined if the field can't be set. */
function put(object: JsonObject, steps: readonly Step[], value: JsonValue): JsonValue | undefined {
  const holder = valueAt(object, steps.slice(0, -1));
  const last = steps.at(-1) as Step;
  const place = isObject(holder) ? String(last) : placeOf(holder, last);
  if (place === undefined) return undefined;
  const copy = structuredClone(value);
  (holder as JsonObject)[place] = copy;
  return copy;
}
