/** Asks before a request whether it would be permitted. */
import { forbidden, refusal } from "./access-error.ts";
import type { ObjectAccess } from "./get.ts";

/** Throws Problem if the identity may not do that to the object. To create one takes the permission without a name. */
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
