/**
 * Plans a JSON Patch for paths into lists and objects that server-side apply replaces as a whole. All other elements and
 * fields stay. Pure.
 */
import jsonPatch, { type AddOperation, type ReplaceOperation } from "fast-json-patch";
import { FieldPath, type Segment, step } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { type Located, locateField } from "./decide.ts";
import { conditionsOf, placeIn } from "./locate.ts";

/** Restricts a JSON Patch to the version that was read. For any other version, the API server answers 409. */
export function onlyTo({ metadata }: KubeObject): JsonPatchOperation {
  return { op: "replace", path: "/metadata/resourceVersion", value: metadata.resourceVersion };
}

/**
 * The patch tests what it replaces: the object's uid, the keys of an element, and the old value. So others may change
 * everything else at the same time, and a late patch fails. What can't be tested needs the version that was read: an
 * index, a new value, a value that is an object or list. With `byVersion`, the patch always needs that version.
 */
export function planPatch(
  live: KubeObject,
  fields: readonly Located[],
  shape: TargetShape,
  { byVersion = false } = {},
): JsonPatchOperation[] {
  const draft = new Draft(live as unknown as JsonObject, shape);
  for (const { path, value } of fields) draft.put(path, value.reveal());
  if (byVersion || !draft.isTestable) return [onlyTo(live), ...draft.changes];
  return [{ op: "test", path: "/metadata/uid", value: live.metadata.uid }, ...draft.tests, ...draft.changes];
}

/** A copy of the object with the values. Throws what `locate` throws, and Problem("ElementNotFound"). */
export function withValues(object: JsonObject, fields: readonly PlannedField[], shape: TargetShape): JsonObject {
  const draft = new Draft(object, shape);
  for (const field of fields) {
    const { path, value } = locateField(field, shape, draft.after);
    draft.put(path, value.reveal());
  }
  return draft.after;
}

class Draft {
  readonly tests: JsonPatchOperation[] = [];
  readonly changes: JsonPatchOperation[] = [];
  isTestable = true;
  /** The object with all changes so far: several fields may go into one new element. */
  readonly after: JsonObject;
  readonly #shape: TargetShape;

  constructor(object: JsonObject, shape: TargetShape) {
    this.after = structuredClone(object);
    this.#shape = shape;
  }

  put(path: FieldPath, value: JsonValue): void {
    let node: JsonObject | JsonValue[] = this.after;
    let at = new FieldPath([]);
    for (const [position, segment] of path.segments.entries()) {
      const place = this.#placeOf(node, segment, path.upTo(position + 1));
      const child = place && (step(node, place) as JsonValue | undefined);
      const isLast = position === path.segments.length - 1;
      if (place === undefined || child === undefined || child === null || isLast) {
        const added = this.#valueFor(path, position, value);
        if (place === undefined || child === undefined) this.#add(at, segment, added);
        else this.#replace(at.with(place), child, added);
        return;
      }
      at = at.with(place);
      for (const { key } of conditionsOf(segment))
        this.#test(at.with({ kind: "key", key }), (child as JsonObject)[key]);
      node = child as JsonObject | JsonValue[];
    }
  }

  #placeOf(
    node: JsonObject | JsonValue[],
    segment: Segment,
    path: FieldPath,
  ): Exclude<Segment, { kind: "element" }> | undefined {
    if (segment.kind === "key") return segment;
    this.isTestable &&= segment.kind === "element";
    const index = placeIn(node as JsonValue[], segment, path, this.after);
    return index === undefined ? undefined : { kind: "index", index };
  }

  /** The value at the segment of that position, such that the path's end has `value`. */
  #valueFor(path: FieldPath, position: number, value: JsonValue): JsonValue {
    const next = path.segments[position + 1];
    const within = next === undefined ? value : this.#valueFor(path, position + 1, value);
    const segment = path.segments[position] as Segment;
    const below = next?.kind === "key" ? { [next.key]: within } : next === undefined ? within : [within];
    if (segment.kind !== "element" || next === undefined) return below;
    return { ...this.#shape.elementOf(path.upTo(position), segment.conditions), ...(below as JsonObject) };
  }

  #add(at: FieldPath, segment: Segment, value: JsonValue): void {
    this.isTestable = false;
    const path = segment.kind === "key" ? at.with(segment).toJsonPointer() : `${at.toJsonPointer()}/-`;
    this.#change({ op: "add", path, value });
  }

  #replace(at: FieldPath, before: JsonValue, value: JsonValue): void {
    this.#test(at, before);
    if (!sameJson(before, value)) this.#change({ op: "replace", path: at.toJsonPointer(), value });
  }

  #change(operation: AddOperation<JsonValue> | ReplaceOperation<JsonValue>): void {
    this.changes.push(operation);
    jsonPatch.applyOperation(this.after, structuredClone(operation));
  }

  /** The API server compares texts, so an unchanged fraction or object may differ. These are not tested. */
  #test(at: FieldPath, value: JsonValue | undefined): void {
    const isPlain = typeof value === "string" || typeof value === "boolean" || typeof value === "bigint";
    if (isPlain || Number.isSafeInteger(value)) this.tests.push({ op: "test", path: at.toJsonPointer(), value });
    else this.isTestable = false;
  }
}
