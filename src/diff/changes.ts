/** The changes of one object as a JSON Patch (RFC 6902), with or without values. Pure. */
import jsonPatch, { type AddOperation, type RemoveOperation, type ReplaceOperation } from "fast-json-patch";
import { FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import { parsePointer } from "../apimachinery/json-pointer.ts";
import type { JsonObject, JsonValue, KubeObject, ObjectReference } from "../apimachinery/objects.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { RecordedWrite } from "./dry-run-recorder.ts";

type LibraryOperation = AddOperation<JsonValue> | RemoveOperation | ReplaceOperation<JsonValue>;

export interface Operation {
  op: "add" | "remove" | "replace";
  path: string;
  value?: SecretValue<JsonValue>;
}

export interface FieldChange {
  path: string;
  change: "added" | "changed" | "removed";
}

export interface ObjectChange extends ObjectReference {
  change: "create" | "update" | "delete" | "none";
  fields: FieldChange[];
  patch: Operation[];
}

/** What names an object: a target, a record, or its type and metadata. */
type Named = Pick<ObjectChange, "apiVersion" | "kind"> & { namespace?: string | undefined; name?: string | undefined };

/** The change that one or more dry runs of writes to an object show together. */
export function changeOf(named: Named, writes: readonly RecordedWrite[]): ObjectChange {
  const first = writes[0]?.before?.reveal();
  let now: JsonObject | undefined = first && essence(first);
  for (const { before, after } of writes) {
    const [from, to] = [before, after].map((each) => each && essence(each.reveal()));
    // Each dry run begins with the object in the cluster, so its changes are added to those of the others.
    now = to && now && from ? applied(now, between(from, to)) : to;
  }
  return change(named, first && essence(first), now);
}

/** The change between two states of an object. */
export function change(named: Named, before: JsonObject | undefined, after: JsonObject | undefined): ObjectChange {
  const operations: LibraryOperation[] =
    before === undefined
      ? after === undefined
        ? []
        : [{ op: "add", path: "", value: after }]
      : after === undefined
        ? [{ op: "remove", path: "" }]
        : between(before, after);
  const how = before === undefined ? "create" : after === undefined ? "delete" : "update";
  const { apiVersion, kind, namespace, name = "" } = named;
  return {
    apiVersion,
    kind,
    ...(namespace !== undefined && { namespace }),
    name,
    change: operations.length === 0 ? "none" : how,
    fields: before !== undefined && after !== undefined ? operations.map((each) => fieldChange(each, before)) : [],
    patch: operations.map(sealed),
  };
}

/** The object without what the API server itself sets, as the library can compare it. */
export function essence({ metadata, status: _, ...rest }: KubeObject): JsonObject {
  const { labels, annotations, ownerReferences, finalizers, name, namespace } = metadata;
  const kept = { name, namespace, labels, annotations, ownerReferences, finalizers };
  const known = Object.entries(kept).filter(([, value]) => value !== undefined);
  return mapLeaves({ ...rest, metadata: Object.fromEntries(known) } as unknown as JsonObject, asText) as JsonObject;
}

const between = (from: JsonObject, to: JsonObject): LibraryOperation[] =>
  jsonPatch.compare(from, to) as LibraryOperation[];

function applied(object: JsonObject, operations: LibraryOperation[]): JsonObject {
  return jsonPatch.applyPatch(structuredClone(object), operations, false, true).newDocument;
}

/** The library copies values as JSON, which has no integers of 64 bits. A text that begins with the mark gets one more. */
const MARK = "\u0000";
const asText = (leaf: JsonValue): JsonValue => {
  if (typeof leaf === "bigint") return `${MARK}${leaf}`;
  return typeof leaf === "string" && leaf.startsWith(MARK) ? `${MARK}${leaf}` : leaf;
};
const asNumber = (leaf: JsonValue): JsonValue => {
  if (typeof leaf !== "string" || !leaf.startsWith(MARK)) return leaf;
  const text = leaf.slice(MARK.length);
  return text.startsWith(MARK) ? text : BigInt(text);
};

function mapLeaves(value: JsonValue, map: (leaf: JsonValue) => JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((each) => mapLeaves(each, map));
  if (!isObject(value)) return map(value);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, mapLeaves(each, map)]));
}

const sealed = (operation: LibraryOperation): Operation => ({
  op: operation.op,
  path: operation.path,
  ...("value" in operation && { value: new SecretValue(mapLeaves(operation.value, asNumber)) }),
});

function fieldChange({ op, path }: LibraryOperation, before: JsonObject): FieldChange {
  let at: JsonValue | undefined = before;
  const segments = parsePointer(path).map((token): Segment => {
    const isElement = Array.isArray(at);
    at = isObject(at) || Array.isArray(at) ? (at as JsonObject)[token] : undefined;
    return isElement ? { kind: "index", index: Number(token) } : keySegment(token);
  });
  const changes = { add: "added", replace: "changed", remove: "removed" } as const;
  return { path: String(new FieldPath(segments)), change: changes[op] };
}
