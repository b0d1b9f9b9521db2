/** Lists names of objects as the user, for completion on the command line. */
import type { Resource } from "../apimachinery/objects.ts";
import { CONFIG_MAPS, NAMESPACES, RECONCILED, SECRET_BINDINGS, SECRETS } from "../apimachinery/resources.ts";
import { foundOr, type Reader } from "./reading.ts";

/** What a word of the command line names: a kind, or an object of any of Inlay's kinds. */
export type NameKind = "binding" | "secret" | "config-map" | "object" | "namespace";

/** Each kind with what is before the names of its objects. */
const LISTED: Readonly<Record<NameKind, readonly (readonly [Resource, string])[]>> = {
  binding: [[SECRET_BINDINGS, ""]],
  secret: [[SECRETS, ""]],
  "config-map": [[CONFIG_MAPS, ""]],
  namespace: [[NAMESPACES, ""]],
  object: RECONCILED.map((each) => [each, each === SECRET_BINDINGS ? "" : `${each.kind.toLowerCase()}/`]),
};

/** Empty if the user may not list them. */
export async function namesOf(reader: Pick<Reader, "list">, kind: NameKind, namespace: string): Promise<string[]> {
  const lists = LISTED[kind].map(async ([resource, before]) => {
    const scope = { resource, ...(resource.namespaced && { namespace }), form: "metadata" as const };
    return foundOr(await reader.list(scope, ({ metadata: { name } }) => `${before}${name}`), []);
  });
  return (await Promise.all(lists)).flat();
}
