/** Lists the permissions of a composition's account: to watch and write claims, and, as the author of bindings, what policies require. */
import type { SecretBinding } from "../api/binding.ts";
import type { BindingComposition } from "../api/composition.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { SECRET_BINDINGS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { compileComposition } from "../composition/compile.ts";
import type { RequiredPermission } from "../controllers/binding/required-access.ts";
import { claimVerbs } from "../controllers/composition/claim-writer.ts";
import { STREAM_VERBS } from "../kube/access-error.ts";
import { statusesOf } from "../sources/provider-class.ts";
import { parseSources } from "../sources/registry.ts";
import { type KindSearch, kindOf, withSourceKinds } from "./kinds.ts";

/** Throws Problem. `namespaces` are those of the claims; undefined for claims that are cluster-scoped. */
export async function claimAccess(
  { metadata, spec }: BindingComposition,
  namespaces: readonly (string | undefined)[],
  kinds: KindSearch,
): Promise<RequiredPermission[]> {
  const resource = await kindOf(kinds, spec.for.apiVersion, spec.for.kind);
  const { writes } = compileComposition(spec, resource);
  const isStatus = (path: (typeof writes)[number]) => resource.hasStatus && String(path).startsWith("status");
  const why = `claims of BindingComposition ${metadata.name}`;
  const on = (kind: Resource, verbs: readonly string[]) =>
    namespaces.map((namespace) => ({ ref: { resource: kind, namespace }, verbs, why }));
  return [
    ...on(resource, STREAM_VERBS),
    ...(writes.some((path) => !isStatus(path)) ? on(resource, claimVerbs(resource)) : []),
    ...(writes.some(isStatus)
      ? on(
          resource,
          claimVerbs(resource).filter((verb) => verb === "get"),
        )
      : []),
    ...(writes.some(isStatus) ? on({ ...resource, plural: `${resource.plural}/status` }, ["patch"]) : []),
  ];
}

/** As its author, the account also needs what policies/authors.yaml asks. Sources that need a grant are permitted by the grant. */
export async function authorAccess(
  composition: string,
  binding: SecretBinding,
  kinds: KindSearch,
): Promise<RequiredPermission[]> {
  const { namespace } = binding.metadata;
  const why = `author of the bindings of BindingComposition ${composition}`;
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: binding.spec.serviceAccountName };
  const discovery = withSourceKinds(kinds, binding);
  const reads = parseSources(binding).map(async (source): Promise<RequiredPermission[]> => {
    const { data, store, providerClass, locate } = source;
    const connection = store?.connection;
    if (data?.needsGrant || connection?.needsGrant) return [];
    if (connection !== undefined) return [{ ref: connection.ref, verbs: ["use"], why }];
    if (providerClass !== undefined)
      return [{ ref: { resource: await statusesOf(discovery), namespace }, verbs: ["list"], why }];
    const ref = await locate?.(discovery);
    return ref === undefined ? [] : [{ ref, verbs: ["get"], why }];
  });
  return [
    { ref: { resource: SECRET_BINDINGS, namespace }, verbs: ["create", "update", "delete"], why },
    { ref: account, verbs: ["impersonate"], why },
    ...(await Promise.all(reads)).flat(),
  ];
}
