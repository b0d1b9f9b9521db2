/**
 * Serves the objects of files to the code that reads a cluster: discovery, GET, lists and schemas. Objects that are not in the files do not
 * exist, except namespaces, which are rarely in files.
 */
import { FieldPath } from "../apimachinery/field-path.ts";
import { pickFields } from "../apimachinery/fields.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels, parseSelector } from "../apimachinery/label-selector.ts";
import { idOf, idOfObject, type KubeObject, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import type { ListedObject } from "../cache/watcher.ts";
import { kindNotFound } from "../kube/access-error.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Identity } from "../kube/identity.ts";
import { groupKindOf } from "../workloads/group-kinds.ts";
import { type Inputs, NO_UID } from "./inputs.ts";

export interface FileCluster {
  readonly discovery: {
    byKind(apiVersion: string, kind: string): Promise<Resource>;
    byPlural(apiVersion: string, plural: string): Promise<Resource | undefined>;
    kindNotFound(apiVersion: string, kind: string): Promise<Problem>;
  };
  readonly client: { get<T = KubeObject>(identity: Identity, ref: ObjectRef): Promise<T> };
  readonly watcher: {
    list(key: string, collection: CollectionSubscription): { phase: "synced"; members: ListedObject[] };
  };
  find(ref: ObjectRef): KubeObject | undefined;
}

export function fileCluster({ kinds, objects }: Inputs): FileCluster {
  const whole = objects.flatMap(({ object, isBroken }) => (isBroken ? [] : [object]));
  const byKind = Map.groupBy(whole, groupKindOf);
  const byId = new Map(whole.map((each) => [idOfObject(each), each]));
  const find = (ref: ObjectRef) => byId.get(idOf(ref));
  return {
    discovery: {
      byKind: async (apiVersion, kind) => kinds.resourceOf(apiVersion, kind),
      byPlural: async (apiVersion, plural) => kinds.byPlural(apiVersion, plural),
      kindNotFound: async (apiVersion, kind) => kindNotFound(apiVersion, kind),
    },
    client: {
      async get<T>(_: Identity, ref: ObjectRef): Promise<T> {
        const isNamespace = kindKey(ref.resource) === kindKey(NAMESPACES);
        const found = find(ref) ?? (isNamespace ? namespaceCalled(ref.name) : undefined);
        if (found === undefined) throw new ApiError(`GET ${ref.resource.plural}`, 404, "NotFound");
        return structuredClone(found) as T;
      },
    },
    watcher: {
      list(_, { resource, namespace, labels, names, exceptNames, fields }) {
        const paths = fields?.map((path) => FieldPath.parse(path));
        const [selector, isNamed] = [parseSelector(labels), nameMatcher(names, exceptNames)];
        const members = (byKind.get(kindKey(resource)) ?? [])
          .filter(({ metadata }) => metadata.namespace === namespace || namespace === undefined)
          .filter(({ metadata }) => isNamed(metadata.name) && matchesLabels(selector, metadata.labels ?? {}))
          .map((object) => listed(object, paths));
        return { phase: "synced", members };
      },
    },
    find,
  };
}

const kindKey = ({ group, kind }: Pick<Resource, "group" | "kind">): string => `${group}/${kind}`;

function namespaceCalled(name: string): KubeObject {
  return { apiVersion: "v1", kind: NAMESPACES.kind, metadata: { name, uid: NO_UID, resourceVersion: "0" } };
}

function listed(object: KubeObject, fields: readonly FieldPath[] | undefined): ListedObject {
  const { metadata, spec } = object;
  const { name, namespace, uid, resourceVersion, generation, labels = {} } = metadata;
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    version: { uid, resourceVersion, generation, labels, spec, ...(fields && { fields: pickFields(object, fields) }) },
  };
}
