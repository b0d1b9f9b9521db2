/** Suspends an object, or resumes it, by the field `spec.suspend`. */
import { VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { change, type NamedObject, read, type Tools, textOf } from "./object.ts";

interface Suspended {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly suspended: boolean;
  /** Whether it was different before. */
  readonly changed: boolean;
}

/** Writes nothing if the object is as wanted. Throws Error with what to do. */
export async function suspend(
  tools: Tools,
  object: NamedObject,
  namespace: string,
  suspended: boolean,
): Promise<Suspended> {
  const { kind, namespaced } = object.resource;
  if (object.resource === VAULT_CONNECTIONS)
    throw new Error(
      "a VaultConnection can't be suspended; suspend the SecretBindings that read through it, one by one or with their BindingComposition",
    );
  const before = await read(tools, object, namespace);
  const changed = (before.spec?.suspend ?? false) !== suspended;
  if (changed) await change(tools, object, namespace, before, { spec: { suspend: suspended } });
  return { kind, ...(namespaced && { namespace }), name: object.name, suspended, changed };
}

export function suspendedText(object: NamedObject, { suspended, changed }: Suspended): string {
  const [is, does] = suspended
    ? ["suspended", "Inlay writes and releases nothing until you resume it"]
    : ["resumed", "Inlay catches up now"];
  return changed ? `${textOf(object)} ${is}; ${does}` : `${textOf(object)} unchanged: it was ${is} already`;
}
