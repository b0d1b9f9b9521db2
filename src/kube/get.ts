/** Reads objects for a purpose, or asks whether a write would be allowed, and explains failures. */
import type { KubeObject, ObjectRef, Resource } from "../apimachinery/objects.ts";
import { forbidden, READ_VERBS, type RequiredAccess, refusal } from "./access-error.ts";
import { isNotFound } from "./api-error.ts";
import type { Client, Selectors } from "./client.ts";
import { CONTROLLER, type Identity } from "./identity.ts";

/** The client, identity and object of a request, and all verbs that the binding needs on the object. */
export interface ObjectAccess<Verbs extends keyof Client = keyof Client> extends RequiredAccess {
  client: Pick<Client, Verbs>;
  ref: ObjectRef;
}

/**
 * The object, current or at least as new as the version `seen`; undefined if it does not exist. In the form `values`, managedFields may lack
 * the owned fields. Throws Problem.
 */
export async function getIfExists<T extends KubeObject = KubeObject>(
  { client, identity, ref, verbs }: ObjectAccess<"get">,
  seen?: string,
  form?: "whole" | "values",
): Promise<T | undefined> {
  try {
    return await client.get<T>(identity, ref, seen, form);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw refusal(error, { identity, ref, verbs }, "get");
  }
}

/** Reads as the controller itself. Throws Problem. */
export const getAsController = <T extends KubeObject = KubeObject>(
  client: Pick<Client, "get">,
  ref: ObjectRef,
): Promise<T | undefined> =>
  getIfExists<T>({ client, identity: CONTROLLER, ref, verbs: READ_VERBS }, undefined, "values");

/** Finds an object that the controller may list but not get. Throws Problem. */
export async function listedAsController(
  client: Pick<Client, "list">,
  { resource, namespace = "", name }: ObjectRef,
): Promise<KubeObject | undefined> {
  return (await listAll(client, CONTROLLER, resource, namespace, { fields: `metadata.name=${name}` }))[0];
}

/** All objects of a kind in a namespace, or those that match the selectors. Throws Problem. */
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

/** Throws Problem if the identity may not do that to the object. `create` is checked without a name, as RBAC does. */
export async function assertMay(
  { client, identity, ref, verbs }: ObjectAccess<"may">,
  verb: "create" | "patch",
): Promise<void> {
  const use = { identity, ref, verbs };
  const { resource, namespace, name } = ref;
  try {
    if (await client.may(identity, verb, resource, namespace, verb === "create" ? undefined : name)) return;
  } catch (error) {
    throw refusal(error, use, verb);
  }
  throw forbidden(use, verb);
}
