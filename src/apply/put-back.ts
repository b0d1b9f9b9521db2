/**
 * Keeps ownership of keys and elements that an apply omits and that the API server stores all the same, because a rule puts
 * an object back. Without an owner, no later apply would remove them.
 */
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { FieldPath, step } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { ApiError } from "../kube/api-error.ts";
import type { ObjectAccess } from "../kube/get.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import type { Located } from "./decide.ts";
import { fieldsOf, merged } from "./manifest.ts";
import { isEntryOf, isLeaf, placeOf, restrictedTo } from "./ownership.ts";
import { onlyTo } from "./patch.ts";

/**
 * Returns the object after an apply, with the ownership from before the apply of what is left in the unchanged values of
 * these fields. If the API server does not store that ownership, the answer has it all the same.
 */
export async function keepOwned(
  { client, identity, ref }: Pick<ObjectAccess<"jsonPatch">, "client" | "identity" | "ref">,
  { before, after, manager }: { before: KubeObject; after: KubeObject; manager: string },
  fields: readonly Located[],
  shape: TargetShape,
): Promise<KubeObject> {
  const { managedFields = [] } = after.metadata;
  const index = managedFields.findIndex((entry) => isEntryOf(entry, manager));
  const entry = managedFields[index];
  const left = leftIn(
    ownedIn(unchanged(fields, before, after), before, manager),
    managedFields.map(fieldsOf),
    after as unknown as JsonObject,
    new FieldPath([]),
    shape,
  );
  if (left === undefined || entry === undefined) return after;
  const fieldsV1 = merged([fieldsOf(entry), left]);
  const path = `/metadata/managedFields/${index}/fieldsV1`;
  try {
    const patch = [onlyTo(after), { op: "replace" as const, path, value: fieldsV1 }];
    return await client.jsonPatch(identity, ref, patch, CONTROLLER_MANAGER, false, "whole");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const entries = managedFields.with(index, { ...entry, fieldsV1 });
    return { ...after, metadata: { ...after.metadata, managedFields: entries } };
  }
}

/** The paths of objects and lists that the apply did not change. */
function unchanged(fields: readonly Located[], before: KubeObject, after: KubeObject): FieldPath[] {
  return fields.flatMap(({ place: { held } }) => {
    const value = held.get(after);
    return typeof value === "object" && value !== null && sameJson(held.get(before), value) ? [held] : [];
  });
}

function ownedIn(paths: readonly FieldPath[], { metadata }: KubeObject, manager: string): JsonObject {
  const own = (metadata.managedFields ?? []).filter((entry) => isEntryOf(entry, manager));
  return restrictedTo(merged(own.map(fieldsOf)), paths) ?? {};
}

/** What is owned in `node`, still stored, and without an owner now. Not a default of the schema: the API server adds it again. */
function leftIn(
  node: JsonObject,
  owned: readonly JsonObject[],
  value: JsonValue,
  path: FieldPath,
  shape: TargetShape,
): JsonObject | undefined {
  const left: JsonObject = {};
  for (const [name, child] of Object.entries(node) as [string, JsonObject][]) {
    const place = placeOf(name, value);
    if (place === undefined) continue;
    const at = path.with(place.segment);
    const stored = step(value, place.segment) as JsonValue;
    const now = owned.flatMap((each) => (each[name] === undefined ? [] : [each[name] as JsonObject]));
    if (isLeaf(child)) {
      if (now.length === 0 && !sameJson(shape.defaultAt(at), stored)) left[name] = child;
      continue;
    }
    const below = leftIn(child, now, stored, at, shape);
    // The owner of a field in an element owns the element and its keys.
    const identity = [".", ...place.keys].flatMap((key) =>
      child[key] === undefined ? [] : [[key, child[key]] as const],
    );
    if (below !== undefined) left[name] = { ...Object.fromEntries(identity), ...below };
  }
  return Object.keys(left).length === 0 ? undefined : left;
}
