/** Writes the fields of a claim that patches copy from its bindings, by server-side apply as the composition's account. */
import { at } from "../../apimachinery/fields.ts";
import { isObject, sameJson } from "../../apimachinery/json.ts";
import { BoundedMap } from "../../apimachinery/maps.ts";
import type { JsonObject, JsonValue, ObjectRef, Resource } from "../../apimachinery/objects.ts";
import { refusal } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import type { Identity } from "../../kube/identity.ts";
import { mayDropFields } from "../../kube/write-versions.ts";
import type { ContentionBudget } from "../../targets/contention-budget.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";
import { revisionOf } from "../generated-bindings.ts";

interface Services {
  client: Pick<Client, "apply">;
  contention: Pick<ContentionBudget, "mayWrite" | "wrote">;
}

interface ClaimWrite {
  readonly composition: string;
  readonly identity: Identity;
  readonly ref: ObjectRef;
  readonly uid: string;
  /** All fields that the composition writes to the claim. */
  readonly fields: JsonObject;
  /** The present claim, with those fields at least. */
  readonly present: JsonObject;
}

/**
 * What the account needs besides list and watch, without the status subresource. A write of a custom resource first reads it in the other
 * versions of its kind, if they have no conversion.
 */
export const claimVerbs = (resource: Resource): readonly string[] =>
  mayDropFields(resource) ? ["get", "patch"] : ["patch"];

/** For how many claims the last applied fields are remembered. */
const MAX_REMEMBERED = 20_000;

export class ClaimWriter {
  readonly #services: Services;
  /** The revision of the last applied fields, by composition and uid of the claim. */
  readonly #applied = new BoundedMap<string, string>(MAX_REMEMBERED);

  constructor(services: Services) {
    this.#services = services;
  }

  /** Applies the fields if any of them differ. Throws Problem if the API server refuses that. */
  async write({ composition, identity, ref, uid, fields, present }: ClaimWrite): Promise<WorkResult> {
    const { client, contention } = this.#services;
    const key = `${composition}|${uid}`;
    const before = this.#applied.get(key);
    const revision = revisionOf(fields);
    const isNew = before !== undefined && before !== revision;
    if (!isNew && containsAll(present, fields)) return { retry: "never" };
    const contender = `claim/${key}`;
    const wait = contention.mayWrite(contender, revision, []);
    if (wait > 0) return { retry: "after", ms: wait };
    const how = { fieldManager: `inlay-composition/${composition}`, force: true };
    for (const { leaves, part } of partsOf(fields, ref)) {
      if (before === revision && containsAll(present, leaves)) continue;
      try {
        await client.apply(identity, ref, uid, leaves, { ...how, ...(part && { part }) });
      } catch (error) {
        // The claim is deleted, or another object has its name.
        if (isStatus(error, 404) || isStatus(error, 409)) return { retry: "backoff" };
        throw refusal(error, { identity, ref, verbs: part ? ["get"] : claimVerbs(ref.resource) }, "patch");
      }
    }
    this.#applied.set(key, revision);
    contention.wrote(contender, revision);
    return { retry: "never" };
  }
}

/** If the kind has a status subresource, status is written to it. */
function partsOf({ status, ...rest }: JsonObject, { resource }: ObjectRef): { leaves: JsonObject; part?: "status" }[] {
  if (status === undefined) return [{ leaves: rest }];
  if (!resource.hasStatus) return [{ leaves: { ...rest, status } }];
  return [...(Object.keys(rest).length > 0 ? [{ leaves: rest }] : []), { leaves: { status }, part: "status" as const }];
}

/** Whether an object contains all fields of another one. Lists are compared as a whole. */
function containsAll(present: JsonValue, wanted: JsonValue): boolean {
  if (!isObject(wanted)) return sameJson(present, wanted);
  if (!isObject(present)) return false;
  return Object.entries(wanted).every(([key, value]) => {
    const there = Object.hasOwn(present, key) ? at(present, key) : undefined;
    return there !== undefined && containsAll(there as JsonValue, value);
  });
}
