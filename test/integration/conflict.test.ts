/**
 * Fields that another field manager owns. The binding does not write them and names the manager, unless the binding forces
 * the conflict.
 */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import {
  accessKeySpec,
  createNamespace,
  fieldsOf,
  harborTarget,
  s3Fields,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

const SECONDS = 15_000;
const defaulted: Kind = {
  group: "defaulted.example.com",
  kind: "Defaulted",
  plural: "defaulteds",
  spec: {
    type: "object",
    properties: { host: { type: "string", default: "localhost" }, other: { type: "string" } },
  },
};
const accessKeyFrom = { from: { source: "bucket", key: "accessKeyID" } };

/** A HarborCluster whose access key another manager applied, and a Secret with a different one, which is returned. */
async function createNamespaceWithRival(): Promise<{ team: TestNamespace; accessKey: string }> {
  const team = await createNamespace();
  const accessKey = secretText("access");
  await team.secret("bucket", { accessKeyID: accessKey });
  await team.harbor();
  await team.applyS3({ accesskey: "theirs" }, "platform");
  return { team, accessKey };
}

describe("a field that another manager owns", () => {
  it("is not written, and the condition and the target's status name the manager and the path", async () => {
    const { team } = await createNamespaceWithRival();
    await team.bind("harbor-s3", accessKeySpec());
    const { status } = await team.until("harbor-s3", "Conflict");
    for (const message of [status.conditions[0].message, status.targets[0].message]) {
      assert.match(message, /spec\.storage\.spec\.s3\.accesskey .*"platform"/);
    }
    assert.equal(status.targets[0].reason, "Conflict");
    assert.equal(status.targets[0].paths, undefined);
    assert.equal(status.synced, "0/1");
    assert.equal((await team.s3()).accesskey, "theirs");
  });

  it("blocks the target's other fields, and no other target", async () => {
    const { team, accessKey } = await createNamespaceWithRival();
    await team.harbor("free");
    const fields = { regionendpoint: { template: "https://s3.test" }, accesskey: accessKeyFrom };
    const before = await team.api.get(team.harborPath());
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget(fields), harborTarget(fields, { name: "free" })],
    });
    const { status } = await team.until("harbor-s3", "Conflict");
    assert.equal(status.synced, "1/2");
    assert.equal((await team.s3("free")).accesskey, accessKey);
    const after = await team.api.get(team.harborPath());
    assert.equal(after.metadata.resourceVersion, before.metadata.resourceVersion);
  });

  it("that is added to a binding does not make the binding lose its own fields, or rotate some of them", async () => {
    const team = await createNamespace();
    const first = await team.boundHarbor();
    await team.applyS3({ regionendpoint: "theirs" }, "platform");
    const fields = { regionendpoint: { template: "https://s3.test" }, accesskey: accessKeyFrom };
    await team.rebind("harbor-s3", { targets: [harborTarget(fields)] });
    await team.until("harbor-s3", "Conflict");
    await team.secret("bucket", { accessKeyID: secretText("rotated") });
    const requests = await team.requestsDuring(async () => {});
    assert.deepEqual(
      requests.filter(({ verb }) => verb === "patch"),
      [],
    );
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual([accesskey, regionendpoint], [first, "theirs"]);
  });

  it("is written within seconds after the manager releases it", async () => {
    const { team, accessKey } = await createNamespaceWithRival();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Conflict");
    await team.applyS3({}, "platform");
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("is written within seconds after the manager drops its ownership and leaves the value", async () => {
    const { team, accessKey } = await createNamespaceWithRival();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Conflict");
    const { managedFields } = (await team.api.get(team.harborPath())).metadata;
    const others = managedFields.filter(({ manager }: { manager: string }) => manager !== "platform");
    await team.api.merge(team.harborPath(), { metadata: { managedFields: others } });
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("is not an empty object that the manager created: a field in it is written", async () => {
    const team = await createNamespace();
    await team.secret("db", { host: "db.test", user: secretText("user") });
    await team.harbor();
    const bind = (field: string, value: object) =>
      team.bind(field, {
        defaults: { onConflict: field === "hosts" ? "Force" : "Fail" },
        sources: [{ secret: { name: "db" } }],
        targets: [harborTarget({}, { fields: [{ path: `spec.database.spec.postgresql.${field}`, ...value }] })],
      });
    await bind("hosts", { template: '[{"host": "{{db.host}}"}]', as: "json" });
    await team.until("hosts", "Synced");
    await team.unbind("hosts");
    await eventually(async () => {
      const { metadata } = await team.api.get(team.harborPath());
      assert.doesNotMatch(JSON.stringify(metadata.managedFields), /f:hosts/);
    });
    await bind("username", { from: { source: "db", key: "user" } });
    await team.until("username", "Synced");
  });

  it("is taken over with onConflict: Force", async () => {
    const { team, accessKey } = await createNamespaceWithRival();
    await team.bind("harbor-s3", accessKeySpec({ onConflict: "Force" }));
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, accessKey);
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(fieldsOf(harbor, team.manager("harbor-s3")), s3Fields("accesskey"));
    assert.equal(fieldsOf(harbor, "platform"), undefined);
  });

  it("is taken over when onConflict becomes Force later", async () => {
    const { team, accessKey } = await createNamespaceWithRival();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Conflict");
    await team.rebind("harbor-s3", accessKeySpec({ onConflict: "Force" }));
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("since a restore from a backup is reported so, and stays the binding's after onConflict: Force is removed again", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor();
    await team.editS3({ accesskey: "backup" }, "velero-server");
    await team.bind("harbor-s3", accessKeySpec());
    const { status } = await team.until("harbor-s3", "Conflict");
    assert.match(status.conditions[0].message, /"velero-server" since it restored .* onConflict: Force/);
    for (const onConflict of ["Force", "Fail"]) {
      await team.rebind("harbor-s3", accessKeySpec({ onConflict }));
      await team.until("harbor-s3", "Synced", SECONDS);
    }
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
  });

  it("only because of a default is reported so, and is taken over with onConflict: Force", async () => {
    const team = await createNamespace({ rules: [...usualRules, mayWrite(defaulted)] });
    await installKind(team.api, defaulted);
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await createObject(team.api, defaulted, "one", { other: "set" }, team.namespace);
    const fields = ["host", "other"].map((name) => ({ path: `spec.${name}`, ...accessKeyFrom }));
    const specOf = (some: object[], onConflict: string) => ({
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: apiVersionOf(defaulted), kind: defaulted.kind, name: "one", onConflict, fields: some }],
    });
    await team.bind("default", specOf(fields.slice(0, 1), "Fail"));
    const { message } = (await team.until("default", "Conflict")).status.targets[0];
    assert.match(message, /^spec\.host belongs to .* only because the API server filled in the default/);
    await team.bind("set", specOf(fields.slice(1), "Fail"));
    const other = (await team.until("set", "Conflict")).status.targets[0];
    assert.match(other.message, /^spec\.other belongs to "[^"]*"; nothing was written\. Remove the field/);
    await team.rebind("default", specOf(fields.slice(0, 1), "Force"));
    await team.until("default", "Synced");
    const { spec } = await team.api.get(objectPath(defaulted, team.namespace, "one"));
    assert.deepEqual(spec, { host: accessKey, other: "set" });
  });

  it("is not written if it belongs to another binding, which is named", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    await team.secret("other", { accessKeyID: secretText("other") });
    await team.bind("second", {
      sources: [{ secret: { name: "other" } }],
      targets: [harborTarget({ accesskey: { from: { source: "other", key: "accessKeyID" } } })],
    });
    const { status } = await team.until("second", "Conflict");
    const { message } = status.conditions[0];
    assert.ok(message.includes(`SecretBinding ${team.namespace}/harbor-s3`), message);
    assert.equal((await team.s3()).accesskey, accessKey);
    await team.until("harbor-s3", "Synced");
  });

  it("is written after the other binding is deleted", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const other = secretText("other");
    await team.secret("other", { accessKeyID: other });
    await team.bind("second", {
      sources: [{ secret: { name: "other" } }],
      targets: [harborTarget({ accesskey: { from: { source: "other", key: "accessKeyID" } } })],
    });
    await team.until("second", "Conflict");
    await team.unbind("harbor-s3");
    await team.until("second", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, other);
  });
});
