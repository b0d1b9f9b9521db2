/**
 * Reads what the watches don't show of a workload. For one that does not bear its restart any more: whether all of its pods are newer than
 * that restart, and who may have reverted it. For one that would restart: whether all pods of its present template were created after the
 * change, as the API server then has no ReplicaSet or ControllerRevision of that template in the version of the change.
 */
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import { at, fieldsAt, numberOf } from "../../apimachinery/fields.ts";
import { type LabelSelector, selectorText } from "../../apimachinery/label-selector.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { describeObject, type KubeObject, plainWord, type Resource } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { CONTROLLER_REVISIONS, PODS, REPLICA_SETS } from "../../apimachinery/resources.ts";
import { attempt, WRITE_VERBS } from "../../kube/access-error.ts";
import { ApiError } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, listAll } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import type { Dependent } from "../types.ts";
import type { Revert } from "./reverts.ts";

/** How many managers a message names. */
const MAX_NAMED = 3;

/**
 * `since` is the time of the first restart for the values. Without permission to list pods, their age is not known. Throws Problem,
 * if the API server does not answer: then nothing is known.
 */
export async function readRevert(
  client: Pick<Client, "get" | "list">,
  identity: Identity,
  dependent: Dependent,
  since: string,
): Promise<Revert> {
  const { ref } = dependent;
  const found = allowed(await attempt(getIfExists({ client, identity, ref, verbs: WRITE_VERBS })));
  if (found === undefined) return { isReplaced: false, by: UNKNOWN };
  const owner = found.metadata.ownerReferences?.find(({ controller }) => controller);
  const known = {
    by: reverterOf(found, dependent, since),
    ...(owner && { owner: describeObject(owner.kind ?? "object", "", owner.name ?? owner.uid) }),
  };
  // The next pods will start with the present values.
  if (at(found, "spec", "replicas") === 0 && !(numberOf(at(found, "status", "replicas")) > 0))
    return { isReplaced: true, ...known };
  // Of other kinds, the field may have another meaning.
  if (ref.resource.group !== "apps" && ref.resource.group !== "argoproj.io") return { isReplaced: false, ...known };
  const labels = selectorOf(found);
  if (labels === "") return { isReplaced: false, ...known };
  const pods = allowed(await attempt(listAll(client, identity, PODS, ref.namespace ?? "", { labels })));
  if (pods === undefined) return { isReplaced: false, ...known, arePodsUnknown: true };
  const older = pods.filter((pod) => isRunning(pod) && !isNewer(pod, since));
  const isEnding = older.length > 0 && older.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return { isReplaced: older.length === 0, ...known, ...(isEnding && { isEnding }) };
}

/** The selector of its pods, as the API server parses it; empty if it has none. */
const selectorOf = (workload: KubeObject): string =>
  selectorText(fieldsAt(workload, "spec", "selector") as LabelSelector);

/** Undefined if the account lacks the permission. Throws other Problems. */
function allowed<T>(answer: T | Problem): T | undefined {
  if (!(answer instanceof Problem)) return answer;
  if (answer.reason === "Forbidden") return undefined;
  throw answer;
}

/** A creation time has full seconds, and a pod of the same second may have started before. */
const isNewer = ({ metadata }: KubeObject, since: string) =>
  Date.parse(metadata.creationTimestamp ?? "") > Date.parse(since);

const isRunning = ({ status }: KubeObject) => !["Succeeded", "Failed"].includes(String(fieldsAt(status)["phase"]));

const UNKNOWN = "managedFields do not show who removed it";

/** The removal of a field alone leaves no trace in `managedFields`, so at best they show who may have done it. */
function reverterOf(
  { metadata: { managedFields = [] } }: KubeObject,
  { stampAt, isRestartField }: Dependent,
  since: string,
): string {
  const keys = stampAt.segments.flatMap((each) => (each.kind === "key" ? `f:${each.key}` : []));
  // Controllers of Kubernetes write their records to other parts of the object, and the status by its subresource.
  const ofPart = (depth: number) =>
    managedFields.filter(
      ({ manager, subresource, fieldsV1 }) =>
        subresource === undefined && manager !== ROLLOUT_MANAGER && at(fieldsV1, ...keys.slice(0, depth)) !== undefined,
    );
  const names = (all: typeof managedFields) =>
    firstOf([...new Set(all.map(({ manager = "unknown" }) => plainWord(manager)))], MAX_NAMED);
  const seconds = Math.floor(Date.parse(since) / 1000) * 1000;
  const after = ofPart(1).filter(({ time = "" }) => Date.parse(time) >= seconds);
  if (after.length > 0) return `as managedFields show, ${names(after)} changed ${stampAt.upTo(1)} since then`;
  const place = Math.max(1, keys.length - (isRestartField ? 1 : 3));
  const beside = ofPart(place);
  return beside.length === 0 ? UNKNOWN : `${UNKNOWN}, and ${stampAt.upTo(place)} has fields of ${names(beside)}`;
}

/** A change of values that a workload uses. */
export interface SourceChange {
  /** The version of the cluster that certainly has it. */
  version: string;
  /** When it happened at the latest, in seconds of the epoch, if the API server has recorded that. */
  at?: number;
}

/** The most revisions of a workload that are read. */
const MAX_REVISIONS = 100;
/** Times have a resolution of one second, and the clocks of API servers differ. */
const APART_S = 2;

const REVISION = "deployment.kubernetes.io/revision";

/** The kind of the revisions of a kind, and the one of the present template among them. */
interface Revisions {
  resource: Resource;
  present(workload: KubeObject, all: readonly KubeObject[]): KubeObject | undefined;
}

const KINDS: Readonly<Record<string, Revisions>> = {
  Deployment: {
    resource: REPLICA_SETS,
    present: (workload, all) => {
      const revision = workload.metadata.annotations?.[REVISION];
      return revision === undefined
        ? undefined
        : all.find(({ metadata }) => metadata.annotations?.[REVISION] === revision);
    },
  },
  StatefulSet: {
    resource: CONTROLLER_REVISIONS,
    present: (workload, all) => {
      const name = at(workload, "status", "updateRevision");
      return all.find(({ metadata }) => metadata.name === name);
    },
  },
  DaemonSet: {
    resource: CONTROLLER_REVISIONS,
    // Its controller increments the number of a revision whose template returns.
    present: (_, all) => all.toSorted((a, b) => numberOf(at(b, "revision")) - numberOf(at(a, "revision")))[0],
  },
};

/**
 * False if that is not certain, also if the account lacks a permission. If the API server no longer has the version of the change, the times
 * of both decide.
 */
export async function isTemplateYounger(
  client: Pick<Client, "get" | "getAt" | "list">,
  identity: Identity,
  { ref, version }: Pick<Dependent, "ref" | "version">,
  change: SourceChange,
): Promise<boolean> {
  const kind = ref.resource.group === "apps" ? KINDS[ref.resource.kind] : undefined;
  if (kind === undefined) return false;
  const workload = await attempt(getIfExists({ client, identity, ref, verbs: WRITE_VERBS }));
  if (workload === undefined || workload instanceof Problem) return false;
  const { uid, generation } = workload.metadata;
  // The revision of a template that is not observed is not known.
  const isObserved = generation === version.generation && at(workload, "status", "observedGeneration") === generation;
  if (uid !== version.uid || !isObserved) return false;
  const { resource, present: presentOf } = kind;
  const namespace = ref.namespace ?? "";
  try {
    const present = presentOf(workload, await ownedBy(client, identity, resource, workload, namespace));
    if (present === undefined) return false;
    const { name, creationTimestamp = "" } = present.metadata;
    try {
      const then = await client.getAt(identity, { resource, namespace, name }, change.version);
      return then?.metadata.uid !== present.metadata.uid;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return change.at !== undefined && Date.parse(creationTimestamp) / 1000 >= change.at + APART_S;
    }
  } catch (error) {
    if (error instanceof ApiError || error instanceof Problem) return false;
    throw error;
  }
}

/** None if there are too many. Throws ApiError. */
async function ownedBy(
  client: Pick<Client, "list">,
  identity: Identity,
  resource: Resource,
  workload: KubeObject,
  namespace: string,
): Promise<readonly KubeObject[]> {
  const labels = selectorOf(workload);
  if (labels === "") return [];
  const found: KubeObject[] = [];
  for await (const page of client.list(identity, resource, namespace, { labels })) {
    found.push(...page);
    if (found.length > MAX_REVISIONS) return [];
  }
  return found.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === workload.metadata.uid));
}
