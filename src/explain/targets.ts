/** A binding comes in; the objects that it writes go out, with what status says of each and who holds its fields. */
import { type Field, type SecretBinding, selects, type Target, type TargetStatus } from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels } from "../apimachinery/label-selector.ts";
import { type ManagedFieldsEntry, type ObjectRef, parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { ALL_KEYS, type ReadTemplate, usesOf } from "../sources/uses.ts";
import type { ObjectSeen, TargetSeen } from "./explanation.ts";
import { holdersOf } from "./field-owners.ts";
import type { Reading } from "./reading.ts";
import { served, type Tools } from "./tools.ts";

/** So many objects of a target that selects are looked at, those first that something is the matter with. */
const MOST_OBJECTS = 20;

type Named = Pick<TargetStatus, "namespace" | "name">;
interface Kept {
  managed: readonly ManagedFieldsEntry[];
  labels: Readonly<Record<string, string>>;
}

/** In the order of the spec; then what was written and is named no more. */
export async function lookAtTargets(
  tools: Tools,
  binding: SecretBinding,
  readTemplate: ReadTemplate,
): Promise<TargetSeen[]> {
  const records = binding.status?.targets ?? [];
  const targets = await Promise.all(
    binding.spec.targets.map(async (target) => {
      const resource = await served(
        target.apiVersion,
        target.kind,
        tools.discovery.byKind(target.apiVersion, target.kind),
      );
      const own = ownedBy(binding, target, resource);
      return { target, resource, records: records.filter(own) };
    }),
  );
  const known = new Set(targets.flatMap(({ records }) => records));
  const left = records.filter((record) => !known.has(record));
  const seen = targets.map(({ target, resource, records }) => {
    const textOf = (field: Field) =>
      usesOf(binding, field, readTemplate).map(({ source, of }) => (of === ALL_KEYS ? source : `${source}/${of}`));
    const fields = target.fields.map((field) => ({ path: field.path, from: textOf(field) }));
    return lookAt(tools, binding, target, fields, resource, records);
  });
  return [...(await Promise.all(seen)), ...left.map(leftover)];
}

/** Whether a record may be of that target: what labels select is told only by the object. */
function ownedBy({ metadata }: SecretBinding, target: Target, resource: Resource | Problem) {
  const { group } = parseApiVersion(target.apiVersion);
  const isNamed = target.name === undefined ? nameMatcher(target.selector?.names) : nameMatcher([target.name]);
  const isNamespaced = resource instanceof Problem || resource.namespaced;
  const isThere = target.namespaceSelector
    ? nameMatcher(target.namespaceSelector.names)
    : (name: string) => name === (isNamespaced ? (target.namespace ?? metadata.namespace) : "");
  return ({ apiVersion, kind, namespace = "", name, selected }: TargetStatus) =>
    parseApiVersion(apiVersion).group === group &&
    kind === target.kind &&
    (selected ?? false) === selects(target) &&
    isNamed(name) &&
    isThere(namespace);
}

async function lookAt(
  { reader }: Tools,
  binding: SecretBinding,
  target: Target,
  fields: TargetSeen["fields"],
  resource: Resource | Problem,
  records: readonly TargetStatus[],
): Promise<TargetSeen> {
  const { apiVersion, kind } = target;
  const base = {
    apiVersion,
    kind,
    selects: selects(target),
    makes: target.create !== undefined,
    fields,
  };
  if (resource instanceof Problem) return { ...base, objects: [], more: 0, message: resource.message };
  const named = selects(target) ? inOrderOfTrouble(records) : [namedBy(binding, target, resource)];
  const objects = await Promise.all(
    named.slice(0, MOST_OBJECTS).map(async ({ namespace, name }) => {
      const ref: ObjectRef = { resource, name, ...(namespace !== undefined && { namespace }) };
      const reading = await reader.get(ref, ({ metadata }) => ({
        managed: metadata.managedFields ?? [],
        labels: metadata.labels ?? {},
      }));
      return { reading, seen: objectSeen(target, ref, reading, recordOf(records, ref)) };
    }),
  );
  const isMeant = ({ reading }: { reading: Reading<Kept> }) =>
    reading.state !== "Found" || target.selector === undefined || matchesLabels(target.selector, reading.it.labels);
  return {
    ...base,
    objects: objects.filter(isMeant).map(({ seen }) => seen),
    more: Math.max(0, named.length - MOST_OBJECTS),
  };
}

function namedBy({ metadata }: SecretBinding, { name = "", namespace }: Target, { namespaced }: Resource): Named {
  return namespaced ? { namespace: namespace ?? (metadata.namespace as string), name } : { name };
}

const inOrderOfTrouble = (records: readonly TargetStatus[]) =>
  records.toSorted((a, b) => Number(a.reason === "Synced") - Number(b.reason === "Synced"));

const recordOf = (records: readonly TargetStatus[], { namespace, name }: Named) =>
  records.find((record) => record.name === name && record.namespace === namespace);

/** Exported for tests. */
export function objectSeen(
  { fields }: Pick<Target, "fields">,
  { namespace, name }: Named,
  reading: Reading<Pick<Kept, "managed">>,
  record: TargetStatus | undefined,
): ObjectSeen {
  const held = record?.paths ?? [];
  return {
    ...(namespace !== undefined && { namespace }),
    name,
    state: reading.state,
    ...(reading.state === "Unreadable" && { message: reading.message }),
    ...(record && { status: statusOf(record) }),
    fields: fields.map(({ path }) => {
      const parsed = parsedOr(path);
      const text = parsed === undefined ? path : String(parsed);
      return {
        path,
        held: held.some((each) => each === text || each.startsWith(`${text}.`) || each.startsWith(`${text}[`)),
        ...(reading.state === "Found" && parsed && { managers: holdersOf(reading.it.managed, parsed) }),
      };
    }),
  };
}

const statusOf = ({ reason, message }: TargetStatus) => ({ reason, ...(message !== undefined && { message }) });

function parsedOr(path: string): FieldPath | undefined {
  try {
    return FieldPath.parse(path);
  } catch (error) {
    if (error instanceof Problem) return undefined;
    throw error;
  }
}

function leftover(record: TargetStatus): TargetSeen {
  const { apiVersion, kind, namespace, name, paths = [] } = record;
  const message = "the binding names it no more";
  const fields = paths.map((path) => ({ path, held: true }));
  const object = { ...(namespace !== undefined && { namespace }), name, status: statusOf(record), fields };
  const objects: ObjectSeen[] = [{ ...object, state: "Unreadable", message: "not looked at" }];
  return { apiVersion, kind, selects: false, makes: false, fields: [], objects, more: 0, message };
}
