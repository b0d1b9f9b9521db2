/**
 * Shows that Inlay reports once where a value of a Secret becomes readable to more users, and refuses it if the configuration
 * requires that.
 */
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL } from "../controller/made.ts";
import { newNeighbours } from "../controller/neighbours.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { stopSharedController } from "../controller/shared.ts";
import {
  accessKeySpec,
  createNamespace,
  harborTarget,
  RESTARTED_WITHIN_MS,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";

const NOTE = /HarborCluster .*values of Secrets at spec\.storage\.spec\.s3\.accesskey; .* spec\.ack/;
const messageOf = ({ status }: AnyObject): string => status.conditions[0].message;
const readableOf = ({ status }: AnyObject): string[] | undefined => status.targets[0].readablePaths;
const noticesOf = async (team: TestNamespace, name: string) =>
  (await team.events(name)).filter(({ reason }) => reason === "ReadableCopies");

/** A binding that copies the Secret `bucket` into a namespace. */
const copyTo = (namespace: string, name = "copy") => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      name,
      namespace,
      create: { manifest: {} },
      fields: [{ path: "data", from: { source: "bucket" } }],
    },
  ],
});

describe("a value of a Secret", () => {
  it("in an object other than a Secret is reported once by an event, and listed in the status, which stays Ready", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const ready = await team.until("harbor-s3", "Synced");
    assert.match(messageOf(ready), /^HarborCluster \S+ has the value of 1 field$/);
    assert.deepEqual(readableOf(ready), ["spec.storage.spec.s3.accesskey"]);
    const [event] = await eventually(async () => {
      const events = await noticesOf(team, "harbor-s3");
      assert.equal(events.length, 1);
      return events;
    });
    assert.equal(event?.type, "Normal");
    assert.match(`; ${event?.note}`, NOTE);
    for (const label of ["again", "and again"]) {
      const value = secretText(label);
      await team.secret("bucket", { accessKeyID: value });
      await eventually(async () => assert.equal((await team.s3()).accesskey, value));
    }
    await team.controller.stop();
    await team.controller.start();
    await team.harbor("other");
    const other = harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } }, { name: "other" });
    const { targets } = accessKeySpec() as { targets: object[] };
    await team.rebind("harbor-s3", { targets: [...targets, other] });
    await eventually(
      async () => assert.equal((await team.binding("harbor-s3")).status.synced, "2/2"),
      RESTARTED_WITHIN_MS,
    );
    // Events are sent in order.
    await eventually(async () => {
      const written = (await team.events("harbor-s3")).filter(({ note }) => note.includes("/other"));
      assert.equal(written.length, 1);
    });
    assert.equal((await noticesOf(team, "harbor-s3")).length, 1);
    assert.deepEqual(readableOf(await team.binding("harbor-s3")), ["spec.storage.spec.s3.accesskey"]);
  });

  it("is not reported where the binding acknowledges it, for a ConfigMap, or in a Secret of the same namespace", async () => {
    const team = await createNamespace({
      rules: [...usualRules, { apiGroups: [""], resources: ["secrets"], verbs: ALL }],
    });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "place" }, data: { region: "eu" } });
    await team.harbor();
    await team.harbor("other");
    await team.bind("acknowledged", { ...accessKeySpec(), acknowledge: ["ReadableCopies"] });
    await team.bind("config-map", {
      sources: [{ configMap: { name: "place" } }],
      targets: [harborTarget({ region: { from: { source: "place", key: "region" } } }, { name: "other" })],
      defaults: { onConflict: "Force" },
    });
    await team.bind("secret", copyTo(team.namespace));
    for (const name of ["acknowledged", "config-map", "secret"]) {
      assert.equal(readableOf(await team.until(name, "Synced")), undefined);
      assert.deepEqual(await noticesOf(team, name), []);
    }
  });

  it("is also reported in a copy of the Secret in another namespace", async () => {
    const team = await createNamespace();
    const other = await createNamespace();
    await team.grant([{ apiGroups: [""], resources: ["secrets"], verbs: ALL }], {
      namespace: other.namespace,
      role: "copy",
    });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("copy", copyTo(other.namespace));
    assert.deepEqual(readableOf(await team.until("copy", "Synced")), ["data"]);
    await eventually(async () => assert.equal((await noticesOf(team, "copy")).length, 1));
  });

  it("is also reported in a copy of another namespace's Secret", async () => {
    const { both } = await newNeighbours();
    const { reader, owner } = both;
    await reader.grant([{ apiGroups: [""], resources: ["secrets"], verbs: ALL }], { role: "copy" });
    await both.grant();
    await reader.bind("copy", {
      ...copyTo(reader.namespace),
      sources: [{ secret: { name: "bucket", namespace: owner.namespace } }],
    });
    assert.deepEqual(readableOf(await reader.until("copy", "Synced")), ["data"]);
  });

  it("is reported with the field for a reference to a Secret, where the schema has one", async () => {
    const text = { type: "string" };
    const reference = { type: "object", properties: { name: text, key: text } };
    const kind: Kind = {
      group: "sensitive.example.com",
      kind: "Login",
      plural: "logins",
      spec: { type: "object", properties: { user: text, password: text, passwordSecretRef: reference } },
    };
    const team = await createNamespace({ rules: [...usualRules, mayWrite(kind)] });
    await installKind(team.api, kind);
    await createObject(team.api, kind, "one", {}, team.namespace);
    const password = secretText("password");
    await team.secret("bucket", { password });
    const fields = [{ path: "spec.password", from: { source: "bucket", key: "password" } }];
    await team.bind("login", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: apiVersionOf(kind), kind: kind.kind, name: "one", fields }],
    });
    assert.deepEqual(readableOf(await team.until("login", "Synced")), ["spec.password"]);
    await eventually(async () => {
      const [event] = await noticesOf(team, "login");
      assert.match(event?.note ?? "", /spec\.passwordSecretRef .*spec\.password\)/);
    });
    assert.equal((await team.api.get(objectPath(kind, team.namespace, "one"))).spec.password, password);
  });
});

describe("an installation that requires the acknowledgement", function () {
  this.timeout("1m");
  let controller: ControllerProcess;
  /** A team with a binding from before. */
  let early: { team: TestNamespace; value: string };

  before(async () => {
    const team = await createNamespace();
    early = { team, value: await team.boundHarbor({ onRelease: "Remove" }) };
    await stopSharedController();
    const file = join(await mkdtemp(join(controlPlane().folder, "config-")), "config.yaml");
    const head = "apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\n";
    await writeFile(file, `${head}requireAcknowledgement: [ReadableCopies]\n`);
    controller = new ControllerProcess(controlPlane(), "--config", file);
    await controller.start();
  });
  after(() => controller?.stop());

  it("writes nothing before the acknowledgement, names the command for it, and then writes", async () => {
    const team = await createNamespace({ controller: false });
    const value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    const message = messageOf(await team.until("harbor-s3", "NotAcknowledged"));
    assert.equal((await team.s3()).accesskey, undefined);
    await paste(commandsIn(message));
    await team.until("harbor-s3", "Synced");
    assert.equal((await team.s3()).accesskey, value);
  });

  it("keeps what was written before, and allows its release", async () => {
    const { team, value } = early;
    await team.until("harbor-s3", "NotAcknowledged");
    await team.secret("bucket", { accessKeyID: secretText("rotated") });
    await team.editS3({ region: "eu-north-1" });
    await team.until("harbor-s3", "NotAcknowledged");
    assert.equal((await team.s3()).accesskey, value);
    await team.unbind("harbor-s3");
    assert.equal((await team.s3()).accesskey, undefined);
  });

  it("requires no acknowledgement of a binding that writes into Secrets of its own namespace, or from ConfigMaps", async () => {
    const team = await createNamespace({
      controller: false,
      rules: [...usualRules, { apiGroups: [""], resources: ["secrets"], verbs: ALL }],
    });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("secret", copyTo(team.namespace));
    await team.until("secret", "Synced");
  });
});
