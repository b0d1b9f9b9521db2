/** Names for the parts of a SecretBinding, and what follows from one without asking the cluster. */
import { type JsonObject, objectId, parseApiVersion } from "../apimachinery/objects.ts";
import type { StoredBinding } from "./secret-binding.ts";

export type { StoredBinding };
export type StoredStatus = NonNullable<StoredBinding["status"]>;
export type StoredRecord = NonNullable<StoredStatus["targets"]>[number];
/** A binding as the API server has it, but with one record for each object; see status-records.ts. */
export type SecretBinding = Omit<StoredBinding, "status"> & { status?: Status };
export type Source = SecretBinding["spec"]["sources"][number];
export type Target = SecretBinding["spec"]["targets"][number];
export type Field = Target["fields"][number];
export type Status = Omit<StoredStatus, "targets"> & { targets?: TargetStatus[] };
export type Condition = NonNullable<Status["conditions"]>[number];
/** What status says of one object: its outcome, and the record of what there is ours. */
export type TargetStatus = Omit<Extract<StoredRecord, { name: string }>, "objects"> & {
  /** The binding does not name this object alone: status puts it together with others in the same state. */
  selected?: true;
};

export const FINALIZER = "inlay.dev/release";
/** On a SecretBinding or a VaultConnection: another text than before has Inlay ask Vault at once. */
export const REFRESH_ANNOTATION = "inlay.dev/refresh";

/** `registry/harbor-s3`: a binding's key in the queue and the indexes. */
export function bindingKey(binding: Pick<SecretBinding, "metadata">): string {
  return `${binding.metadata.namespace}/${binding.metadata.name}`;
}

export const namespaceIn = (key: string): string => key.slice(0, key.indexOf("/"));

/** Of the object that a record speaks of; the version of its kind may have changed since. */
export function recordId(record: Pick<TargetStatus, "apiVersion" | "kind" | "namespace" | "name">): string {
  const { apiVersion, kind, namespace, name } = record;
  return objectId({ group: parseApiVersion(apiVersion).group, kind }, namespace, name);
}

/** Whether a target is not one object that it names. */
export const selects = (target: Target): boolean =>
  target.selector !== undefined || target.namespaceSelector !== undefined;

/** Whether a target is written when every workload has rolled out for its values. */
export const isAfterRollout = ({ when }: Pick<Target, "when">): boolean => when === "AfterRollout";

/** Whether an object of a target is in one of many namespaces, and not in that of the binding. */
export const isApart = (
  { namespaceSelector }: Pick<Target, "namespaceSelector">,
  namespace: string | undefined,
  { metadata }: Pick<SecretBinding, "metadata">,
): boolean => namespaceSelector !== undefined && namespace !== undefined && namespace !== metadata.namespace;

export const onConflictOf = (binding: SecretBinding, target: Target) =>
  target.onConflict ?? binding.spec.defaults.onConflict;

/** What a target with create says the object is to be, but for the values of its fields. */
export const manifestOf = ({ create }: Target): JsonObject => (create?.manifest ?? {}) as JsonObject;

/** An object that the binding made goes with it unless it says otherwise; in one that others made its values stay. */
export const onReleaseOf = (binding: SecretBinding, target: Target, isMade = target.create !== undefined) =>
  target.onRelease ?? binding.spec.defaults.onRelease ?? (isMade ? "Remove" : "Retain");

export const modeOf = (binding: SecretBinding, target: Target) => target.mode ?? binding.spec.defaults.mode;

/** The paths that a record says are ours, or may be after an interrupted write. */
export const heldPaths = ({ paths = [], pendingPaths = [] }: TargetStatus): string[] => [...paths, ...pendingPaths];
