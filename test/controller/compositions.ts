/** Installs the shipped manifests for BindingCompositions, and creates compositions for tests. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type Access, untilMay, untilMayNot } from "./access.ts";
import { type AnyObject, Api, unlessGone } from "./api.ts";
import { eventually } from "./eventually.ts";
import { applyFile, deleteFile } from "./manifests.ts";
import { CONTROLLER } from "./requests.ts";
import { stopSharedController } from "./shared.ts";
import type { Rule, TestNamespace } from "./test-namespace.ts";

const manifest = join(import.meta.dirname, "..", "..", "deploy", "manifests", "optional", "compositions.yaml");
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const ROLE = "inlay-compositions";
const CLAIMS = "test-claims";
export const COMPOSITIONS = "system:serviceaccount:inlay-system:inlay-compositions";
const MAKES_BINDINGS: Access = { verb: "create", group: "inlay.dev", resource: "secretbindings" };
const PATH = "/apis/inlay.dev/v1alpha1/bindingcompositions";

/** Permissions for claims of tests: Inlay reads HarborClusters, and writes their state back. */
export const HARBOR_CLAIMS: Rule[] = [
  { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: ["goharbor.io"], resources: ["harborclusters/status"], verbs: ["patch"] },
];
/** The permission that the author of a binding needs for a source without `granted`. */
export const READS_SECRETS: Rule = { apiGroups: [""], resources: ["secrets"], verbs: ["get"] };

const OF_ACCOUNT = {
  metadata: { name: ROLE },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: ROLE },
  subjects: [{ kind: "ServiceAccount", name: ROLE, namespace: "inlay-system" }],
};

/** Applies the manifest, and binds its role in the whole cluster, with the permissions for claims. */
export async function installCompositions(rules: readonly Rule[] = [...HARBOR_CLAIMS, READS_SECRETS]): Promise<void> {
  await stopSharedController();
  const api = new Api(controlPlane());
  await applyFile(api, manifest);
  await api.create(`${RBAC}/clusterroles`, {
    metadata: { name: CLAIMS, labels: { "inlay.dev/aggregate-to-compositions": "true" } },
    rules,
  });
  await api.create(`${RBAC}/clusterrolebindings`, OF_ACCOUNT);
  // This control plane has no controller that aggregates roles.
  const { items } = await api.get(`${RBAC}/clusterroles?labelSelector=inlay.dev/aggregate-to-compositions=true`);
  await api.merge(`${RBAC}/clusterroles/${ROLE}`, { rules: items.flatMap((each: AnyObject) => each.rules) });
  const [first] = rules;
  if (first !== undefined)
    await untilMay(COMPOSITIONS, {
      verb: "watch",
      group: first.apiGroups[0] ?? "",
      resource: first.resources[0] ?? "",
    });
  await untilMay(COMPOSITIONS, MAKES_BINDINGS);
  await untilMay(CONTROLLER, {
    verb: "impersonate",
    resource: "serviceaccounts",
    name: ROLE,
    namespace: "inlay-system",
  });
}

export async function removeCompositions(): Promise<void> {
  const api = new Api(controlPlane());
  for (const { metadata } of (await api.get(PATH)).items) await deleteComposition(api, metadata.name);
  await stopSharedController();
  await api.remove(`${RBAC}/clusterrolebindings/${ROLE}`);
  await api.remove(`${RBAC}/clusterroles/${CLAIMS}`);
  await deleteFile(api, manifest);
}

/** Creates a composition for the HarborClusters of a namespace. */
export function compose(
  { api, namespace }: Pick<TestNamespace, "api" | "namespace">,
  name: string,
  spec: object,
): Promise<AnyObject> {
  return api.create(PATH, {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "BindingComposition",
    metadata: { name: `${namespace}-${name}` },
    spec: {
      for: {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        namespaceSelector: { names: [namespace] },
        // A barrier creates HarborClusters of its own.
        selector: { exceptNames: ["pulse*"] },
      },
      ...spec,
    },
  });
}

export const compositionPath = (team: TestNamespace, name: string): string => `${PATH}/${team.namespace}-${name}`;

/** Waits until a condition of the composition has that reason for its current spec, and returns the composition. */
export function untilComposition(
  team: TestNamespace,
  name: string,
  reason: string,
  type: "Ready" | "Accepted" = "Ready",
  withinMs?: number,
): Promise<AnyObject> {
  return eventually(async () => {
    const composition = await team.api.get(compositionPath(team, name));
    const condition = composition.status?.conditions?.find((each: AnyObject) => each.type === type);
    assert.equal(condition?.reason, reason, JSON.stringify(composition.status));
    assert.equal(condition.observedGeneration, composition.metadata.generation);
    return composition;
  }, withinMs);
}

/** The bindings in a namespace with the label of a composition. */
export async function composedIn(team: TestNamespace): Promise<AnyObject[]> {
  const path = team.path("inlay.dev/v1alpha1", "secretbindings");
  return (await team.api.get(`${path}?labelSelector=inlay.dev/composition`)).items;
}

/** The names of these bindings, sorted. */
export const composedNames = async (team: TestNamespace): Promise<string[]> =>
  (await composedIn(team)).map(({ metadata }) => metadata.name).sort();

/** Deletes a composition and its bindings, by force where no controller runs. */
async function deleteComposition(api: Api, name: string): Promise<void> {
  await api.merge(`${PATH}/${name}`, { metadata: { annotations: { "inlay.dev/delete-copies": "true" } } });
  await api.remove(`${PATH}/${name}`);
  await api.merge(`${PATH}/${name}`, { metadata: { finalizers: null } }).catch(unlessGone);
}

/** A base that writes the access key of a Secret into the HarborCluster that patches name. */
export const ACCESS_KEY_BASE = {
  spec: {
    sources: [{ name: "bucket", secret: { name: "bucket" } }],
    targets: [
      {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        fields: [{ path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } }],
      },
    ],
  },
};
export const TO_CLAIM = { fromFieldPath: "metadata.name", toFieldPath: "spec.targets[0].name" };

/** Limits the role of the account to these namespaces. */
export async function bindCompositionsIn(...teams: readonly TestNamespace[]): Promise<void> {
  const api = new Api(controlPlane());
  await api.remove(`${RBAC}/clusterrolebindings/${ROLE}`);
  await untilMayNot(COMPOSITIONS, MAKES_BINDINGS);
  for (const { namespace } of teams) {
    await api.create(`${RBAC}/namespaces/${namespace}/rolebindings`, OF_ACCOUNT);
    await untilMay(COMPOSITIONS, { ...MAKES_BINDINGS, namespace });
  }
}

/** Removes the role of the account from such a namespace. */
export async function unbindCompositionsIn({ api, namespace }: TestNamespace): Promise<void> {
  await api.delete(`${RBAC}/namespaces/${namespace}/rolebindings/${ROLE}`);
  await untilMayNot(COMPOSITIONS, { ...MAKES_BINDINGS, namespace });
}
