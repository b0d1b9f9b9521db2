/**
 * The second mode for Secrets: deploy/manifests/optional allows the controller to watch the metadata of all Secrets in one
 * stream. No account learns more by it than its own permissions allow. The default mode is tested in streams.test.ts.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DIGEST_KEY_NAME } from "../../src/rollout/digest/keys.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type Access, untilMay, untilMayNot } from "../controller/access.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { applyFile, deleteFile } from "../controller/manifests.ts";
import { CONTROLLER, requestsFor } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { TcpProxy } from "../faults/proxy.ts";

const file = join(import.meta.dirname, "..", "..", "deploy", "manifests", "optional", "secrets-cluster-wide.yaml");
const harbors: Rule = {
  apiGroups: ["goharbor.io"],
  resources: ["harborclusters"],
  verbs: ["get", "list", "watch", "patch"],
};
const secrets = (verbs: string[], ...resourceNames: string[]): Rule => ({
  apiGroups: [""],
  resources: ["secrets"],
  verbs,
  ...(resourceNames.length > 0 && { resourceNames }),
});

const accountOf = (team: TestNamespace) => `system:serviceaccount:${team.namespace}:inlay`;
const watchSecrets: Access = { verb: "watch", resource: "secrets" };
const messageOf = (binding: AnyObject): string => binding.status.conditions[0].message;
const close = () => deleteFile(new Api(controlPlane()), file);

describe("Secrets whose metadata the controller may watch in the whole cluster", function () {
  this.timeout("2m");
  let proxy: TcpProxy;
  let controller: ControllerProcess;
  let mark: number;

  const team = (...rules: Rule[]) => createNamespace({ controller: false, rules: [harbors, ...rules] });

  before(async () => {
    await stopSharedController();
    await applyFile(new Api(controlPlane()), file);
    await untilMay(CONTROLLER, watchSecrets);
    mark = await auditLog().mark();
    proxy = await TcpProxy.start(controlPlane().url);
    controller = new ControllerProcess({
      kubeconfigForServiceAccount: (namespace, name) =>
        controlPlane().kubeconfigForServiceAccount(namespace, name, proxy.url),
    });
    await controller.start();
  });
  after(async () => {
    await close();
    await controller?.stop();
    await proxy?.stop();
    await untilMayNot(CONTROLLER, watchSecrets);
    assert.deepEqual(foundIn(controller.output), []);
  });

  /** The open watches of Secrets: the controller's own, and those of a team's account. */
  async function openFor(team: TestNamespace): Promise<string[]> {
    await requestsFor(team, mark);
    const all = (await auditLog().watchesSince(mark)).filter(
      ({ user, resource, open, as }) =>
        user === CONTROLLER && resource === "secrets" && open && (as === undefined || as === accountOf(team)),
    );
    return all.map(({ uri, as }) => `${new URL(uri, "https://server").pathname} as ${as ?? "itself"}`);
  }

  it("are watched by one stream, and each is read as the account of its binding, which needs get alone", async () => {
    for (const each of [await team(secrets(["get"], "bucket")), await team(secrets(["get"], "bucket"))]) {
      await each.boundHarbor();
      const rotated = secretText("rotated");
      await each.secret("bucket", { accessKeyID: rotated });
      await eventually(async () => assert.equal((await each.s3()).accesskey, rotated));
      const reads = (await requestsFor(each, mark)).filter(({ resource }) => resource === "secrets");
      assert.deepEqual(
        [...new Set(reads.map(({ verb, name, as }) => `${verb} ${name} as ${as}`))],
        [`get bucket as ${accountOf(each)}`],
      );
      assert.deepEqual(await openFor(each), ["/api/v1/secrets as itself"]);
    }
    const own = (await auditLog().since(mark)).filter(({ user, as }) => user === CONTROLLER && as === undefined);
    // Bindings of other tests may make the controller read its digest key.
    const read = own.filter(({ verb, resource }) => resource === "secrets" && !["list", "watch"].includes(verb));
    assert.deepEqual(
      read.filter(({ name }) => name !== DIGEST_KEY_NAME),
      [],
    );
  });

  it("reveal neither existence nor changes to a binding whose account may not get them", async () => {
    const each = await team();
    await each.secret("bucket", { accessKeyID: secretText("access") });
    const from = (name: string, target: string) => ({
      ...accessKeySpec({ name: target }),
      sources: [{ name: "bucket", secret: { name } }],
    });
    for (const harbor of ["harbor", "other", "third"]) await each.harbor(harbor);
    await each.bind("there", from("bucket", "harbor"));
    await each.bind("absent", from("nothing", "other"));
    const absent = messageOf(await each.until("absent", "Forbidden"));
    const { metadata, status } = await each.until("there", "Forbidden");
    // The name of a Role has a digest of its rules.
    const asIfThere = (message: string) =>
      message
        .replaceAll("nothing", "bucket")
        .replaceAll("other", "harbor")
        .replaceAll(/(?<=inlay-[a-z]+-)[0-9a-f]{6}/g, "DIGEST");
    assert.equal(asIfThere(messageOf({ status })), asIfThere(absent));
    // The same for a target.
    const into = (name: string) => ({
      sources: [{ configMap: { name: "place" } }],
      targets: [
        { apiVersion: "v1", kind: "Secret", name, fields: [{ path: "data.a", from: { source: "place", key: "a" } }] },
      ],
    });
    await each.bind("into-there", into("bucket"));
    await each.bind("into-absent", into("nothing"));
    const refused = messageOf(await each.until("into-absent", "Forbidden"));
    assert.equal(asIfThere(messageOf(await each.until("into-there", "Forbidden"))), asIfThere(refused));
    await each.secret("bucket", { accessKeyID: secretText("changed") });
    await each.api.delete(`${each.path("v1", "secrets")}/bucket`);
    // The controller reconciles a later binding after it has processed those changes.
    await each.bind("later", from("bucket", "third"));
    await each.until("later", "Forbidden");
    assert.equal((await each.binding("there")).metadata.resourceVersion, metadata.resourceVersion);
    assert.deepEqual(await openFor(each), ["/api/v1/secrets as itself"]);
  });

  it("reveal no names to a binding whose account may not list them", async () => {
    const each = await team(secrets(["get", "watch", "patch"]));
    const labels = { tier: "prod" };
    const selecting = {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        {
          apiVersion: "v1",
          kind: "Secret",
          selector: { matchLabels: labels },
          fields: [{ path: "data.token", from: { source: "bucket", key: "accessKeyID" } }],
        },
      ],
    };
    await each.secret("bucket", { accessKeyID: secretText("access") });
    await each.api.create(each.path("v1", "secrets"), { metadata: { name: "hidden", labels } });
    await each.bind("all", selecting);
    const before = await each.until("all", "Forbidden");
    assert.match(messageOf(before), /list secrets in namespace/);
    assert.doesNotMatch(JSON.stringify(before.status), /hidden/);
    await each.grant([secrets(["list"])], { role: "list" });
    assert.match(JSON.stringify((await each.until("all", "Synced")).status), /\/hidden /);
  });

  it("are watched as the accounts again when the permission is removed, and no change is missed", async () => {
    const each = await team(secrets(["get", "list", "watch"]));
    await each.boundHarbor();
    assert.deepEqual(await openFor(each), ["/api/v1/secrets as itself"]);
    await close();
    await untilMayNot(CONTROLLER, watchSecrets);
    // An open watch continues until its connection or the API server ends it.
    proxy.cut();
    const own = each.path("v1", "secrets");
    await eventually(async () => assert.deepEqual(await openFor(each), [`${own} as ${accountOf(each)}`]), 30_000);
    const rotated = secretText("rotated");
    await each.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await each.s3()).accesskey, rotated));
  });
});
