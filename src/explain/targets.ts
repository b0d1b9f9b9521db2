/** Explains the objects that a binding writes: their entries in status, and the owners of their fields. */
import {
  type Field,
  fieldsOfTarget,
  type SecretBinding,
  selects,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import { type FieldPath, type Segment, sameSegment } from "../apimachinery/field-path.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels } from "../apimachinery/label-selector.ts";
import {
  isSameKind,
  type JsonObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { parsePaths } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import { isLeaf, segmentOf } from "../apply/ownership.ts";
import { attempt } from "../kube/access-error.ts";
import { parseSources } from "../sources/registry.ts";
import { describeUse, type ReadTemplate, usesOf } from "../sources/uses.ts";
import type { ObjectExplanation, TargetExplanation, WayOfTarget } from "./explanation.ts";
import { type Reading, seenOf } from "./reading.ts";
import type { Tools } from "./tools.ts";

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

/** The most objects of a selecting target that are read. Those with problems come first. */
const MAX_OBJECTS = 20;

type Named = Pick<TargetStatus, "namespace" | "name">;

/** In the order of the spec, followed by objects that the spec no longer names. */
export async function explainTargets(
  tools: Tools,
  binding: SecretBinding,
  readTemplate: ReadTemplate,
): Promise<TargetExplanation[]> {
  const { targets } = binding.spec;
  const records = binding.status?.targets ?? [];
  const sources = parseSources(binding);
  const textOf = (field: Field) => usesOf(sources, field, readTemplate).map(describeUse);
  const recordsOf = targets.map((target) => records.filter(recordMatcher(target, binding)));
  const seen = targets.map((target, position) => {
    const fields = fieldsOfTarget(target).map((field) => ({ path: field.path, from: textOf(field) }));
    return explainTarget(tools, binding, target, fields, recordsOf[position] ?? []);
  });
  const meant = new Set(recordsOf.flat());
  const left = records.filter((record) => !meant.has(record));
  return [...(await Promise.all(seen)), ...leftovers(left)];
}

/** Returns a predicate for records that may belong to a target. Only the object itself shows whether a label selector matches it. */
export function recordMatcher(target: Target, { metadata }: SecretBinding): (record: TargetStatus) => boolean {
  const { name, selector, namespaceSelector, namespace = metadata.namespace } = target;
  const isNamed = name === undefined ? nameMatcher(selector?.names, selector?.exceptNames) : nameMatcher([name]);
  const isSelected = namespaceSelector && nameMatcher(namespaceSelector.names, namespaceSelector.exceptNames);
  return (record) => {
    const isThere = isSelected?.(record.namespace ?? "") ?? [undefined, namespace].includes(record.namespace);
    const isAlike = isSameKind(target, record) && (record.selected ?? false) === selects(target);
    return isAlike && isNamed(record.name) && isThere;
  };
}

export const wayOf = ({ create, when }: Target): WayOfTarget => ({
  creates: create !== undefined,
  ...(create?.adopt && { adopts: create.adopt }),
  ...(when === "AfterRollout" && { when }),
});

async function explainTarget(
  { reader, discovery }: Tools,
  binding: SecretBinding,
  target: Target,
  fields: TargetExplanation["fields"],
  records: readonly TargetStatus[],
): Promise<TargetExplanation> {
  const { apiVersion, kind, selector } = target;
  const base = { apiVersion, kind, selects: selects(target), ...wayOf(target), fields };
  const found = await attempt(discovery.byKind(apiVersion, kind));
  const resource = found ?? (await discovery.kindNotFound(apiVersion, kind));
  if (resource instanceof Problem) return { ...base, objects: [], more: 0, message: resource.message };
  const named = base.selects ? inOrderOfTrouble(records) : [namedBy(binding, target, resource)];
  const objects = named.slice(0, MAX_OBJECTS).map(async ({ namespace, name }) => {
    const ref: ObjectRef = { resource, name, ...(namespace !== undefined && { namespace }) };
    const reading = await reader.get(ref, ({ metadata }) => metadata);
    const isMeant =
      reading.state !== "Found" || selector === undefined || matchesLabels(selector, reading.it.labels ?? {});
    return isMeant ? [objectSeen(target, ref, reading, recordOf(records, ref))] : [];
  });
  return { ...base, objects: (await Promise.all(objects)).flat(), more: Math.max(0, named.length - MAX_OBJECTS) };
}

function namedBy({ metadata }: SecretBinding, { name = "", namespace }: Target, { namespaced }: Resource): Named {
  return namespaced ? { namespace: namespace ?? (metadata.namespace as string), name } : { name };
}

const inOrderOfTrouble = (records: readonly TargetStatus[]) =>
  records.toSorted((a, b) => Number(a.reason === "Synced") - Number(b.reason === "Synced"));

const recordOf = (records: readonly TargetStatus[], { namespace, name }: Named) =>
  records.find((record) => record.name === name && record.namespace === namespace);

function objectSeen(
  target: Target,
  { namespace, name }: Named,
  reading: Reading<ObjectMeta>,
  record: TargetStatus | undefined,
): ObjectExplanation {
  const held = record?.paths ?? [];
  return {
    ...(namespace !== undefined && { namespace }),
    name,
    ...seenOf(reading),
    ...(record && { status: statusOf(record) }),
    fields: fieldsOfTarget(target).map(({ path }) => {
      const [parsed] = parsePaths([path]);
      const text = parsed === undefined ? path : String(parsed);
      return {
        path,
        held: held.some((each) => each === text || each.startsWith(`${text}.`) || each.startsWith(`${text}[`)),
        ...(reading.state === "Found" && parsed && { managers: holdersOf(reading.it.managedFields ?? [], parsed) }),
      };
    }),
  };
}

const statusOf = ({ reason, message, readablePaths }: TargetStatus) => ({
  reason,
  ...(message !== undefined && { message }),
  ...(readablePaths && { readablePaths }),
});

/** Objects that the spec does not name and status still lists. Selected objects are grouped by kind. */
export function leftovers(records: readonly TargetStatus[]): TargetExplanation[] {
  const groups = Map.groupBy(records, (each) => (each.selected ? `${each.apiVersion} ${each.kind}` : each));
  return [...groups.values()].flatMap((group): TargetExplanation[] => {
    const [first] = group;
    if (first === undefined) return [];
    const { apiVersion, kind, selected = false } = first;
    const objects = inOrderOfTrouble(group).slice(0, MAX_OBJECTS).map(leftover);
    const message = "the spec no longer names it";
    const more = Math.max(0, group.length - MAX_OBJECTS);
    return [{ apiVersion, kind, selects: selected, creates: false, fields: [], objects, more, message }];
  });
}

function leftover(record: TargetStatus): ObjectExplanation {
  const { namespace, name, paths = [] } = record;
  const fields = paths.map((path) => ({ path, held: true }));
  const object = { ...(namespace !== undefined && { namespace }), name, status: statusOf(record), fields };
  return { ...object, state: "Unreadable", message: "not read" };
}
