/** Lists the permissions of a binding's account, by the function that lists them after a denied request. */
import { fieldsOfTarget, type SecretBinding } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import type { VaultConnection } from "../api/vault-connection.ts";
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { NAMESPACES, SERVICE_ACCOUNTS, VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { type RequiredPermission, requiredAccess } from "../controllers/binding/required-access.ts";
import { STREAM_VERBS } from "../kube/access-error.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import type { FileCluster } from "../render/file-cluster.ts";
import { fileVault } from "../render/vault.ts";
import type { VaultValues } from "../render/vault-values.ts";
import { resolveRollout } from "../rollout/discover/lookups.ts";
import { secretNamespaces } from "../sources/registry.ts";
import type { ResolveContext } from "../sources/source.ts";
import { isSelection, type References, resolveReferences } from "../targets/references.ts";
import type { SelectedObject } from "../targets/select.ts";
import { checkFields } from "../transform/plan.ts";
import { assertAcknowledged, readableCopies } from "../transform/readable-copies.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { type KindSearch, withSourceKinds } from "./kinds.ts";

/** In place of the namespaces that a selector finds in the cluster. No namespace has this name. */
export const ALL_NAMESPACES = "*";

export interface BindingAccess {
  readonly permissions: readonly RequiredPermission[];
  /** With their places in the binding. */
  readonly problems: readonly { readonly place: string; readonly problem: Problem }[];
}

export interface AccessServices {
  readonly kinds: KindSearch;
  readonly cluster: FileCluster;
  readonly vaultValues: VaultValues;
  readonly installation: Installation;
}

export async function bindingAccess(binding: SecretBinding, services: AccessServices): Promise<BindingAccess> {
  const { cluster, installation, vaultValues } = services;
  const { namespace = "" } = binding.metadata;
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: binding.spec.serviceAccountName };
  const discovery = withSourceKinds(services.kinds, binding);
  const { connections, polls } = fileVault(cluster, vaultValues);
  const vault = withLogins(connections, cluster);
  const references = await resolveReferences(binding, {
    discovery,
    client: cluster.client,
    identity: serviceAccountIdentity(namespace, account.name),
    installation,
    vault,
    polls,
    accountUid: "",
    compositionOf: () => "none",
  });
  const objects = references.targets.flatMap(objectsOf);
  const { rollout } = binding.spec;
  const found =
    rollout &&
    (await resolveRollout(binding, rollout, { ...references, objects }, { discovery, installation }, async (work) =>
      finish(work),
    ));
  const lookups = found?.lookups ?? [];
  const permissions = requiredAccess({
    binding,
    account,
    references,
    objects,
    collections: [],
    lookups,
    vault,
    problems: [],
  });
  const closed = found?.closed.map((each) => each.problem) ?? [];
  return {
    permissions: [...permissions, ...namespaceAccess(references)],
    problems: [
      ...problemsOf(binding, references),
      ...unacknowledged(binding, references, installation),
      ...unknownConnections(references, cluster),
      ...[found?.problem, ...closed].flatMap((problem) => (problem ? [{ place: "spec.rollout", problem }] : [])),
    ],
  };
}

/** Whether bindings log in with tokens of their own accounts, by the connections in the files. */
function withLogins(connections: ResolveContext["vault"], cluster: FileCluster): ResolveContext["vault"] {
  return {
    get(namespace, name) {
      const state = connections.get(namespace, name);
      const { spec } = connectionIn(cluster, namespace, name) ?? {};
      const usesAccountTokens = spec?.auth?.kubernetes?.as === "Binding";
      return state?.phase === "ready" ? { ...state, usesAccountTokens } : state;
    },
  };
}

const connectionIn = (cluster: FileCluster, namespace: string | undefined, name: string) =>
  cluster.find({ resource: VAULT_CONNECTIONS, namespace: namespace ?? "", name }) as
    | (KubeObject & Pick<VaultConnection, "spec">)
    | undefined;

/** The objects that a target names, or one without a name for all objects that it may select. */
function objectsOf({ target, at }: References["targets"][number]): SelectedObject[] {
  if (at instanceof Problem || !isSelection(at)) return [{ target, ref: at, selected: false }];
  const places = "labels" in at.namespaces ? [ALL_NAMESPACES] : at.namespaces;
  const name = typeof at.objects === "string" ? at.objects : "";
  return places.map((namespace) => {
    const ref: ObjectRef = { resource: at.resource, name, ...(namespace !== undefined && { namespace }) };
    return { target, ref, selected: true };
  });
}

/** In the controller, it is one of the collections that selectors watch. */
function namespaceAccess({ targets }: References): RequiredPermission[] {
  const selects = targets.some(({ at }) => !(at instanceof Problem) && isSelection(at) && "labels" in at.namespaces);
  return selects ? [{ ref: { resource: NAMESPACES }, verbs: STREAM_VERBS, why: "namespaceSelector" }] : [];
}

function problemsOf(
  binding: SecretBinding,
  { parsedSources, sources, targets }: References,
): BindingAccess["problems"] {
  const ofSources = parsedSources.flatMap(({ name }, at) => {
    const problem = sources.get(name);
    return problem instanceof Problem ? [{ place: `spec.sources[${at}]`, problem }] : [];
  });
  const ofTargets = targets.flatMap(({ target, at }) =>
    at instanceof Problem ? [{ place: `spec.targets[${binding.spec.targets.indexOf(target)}]`, problem: at }] : [],
  );
  return [...ofSources, ...ofTargets];
}

/** The copies that the configuration requires to be acknowledged. */
function unacknowledged(
  binding: SecretBinding,
  { parsedSources, targets }: References,
  installation: Installation,
): BindingAccess["problems"] {
  const secrets = secretNamespaces(parsedSources);
  const names = parsedSources.map(({ name }) => name);
  return targets.flatMap((each) => {
    const found = attemptSync(() => {
      const recipes = checkFields(fieldsOfTarget(each.target), names);
      for (const { ref } of objectsOf(each))
        if (!(ref instanceof Problem))
          assertAcknowledged(binding, readableCopies(binding, secrets, recipes, ref), installation);
    });
    // Mistakes in fields need no permission.
    if (!(found instanceof Problem) || found.reason !== "NotAcknowledged") return [];
    return [{ place: `spec.targets[${binding.spec.targets.indexOf(each.target)}]`, problem: found }];
  });
}

/** Without the connection, it is unknown whether the account logs in. */
function unknownConnections({ parsedSources }: References, cluster: FileCluster): BindingAccess["problems"] {
  return parsedSources.flatMap(({ vault }, at) => {
    if (vault?.needsLogin !== true) return [];
    const { namespace, name } = vault.connection;
    if (connectionIn(cluster, namespace, name) !== undefined) return [];
    const message = `the VaultConnection ${namespace}/${name} is unknown, so its login is too; add it with -f, or use --cluster to read it from your cluster`;
    return [{ place: `spec.sources[${at}]`, problem: new Problem("ConnectionNotFound", message) }];
  });
}
