/**
 * Decides which parts of a watched object are cached, and under which subjects its changes are reported: its own key, its collection, and
 * the objects that its pods read.
 */
import { isDeepStrictEqual } from "node:util";
import { type ReloaderMark, STANDARD_VIEW } from "../api/reloader.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { pickFields } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type Version,
} from "../apimachinery/objects.ts";
import { NAMESPACES, SECRET_GRANTS } from "../apimachinery/resources.ts";
import { sizeOf } from "../transform/budget.ts";
import { MAX_SYNCED, type SyncedSecret, syncedBy } from "../workloads/provider-class.ts";
import { type Workload, workloadOf } from "../workloads/workload.ts";
import {
  consumersKey,
  type FieldText,
  havingKey,
  isCollection,
  isOfSources,
  resourceKey,
  resourceOf,
  type Subscription,
  unknownConsumersKey,
} from "./subscription.ts";

/** The cached parts of an object besides its version, if a subscription asks for them: its spec, or the facts that rollouts need. */
export interface CachedObject extends Version {
  /** Only for a SecretGrant. */
  spec?: unknown;
  workload?: Workload;
  /** What the annotations and labels of a Secret or ConfigMap ask of Reloader. */
  mark?: ReloaderMark;
  /** Only for a Namespace. */
  labels?: Readonly<Record<string, string>>;
  /** The object with only the fields that its subscription names, and their estimated size. */
  fields?: JsonObject;
  /** Only for a SecretProviderClass: what its driver writes. */
  synced?: readonly SyncedSecret[];
  /**
   * The fields, the facts about a workload, or what the driver of a class writes are not kept: there are too many, or those of the objects
   * of its namespace are too large together.
   */
  isTooLarge?: true;
  /** The text of the field by which its subscriptions select objects. */
  having?: FieldText;
  /** It has a deletionTimestamp. */
  isDeleted?: true;
  /** When a workload, Secret, ConfigMap, SecretGrant or object with fields was created, in seconds of the epoch. */
  createdAt?: number;
  /** The version that its creation had, if the watch has shown the creation. */
  createdAs?: string;
  /** Of a workload: the last change of its annotations, of what its pods read, or of the stamps of restarts, if the watch has shown it. */
  chosen?: Change;
  /**
   * Of a workload: the version in which its pod template last changed, if all its pods had the former template then. Pods with the present
   * template are younger than that.
   */
  renewedAs?: string;
  /** When the data of a Secret or ConfigMap last changed, in seconds of the epoch, if `managedFields` shows that. */
  dataAt?: number;
  /** What `dataAt` was when its annotations or labels for Reloader last changed. It was not chosen by them before. */
  markedAt?: number;
}

/** A change of an object: the version before which it can't be, and its time in seconds of the epoch. */
interface Change {
  version: string;
  at: number;
}

export type Projection = (object: KubeObject) => CachedObject;

/** Throws Problem("InvalidPath") for a malformed path in a workload. `view` says which annotations count as Reloader's. */
export function projectionFor(dependency: Subscription, view = STANDARD_VIEW, mostReferences?: number): Projection {
  const isSource = isOfSources(dependency);
  /** The fields that show whether an object changed. */
  const versionOf = ({ metadata }: KubeObject): CachedObject => {
    const { uid, resourceVersion, generation, annotations, labels } = metadata;
    const mark = isSource ? view.markOfSource(annotations, labels) : annotations && view.markOf(annotations);
    return { uid, resourceVersion, generation, ...(mark && { mark }), ...(isSource && timesOf(metadata)) };
  };
  if (dependency.workload !== undefined) {
    const { template, restart } = dependency.workload;
    const [pods, field] = [template, restart].map((path) => (path === undefined ? undefined : FieldPath.parse(path)));
    const resource = resourceOf(dependency);
    // In a list of a built-in kind, the items have no apiVersion and kind; only the list has them.
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    return (object) => ({
      ...versionOf(object),
      ...createdAtOf(object.metadata),
      workload: workloadOf({ ...object, ...type }, pods, field, view, mostReferences),
    });
  }
  if (isCollection(dependency) && dependency.fields !== undefined) {
    const paths = dependency.fields.map((path) => FieldPath.parse(path));
    const field = dependency.having?.field;
    return (object) => ({
      ...versionOf(object),
      ...createdAtOf(object.metadata),
      fields: pickFields(object, paths),
      ...(field !== undefined && textIn(object, field)),
      ...(object.metadata.deletionTimestamp !== undefined && { isDeleted: true }),
    });
  }
  if (resourceKey(resourceOf(dependency)) === resourceKey(NAMESPACES))
    return (object) => ({ ...versionOf(object), labels: object.metadata.labels ?? {} });
  if (!isCollection(dependency) || !dependency.whole) return versionOf;
  if (resourceKey(resourceOf(dependency)) === resourceKey(SECRET_GRANTS))
    return (object) => grantIn(object, versionOf(object));
  return (object) => classIn(object, versionOf(object));
}

/** Of a SecretProviderClass, only the names of what its driver writes are kept. */
function classIn(object: KubeObject, version: CachedObject): CachedObject {
  const synced = syncedBy(object["spec"], MAX_SYNCED);
  return { ...version, ...(synced === undefined ? { synced: [], isTooLarge: true } : { synced }) };
}

/** More than the longest names in all entries of a SecretGrant. */
const MAX_GRANT_CHARACTERS = 64 * 1024;

/** The spec of a SecretGrant is not kept if the grant is too large. */
function grantIn({ metadata, ["spec"]: spec = {} }: KubeObject, version: CachedObject): CachedObject {
  const { characters, elements } = sizeOf(spec);
  return {
    ...version,
    ...createdAtOf(metadata),
    ...(metadata.deletionTimestamp !== undefined && { isDeleted: true }),
    ...(characters + elements < MAX_GRANT_CHARACTERS && { spec }),
  };
}

function textIn(object: KubeObject, field: string): Pick<CachedObject, "having"> {
  const text = FieldPath.parse(field).get(object as JsonObject);
  return typeof text === "string" ? { having: { field, text } } : {};
}

const secondsOf = (time: string) => Date.parse(time) / 1000;

const createdAtOf = ({ creationTimestamp }: ObjectMeta): Pick<CachedObject, "createdAt"> =>
  creationTimestamp === undefined ? {} : { createdAt: secondsOf(creationTimestamp) };

/** The API server sets the time of an entry when its manager changes a field, so a new label does not move the time of the data. */
function timesOf(metadata: ObjectMeta): Pick<CachedObject, "createdAt" | "dataAt"> {
  const dataAt = newestTime(metadata, ({ fieldsV1 = {} }) => "f:data" in fieldsV1 || "f:binaryData" in fieldsV1);
  return { ...createdAtOf(metadata), ...(dataAt !== undefined && { dataAt }) };
}

/** When the fields of one of these entries last changed. */
function newestTime(
  { managedFields = [] }: ObjectMeta,
  isMeant: (entry: ManagedFieldsEntry) => boolean,
): number | undefined {
  const times = managedFields.flatMap((entry) =>
    entry.time !== undefined && isMeant(entry) ? secondsOf(entry.time) : [],
  );
  return times.length === 0 ? undefined : Math.max(...times);
}

/** How a stream has shown an object. */
interface Shown {
  /** Nothing has happened to the object before this version. Undefined for the objects of the first list. */
  since: string | undefined;
  isCreation: boolean;
}

/**
 * Adds what the stream has shown: the creation of the object, the last change of a workload that matters to its restarts, and the data of a
 * source that was chosen later.
 */
export function withHistory(
  after: CachedObject,
  before: CachedObject | undefined,
  metadata: ObjectMeta,
  shown: Shown,
): CachedObject {
  if (after.createdAt === undefined || after.fields !== undefined) return after;
  const known = before?.uid === after.uid ? before : undefined;
  const createdAs = shown.isCreation ? after.resourceVersion : known?.createdAs;
  const markedAt = known !== undefined && known.mark !== after.mark ? after.dataAt : known?.markedAt;
  const chosen = after.workload && chosenOf(after, known, metadata, shown);
  const renewedAs = renewedAsOf(after, known, shown);
  return {
    ...after,
    ...(createdAs !== undefined && { createdAs }),
    ...(markedAt !== undefined && { markedAt }),
    ...(chosen !== undefined && { chosen }),
    ...(renewedAs !== undefined && { renewedAs }),
  };
}

/** While some pods have another template, a workload may return to it, and those pods stay. */
function renewedAsOf(after: CachedObject, known: CachedObject | undefined, { since }: Shown): string | undefined {
  const [was, is] = [known?.workload, after.workload];
  if (was?.templateHash === is?.templateHash) return known?.renewedAs;
  // A list does not show the version of a change.
  return was?.progress.state === "Done" && since === after.resourceVersion ? since : undefined;
}

/** Most events of a workload change only its status, and need no time. */
function chosenOf(
  after: CachedObject,
  known: CachedObject | undefined,
  metadata: ObjectMeta,
  { since, isCreation }: Shown,
): Change | undefined {
  const isChosen = isChoice(after, known) || !isDeepStrictEqual(restartsOf(after), known && restartsOf(known));
  if (!isChosen) return known?.chosen;
  if (since === undefined) return undefined;
  // The status has its own entries.
  const at = isCreation ? after.createdAt : newestTime(metadata, ({ subresource }) => subresource === undefined);
  return at === undefined ? undefined : { version: since, at };
}

const restartsOf = ({ workload }: CachedObject) => workload && [workload.stamps, workload.restart];

/**
 * Classifies a change. While the pods of a workload change, most updates of the workload contain nothing new. `progress` is a change of its
 * rollout state only, which is less urgent than a change of a value.
 */
export function classifyChange(
  after: CachedObject | undefined,
  before: CachedObject | undefined,
): "none" | "progress" | "change" {
  if (after?.fields !== undefined && before?.fields !== undefined) {
    const isSame =
      after.uid === before.uid && after.isDeleted === before.isDeleted && after.isTooLarge === before.isTooLarge;
    return isSame && sameJson(after.fields, before.fields) ? "none" : "change";
  }
  if (after?.synced !== undefined && before?.synced !== undefined) {
    const isSame = after.uid === before.uid && after.mark === before.mark && after.isTooLarge === before.isTooLarge;
    return isSame && isDeepStrictEqual(after.synced, before.synced) ? "none" : "change";
  }
  if (after?.isTooLarge && before?.isTooLarge && after.uid === before.uid) return "none";
  if (after?.workload === undefined || before?.workload === undefined || after.uid !== before.uid) return "change";
  if (!isDeepStrictEqual(besidesProgress(after.workload), besidesProgress(before.workload))) return "change";
  const isSame = after.generation === before.generation;
  return isSame && isDeepStrictEqual(progressOf(after.workload), progressOf(before.workload)) ? "none" : "progress";
}

const PROGRESS = ["progress", "stamps", "marks", "restart", "restarts", "replacing"] as const;
const NO_PROGRESS = Object.fromEntries([...PROGRESS, "templateHash"].map((key) => [key, undefined]));

const progressOf = (workload: Workload) => PROGRESS.map((key) => workload[key]);
const besidesProgress = (workload: Workload) => ({ ...workload, ...NO_PROGRESS });

/** Whether a change matters to subscribers that select workloads by Reloader's annotations. */
export function isChoice(after: CachedObject | undefined, before: CachedObject | undefined): boolean {
  if (after === undefined || before === undefined || after.uid !== before.uid) return true;
  return after.mark !== before.mark || !isDeepStrictEqual(choiceOf(after), choiceOf(before));
}

const choiceOf = ({ workload }: CachedObject) =>
  workload && [
    workload.reloaderAnnotations,
    workload.references,
    workload.hasTooManyReferences,
    workload.isPassing,
    workload.copied,
  ];

/** The name in an object's key. */
export const nameIn = (key: string) => key.slice(key.indexOf("/") + 1);

/**
 * The collections that an object belongs to: the collection of its place, of its field text, and of the consumers of each object that its
 * pods read, or of workloads that may consume any object.
 */
export function collectionsOf(key: string, seen: CachedObject): string[] {
  const place = key.slice(0, -nameIn(key).length);
  const references = seen.workload?.references ?? [];
  return [
    place,
    ...(seen.having ? [havingKey(place, seen.having)] : []),
    ...references.map((reference) => consumersKey(place, reference)),
    ...((seen.workload?.hasTooManyReferences ?? seen.isTooLarge) ? [unknownConsumersKey(place)] : []),
  ];
}
