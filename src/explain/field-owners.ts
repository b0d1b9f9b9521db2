/**
 * managedFields and a path come in; the managers who hold what stands there now go out. The object's own fields are not
 * needed, so that nobody has to read a value to tell whose it is. Pure.
 */
import type { FieldPath, Segment } from "../apimachinery/field-path.ts";
import { parseJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, ManagedFieldsEntry } from "../apimachinery/objects.ts";

/** In the order of managedFields, each once. Those who hold what is below the path hold of it too. */
export function holdersOf(entries: readonly ManagedFieldsEntry[], { segments }: FieldPath): string[] {
  const by = (holds: (fields: JsonObject, path: readonly Segment[]) => boolean) => [
    ...new Set(entries.filter(({ fieldsV1 }) => holds(fieldsV1 ?? {}, segments)).map(nameOf)),
  ];
  const exact = by(reaches);
  // An object or a list that is held as one value has nothing below it. Neither has one that was empty when it was
  // written, but then whoever filled it stands there himself.
  return exact.length > 0 ? exact : by(endsAbove);
}

function nameOf({ manager = "unknown", subresource }: ManagedFieldsEntry): string {
  return subresource ? `${manager} (${subresource})` : manager;
}

function reaches(fields: JsonObject, [first, ...rest]: readonly Segment[]): boolean {
  return first === undefined || childrenBy(fields, first).some((child) => reaches(child, rest));
}

function endsAbove(fields: JsonObject, [first, ...rest]: readonly Segment[]): boolean {
  if (first === undefined) return false;
  return childrenBy(fields, first).some((child) => isLeaf(child) || endsAbove(child, rest));
}

const isLeaf = (fields: JsonObject) => Object.keys(fields).every((name) => name === ".");

function childrenBy(fields: JsonObject, segment: Segment): JsonObject[] {
  if (segment.kind === "key") {
    const child = Object.hasOwn(fields, `f:${segment.key}`) ? fields[`f:${segment.key}`] : undefined;
    return child === undefined ? [] : [child as JsonObject];
  }
  // An element that is named by its place is one of an atomic list, which is held above.
  if (segment.kind === "index") return [];
  const isMeant = (name: string) => {
    const keys = keysIn(name);
    const told = segment.conditions.filter(({ key }) => Object.hasOwn(keys, key));
    return told.length > 0 && told.every(({ key, value }) => String(keys[key]) === value);
  };
  return Object.entries(fields).flatMap(([name, child]) =>
    name.startsWith("k:") && isMeant(name) ? [child as JsonObject] : [],
  );
}

const keysIn = (name: string) => parseJson(name.slice(2)) as Record<string, JsonValue>;
