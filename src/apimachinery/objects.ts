/** The shapes that all objects of the Kubernetes API share, and their names. No I/O. */

/** A bigint is an integer that a double can't hold; see json.ts. */
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | JsonObject;
export type JsonObject = { [key: string]: JsonValue };

export interface ManagedFieldsEntry {
  manager?: string;
  operation?: "Apply" | "Update";
  subresource?: string;
  apiVersion?: string;
  fieldsType?: string;
  fieldsV1?: JsonObject;
  time?: string;
}

/** An object with exactly one of the fields of T. */
export type OneOf<T> = { [K in keyof T]: Pick<T, K> & { [Other in Exclude<keyof T, K>]?: never } }[keyof T];

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { uid: string; apiVersion?: string; kind?: string; name?: string; controller?: boolean }[];
  managedFields?: ManagedFieldsEntry[];
}

/** Identifies one state of an object. */
export interface Version {
  uid: string;
  resourceVersion: string;
  generation: number | undefined;
}

/**
 * Compares resourceVersions of one object. Those of an aggregated API server may not be numbers; then the result is
 * false.
 */
export function isOlder(a: Pick<Version, "resourceVersion">, b: Pick<Version, "resourceVersion">): boolean {
  if (![a, b].every(({ resourceVersion }) => /^\d+$/.test(resourceVersion))) return false;
  return BigInt(a.resourceVersion) < BigInt(b.resourceVersion);
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** A kind as the API server serves it, from discovery. */
export interface Resource {
  /** The empty string for the core group. */
  group: string;
  version: string;
  kind: string;
  /** The plural in the URL. */
  plural: string;
  namespaced: boolean;
  /** If true, metadata.generation does not grow when only the status changes. */
  hasStatus: boolean;
  /** A write in one version of this kind removes fields of other versions. metadata.generation may not grow then. */
  hasLossyVersions?: true;
}

/** One object of a kind. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  resource: Resource;
  namespace?: string;
  name: string;
}

/** An object as people and programs outside read it. `namespace` is absent for a cluster-scoped object. */
export interface ObjectReference {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
}

export const apiVersionOf = (resource: Pick<Resource, "group" | "version">): string =>
  resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;

/** Group and plural, such as `goharbor.io/harborclusters` or `secrets`: the label value in metrics. */
export const resourceName = ({ group, plural }: Pick<Resource, "group" | "plural">): string =>
  group === "" ? plural : `${group}/${plural}`;

/** Splits `apps/v1` or `v1`. */
export function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return { group: slash < 0 ? "" : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** Whether two objects are of one kind, in any versions. */
export const isSameKind = (a: Pick<KubeObject, "apiVersion" | "kind">, b: Pick<KubeObject, "apiVersion" | "kind">) =>
  a.kind === b.kind && parseApiVersion(a.apiVersion).group === parseApiVersion(b.apiVersion).group;

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
/** No object has a longer name, and no Secret or ConfigMap a longer key. */
export const MAX_NAME_LENGTH = 253;

/** Whether an object may have this name. */
export const isObjectName = (text: string): boolean => text.length <= MAX_NAME_LENGTH && NAME.test(text);

/** `HarborCluster registry/harbor`, for messages. */
export function describeObject(kind: string, namespace: string | undefined, name: string): string {
  const there = plainWord(name);
  const what = plainWord(kind);
  return namespace === undefined || namespace === "" ? `${what} ${there}` : `${what} ${plainWord(namespace)}/${there}`;
}

/** Like `describeObject`, for a reference. */
export const describeRef = ({ resource, namespace, name }: ObjectRef): string =>
  describeObject(resource.kind, namespace, name);

/**
 * A text that a tenant chooses, in quotes as JSON, for messages. All such texts are quoted here: they never contain the text that separates
 * a command from the prose, so that no name or path can look like a command of Inlay.
 */
export const quoted = (text: string): string =>
  JSON.stringify(text).replaceAll(/with:/gi, (found) => `${found.slice(0, -1)}\\u003a`);

/** A name or key in the prose of a message. An author may choose almost any text as a name, so it is quoted unless it is a plain word. */
export const plainWord = (name: string): string => (/^[\w./:@+~=,*?|()[\]{}-]+$/.test(name) ? name : quoted(name));

/** A path, pattern or piece of a template in the prose of a message, which has quotes and brackets of its own: quoted if it has spaces. */
export const plainPath = (path: string): string => (/\s/.test(path) ? quoted(path) : path);

/** The same id for an object in every version of its kind. */
export function objectId(of: Pick<Resource, "group" | "kind">, namespace: string | undefined, name: string): string {
  return [of.group, of.kind, namespace ?? "", name].join("|");
}

export const idOf = ({ resource, namespace, name }: ObjectRef): string => objectId(resource, namespace, name);

/** The same, of an object itself. */
export const idOfObject = ({ apiVersion, kind, metadata: { namespace, name } }: KubeObject): string =>
  objectId({ group: parseApiVersion(apiVersion).group, kind }, namespace, name);
