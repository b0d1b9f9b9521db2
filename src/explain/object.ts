/**
 * `inlay explain KIND/NAME`: which bindings own fields of an object, by its managedFields. If such a binding does not exist any more, its
 * release was given up, and a command removes what is left.
 */
import { fieldManagerOf, isOfBinding, namespaceOfManager } from "../api/field-manager.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable, keySegment, type Segment } from "../apimachinery/field-path.ts";
import {
  apiVersionOf,
  describeObject,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  type ObjectReference,
  type Resource,
} from "../apimachinery/objects.ts";
import { attemptSync } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import { isEntryOf, isLeaf, nodesAt, segmentOf } from "../apply/ownership.ts";
import { planRelease, type Shared } from "../apply/release.ts";
import { attempt } from "../kube/access-error.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { Discovery, ServedResource } from "../kube/discovery.ts";
import { deleteCommand, patchCommand } from "../kube/remove-commands.ts";
import type { Schemas } from "../kube/schemas.ts";
import { shapeOf, type TargetShape } from "../transform/target-shape.ts";
import type { ReadState } from "./explanation.ts";
import { foundOr, type Reader, withAdvice } from "./reading.ts";

interface LeftOver {
  /** All paths that the manager owns. */
  paths: string[];
  /** The manager created the object. */
  created: boolean;
  /** Removes the values that the manager alone owns and the kind does not require. It fails if the object is another one by then. */
  patch: JsonPatchOperation[];
  /** Others own these values too, so they stay. */
  shared: Pick<Shared, "path" | "managers">[];
  /** The object is not valid without these values. */
  required: string[];
  /** Lists and objects that are one value: others may have written parts of them. */
  whole: string[];
}

/** The label of an object that the binding created, as managedFields show it: anyone could set the label itself. */
const MARK = new FieldPath(["metadata", "labels", CREATED_BY].map(keySegment));
const MARKS: readonly FieldPath[] = [MARK, new FieldPath(["metadata", "ownerReferences"].map(keySegment))];

/**
 * What the field manager of a binding that no longer exists still owns, and the JSON Patch that removes it.
 * `live` must not change afterwards.
 */
export function leftOver(live: KubeObject, fieldManager: string, shape: TargetShape): LeftOver {
  const entries = (live.metadata.managedFields ?? []).filter((entry) => isEntryOf(entry, fieldManager));
  const [paths, parents]: [Set<string>, Set<string>] = [new Set(), new Set()];
  for (const { fieldsV1 = {} } of entries) collect(fieldsV1, [], paths, parents);
  for (const mark of MARKS)
    for (const path of [...paths]) if (FieldPath.parse(path).startsWith(mark)) paths.delete(path);
  // Of elements with equal keys, one may be the binding's.
  const isWhole = (path: string) => {
    const value = attemptSync(() => FieldPath.parse(path).get(live));
    return value !== null && typeof value === "object";
  };
  const whole = [...paths].filter(isWhole);
  const single = [...paths].filter((path) => !whole.includes(path));
  const plan = planRelease(live, {
    uid: live.metadata.uid,
    paths: single,
    written: [],
    reverted: [],
    kept: [],
    parents: [...parents],
    mode: "Remove",
    fieldManager,
    shape,
  });
  return {
    paths: [...paths],
    created: nodesAt(live, fieldManager, MARK).own.length > 0,
    patch: plan.removal.length === 0 ? [] : [testOf(live, plan.removal), ...plan.removal],
    shared: plan.released.shared.map(({ path, managers }) => ({ path, managers })),
    required: plan.released.blocked,
    whole,
  };
}

/** An index may be that of another element in another version of the object. */
function testOf({ metadata }: KubeObject, removal: readonly JsonPatchOperation[]): JsonPatchOperation {
  const hasIndex = removal.some(({ path }) => /\/\d+(\/|$)/.test(path));
  const field = hasIndex ? "resourceVersion" : "uid";
  return { op: "test", path: `/metadata/${field}`, value: metadata[field] };
}

/** The leaves below a node of fieldsV1, and the elements that the manager owns. */
function collect(fields: JsonObject, at: readonly Segment[], paths: Set<string>, parents: Set<string>): void {
  for (const [name, child] of Object.entries(fields) as [string, JsonObject][]) {
    if (name === ".") continue;
    const segment = segmentOf(name);
    // A set is shown as a whole.
    if (segment === undefined) paths.add(String(new FieldPath(at)));
    else if (!namesIn(segment).every(isNameable)) continue;
    else if (segment.kind !== "element" && isLeaf(child)) paths.add(String(new FieldPath([...at, segment])));
    else if (segment.kind !== "element") collect(child, [...at, segment], paths, parents);
    else {
      const path = [...at, segment];
      const keys = [".", ...segment.conditions.map(({ key }) => `f:${key}`)];
      const own = Object.fromEntries(Object.entries(child).filter(([each]) => !keys.includes(each)));
      // The keys are removed with their element.
      if (child["."] !== undefined) parents.add(String(new FieldPath(path)));
      collect(own as JsonObject, path, paths, parents);
    }
  }
}

const namesIn = (segment: Segment): string[] =>
  segment.kind === "key" ? [segment.key] : segment.kind === "element" ? segment.conditions.map(({ key }) => key) : [];

/** The result, which `-o json` prints. */
export interface ObjectLook {
  object: ObjectReference;
  bindings: BindingOfObject[];
}

export interface BindingOfObject extends ReadState {
  fieldManager: string;
  /** Namespace and name; omitted if there is no such binding. */
  binding?: string;
  deleting?: boolean;
  /** What the field manager owns. */
  paths: string[];
  /** For a binding that does not exist: what is left, and why some of it is in no command. */
  leftOver?: Pick<LeftOver, "created" | "shared" | "required" | "whole"> & { command?: string };
}

interface LookTools {
  readonly reader: Pick<Reader, "get" | "list">;
  readonly discovery: Pick<Discovery, "allKinds" | "byKind">;
  readonly schemas: Pick<Schemas, "of">;
}

/** Throws Error if there is no such kind or object, or the user may not read it. */
export async function explainObject(
  tools: LookTools,
  namespace: string,
  { kind, name }: { kind: string; name: string },
): Promise<ObjectLook> {
  const resource = await servedAs(tools.discovery, kind);
  const ref: ObjectRef = { resource, name, ...(resource.namespaced && { namespace }) };
  const shape = shapeOf(await tools.schemas.of(resource));
  // The values are dropped before this returns.
  const take = (object: KubeObject) =>
    managersOf(object).map((manager) => ({ manager, left: leftOver(object, manager, shape) }));
  const reading = await tools.reader.get(ref, take, "whole");
  const where = describeObject(resource.kind, ref.namespace, name);
  if (reading.state === "NotFound") throw new Error(`there is no ${where}; correct the name or --namespace`);
  if (reading.state === "Unreadable") throw new Error(withAdvice(reading));
  return {
    object: { apiVersion: apiVersionOf(resource), kind: resource.kind, ...withoutResource(ref) },
    bindings: await Promise.all(reading.it.map((each) => bindingOf(tools, ref, each))),
  };
}

const withoutResource = ({ namespace, name }: ObjectRef) => ({ ...(namespace !== undefined && { namespace }), name });

function managersOf({ metadata }: KubeObject): string[] {
  const own = (metadata.managedFields ?? []).filter(({ subresource }) => !subresource);
  return [...new Set(own.flatMap(({ manager = "" }) => (isOfBinding(manager) ? [manager] : [])))];
}

async function bindingOf(
  { reader, discovery }: LookTools,
  ref: ObjectRef,
  { manager, left }: { manager: string; left: LeftOver },
): Promise<BindingOfObject> {
  const { patch, paths, ...rest } = left;
  // The name in a field manager may be cut.
  const scope = { resource: SECRET_BINDINGS, namespace: namespaceOfManager(manager), form: "metadata" as const };
  const reading = await reader.list(scope, ({ metadata }) =>
    fieldManagerOf({ metadata }) === manager ? metadata : undefined,
  );
  // Without their kind, there are no bindings.
  const kind = () => attempt(discovery.byKind(apiVersionOf(SECRET_BINDINGS), SECRET_BINDINGS.kind));
  if (reading.state === "Unreadable" && (await kind()) !== undefined)
    return { fieldManager: manager, ...reading, paths };
  const [found] = foundOr(reading, []);
  if (found !== undefined) {
    const deleting = found.deletionTimestamp !== undefined;
    const binding = `${found.namespace}/${found.name}`;
    return { fieldManager: manager, binding, state: "Found", ...(deleting && { deleting }), paths };
  }
  const command = left.created ? deleteCommand(ref) : patch.length > 0 ? patchCommand(ref, patch) : undefined;
  return {
    fieldManager: manager,
    state: "NotFound",
    paths,
    leftOver: { ...rest, ...(command !== undefined && { command }) },
  };
}

/** The kind, by its name, its plural, or the plural with its group, as kubectl accepts it. Throws Error. */
async function servedAs(discovery: LookTools["discovery"], text: string): Promise<Resource> {
  const served = (await discovery.allKinds()).filter(
    ({ verbs, plural }) => verbs.includes("get") && !plural.includes("/"),
  );
  const wanted = text.toLowerCase();
  const namesOf = ({ kind, plural, group }: ServedResource) =>
    [kind, plural].flatMap((name) => [name, `${name}.${group}`]).map((name) => name.toLowerCase());
  const found = served.find((each) => namesOf(each).includes(wanted));
  const resource = found && (await discovery.byKind(apiVersionOf(found), found.kind));
  if (resource !== undefined) return resource;
  const near = similarName(
    wanted,
    served.map(({ kind }) => kind.toLowerCase()),
  );
  throw new Error(
    `the cluster serves no kind ${JSON.stringify(text)}${near === undefined ? "" : `; did you mean ${near}?`}`,
  );
}
