/** An object to look for comes in, with what it is for; the object goes out, if there is one. */
import type { KubeObject, ObjectRef, Resource } from "../apimachinery/objects.ts";
import { READ_VERBS, type RequiredAccess, refusal } from "./access-error.ts";
import { isNotFound } from "./api-error.ts";
import type { Client, Selectors } from "./client.ts";
import { CONTROLLER, type Identity } from "./identity.ts";

/** What a request is made with: as whom, on what, and all the verbs that the binding needs there. */
export interface ObjectAccess<Verbs extends keyof Client = keyof Client> extends RequiredAccess {
  client: Pick<Client, Verbs>;
  ref: ObjectRef;
}

/** The object as it is, or at least as new as the version that was seen; undefined when there is none. Throws Problem. */
export async function getIfExists<T extends KubeObject = KubeObject>(
  { client, identity, ref, verbs }: ObjectAccess<"get">,
  seen?: string,
): Promise<T | undefined> {
  try {
    return await client.get<T>(identity, ref, seen);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw refusal(error, { identity, ref, verbs }, "get");
  }
}

/** The same, as the controller itself. Throws Problem. */
export const getAsController = <T extends KubeObject = KubeObject>(
  client: Pick<Client, "get">,
  ref: ObjectRef,
): Promise<T | undefined> => getIfExists<T>({ client, identity: CONTROLLER, ref, verbs: READ_VERBS });

/** The same of an object that the controller may list and not get. Throws Problem. */
export async function listedAsController(
  client: Pick<Client, "list">,
  { resource, namespace = "", name }: ObjectRef,
): Promise<KubeObject | undefined> {
  return (await listAll(client, CONTROLLER, resource, namespace, { fields: `metadata.name=${name}` }))[0];
}

/** All objects of a kind in a namespace, or those that are selected. Throws Problem. */
export async function listAll(
  client: Pick<Client, "list">,
  identity: Identity,
  resource: Resource,
  namespace: string,
  selectors?: Selectors,
): Promise<KubeObject[]> {
  const found: KubeObject[] = [];
  try {
    for await (const page of client.list(identity, resource, namespace, selectors)) found.push(...page);
  } catch (error) {
    throw refusal(error, { identity, ref: { resource, namespace }, verbs: ["list"] }, "list");
  }
  return found;
}
