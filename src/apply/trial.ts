/** Tries writes by dry runs of the same kind of write: one field of a refused write alone, or all fields. */
import type { KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { ApiError, type Cause } from "../kube/api-error.ts";
import type { Answer } from "../kube/client.ts";
import type { ObjectAccess } from "../kube/get.ts";
import type { Decision, Desired, Located } from "./decide.ts";
import { heldPart } from "./ownership.ts";
import { planPatch } from "./patch.ts";
import { leavesOf } from "./write.ts";

type Access = ObjectAccess<"apply" | "jsonPatch">;

/** The refusal of the field; `accepted`; or `unknown` if the answer is about something else. */
type Verdict = ApiError | "accepted" | "unknown";

/** The other fields of the binding keep the values that they have in `live`. */
export async function tryAlone(
  access: Access,
  desired: Desired,
  { way, fields, repeated, force }: Decision,
  live: KubeObject,
  field: Located,
): Promise<Verdict> {
  const kept = [...fields.filter((each) => each !== field), ...repeated].flatMap((each): Located[] => {
    const value = heldPart(live, desired.fieldManager, each.place.held);
    return value === undefined ? [] : [{ ...each, value: new SecretValue(value) }];
  });
  try {
    await dryRun(access, desired, { way, force, fields: [field], repeated: kept }, live, "metadata");
    return "accepted";
  } catch (error) {
    if (error instanceof Problem) return "unknown";
    if (!(error instanceof ApiError)) throw error;
    return error.refusesDryRun || isOutage(error) || error.status === 409 ? "unknown" : error;
  }
}

/** The object as the API server would store it after the write of all fields; undefined if it does not show that. */
export async function previewFields(
  access: Access,
  desired: Desired,
  decision: Decision,
  live: KubeObject,
): Promise<KubeObject | undefined> {
  try {
    return await dryRun(access, desired, { ...decision, force: true }, live, "whole");
  } catch (error) {
    if (error instanceof Problem || error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Throws what the client throws, and Problem if the fields have no place in the object. */
async function dryRun(
  { client, identity, ref }: Access,
  { shape, fieldManager }: Desired,
  { way, fields, repeated, force }: Pick<Decision, "way" | "fields" | "repeated" | "force">,
  live: KubeObject,
  answer: Answer,
): Promise<KubeObject> {
  // The answer to a part of the fields is only about the version that was read.
  const operations = () => planPatch(live, fields, shape, { byVersion: answer === "metadata" });
  if (way === "patch") return client.jsonPatch(identity, ref, operations(), fieldManager, true, answer);
  const options = { fieldManager, force, dryRun: answer };
  return client.apply(identity, ref, live.metadata.uid, leavesOf([...fields, ...repeated]), options);
}

/** Whether the answer says nothing about the request. A webhook may deny a request with any status. */
const isOutage = ({ status, denial }: ApiError) =>
  denial === undefined && (status < 400 || status === 401 || status === 429 || status >= 500);

/** Whether the refusal of one field is for the same reason as that of all. */
export function isSameRefusal(one: ApiError, all: ApiError): boolean {
  const [ofOne, ofAll] = [subjectsOf(one), subjectsOf(all)];
  return one.status === all.status && (ofAll.length === 0 || ofOne.some((each) => ofAll.includes(each)));
}

/** The causes of the refusal of one field that the refusal of all has too: without the other fields, others may be missing. */
export function sharedCauses(one: ApiError, all: ApiError): ApiError["causes"] {
  const known = all.causes.reveal().map(subjectOf);
  return known.length === 0
    ? one.causes
    : one.causes.map((each) => each.filter((cause) => known.includes(subjectOf(cause))));
}

const subjectOf = ({ reason, field }: Cause) => `${reason} ${field}`;

function subjectsOf({ denial, causes }: ApiError): string[] {
  if (denial !== undefined) return [JSON.stringify(denial)];
  return causes.reveal().map(subjectOf);
}
