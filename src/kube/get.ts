/** An object to look for comes in, with what it is for; the object goes out, if there is one. */
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { refusal } from "./access-error.ts";
import { isNotFound } from "./api-error.ts";
import type { Client } from "./client.ts";
import type { Identity } from "./identity.ts";

/** What a request is made with: as whom, on what, and all the verbs that the binding needs there. */
export interface Access {
  client: Client;
  identity: Identity;
  ref: ObjectRef;
  verbs: readonly string[];
}

/** The object as it is, or at least as new as the version that was seen; undefined when there is none. Throws Problem. */
export async function findObject<T extends KubeObject = KubeObject>(
  { client, identity, ref, verbs }: Access,
  seen?: string,
): Promise<T | undefined> {
  try {
    return await client.get<T>(identity, ref, seen);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw refusal(error, { identity, ref, verbs }, "get");
  }
}
