/**
 * Finds the managers that own a field, from managedFields and the path alone. The values of the object are not needed, so a user without
 * permission for them can find the owner. Pure.
 */
import { type FieldPath, type Segment, sameSegment } from "../apimachinery/field-path.ts";
import type { JsonObject, ManagedFieldsEntry } from "../apimachinery/objects.ts";
import { isLeaf, segmentOf } from "../apply/ownership.ts";

/** In the order of managedFields, without duplicates. A manager of fields below the path owns the path too. */
export function holdersOf(entries: readonly ManagedFieldsEntry[], { segments }: FieldPath): string[] {
  const by = (holds: (fields: JsonObject, path: readonly Segment[]) => boolean) => [
    ...new Set(entries.filter(({ fieldsV1 }) => holds(fieldsV1 ?? {}, segments)).map(nameOf)),
  ];
  const exact = by(reaches);
  // An object or list that is owned as one value has no entries below it. The same is true if it was empty when it was written, but then
  // the manager that filled it has its own entry.
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

const childrenBy = (fields: JsonObject, segment: Segment): JsonObject[] =>
  Object.entries(fields).flatMap(([name, child]) => (isMeant(segment, segmentOf(name)) ? [child as JsonObject] : []));

/** A path may omit keys of an element, and name other fields of it. */
function isMeant(segment: Segment, held: Segment | undefined): boolean {
  if (segment.kind !== "element" || held?.kind !== "element") return sameSegment(segment, held);
  const keys = new Map(held.conditions.map(({ key, value }) => [key, value]));
  const known = segment.conditions.filter(({ key }) => keys.has(key));
  return known.length > 0 && known.every(({ key, value }) => keys.get(key) === value);
}
