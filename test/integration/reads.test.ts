/**
 * Shows that a changed object is read at least at the observed version, and from the API server's cache, which saves reads from
 * etcd.
 */
import assert from "node:assert/strict";
import { Client } from "../../src/kube/client.ts";
import { loadCredentials } from "../../src/kube/credentials.ts";
import { CONTROLLER as OURSELVES } from "../../src/kube/identity.ts";
import { Transport } from "../../src/kube/transport.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

describe("a read", () => {
  it("of a changed object requests the version that the watch showed, or a later one", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const mark = await auditLog().mark();
    const [accessKey, changed] = [secretText("rotated"), secretText("changed")];
    await team.secret("bucket", { accessKeyID: accessKey });
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    const { metadata } = await team.api.get(`${team.path("v1", "secrets")}/bucket`);
    await team.api.merge(team.harborPath(), { spec: { storage: { spec: { s3: { accesskey: changed } } } } });
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    const reads = (await requestsFor(team, mark)).filter(({ verb }) => verb === "get");
    const versions = new Map(
      reads.map(({ resource, uri }) => [resource, new URL(uri, "https://x").searchParams.get("resourceVersion")]),
    );
    assert.equal(versions.get("secrets"), metadata.resourceVersion);
    assert.match(versions.get("goharbor.io/harborclusters") ?? "", /^\d+$/);
  });

  describe("is avoided where a target is as the binding left it:", () => {
    const requestsIn = async (team: TestNamespace, mark: number) =>
      (await requestsFor(team, mark))
        .filter(({ resource, as }) => as !== undefined && !resource.startsWith("authorization"))
        .filter(({ verb }) => verb !== "watch" && verb !== "list")
        .map(({ verb, resource, code }) => `${verb} ${resource} ${code}`);

    it("a rotation is one read of the Secret and one write", async () => {
      const team = await createNamespace();
      await team.boundHarbor();
      for (const accessKey of [secretText("one"), secretText("two")]) {
        const mark = await auditLog().mark();
        await team.secret("bucket", { accessKeyID: accessKey });
        await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
        assert.deepEqual(await requestsIn(team, mark), ["get secrets 200", "patch goharbor.io/harborclusters 200"]);
      }
    });

    it("also when the operator has written the status since", async () => {
      const team = await createNamespace();
      await team.boundHarbor();
      const accessKey = secretText("rotated");
      await team.api.merge(`${team.harborPath()}/status`, { status: { operator: { controllerName: "other" } } });
      const mark = await auditLog().mark();
      await team.secret("bucket", { accessKeyID: accessKey });
      await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
      const requests = await requestsIn(team, mark);
      // The watch may lag behind the status. The write is then refused, and the next attempt reads the object.
      const unread = ["get secrets 200", "patch goharbor.io/harborclusters 200"];
      const late = [
        "get secrets 200",
        "patch goharbor.io/harborclusters 409",
        "get goharbor.io/harborclusters 200",
        "patch goharbor.io/harborclusters 200",
      ];
      assert.deepEqual(requests, requests.length === unread.length ? unread : late);
    });

    it("a Secret whose data did not change is read, and nothing is written", async () => {
      const team = await createNamespace();
      await team.boundHarbor();
      const mark = await auditLog().mark();
      await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { metadata: { labels: { looked: "at" } } });
      await eventually(async () => assert.deepEqual(await requestsIn(team, mark), ["get secrets 200"]));
      // A later change is processed later.
      const accessKey = secretText("rotated");
      await team.secret("bucket", { accessKeyID: accessKey });
      await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
      assert.deepEqual(await requestsIn(team, mark), [
        "get secrets 200",
        "get secrets 200",
        "patch goharbor.io/harborclusters 200",
      ]);
    });

    it("fields that others own and change at the same time stay", async () => {
      const team = await createNamespace();
      await team.boundHarbor();
      for (let turn = 0; turn < 10; turn++) {
        const [accessKey, region] = [secretText("rotated"), `region-${turn}`];
        await Promise.all([
          team.secret("bucket", { accessKeyID: accessKey }),
          team.api.merge(team.harborPath(), { spec: { storage: { spec: { s3: { region } } } } }),
        ]);
        await eventually(async () => {
          const s3 = await team.s3();
          assert.deepEqual([s3.accesskey, s3.region], [accessKey, region]);
        });
      }
    });
  });

  it("of a version that the API server does not know, as after a restored backup, returns the current object", async () => {
    const team = await createNamespace({ controller: false });
    const file = await controlPlane().kubeconfigForServiceAccount("inlay-system", "inlay-controller");
    const transport = new Transport(await loadCredentials(file));
    try {
      const namespaces = {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        namespaced: false,
        hasStatus: true,
      };
      const ref = { resource: namespaces, name: team.namespace };
      const { metadata } = await new Client(transport).get(OURSELVES, ref, "999999999999");
      assert.equal(metadata.name, team.namespace);
    } finally {
      await transport.close();
    }
  });
});
