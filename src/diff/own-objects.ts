/** The objects of Inlay in the files as they would be: each is created or replaced by a dry run, as the user. */
import { at } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SELF } from "../explain/reading.ts";
import { attempt, refusal } from "../kube/access-error.ts";
import { ApiError } from "../kube/api-error.ts";
import { Client } from "../kube/client.ts";
import { getIfExists } from "../kube/get.ts";
import { change, essence, type ObjectChange } from "./changes.ts";
import { reasonForUser } from "./difference.ts";
import { DryRunRecorder } from "./dry-run-recorder.ts";
import type { Readers } from "./readers.ts";

const VERBS = ["get", "create", "update"];

export interface OwnObject {
  readonly change: ObjectChange;
  /** The object as it would be, with the status that it has. Undefined if the API server refuses it. */
  readonly object: KubeObject | undefined;
  readonly problem: Problem | undefined;
  /** The object in the cluster. */
  readonly live?: KubeObject | undefined;
  /** Why the API server did not check it. */
  readonly note?: string;
}

export interface How {
  /** The API server checks the object. Otherwise it is only compared: the controller writes it, not the user. */
  readonly isSent: boolean;
  /** The object in the cluster, if a list has it. */
  readonly live?: () => KubeObject | undefined;
}

export async function ownChange(
  { transport, client }: Readers,
  resource: Resource,
  wanted: KubeObject,
  { isSent, live: listed }: How,
): Promise<OwnObject> {
  const { name, namespace } = wanted.metadata;
  const ref: ObjectRef = { resource, name, ...(namespace !== undefined && { namespace }) };
  const named = { ...wanted.metadata, apiVersion: apiVersionOf(resource), kind: resource.kind };
  const live =
    listed !== undefined ? listed() : await attempt(getIfExists({ client, identity: SELF, ref, verbs: VERBS }));
  if (live instanceof Problem) return { change: change(named, undefined, undefined), object: undefined, problem: live };
  const merged = mergedInto(live, wanted);
  const stored = isSent ? await attempt(dryRun(new Client(new DryRunRecorder(transport)), ref, merged, live)) : merged;
  const before = live && essence(live);
  // A user who may only read still sees what the files would change.
  if (stored instanceof Problem && stored.reason === "Forbidden") {
    const note = `${reasonForUser(stored).message}. Until then, the API server does not check the object`;
    return { change: change(named, before, essence(merged)), object: merged, problem: undefined, note, live };
  }
  if (stored instanceof Problem) return { change: change(named, before, before), object: undefined, problem: stored };
  return { change: change(named, before, essence(stored)), object: stored, problem: undefined, live };
}

/** Labels and annotations of others stay; the file has the whole spec. `suspend: false`, which `inlay resume` writes, is the default. */
function mergedInto(live: KubeObject | undefined, wanted: KubeObject): KubeObject {
  const { name, namespace, labels, annotations } = wanted.metadata;
  const spec = wanted["spec"] as JsonObject | undefined;
  const isResumed = at(live, "spec", "suspend") === false;
  const texts = (field: "labels" | "annotations", own: Record<string, string> | undefined) => {
    const all = { ...live?.metadata[field], ...own };
    return Object.keys(all).length === 0 ? {} : { [field]: all };
  };
  return {
    ...(live ?? {}),
    apiVersion: wanted.apiVersion,
    kind: wanted.kind,
    metadata: {
      ...(live?.metadata ?? ({} as KubeObject["metadata"])),
      name,
      ...(namespace !== undefined && { namespace }),
      ...texts("labels", labels),
      ...texts("annotations", annotations),
    },
    ...(isObject(spec) ? { spec: { ...(isResumed && { suspend: false }), ...spec } } : {}),
  };
}

/** The object as the API server would store it. An object in a namespace that is yet to be created is not checked. */
async function dryRun(
  client: Client,
  ref: ObjectRef,
  object: KubeObject,
  live: KubeObject | undefined,
): Promise<KubeObject> {
  const { resource, namespace = "" } = ref;
  try {
    if (live !== undefined) return await client.replace(SELF, ref, object);
    return await client.create<KubeObject>(SELF, resource, namespace, object);
  } catch (error) {
    if (error instanceof ApiError && error.subject.resource === "namespaces" && error.status === 404) return object;
    throw refusal(error, { identity: SELF, ref, verbs: VERBS }, live === undefined ? "create" : "update");
  }
}
