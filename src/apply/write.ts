/** Reads a target, and writes a decision to it by one server-side apply or JSON Patch. */
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { FieldPath, step } from "../apimachinery/field-path.ts";
import { isObject, sameJson, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { refusal } from "../kube/access-error.ts";
import { ApiError, type FieldManagerConflict, isStatus } from "../kube/api-error.ts";
import { getIfExists, type ObjectAccess } from "../kube/get.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { type Contested, conflict, contestedField } from "./conflict.ts";
import { applyTo } from "./create.ts";
import type { Decision, Desired, Located } from "./decide.ts";
import { immutableProblem } from "./immutable.ts";
import { byPlace } from "./locate.ts";
import { fieldsOf, identityOf, isEntryOf, isLeaf, merged, ownEntries, placeOf, restrictedTo } from "./ownership.ts";
import { onlyTo, planPatch } from "./patch.ts";

/**
 * An apply may omit keys that stay all the same, because a rule puts an object back. Without an owner, no later apply removes them.
 * Returns the object after an apply, with the ownership from before the apply of what is left in the unchanged values of
 * these fields. If the API server does not store that ownership, the answer has it all the same.
 */
async function keepOwned(
  { client, identity, ref }: ObjectAccess<"jsonPatch">,
  { before, after, manager }: { before: KubeObject; after: KubeObject; manager: string },
  fields: readonly Located[],
  shape: TargetShape,
): Promise<KubeObject> {
  const { managedFields = [] } = after.metadata;
  const index = managedFields.findIndex((entry) => isEntryOf(entry, manager));
  const entry = managedFields[index];
  const left = leftIn(
    restrictedTo(merged(ownEntries(before, manager).map(fieldsOf)), unchanged(fields, before, after)) ?? {},
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
    if (below !== undefined) left[name] = { ...identityOf(child, place.keys), ...below };
  }
  return Object.keys(left).length === 0 ? undefined : left;
}

/** The target as the binding's account sees it, current or at least as new as the version `seen`. Throws Problem. */
export async function readTarget(access: ObjectAccess<"get">, seen?: string): Promise<KubeObject> {
  const live = await getIfExists(access, seen);
  if (live !== undefined) return live;
  const { resource, namespace, name } = access.ref;
  const where = namespace === undefined ? "" : ` in namespace ${namespace}`;
  const message = `there is no ${resource.kind} ${name}${where}; create it, correct the name, or set create on the target. Until then the binding waits`;
  throw new Problem("TargetNotFound", message);
}

/**
 * Writes all fields, and repeats those that stay, in one request to the version that was read. It never creates an
 * object, and a late write, such as from a process that was paused, is refused. Returns the object as stored; `stale` if
 * it changed in between. Throws Problem.
 */
export async function writeTarget(
  access: ObjectAccess<"get" | "apply" | "jsonPatch">,
  desired: Desired,
  decision: Decision,
  live: KubeObject,
): Promise<KubeObject | "stale"> {
  const write = decision.way === "patch" ? patchFields : applyFields;
  try {
    return await write(access, desired, decision, live);
  } catch (error) {
    if (isStatus(error, 409) && error.conflicts.length > 0)
      throw conflict(error.conflicts.flatMap((each) => contested(decision.fields, each, live, desired)));
    if (isStatus(error, 409)) return "stale";
    const paths = decision.fields.map(({ path }) => path);
    const { identity, ref, verbs } = access;
    throw immutableProblem(error, paths) ?? refusal(error, { identity, ref, verbs }, "patch");
  }
}

async function applyFields(...[access, { fieldManager, shape }, decision, live]: Parameters<typeof writeTarget>) {
  const leaves = leavesOf([...decision.fields, ...decision.repeated]);
  const options = { fieldManager, force: decision.force, answer: "whole" as const };
  try {
    const after = await applyTo(live, access, leaves, options, { keep: decision.keeps });
    const change = { before: live, after, manager: fieldManager };
    return await keepOwned(access, change, decision.fields, shape);
  } catch (error) {
    // The answer is also 422 if a new object has the name.
    if (isStatus(error, 422) && (await readTarget(access)).metadata.uid !== live.metadata.uid) return "stale";
    throw error;
  }
}

async function patchFields(...[access, desired, { fields }, live]: Parameters<typeof writeTarget>) {
  const patch = (byVersion: boolean) => {
    const operations = planPatch(live, fields, desired.shape, { byVersion });
    return access.client.jsonPatch(access.identity, access.ref, operations, desired.fieldManager, false, "whole");
  };
  const isChanged = async () => (await readTarget(access)).metadata.resourceVersion !== live.metadata.resourceVersion;
  try {
    return await patch(false);
  } catch (error) {
    // A test failed, or the object is invalid: the answer does not say which.
    if (!isStatus(error, 422)) throw error;
    return (await isChanged()) ? "stale" : await patch(true);
  }
}

/** The binding's paths in a conflict. The server's own path is dropped, because it can contain values of lists. */
function contested(
  fields: readonly Located[],
  { manager, path: theirs }: FieldManagerConflict,
  live: KubeObject,
  { shape }: Desired,
): Contested[] {
  const meant = fields.filter(({ place }) => {
    const ours = spelled(place);
    return (
      ours === theirs || [".", "["].some((next) => ours.startsWith(theirs + next) || theirs.startsWith(ours + next))
    );
  });
  const named = meant.length > 0 ? meant : fields;
  return named.map(({ path, place }) => contestedField(path, place.held, manager, live, shape));
}

/** A path as in the API server's conflicts: `.spec.list[name="web",port=80].value`. */
function spelled({ held, keys }: Located["place"]): string {
  const elements = keys.map((own) => {
    const sorted = Object.entries(own).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `[${sorted.map(([key, value]) => `${key}=${stringifyJson(value)}`).join(",")}]`;
  });
  return held.segments.map((segment) => (segment.kind === "key" ? `.${segment.key}` : elements.shift())).join("");
}

/**
 * The smallest object with the fields; elements of lists have their keys. Objects have no prototype, so no key is
 * special.
 */
export function leavesOf(fields: readonly Located[]): JsonObject {
  const root = emptyObject();
  // The API server orders elements as they are applied.
  const inOrder = fields.toSorted((a, b) => byPlace(a.place.at, b.place.at));
  for (const { path, place, value } of inOrder) {
    const elements = [...place.keys];
    const { segments } = place.held;
    let at: JsonObject | JsonValue[] = root;
    for (const [position, segment] of segments.entries()) {
      const next = segments[position + 1];
      const below = next === undefined ? value.reveal() : next.kind === "key" ? emptyObject() : [];
      at = (
        segment.kind === "key" ? field(at, segment.key, below) : element(at, elements.shift(), below)
      ) as JsonObject;
    }
    if (place.within) throw new TypeError(`${path} goes into a list or an object that can't be applied`);
  }
  return root;
}

function field(object: JsonObject | JsonValue[], key: string, value: JsonValue): JsonValue {
  const own = object as JsonObject;
  own[key] ??= value;
  return own[key];
}

/** The element with those keys, created if it does not exist. */
function element(list: JsonObject | JsonValue[], keys: JsonObject = {}, value: JsonValue): JsonValue {
  const elements = list as JsonValue[];
  const found = elements.find(
    (each) => isObject(each) && Object.entries(keys).every(([key, value]) => sameJson(each[key], value)),
  );
  if (found !== undefined) return found;
  const own = Object.assign(emptyObject(), keys, value);
  elements.push(own);
  return own;
}

const emptyObject = (): JsonObject => Object.create(null);
