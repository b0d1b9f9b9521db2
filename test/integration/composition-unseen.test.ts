/**
 * Claims that can't be listed any more: their kind, its version or their namespace is gone, or the account may not list
 * them.
 */
import assert from "node:assert/strict";
import { untilMay, untilMayNot } from "../controller/access.ts";
import type { AnyObject, Api } from "../controller/api.ts";
import {
  ACCESS_KEY_BASE,
  COMPOSITIONS,
  compose,
  composedIn,
  composedNames,
  HARBOR_CLAIMS,
  installCompositions,
  READS_SECRETS,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, removeKind } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const ROLE = "inlay-compositions";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP = "fleeting.inlay.dev";
const spec = { type: "object", properties: { cluster: { type: "string" } } };
const STORE: Kind = { group: GROUP, kind: "StoreClaim", plural: "storeclaims", spec };
const CLUSTER_OF = { fromFieldPath: "spec.cluster", toFieldPath: "spec.targets[0].name" };
const RECOVERED_WITHIN_MS = 60_000;

const versionsIn = async (team: TestNamespace) =>
  (await composedIn(team)).map(({ metadata }) => [metadata.name, metadata.uid, metadata.resourceVersion]);

async function newTeam(...names: string[]): Promise<TestNamespace> {
  const team = await createNamespace();
  await team.secret("bucket", { accessKeyID: secretText("access") });
  for (const name of names) await team.harbor(name);
  return team;
}

/** The binding that exists still follows its Secret. */
async function assertFollows(team: TestNamespace, harbor: string): Promise<void> {
  const accessKeyID = secretText("access");
  await team.secret("bucket", { accessKeyID });
  await eventually(async () => assert.equal((await team.s3(harbor)).accesskey, accessKeyID));
}

const composeHarbors = (team: TestNamespace, name: string, more: object = {}) =>
  compose(team, name, { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }], ...more });

function composeClaims(team: TestNamespace, apiVersion: string, kind: string): Promise<AnyObject> {
  return compose(team, "claims", {
    for: { apiVersion, kind, namespaceSelector: { names: [team.namespace] } },
    bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [CLUSTER_OF] }],
  });
}

/** The warnings about a composition. Events of cluster-scoped objects are in the namespace default. */
async function warningsOf(team: TestNamespace, uid: string): Promise<AnyObject[]> {
  const { items } = await team.api.get("/apis/events.k8s.io/v1/namespaces/default/events");
  return items.filter(({ regarding, type }: AnyObject) => regarding.uid === uid && type === "Warning");
}

describe("claims that a composition can't list", function () {
  this.timeout("3m");
  before(() =>
    installCompositions([
      ...HARBOR_CLAIMS,
      READS_SECRETS,
      { apiGroups: [GROUP], resources: ["*"], verbs: ["get", "list", "watch", "patch"] },
    ]),
  );
  after(() => removeCompositions());

  it("are removed with their CRD, with their bindings and no others, and return with it", async () => {
    const team = await newTeam("harbor");
    const other = await newTeam("harbor");
    const install = async () => {
      await installKind(team.api, STORE);
      await createObject(team.api, STORE, "shop", { cluster: "harbor" }, team.namespace);
    };
    await install();
    await composeClaims(team, apiVersionOf(STORE), STORE.kind);
    await composeHarbors(other, "harbor");
    await untilComposition(team, "claims", "Ready");
    await untilComposition(other, "harbor", "Ready");
    const others = await versionsIn(other);
    await removeKind(team.api, STORE);
    await untilComposition(team, "claims", "KindNotFound", "Accepted", RECOVERED_WITHIN_MS);
    await eventually(async () => assert.deepEqual(await composedNames(team), []), RECOVERED_WITHIN_MS);
    await install();
    await eventually(async () => {
      const { status } = await untilComposition(team, "claims", "Ready");
      assert.deepEqual([status.claims, status.readyBindings], [1, 1]);
    }, RECOVERED_WITHIN_MS);
    assert.deepEqual(await composedNames(team), ["shop-s3"]);
    assert.deepEqual(await versionsIn(other), others);
    await assertFollows(team, "harbor");
  });

  it("keep their bindings while their version is not served", async () => {
    const team = await newTeam("harbor", "second");
    const group = `versions.${GROUP}`;
    const crd = `${CRDS}/items.${group}`;
    await serveVersions(team.api, group, true);
    const path = (version: string) => team.path(`${group}/${version}`, "items");
    const make = (name: string, cluster: string) =>
      eventually(() =>
        team.api.create(path("v2"), {
          apiVersion: `${group}/v2`,
          kind: "Item",
          metadata: { name },
          spec: { cluster },
        }),
      );
    await make("first", "harbor");
    await team.api.create(`${RBAC}/clusterroles`, {
      metadata: { name: group, labels: { "inlay.dev/aggregate-to-compositions": "true" } },
      rules: [{ apiGroups: [group], resources: ["items"], verbs: ["get", "list", "watch"] }],
    });
    await untilMay(COMPOSITIONS, { verb: "list", group, resource: "items" });
    await composeClaims(team, `${group}/v1`, "Item");
    await untilComposition(team, "claims", "Ready");
    const before = await versionsIn(team);
    // The garbage collector reads an owner in this version. If it were v1, the collector might take the claim for deleted.
    const [made] = await composedIn(team);
    assert.equal(made?.metadata.ownerReferences[0].apiVersion, `${group}/v2`);
    await serveVersions(team.api, group, false);
    const { status } = await untilComposition(team, "claims", "KindNotFound", "Accepted", RECOVERED_WITHIN_MS);
    assert.match(status.conditions[0].message, /v1/);
    await make("later", "second");
    await team.barrier();
    assert.deepEqual(await versionsIn(team), before);
    await assertFollows(team, "harbor");
    await serveVersions(team.api, group, true);
    await eventually(
      async () => assert.deepEqual(await composedNames(team), ["first-s3", "later-s3"]),
      RECOVERED_WITHIN_MS,
    );
    await untilComposition(team, "claims", "Ready", "Ready", RECOVERED_WITHIN_MS);
    assert.deepEqual((await versionsIn(team))[0], before[0]);
    await team.api.delete(crd);
    await team.api.remove(`${RBAC}/clusterroles/${group}`);
  });

  it("keep their bindings while the account may not list them, and are listed where a RoleBinding permits it", async () => {
    const team = await newTeam("harbor");
    const closed = await newTeam("harbor");
    const namespaceSelector = { names: [team.namespace, closed.namespace] };
    const of = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", namespaceSelector };
    await composeHarbors(team, "harbor", { for: { ...of, selector: { exceptNames: ["pulse*"] } } });
    await untilComposition(team, "harbor", "Ready");
    const before = await versionsIn(closed);
    const list = { verb: "list", group: "goharbor.io", resource: "harborclusters" };
    const binding = {
      metadata: { name: ROLE },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: ROLE },
      subjects: [{ kind: "ServiceAccount", name: ROLE, namespace: "inlay-system" }],
    };
    await team.controller.stop();
    await team.api.delete(`${RBAC}/clusterrolebindings/${ROLE}`);
    await untilMayNot(COMPOSITIONS, list);
    try {
      await team.harbor("second");
      await closed.harbor("second");
      await team.controller.start();
      const { status } = await untilComposition(team, "harbor", "Forbidden", "Ready", RECOVERED_WITHIN_MS);
      assert.match(status.conditions[1].message, /kubectl create clusterrole /);
      assert.deepEqual([status.claims, status.bindings], [2, 2]);
      // A composition that never had a claim has nothing to do.
      await composeHarbors(team, "new", { for: { ...of, selector: { names: ["third"] } } });
      const { metadata, status: ready } = await untilComposition(team, "new", "ClaimsNotVisible");
      assert.deepEqual([ready.conditions.length, ready.conditions[1].status], [2, "True"]);
      assert.match(ready.conditions[1].message, /kubectl create clusterrole /);
      await team.barrier();
      assert.deepEqual(await composedNames(team), ["harbor-s3"]);
      assert.deepEqual(await warningsOf(team, metadata.uid), []);
      await assertFollows(team, "harbor");
      await team.api.create(`${RBAC}/namespaces/${team.namespace}/rolebindings`, binding);
      await eventually(
        async () => assert.deepEqual(await composedNames(team), ["harbor-s3", "second-s3"]),
        RECOVERED_WITHIN_MS,
      );
      await untilComposition(team, "harbor", "Ready", "Ready", RECOVERED_WITHIN_MS);
      await untilComposition(team, "new", "Ready");
      assert.deepEqual(await versionsIn(closed), before);
    } finally {
      await team.api.create(`${RBAC}/clusterrolebindings`, binding);
      await untilMay(COMPOSITIONS, list);
    }
    await eventually(
      async () => assert.deepEqual(await composedNames(closed), ["harbor-s3", "second-s3"]),
      RECOVERED_WITHIN_MS,
    );
  });

  it("are removed with their namespace, whose deletion their bindings do not block", async () => {
    const team = await newTeam("harbor", "second");
    await composeHarbors(team, "harbor");
    await untilComposition(team, "harbor", "Ready");
    const path = `/api/v1/namespaces/${team.namespace}`;
    const mark = await auditLog().mark();
    await team.api.delete(path);
    await team.untilGone(path, RECOVERED_WITHIN_MS);
    await eventually(async () => {
      const { status } = await untilComposition(team, "harbor", "Ready");
      assert.deepEqual([status.claims, status.bindings, status.problems], [0, 0, []]);
    });
    const made = (await auditLog().since(mark)).filter(
      ({ verb, namespace, resource, code }) =>
        verb === "create" && namespace === team.namespace && resource === "inlay.dev/secretbindings" && code < 300,
    );
    assert.deepEqual(made, []);
  });
});

/** Creates or changes a kind of two versions, and serves the older one or not. */
async function serveVersions(api: Api, group: string, isOldServed: boolean): Promise<void> {
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const versions = [
    { name: "v1", served: isOldServed, storage: false, schema },
    { name: "v2", served: true, storage: true, schema },
  ];
  const path = `${CRDS}/items.${group}`;
  if (await api.find(path)) await api.merge(path, { spec: { versions } });
  else
    await api.create(CRDS, {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `items.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { kind: "Item", listKind: "ItemList", plural: "items", singular: "item" },
        versions,
      },
    });
}
