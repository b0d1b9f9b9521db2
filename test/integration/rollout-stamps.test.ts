/** Shows that a restart annotation is written only to the workload for which it was decided, and never replaces a newer one. */
import assert from "node:assert/strict";
import { Client } from "../../src/kube/client.ts";
import { loadCredentials } from "../../src/kube/credentials.ts";
import { serviceAccountIdentity } from "../../src/kube/identity.ts";
import { Transport } from "../../src/kube/transport.ts";
import { stamp } from "../../src/rollout/restart/restart.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";
import { dependentOf } from "../unit/objects.ts";
import { DEPLOYMENTS } from "../unit/resources.ts";

const ANNOTATION = "inlay.dev/rollout";
const RECORD = "reloader.stakater.com/last-reloaded-from";
const EARLIER = "1-3fa9c1-09ab34de12";
const templateWith = (annotations: object) => ({ spec: { template: { metadata: { annotations } } } });

/** The field managers that own the annotation. */
const ownersOf = ({ metadata }: AnyObject) =>
  metadata.managedFields
    .filter(({ fieldsV1 }: AnyObject) => JSON.stringify(fieldsV1).includes(`"f:${ANNOTATION}"`))
    .map(({ manager, operation }: AnyObject) => `${manager} ${operation}`);

describe("a restart annotation", () => {
  let transport: Transport;
  before(async () => {
    // Uses the admin's credentials: the audit check allows the controller only requests that a binding names.
    transport = new Transport(await loadCredentials(controlPlane().kubeconfigFile));
  });
  after(() => transport.close());

  let team: TestNamespace;
  let shop: Workloads;
  /** The Deployment at the time of the decision. */
  let decided: Parameters<typeof stamp>[2];
  beforeEach(async () => {
    team = await createNamespace({ controller: false, rules: rolloutRules });
    shop = new Workloads(team);
    await shop.deploy({ core: { replicas: 0 } });
    const ref = { resource: DEPLOYMENTS, namespace: team.namespace, name: "core" };
    const { metadata } = await team.api.get(shop.path("core"));
    decided = dependentOf({ ref, version: metadata });
    // Permissions take effect a moment after they are granted.
    await eventually(() => new Client(transport).get(account(), ref));
  });
  const account = () => serviceAccountIdentity(team.namespace, "inlay");
  const write = (value: string) => stamp(new Client(transport), account(), decided, value);

  it("belongs to one field manager, also if an earlier version of Inlay applied the former one, and is written once", async () => {
    const path = shop.path("core");
    const object = { apiVersion: "apps/v1", kind: "Deployment", ...templateWith({ [ANNOTATION]: EARLIER }) };
    const applied = await team.api.apply(path, object, "inlay-rollout", true);
    assert.deepEqual(ownersOf(applied), ["inlay-rollout Apply"]);
    for (const [value, owner] of [
      [EARLIER, "inlay-rollout Apply"],
      ["2-3fa9c1-09ab34de12", "inlay-rollout Update"],
      ["2-3fa9c1-09ab34de12", "inlay-rollout Update"],
    ] as const) {
      const before = await team.api.get(path);
      decided = dependentOf({ ref: decided.ref, version: before.metadata });
      const written = await write(value);
      const after = await team.api.get(path);
      assert.ok(written !== "stale" && written.metadata.generation === after.metadata.generation);
      const isSame = before.spec.template.metadata.annotations[ANNOTATION] === value;
      assert.equal(after.metadata.generation - before.metadata.generation, isSame ? 0 : 1);
      assert.deepEqual(ownersOf(after), [owner]);
    }
    // An earlier version that returns takes the annotation over.
    const back = await team.api.apply(path, object, "inlay-rollout", true);
    assert.deepEqual(ownersOf(back), ["inlay-rollout Apply"]);
  });

  it("leaves other annotations as they are, except for a record of an earlier restart", async () => {
    const others = { "kubectl.kubernetes.io/restartedAt": "2026-11-21T10:00:00Z", "example.com/stamp": EARLIER };
    const object = { apiVersion: "apps/v1", kind: "Deployment", ...templateWith(others) };
    await team.api.apply(shop.path("core"), object, "inlay-rollout", true);
    for (const record of ["{}", undefined]) {
      const { metadata } = await team.api.get(shop.path("core"));
      const now = dependentOf({ ref: decided.ref, version: metadata });
      const value = `2-3fa9c1-${record === undefined ? "11" : "09"}ab34de12`;
      assert.notEqual(await stamp(new Client(transport), account(), now, value, () => record), "stale");
      assert.deepEqual(await shop.annotations("core"), {
        ...others,
        [ANNOTATION]: value,
        ...(record !== undefined && { [RECORD]: record }),
      });
    }
  });

  it("is written although metadata and status changed in the meantime", async () => {
    await team.api.merge(shop.path("core"), { metadata: { labels: { touched: "true" } } });
    await team.api.merge(`${shop.path("core")}/status`, { status: { collisionCount: 1 } });
    const answer = await write("2-3fa9c1-09ab34de12");
    assert.notEqual(answer, "stale");
    assert.deepEqual(await shop.annotations("core"), { [ANNOTATION]: "2-3fa9c1-09ab34de12" });
  });

  it("is not written over a newer one of another leader", async () => {
    const later = { spec: { template: { metadata: { annotations: { [ANNOTATION]: "3-3fa9c1-11ab34de12" } } } } };
    await team.api.merge(shop.path("core"), later);
    assert.equal(await write("2-3fa9c1-09ab34de12"), "stale");
    assert.deepEqual(await shop.annotations("core"), { [ANNOTATION]: "3-3fa9c1-11ab34de12" });
  });

  it("is not written to a recreated workload, and creates no workload", async () => {
    await team.api.delete(shop.path("core"));
    assert.equal(await write("2-3fa9c1-09ab34de12"), "stale");
    const path = team.path("apps/v1", "deployments");
    assert.deepEqual((await team.api.get(path)).items, []);
    await team.api.create(path, deployment("core", { replicas: 0 }));
    assert.equal(await write("2-3fa9c1-09ab34de12"), "stale");
    assert.deepEqual(await shop.annotations("core"), {});
  });
});
