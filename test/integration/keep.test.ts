/** Written values stay. Inlay reverts changes of others, and sends no request if nothing must change. */
import assert from "node:assert/strict";
import { through } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespaceWithNest, nest, nestSpec } from "../controller/released.ts";
import { auditLog } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, fieldsOf, s3Fields } from "../controller/test-namespace.ts";

const AT_ONCE = 5_000;
const isWrite = ({ verb }: { verb: string }) => ["create", "update", "patch", "delete"].includes(verb);
const isOfTarget = ({ resource }: { resource: string }) => resource === "goharbor.io/harborclusters";

describe("a field that a binding wrote", () => {
  it("is reverted at once when another user changes it", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await team.editS3({ accesskey: "edited" });
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey), AT_ONCE);
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(fieldsOf(harbor, team.manager("harbor-s3")), s3Fields("accesskey"));
    await team.until("harbor-s3", "Synced");
  });

  it("is restored at once when another user removes it", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await team.editS3({ accesskey: null });
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey), AT_ONCE);
  });

  it("is reverted at once when another user applies another value with force", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await team.applyS3({ accesskey: "applied" }, "platform", true);
    await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey), AT_ONCE);
  });

  it("is reverted with the other fields of its target, in one request", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await team.harbor();
    const annotation = 'metadata.annotations["example.com/key"]';
    const from = { source: "bucket", key: "accessKeyID" };
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          name: "harbor",
          fields: [
            { path: "spec.storage.spec.s3.accesskey", from },
            { path: annotation, from },
          ],
        },
      ],
    });
    await team.until("harbor-s3", "Synced");
    const requests = await team.requestsDuring(async () => {
      const change = {
        metadata: { annotations: { "example.com/key": "edited" } },
        spec: { storage: { spec: { s3: { accesskey: "edited" } } } },
      };
      await team.api.merge(team.harborPath(), change, "kubectl-edit");
      await eventually(async () => assert.equal((await team.s3()).accesskey, accessKey));
    });
    assert.equal(requests.filter((each) => isOfTarget(each) && isWrite(each)).length, 1, JSON.stringify(requests));
    const { annotations } = (await team.api.get(team.harborPath())).metadata;
    assert.equal(annotations["example.com/key"], accessKey);
  });

  it("is not written again when other keys of its Secret change", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const requests = await team.requestsDuring(async () => {
      await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { metadata: { labels: { touched: "yes" } } });
      await team.secret("bucket", { another: secretText("another") });
    });
    assert.ok(requests.some(({ resource, name }) => resource === "secrets" && name === "bucket"));
    assert.deepEqual(requests.filter(isWrite), []);
  });

  it("is not written again when other fields of its target change", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const requests = await team.requestsDuring(() => team.editS3({ rootdirectory: "/harbor", bucket: "other" }));
    assert.deepEqual(requests.filter(isWrite), []);
    assert.equal((await team.s3()).bucket, "other");
  });

  it("is not written again when other fields of its target change, if the schema does not describe it", async () => {
    const team = await createNamespaceWithNest({});
    await team.rebind("nest", nestSpec("spec.free.a.b"));
    await team.until("nest", "Synced");
    const edit = () => team.api.merge(objectPath(nest, team.namespace, "nest"), { spec: { a: { other: "x" } } });
    const requests = await team.requestsDuring(edit, through(nest, "spec.a.other"));
    assert.deepEqual(requests.filter(isWrite), []);
  });

  it("is not read when only the status of its target changes", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const requests = await team.requestsDuring(() =>
      team.api.merge(`${team.harborPath()}/status`, { status: { status: "healthy" } }),
    );
    assert.deepEqual(requests.filter(isOfTarget), []);
  });

  it("is not read for a new value, or for the binding's own write", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const requests = await team.requestsDuring(async () => {
      const rotated = secretText("rotated");
      await team.secret("bucket", { accessKeyID: rotated });
      await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    });
    const verbs = requests.filter(isOfTarget).map(({ verb }) => verb);
    assert.deepEqual(verbs, ["patch"]);
  });

  it("that has the value already gets the binding as an owner by one request, beside its writer", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await team.harbor();
    await team.applyS3({ accesskey: accessKey }, "platform");
    const mark = await auditLog().mark();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Synced");
    const writes = (await auditLog().since(mark)).filter(
      (each) => isOfTarget(each) && isWrite(each) && each.namespace === team.namespace,
    );
    assert.equal(writes.length, 1, JSON.stringify(writes));
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(fieldsOf(harbor, team.manager("harbor-s3")), s3Fields("accesskey"));
    assert.deepEqual(fieldsOf(harbor, "platform"), s3Fields("accesskey"));
  });
});
