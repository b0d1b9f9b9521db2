/**
 * An object as a stream brings it comes in; what is kept of it goes out, and under which subjects a stream tells of it: by
 * its own key, as one of its collection, and as one whose pods read something.
 */
import { isDeepStrictEqual } from "node:util";
import { type ReloaderMark, STANDARD_VIEW } from "../api/reloader.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { pickFields } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import { apiVersionOf, type JsonObject, type KubeObject, type Version } from "../apimachinery/objects.ts";
import { CONFIG_MAPS, NAMESPACES, SECRETS } from "../apimachinery/resources.ts";
import { type Workload, workloadOf } from "../workloads/workload.ts";
import {
  consumersKey,
  type FieldText,
  havingKey,
  isCollection,
  resourceKey,
  resourceOf,
  type Subscription,
} from "./subscription.ts";

/** What is kept of an object beyond its version, where that is asked for: what its spec says, or what rollouts have to know. */
export interface CachedObject extends Version {
  spec?: unknown;
  workload?: Workload;
  /** What a Secret or ConfigMap says to Reloader. */
  mark?: ReloaderMark;
  /** Of a Namespace only. */
  labels?: Readonly<Record<string, string>>;
  /** The object with those fields alone that its subscription names. */
  fields?: JsonObject;
  /** The text by which its subscriptions choose, in one of these fields. */
  having?: FieldText;
  isDeleted?: true;
}

export type Projection = (object: KubeObject) => CachedObject;

/** Throws Problem("InvalidPath") for a path in a workload that is none. `view`: what Reloader's annotations are here. */
export function projectionFor(dependency: Subscription, view = STANDARD_VIEW): Projection {
  const isSource = [SECRETS, CONFIG_MAPS].some((each) => resourceKey(each) === resourceKey(resourceOf(dependency)));
  /** Enough to tell whether it changed. */
  const versionOf = ({ metadata }: KubeObject): CachedObject => {
    const { uid, resourceVersion, generation, annotations, labels } = metadata;
    const mark = isSource ? view.markOfSource(annotations, labels) : annotations && view.markOf(annotations);
    return { uid, resourceVersion, generation, ...(mark && { mark }) };
  };
  if (dependency.workload !== undefined) {
    const { template, restart } = dependency.workload;
    const [pods, field] = [template, restart].map((path) => (path === undefined ? undefined : FieldPath.parse(path)));
    const resource = resourceOf(dependency);
    // Of the kinds that Kubernetes has built in, a list says once what all in it are.
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    return (object) => ({ ...versionOf(object), workload: workloadOf({ ...object, ...type }, pods, field, view) });
  }
  if (isCollection(dependency) && dependency.fields !== undefined) {
    const paths = dependency.fields.map((path) => FieldPath.parse(path));
    const field = dependency.having?.field;
    return (object) => ({
      ...versionOf(object),
      fields: pickFields(object, paths),
      ...(field !== undefined && textIn(object, field)),
      ...(object.metadata.deletionTimestamp !== undefined && { isDeleted: true }),
    });
  }
  if (resourceKey(resourceOf(dependency)) === resourceKey(NAMESPACES))
    return (object) => ({ ...versionOf(object), labels: object.metadata.labels ?? {} });
  if (!isCollection(dependency) || !dependency.whole) return versionOf;
  return (object) => ({ ...versionOf(object), spec: object["spec"] });
}

function textIn(object: KubeObject, field: string): Pick<CachedObject, "having"> {
  const text = FieldPath.parse(field).get(object as JsonObject);
  return typeof text === "string" ? { having: { field, text } } : {};
}

/**
 * What a change says. Of a workload much is written while its pods change that says nothing new of them; and that it restarts
 * and how far it is, its progress, nobody waits for as for a value.
 */
export function classifyChange(
  after: CachedObject | undefined,
  before: CachedObject | undefined,
): "none" | "progress" | "change" {
  if (after?.fields !== undefined && before?.fields !== undefined) {
    const isSame = after.uid === before.uid && after.isDeleted === before.isDeleted;
    return isSame && sameJson(after.fields, before.fields) ? "none" : "change";
  }
  if (after?.workload === undefined || before?.workload === undefined || after.uid !== before.uid) return "change";
  if (!isDeepStrictEqual(besidesProgress(after.workload), besidesProgress(before.workload))) return "change";
  const isSame = after.generation === before.generation;
  return isSame && isDeepStrictEqual(progressOf(after.workload), progressOf(before.workload)) ? "none" : "progress";
}

const progressOf = ({ progress, stamps, restart, replacing }: Workload) => [progress, stamps, restart, replacing];
const besidesProgress = ({ progress: _, stamps: __, restart: ___, replacing: ____, ...rest }: Workload) => rest;

/** Whether a change says something to those who choose by Reloader's annotations, whatever else it says. */
export function isChoice(after: CachedObject | undefined, before: CachedObject | undefined): boolean {
  if (after === undefined || before === undefined || after.uid !== before.uid) return true;
  return after.mark !== before.mark || !isDeepStrictEqual(saidBy(after), saidBy(before));
}

const saidBy = ({ workload }: CachedObject) =>
  workload && [workload.reloaderAnnotations, workload.references, workload.isPassing, workload.copied];

/** The name in an object's key. */
export const nameIn = (key: string) => key.slice(key.indexOf("/") + 1);

/** The collections that an object is in: that of its place, that of its text in a field, and those of the consumers of what its pods read. */
export function collectionsOf(key: string, seen: CachedObject): string[] {
  const place = key.slice(0, -nameIn(key).length);
  const references = seen.workload?.references ?? [];
  return [
    place,
    ...(seen.having ? [havingKey(place, seen.having)] : []),
    ...references.map((reference) => consumersKey(place, reference)),
  ];
}
