/** Names the parts of a SecretBinding, and derives facts from a binding without asking the cluster. */
import { describeObject, type JsonObject, objectId, parseApiVersion } from "../apimachinery/objects.ts";
import type { Condition, StoredBinding } from "./secret-binding.ts";

export type { Condition, StoredBinding };
export type StoredStatus = NonNullable<StoredBinding["status"]>;
export type StoredRecord = NonNullable<StoredStatus["targets"]>[number];
/** A binding as the API server has it, but with one record for each object; see status-records.ts. */
export type SecretBinding = Omit<StoredBinding, "status"> & { status?: Status };
export type Source = SecretBinding["spec"]["sources"][number];
export type Target = SecretBinding["spec"]["targets"][number];
export type Field = NonNullable<Target["fields"]>[number];
export type Status = Omit<StoredStatus, "targets"> & { targets?: TargetStatus[] };
type ProblemTarget = NonNullable<NonNullable<Status["problems"]>[number]["target"]>;
/** The record of one object in the status: its outcome, and the fields that the binding owns there. */
export type TargetStatus = Omit<Extract<StoredRecord, { name: string }>, "objects"> & {
  /** The target selects this object instead of naming it. The status groups such objects by their state. */
  selected?: true;
};

export const FINALIZER = "inlay.dev/release";

/** The key of a binding in the queue and the indexes, such as `registry/harbor-s3`. */
export function bindingKey(binding: Pick<SecretBinding, "metadata">): string {
  return `${binding.metadata.namespace}/${binding.metadata.name}`;
}

/** The command that prints all commands for the permissions that a binding's account lacks. `explain` prints these instead. */
export const missingPermissionsCommand = (namespace: string | undefined, name: string): string =>
  `kubectl get secretbinding ${name} -n ${namespace} -o jsonpath='{.status.missingPermissions}'`;

/** The target of a problem in the status, in words. Without a name, its objects are not known. */
export const describeTarget = ({ kind, namespace, name }: Omit<ProblemTarget, "apiVersion">): string =>
  name === undefined ? `${kind} objects` : describeObject(kind, namespace, name);

export const namespaceIn = (key: string): string => key.slice(0, key.indexOf("/"));

/** The id of the object of a record. It has no API version, because that may change. */
export function recordId(record: Pick<TargetStatus, "apiVersion" | "kind" | "namespace" | "name">): string {
  const { apiVersion, kind, namespace, name } = record;
  return objectId({ group: parseApiVersion(apiVersion).group, kind }, namespace, name);
}

/** Whether a target selects its objects instead of naming one. */
export const selects = (target: Target): boolean =>
  target.selector !== undefined || target.namespaceSelector !== undefined;

/** Whether a target is written only after every workload has rolled out for its values. */
export const isAfterRollout = ({ when }: Pick<Target, "when">): boolean => when === "AfterRollout";

/** Whether an object is in a namespace that the target selects, other than the binding's own. */
export const isApart = (
  { namespaceSelector }: Pick<Target, "namespaceSelector">,
  namespace: string | undefined,
  { metadata }: Pick<SecretBinding, "metadata">,
): boolean => namespaceSelector !== undefined && namespace !== undefined && namespace !== metadata.namespace;

export const onConflictOf = (binding: SecretBinding, target: Target) =>
  target.onConflict ?? binding.spec.defaults.onConflict;

/*
 * No element of a list has a default in the CRD: it would not be in git, and a GitOps tool that applies the list would see it as a
 * difference. So these functions fill in.
 */

/** The fields of a target. One with `create` may have none. */
export const fieldsOfTarget = ({ fields = [] }: { fields?: Target["fields"] | undefined }): readonly Field[] => fields;

/** Whether a source of the kind `object` is cluster-scoped. */
export const isClusterScoped = ({ scope }: Pick<NonNullable<Source["object"]>, "scope">): boolean =>
  scope === "Cluster";

/** The manifest of a target with `create`, without the values of its fields. */
export const manifestOf = ({ create }: Target): JsonObject => (create?.manifest ?? {}) as JsonObject;

/** The default of onRelease: delete an object that the binding created; keep the values in other objects. */
export const onReleaseOf = (binding: SecretBinding, target: Target, creates = target.create !== undefined) =>
  target.onRelease ?? binding.spec.defaults.onRelease ?? (creates ? "Remove" : "Retain");

/** Whether the binding deletes an object that it created, and creates it again, when a field must change that can't change. */
export const recreates = ({ create }: Target): boolean => create?.onImmutable === "Recreate";

export const modeOf = (binding: SecretBinding, target: Target) => target.mode ?? binding.spec.defaults.mode;

type From = NonNullable<Field["from"]>;

/** The names of the sources from which a field copies. */
export const sourcesIn = (from: From): readonly string[] => from.sources ?? [from.source];

/** Whether a field copies all data of its sources, or all that passes a filter. */
export const copiesAll = ({ from }: Field): boolean =>
  from !== undefined && from.key === undefined && from.fieldPath === undefined;

/** The paths that a record lists as owned, and those that an interrupted write may have written. */
export const heldPaths = ({ paths = [], pendingPaths = [] }: TargetStatus): string[] => [...paths, ...pendingPaths];
