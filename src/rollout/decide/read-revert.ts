/**
 * Reads what the cluster shows of a workload that does not bear its restart any more: whether all of its pods are newer than that
 * restart, and who may have reverted it.
 */
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import { at, fieldsAt, numberOf } from "../../apimachinery/fields.ts";
import { isObject } from "../../apimachinery/json.ts";
import { type LabelSelector, selectorText } from "../../apimachinery/label-selector.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { describeObject, type KubeObject, plainWord } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { PODS } from "../../apimachinery/resources.ts";
import { attempt, WRITE_VERBS } from "../../kube/access-error.ts";
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
  const selector = at(found, "spec", "selector");
  // Of other kinds, the field may have another meaning.
  if (ref.resource.group !== "apps" && ref.resource.group !== "argoproj.io") return { isReplaced: false, ...known };
  const labels = selectorText((isObject(selector) ? selector : {}) as LabelSelector);
  if (labels === "") return { isReplaced: false, ...known };
  const pods = allowed(await attempt(listAll(client, identity, PODS, ref.namespace ?? "", { labels })));
  if (pods === undefined) return { isReplaced: false, ...known, arePodsUnknown: true };
  const older = pods.filter((pod) => isRunning(pod) && !isNewer(pod, since));
  const isEnding = older.length > 0 && older.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return { isReplaced: older.length === 0, ...known, ...(isEnding && { isEnding }) };
}

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
