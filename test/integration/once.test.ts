/** Shows that mode: Once writes fields once to each object, for operators that read these fields only at the start. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

/** The field of Zalando's operator that says from where to clone a new cluster. */
const postgresql: Kind = {
  group: "acid.zalan.do",
  kind: "postgresql",
  plural: "postgresqls",
  spec: {
    type: "object",
    properties: {
      numberOfInstances: { type: "integer" },
      clone: {
        type: "object",
        properties: {
          cluster: { type: "string" },
          s3_access_key_id: { type: "string" },
          s3_secret_access_key: { type: "string" },
          s3_wal_path: { type: "string" },
        },
      },
    },
  },
};

async function newDatabaseTeam(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(postgresql)] });
  await installKind(team.api, postgresql);
  await createDatabase(team);
  return team;
}

const createDatabase = (team: TestNamespace) =>
  createObject(team.api, postgresql, "db", { numberOfInstances: 2, clone: { cluster: "old" } }, team.namespace);
const path = (team: TestNamespace) => objectPath(postgresql, team.namespace, "db");
const cloneOf = async (team: TestNamespace) => (await team.api.get(path(team))).spec.clone;

const from = (field: string, key: string) => ({ path: `spec.clone.${field}`, from: { source: "bucket", key } });
const pair = [from("s3_access_key_id", "id"), from("s3_secret_access_key", "key")];
const specOf = (more: object = {}, fields: object[] = pair) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [{ apiVersion: apiVersionOf(postgresql), kind: "postgresql", name: "db", mode: "Once", fields, ...more }],
});

async function credentials(team: TestNamespace): Promise<{ s3_access_key_id: string; s3_secret_access_key: string }> {
  const [id, key] = [secretText("id"), secretText("key")];
  await team.secret("bucket", { id, key });
  return { s3_access_key_id: id, s3_secret_access_key: key };
}

/** The write requests while something happens. */
const writesDuring = async (team: TestNamespace, act: () => Promise<unknown>) =>
  (await team.requestsDuring(act)).filter(({ verb }) => !["get", "list", "watch"].includes(verb));

describe("a target with mode: Once", () => {
  it("waits for all values, is written once, and stays unchanged when values or the field change", async () => {
    const team = await newDatabaseTeam();
    await team.secret("bucket", { id: "x" });
    await team.bind("clone", specOf());
    await team.until("clone", "KeyNotFound");
    assert.deepEqual(await cloneOf(team), { cluster: "old" });
    const first = await credentials(team);
    const { status } = await team.until("clone", "Synced");
    assert.deepEqual(await cloneOf(team), { cluster: "old", ...first });
    assert.equal(status.conditions[0].status, "True");
    assert.deepEqual(status.targets[0].paths, ["spec.clone.s3_access_key_id", "spec.clone.s3_secret_access_key"]);
    assert.match(status.targets[0].message, /written once/);
    const writes = await writesDuring(team, async () => {
      await credentials(team);
      await team.api.merge(path(team), { spec: { clone: { s3_access_key_id: "theirs", s3_secret_access_key: null } } });
      await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { data: null });
      await team.api.delete(`${team.path("v1", "secrets")}/bucket`);
    });
    assert.deepEqual(writes, []);
    assert.deepEqual(await cloneOf(team), { cluster: "old", s3_access_key_id: "theirs" });
    assert.deepEqual((await team.until("clone", "Synced")).status.targets[0].paths, status.targets[0].paths);
  });

  it("is written again when it is recreated under its name", async () => {
    const team = await newDatabaseTeam();
    await credentials(team);
    await team.bind("clone", specOf());
    await team.until("clone", "Synced");
    const next = await credentials(team);
    await team.api.delete(path(team));
    await team.until("clone", "TargetNotFound");
    await createDatabase(team);
    await eventually(async () => assert.deepEqual(await cloneOf(team), { cluster: "old", ...next }));
    await team.until("clone", "Synced");
  });

  it("gets a field that the binding adds later, once, and keeps its other fields", async () => {
    const team = await newDatabaseTeam();
    const { s3_secret_access_key } = await credentials(team);
    await team.bind("clone", specOf());
    await team.until("clone", "Synced");
    await team.api.merge(path(team), { spec: { clone: { s3_access_key_id: "theirs" } } });
    await credentials(team);
    const wal = { path: "spec.clone.s3_wal_path", template: "s3://{{bucket.path}}/wal" };
    await team.rebind("clone", specOf({}, [...pair, wal]));
    await team.until("clone", "KeyNotFound");
    await team.secret("bucket", { path: "old" });
    await team.until("clone", "Synced");
    const clone = { cluster: "old", s3_access_key_id: "theirs", s3_secret_access_key, s3_wal_path: "s3://old/wal" };
    assert.deepEqual(await cloneOf(team), clone);
    assert.deepEqual(await writesDuring(team, () => team.secret("bucket", { path: "new" })), []);
    assert.deepEqual(await cloneOf(team), clone);
    assert.equal((await team.binding("clone")).status.targets[0].paths.length, 3);
  });

  it("is updated when its mode becomes Continuous, and stays unchanged when its mode becomes Once", async () => {
    const team = await newDatabaseTeam();
    await credentials(team);
    const once = { ...specOf({ mode: undefined }), defaults: { mode: "Once" } };
    await team.bind("clone", once);
    await team.until("clone", "Synced");
    const next = await credentials(team);
    await team.api.merge(path(team), { spec: { clone: { s3_access_key_id: "theirs" } } });
    await team.rebind("clone", specOf({ mode: "Continuous" }));
    await eventually(async () => assert.deepEqual(await cloneOf(team), { cluster: "old", ...next }));
    await team.until("clone", "Synced");
    await team.rebind("clone", specOf());
    await team.until("clone", "Synced");
    assert.deepEqual(await writesDuring(team, () => credentials(team)), []);
    assert.deepEqual(await cloneOf(team), { cluster: "old", ...next });
  });

  it("is released like any other target: a field that the binding no longer names, and all fields with the binding", async () => {
    const team = await newDatabaseTeam();
    const { s3_secret_access_key } = await credentials(team);
    await team.bind("clone", specOf({ onRelease: "Remove" }));
    await team.until("clone", "Synced");
    await team.rebind("clone", specOf({ onRelease: "Remove" }, pair.slice(1)));
    await eventually(async () => assert.deepEqual(await cloneOf(team), { cluster: "old", s3_secret_access_key }));
    const { status } = await team.until("clone", "Synced");
    assert.deepEqual(status.targets[0].paths, ["spec.clone.s3_secret_access_key"]);
    await team.unbind("clone");
    assert.deepEqual(await cloneOf(team), { cluster: "old" });
  });

  it("is not written by a restarted controller, whatever changed in the meantime", async () => {
    const team = await newDatabaseTeam();
    await credentials(team);
    await team.bind("clone", specOf());
    await team.until("clone", "Synced");
    await team.barrier();
    await team.controller.stop();
    await credentials(team);
    await team.api.merge(path(team), { spec: { clone: { s3_access_key_id: "theirs" } } });
    const left = await cloneOf(team);
    const mark = await auditLog().mark();
    await team.controller.start();
    const read = ({ verb, resource, namespace }: AnyObject) =>
      verb === "get" && resource === "acid.zalan.do/postgresqls" && namespace === team.namespace;
    await eventually(async () => assert.ok((await auditLog().since(mark)).some(read)), RESTARTED_WITHIN_MS);
    await team.barrier();
    const writes = await auditLog().controllerWritesSince(mark);
    assert.deepEqual(
      writes.filter(({ namespace, name }: AnyObject) => namespace === team.namespace && !name.startsWith("pulse")),
      [],
    );
    assert.deepEqual(await cloneOf(team), left);
  });
});
