/**
 * `inlay explain KIND/NAME`: which bindings own fields of an object, by its managedFields. If such a binding does not exist any more, its
 * release was given up, and a command removes what is left.
 */
import { fieldManagerOf, isOfBinding, namespaceOfManager } from "../api/field-manager.ts";
import {
  apiVersionOf,
  describeObject,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import { type LeftOver, leftOver } from "../apply/left-over.ts";
import { attempt } from "../kube/access-error.ts";
import type { Discovery, ServedResource } from "../kube/discovery.ts";
import { deleteCommand, patchCommand } from "../kube/remove-commands.ts";
import type { Schemas } from "../kube/schemas.ts";
import { shapeOf } from "../transform/target-shape.ts";
import type { ReadState } from "./explanation.ts";
import { foundOr, type Reader, withAdvice } from "./reading.ts";

/** The result, which `-o json` prints. */
export interface ObjectLook {
  object: { apiVersion: string; kind: string; namespace?: string; name: string };
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
