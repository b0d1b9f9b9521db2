/** When an object is Stalled for tools that use kstatus: at once, after a minute without progress, or never, and when it no longer is. */
import assert from "node:assert/strict";
import { age, progressOf, untilProgress } from "../controller/aged.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import {
  accessKeySpec,
  createNamespace,
  RESTARTED_WITHIN_MS,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

const READS = usualRules.map((rule) => ({ ...rule, verbs: ["get", "list", "watch"] }));
const WRITES = [{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["patch"] }];
const STATUS = "inlay.dev/secretbindings/status";

describe("an object that is not ready", function () {
  this.timeout("2m");

  const harborBinding = (team: TestNamespace) => team.bindingPath("harbor-s3");
  const statusWrites = (requests: readonly { resource: string; verb: string }[]) =>
    requests.filter(({ resource, verb }) => resource === STATUS && verb === "update").length;

  it("is Stalled when its source has been missing for a minute, without an event, and ready at once when it exists", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "SourceNotFound");
    assert.equal(await progressOf(team.api, harborBinding(team)), "Reconciling SourceNotFound");
    const requests = await team.requestsDuring(async () => {
      await age(team.api, harborBinding(team), 3_000);
      await untilProgress(team.api, harborBinding(team), "Stalled SourceNotFound");
    });
    assert.equal(statusWrites(requests), 1);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.until("harbor-s3", "Synced");
    assert.equal(await progressOf(team.api, harborBinding(team)), undefined);
  });

  it("is Stalled in a controller that starts after the minute, and waits for a minute again with another problem", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "SourceNotFound");
    await team.controller.stop();
    await age(team.api, harborBinding(team));
    await team.controller.start();
    await untilProgress(team.api, harborBinding(team), "Stalled SourceNotFound", RESTARTED_WITHIN_MS);
    await team.secret("bucket", { region: "eu" });
    await team.until("harbor-s3", "KeyNotFound");
    assert.equal(await progressOf(team.api, harborBinding(team)), "Reconciling KeyNotFound");
  });

  it("is retried as before while it is Stalled, and no retry writes the status", async () => {
    const team = await createNamespace({ rules: READS });
    await team.harbor();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Forbidden");
    await age(team.api, harborBinding(team));
    await untilProgress(team.api, harborBinding(team), "Stalled Forbidden");
    const { resourceVersion } = (await team.binding("harbor-s3")).metadata;
    const retries = () => team.controller.metric("workqueue_retries_total", 'name="secretbinding"');
    const before = await retries();
    await eventually(async () => assert.ok((await retries()) > before + 1), 30_000);
    const { metadata, status } = await team.binding("harbor-s3");
    assert.equal(metadata.resourceVersion, resourceVersion, JSON.stringify(status));
    await team.grant(WRITES, { role: "writes" });
    await team.until("harbor-s3", "Synced");
    assert.equal(await progressOf(team.api, harborBinding(team)), undefined);
  });

  it("is Stalled at once for a path that its kind does not have, until the spec is corrected", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const fields = [{ path: "spec.storge", from: { source: "bucket", key: "accessKeyID" } }];
    await team.bind("harbor-s3", accessKeySpec({ fields }));
    await team.until("harbor-s3", "UnknownField");
    assert.equal(await progressOf(team.api, harborBinding(team)), "Stalled UnknownField");
    await team.rebind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Synced");
    assert.equal(await progressOf(team.api, harborBinding(team)), undefined);
  });

  it("is Stalled after a minute if only its rollout has a problem and nothing is left to do", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor-s3", { ...accessKeySpec(), rollout: { consumersOf: ["bucket"] } });
    const { status } = await team.until("harbor-s3", "Synced");
    const types = status.conditions.map(({ type, reason }: AnyObject) => `${type} ${reason}`);
    assert.deepEqual(types, ["Ready Synced", "RolledOut Forbidden", "Reconciling Forbidden"]);
    await age(team.api, harborBinding(team), 2_000);
    await untilProgress(team.api, harborBinding(team), "Stalled Forbidden");
  });

  it("is Stalled after a minute if a VaultConnection names a Secret that is missing", async () => {
    const team = await createNamespace();
    const connections = team.path("inlay.dev/v1alpha1", "vaultconnections");
    await team.api.create(connections, {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "VaultConnection",
      metadata: { name: "vault" },
      spec: {
        address: "https://vault.example.com",
        auth: { token: { secret: { name: "login", key: "token" } } },
        paths: ["kv/{namespace}/*"],
      },
    });
    await untilProgress(team.api, `${connections}/vault`, "Reconciling ConnectionNotReady");
    await age(team.api, `${connections}/vault`, 2_000);
    await untilProgress(team.api, `${connections}/vault`, "Stalled ConnectionNotReady");
  });
});
