/** The object that a user names on the command line, such as `vaultconnection/vault`: reads it as the user, and sends a JSON merge patch. */
import type { Condition } from "../api/binding.ts";
import { COMMAND_LINE_MANAGER } from "../api/field-manager.ts";
import { isObjectName, type ObjectMeta, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import { RECONCILED } from "../apimachinery/resources.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import { foundOrThrow, type Reader, whyNot, withAdvice } from "../explain/reading.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";

export interface NamedObject {
  readonly resource: Resource;
  readonly name: string;
}

/** How a user may write each kind: as kubectl accepts it. */
const resources = new Map(
  RECONCILED.flatMap((resource) => {
    const { group, kind, plural } = resource;
    // The initials, as in the CRDs.
    const short = kind.replace(/[a-z]/g, "").toLowerCase();
    const names = [kind.toLowerCase(), plural, `${plural}.${group}`, short];
    return names.map((name) => [name, resource] as const);
  }),
);

/** `NAME` of a SecretBinding, or `KIND/NAME`. Throws Error. */
export function namedObject(text: string): NamedObject {
  const [, kind = "secretbinding", name = ""] = /^(?:([^/]*)\/)?(.*)$/s.exec(text) ?? [];
  const resource = resources.get(kind.toLowerCase());
  const singular = RECONCILED.map(({ kind: each }) => each.toLowerCase());
  if (resource === undefined) {
    const suggested = similarName(kind.toLowerCase(), singular);
    const hint = suggested === undefined ? "" : ` Did you mean ${suggested}/${name}?`;
    throw new Error(`The kind is one of ${singular.join(", ")}.${hint}`);
  }
  if (!isObjectName(name)) throw new Error("Set it to the name of one object, and -n to its namespace.");
  return { resource, name };
}

/** As kubectl prints it, such as `secretbinding.inlay.dev/harbor-s3`. */
export const textOf = ({ resource: { kind, group }, name }: NamedObject): string =>
  `${kind.toLowerCase()}.${group}/${name}`;

/** The parts of a SecretBinding, BindingComposition or VaultConnection that are used here. */
export interface OwnObject {
  metadata: ObjectMeta;
  spec?: { suspend?: boolean };
  status?: { conditions?: Condition[]; lastHandledRefresh?: string };
}

export interface Tools {
  readonly reader: Reader;
  /** Sends requests as the user. */
  readonly client: Pick<Client, "mergePatch">;
}

const refOf = ({ resource, name }: NamedObject, namespace: string): ObjectRef => ({
  resource,
  name,
  ...(resource.namespaced && { namespace }),
});

/** Throws Error if there is no such object, or the user may not read it. */
export async function read({ reader }: Tools, object: NamedObject, namespace: string): Promise<OwnObject> {
  const ref = refOf(object, namespace);
  return foundOrThrow(await reader.get(ref, (found) => found as unknown as OwnObject, "whole"), ref);
}

/** Changes the object that was read. Throws Error with what to do. */
export async function change(
  { client }: Tools,
  object: NamedObject,
  namespace: string,
  { metadata: { uid } }: OwnObject,
  patch: { metadata?: object; spec?: object },
): Promise<OwnObject> {
  const ref = refOf(object, namespace);
  const only = { ...patch, metadata: { uid, ...patch.metadata } };
  try {
    return await client.mergePatch<OwnObject>(CONTROLLER, ref, only, COMMAND_LINE_MANAGER);
  } catch (error) {
    throw new Error(withAdvice(whyNot(error, "patch", ref)), { cause: error });
  }
}

/** The condition Ready, if any. */
export const readyOf = ({ status }: OwnObject): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === "Ready");

/** The text of an object with its condition, such as `secretbinding.inlay.dev/harbor-s3: Ready is True (Synced): …`. */
export function conditionText(object: NamedObject, ready: Condition | undefined): string {
  if (ready === undefined) return `${textOf(object)}: no condition Ready yet`;
  return `${textOf(object)}: Ready is ${ready.status} (${ready.reason}): ${ready.message}`;
}
