/** Checks before a request whether it would be allowed. */
import { forbidden, refusal } from "./access-error.ts";
import type { ObjectAccess } from "./get.ts";

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
