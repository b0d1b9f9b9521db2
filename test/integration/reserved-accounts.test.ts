/** deploy/policies/optional/reserved-accounts.yaml lets only Inlay write as an account called inlay, and all that Inlay does still works. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { applyFile, deleteFile } from "../controller/manifests.ts";
import { accessKeySpec, createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const FILE = join(import.meta.dirname, "..", "..", "deploy", "policies", "optional", "reserved-accounts.yaml");
const verbs = ["get", "list", "watch", "create", "patch", "delete", "deletecollection"];
const WRITES = [...usualRules, ...rolloutRules, { apiGroups: [""], resources: ["configmaps"], verbs }];

describe("accounts that are reserved for Inlay", function () {
  this.timeout("2m");
  const cluster = () => new Api(controlPlane());
  let team: TestNamespace;
  let account: Api;

  before(async () => {
    team = await createNamespace({ rules: WRITES });
    account = team.api.as(`system:serviceaccount:${team.namespace}:inlay`);
    await applyFile(cluster(), FILE);
    const maps = team.path("v1", "configmaps");
    await eventually(() =>
      assert.rejects(account.dryRun.create(maps, { metadata: { name: "a" } }), /inlay is reserved for Inlay/),
    );
  });
  after(() => deleteFile(cluster(), FILE));

  it("change nothing for a user who acts as them, but read, and others of the namespace are not affected", async () => {
    const maps = team.path("v1", "configmaps");
    await team.api.create(maps, { metadata: { name: "theirs" } });
    const theirs = `${maps}/theirs`;
    for (const act of [
      () => account.merge(theirs, { data: { a: "b" } }),
      () => account.delete(theirs),
      () => account.delete(maps),
      () => account.apply(theirs, { apiVersion: "v1", kind: "ConfigMap", data: { a: "b" } }, "a-user", true),
    ])
      await assert.rejects(act, /inlay is reserved for Inlay/);
    await account.get(theirs);
    await team.createAccount("builder");
    await team.grant(WRITES, { account: "builder", role: "builder" });
    await team.api.as(`system:serviceaccount:${team.namespace}:builder`).merge(theirs, { data: { a: "b" } });
  });

  it("write, create, restart and release for bindings, also for one whose finalizer a user removes", async () => {
    await team.secret("bucket", { accessKeyID: secretText("one") });
    await team.harbor();
    await new Workloads(team).deploy({ web: {} });
    const { targets, sources } = accessKeySpec() as { targets: object[]; sources: object[] };
    const made = { apiVersion: "v1", kind: "ConfigMap", name: "made", create: { manifest: { data: { a: "b" } } } };
    const defaults = { onRelease: "Remove" };
    const rollout = { targets: [{ kind: "Deployment", name: "web" }] };
    await team.bind("all", { sources, targets: [...targets, made], rollout, defaults });
    await new Workloads(team).rolledOut("all", 0);
    await team.secret("bucket", { accessKeyID: secretText("two") });
    await new Workloads(team).rolledOut("all", 1);
    assert.notEqual((await team.s3()).accesskey, undefined);
    await team.unbindByForce("all");
    await team.untilGone(`${team.path("v1", "configmaps")}/made`);
    await eventually(async () => assert.equal((await team.s3()).accesskey, undefined));
  });
});
