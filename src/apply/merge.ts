/** Merges a value with fields of other managers, as server-side apply does, for a write by JSON Patch. Pure. */
import { type FieldPath, isNameable } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { namesIn, textOf } from "./elements.ts";
import type { FieldLocation } from "./locate.ts";
import { nodesAt } from "./ownership.ts";

/** Removes unwanted parts that only the binding owns. Keeps parts without an owner. */
export function mergedAt(
  { held, within, missing }: FieldLocation,
  wanted: JsonValue,
  live: KubeObject,
  manager: string,
  shape: TargetShape,
): JsonValue {
  if (within || missing) return wanted;
  const value = held.get(live) as JsonValue | undefined;
  return merge(shape, held, value, wanted, nodesAt(live, manager, held)) ?? wanted;
}

/** The nodes of managedFields at one location, of the binding and of all others. */
type Holders = ReturnType<typeof nodesAt>;

/** Undefined: no value. If nothing is wanted, parts stay that the binding does not own alone. */
function merge(
  shape: TargetShape,
  path: FieldPath,
  live: JsonValue | undefined,
  wanted: JsonValue | undefined,
  holders: Holders,
): JsonValue | undefined {
  if (live === undefined) return wanted;
  const isList = Array.isArray(live) && (wanted === undefined || Array.isArray(wanted));
  if (isList && shape.listAt(path).kind !== "atomic") return mergeList(shape, path, live, wanted, holders);
  const isObjects = isObject(live) && (wanted === undefined || isObject(wanted));
  if (isObjects && !shape.isAtomic(path)) return mergeObject(shape, path, live, wanted, holders);
  return wanted === undefined && !isOursAlone(holders) ? live : wanted;
}

/** `keys` are the fields that identify an element: they stay and go with it. */
function mergeObject(
  shape: TargetShape,
  path: FieldPath,
  live: JsonObject,
  wanted: JsonObject | undefined,
  holders: Holders,
  keys: readonly string[] = [],
): JsonObject | undefined {
  const names = new Set([...Object.keys(live), ...Object.keys(wanted ?? {})]);
  const entries = [...names].flatMap((name): [string, JsonValue][] => {
    const [current, want] = [own(live, name), own(wanted, name)];
    const below = under(holders, () => [`f:${name}`]);
    const isKept = keys.includes(name) || !isNameable(name);
    const child = isKept
      ? want === undefined
        ? current
        : want
      : merge(shape, path.with({ kind: "key", key: name }), current, want, below);
    return child === undefined ? [] : [[name, child]];
  });
  const isEmpty = entries.every(([name]) => keys.includes(name));
  return wanted === undefined && isEmpty && isOursAlone(holders) ? undefined : Object.fromEntries(entries);
}

/** Elements keep their order; new elements come last. */
function mergeList(
  shape: TargetShape,
  path: FieldPath,
  live: readonly JsonValue[],
  wanted: readonly JsonValue[] | undefined,
  holders: Holders,
): JsonValue[] | undefined {
  const type = shape.listAt(path);
  const keys = type.kind === "map" ? type.keys : [];
  const idOf = (element: JsonValue) =>
    type.kind === "map" ? keys.map((key) => textOf(keyOf(shape, path, element, key))).join() : textOf(element);
  const wants = new Map((wanted ?? []).map((each) => [idOf(each), each] as const).reverse());
  const kept = live.flatMap((element, index): JsonValue[] => {
    const want = wants.get(idOf(element));
    const holding = under(holders, (node) => namesIn(node).of(element));
    const here = path.with({ kind: "index", index });
    const isMergeable = isObject(element) && (want === undefined || isObject(want)) && type.kind === "map";
    const left = isMergeable
      ? mergeObject(shape, here, element, want, holding, keys)
      : want === undefined && !isOursAlone(holding)
        ? element
        : want;
    return left === undefined ? [] : [left];
  });
  const present = new Set(live.map(idOf));
  const added = (wanted ?? []).filter((want) => !present.has(idOf(want)));
  const all = [...kept, ...added];
  return wanted === undefined && all.length === 0 && isOursAlone(holders) ? undefined : all;
}

/** A missing key has its default. */
function keyOf(shape: TargetShape, list: FieldPath, element: JsonValue, key: string): JsonValue | undefined {
  const given = isObject(element) ? own(element, key) : undefined;
  return given ?? shape.defaultAt(list.with({ kind: "index", index: 0 }, { kind: "key", key }));
}

const isOursAlone = ({ own, others }: Holders) => own.length > 0 && others.length === 0;

const own = (object: JsonObject | undefined, name: string): JsonValue | undefined =>
  object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;

/** The children of all nodes with the given names. */
function under({ own, others }: Holders, namesOf: (node: JsonObject) => readonly string[]): Holders {
  const below = (nodes: readonly JsonObject[]) =>
    nodes.flatMap((node) =>
      namesOf(node).flatMap((name) => (Object.hasOwn(node, name) ? [node[name] as JsonObject] : [])),
    );
  return { own: below(own), others: below(others) };
}
