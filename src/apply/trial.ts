/** Tries writes by dry runs of the same kind of write: one field of a refused write alone, or all fields. */
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { ApiError, type Cause } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import type { Decision, Desired, Located } from "./decide.ts";
import { heldPart } from "./ownership.ts";
import { planPatch } from "./patch.ts";
import { leavesOf } from "./write.ts";

/** The refusal of the field; `accepted`; or `unknown` if the answer is about something else. */
type Verdict = ApiError | "accepted" | "unknown";

/** The other fields of the binding keep the values that they have in `live`. */
export async function tryAlone(
  client: Pick<Client, "apply" | "jsonPatch">,
  identity: Identity,
  ref: ObjectRef,
  { shape, fieldManager }: Desired,
  { way, fields, repeated, force }: Decision,
  live: KubeObject,
  field: Located,
): Promise<Verdict> {
  const kept = [...fields.filter((each) => each !== field), ...repeated].flatMap((each): Located[] => {
    const value = heldPart(live, fieldManager, each.place.held);
    return value === undefined ? [] : [{ ...each, value: new SecretValue(value) }];
  });
  try {
    if (way === "patch") {
      const operations = planPatch(live, [field], shape, { byVersion: true });
      await client.jsonPatch(identity, ref, operations, fieldManager, true);
    } else {
      const options = { fieldManager, force, dryRun: "metadata" as const };
      await client.apply(identity, ref, live.metadata.uid, leavesOf([field, ...kept]), options);
    }
    return "accepted";
  } catch (error) {
    if (error instanceof Problem) return "unknown";
    if (!(error instanceof ApiError)) throw error;
    return error.refusesDryRun || isOutage(error) || error.status === 409 ? "unknown" : error;
  }
}

/** The object as the API server would store it after the write of all fields; undefined if it does not show that. */
export async function previewFields(
  client: Pick<Client, "apply" | "jsonPatch">,
  identity: Identity,
  ref: ObjectRef,
  { shape, fieldManager }: Desired,
  { way, fields, repeated }: Decision,
  live: KubeObject,
): Promise<KubeObject | undefined> {
  try {
    if (way === "patch")
      return await client.jsonPatch(identity, ref, planPatch(live, fields, shape), fieldManager, true, "whole");
    const options = { fieldManager, force: true, dryRun: "whole" as const };
    return await client.apply(identity, ref, live.metadata.uid, leavesOf([...fields, ...repeated]), options);
  } catch (error) {
    if (error instanceof Problem || error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Whether the answer says nothing about the request. A webhook may deny a request with any status. */
const isOutage = ({ status, denial }: ApiError) =>
  denial === undefined && (status < 400 || status === 401 || status === 429 || status >= 500);

/** Whether the refusal of one field is for the same reason as that of all. */
export function isSameRefusal(one: ApiError, all: ApiError): boolean {
  const [ofOne, ofAll] = [one, all].map(subjectsOf) as [string[], string[]];
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
