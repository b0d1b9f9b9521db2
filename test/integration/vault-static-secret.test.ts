/**
 * Shows VaultStaticSecrets under the shipped composition: known faults of the Vault Secrets Operator, and the effect of each
 * field.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { intervalOf } from "../../src/sources/vault.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { whileBusy } from "../controller/busy.ts";
import { installCompositions, removeCompositions } from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { applyFile, applyObjects, objectsIn } from "../controller/manifests.ts";
import { type Rule, usualRules } from "../controller/test-namespace.ts";
import { CONNECTION, MOUNT, VaultSetUp, type VaultTeam } from "../controller/vault-team.ts";

const folder = join(import.meta.dirname, "..", "..", "compositions", "vault-static-secret");
const KIND = "secrets.hashicorp.com/v1beta1";
const OPERATOR = "vault-secrets-operator";
const STAMP = "vso.secrets.hashicorp.com/restartedAt";
const seesDeployments: Rule = { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch"] };

const path = (team: VaultTeam, name: string) => `${team.team.path(KIND, "vaultstaticsecrets")}/${name}`;
const secretPath = (team: VaultTeam, name: string) => `${team.team.path("v1", "secrets")}/${name}`;
const encode = (value: string) => Buffer.from(value).toString("base64");

/** Creates a VaultStaticSecret that reads the path of its name into a Secret of its name. */
function claim(team: VaultTeam, name: string, spec: object = {}, destination: object = {}): Promise<AnyObject> {
  return team.team.api.create(team.team.path(KIND, "vaultstaticsecrets"), {
    apiVersion: KIND,
    kind: "VaultStaticSecret",
    metadata: { name },
    spec: {
      vaultAuthRef: CONNECTION,
      mount: MOUNT,
      type: "kv-v2",
      path: team.in(name),
      refreshAfter: "1s",
      destination: { name, create: true, ...destination },
      ...spec,
    },
  });
}

/** The decoded data of a Secret. */
async function dataOf(team: VaultTeam, name: string): Promise<Record<string, string>> {
  const { data = {} } = await team.team.api.get(secretPath(team, name));
  return Object.fromEntries(
    Object.entries<string>(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
}

/** Waits until a condition of a VaultStaticSecret has that reason. Returns its message. */
function says(team: VaultTeam, name: string, type: string, reason: string): Promise<string> {
  return eventually(async () => {
    const { status } = await team.team.api.get(path(team, name));
    const text = JSON.stringify(status);
    assert.deepEqual(foundIn(text ?? ""), []);
    const condition = status?.conditions?.find((each: AnyObject) => each.type === type);
    assert.equal(condition?.reason, reason, text);
    return condition.message;
  });
}

const holds = (team: VaultTeam, name: string, data: Record<string, string>) =>
  eventually(async () => assert.deepEqual(await dataOf(team, name), data));

describe("VaultStaticSecrets", function () {
  this.timeout("2m");
  let setUp: VaultSetUp;

  before(async function () {
    this.timeout("20m");
    const api = new Api(controlPlane());
    await applyFile(api, join(folder, "crd"));
    const [{ rules }] = (await objectsIn(join(folder, "account.yaml"))) as [AnyObject];
    await installCompositions(rules);
    setUp = await VaultSetUp.start();
    await applyFile(api, join(folder, "composition.yaml"));
  });
  after(async () => {
    await setUp.stop();
    await removeCompositions();
  });

  /** Creates a namespace with a connection, and a grant for the composition. */
  async function newTeam(connection: object = {}, options?: { rules: Rule[] }): Promise<VaultTeam> {
    const team = await setUp.createTeam(connection, options);
    const metadata = { name: "vault", namespace: team.namespace };
    const to = [{ kind: "VaultConnection", name: CONNECTION }];
    const spec = { from: [{ composition: "vault-static-secret" }], to };
    await applyObjects(team.team.api, [{ apiVersion: "inlay.dev/v1alpha1", kind: "SecretGrant", metadata, spec }]);
    return team;
  }

  it("restart a workload at most twice for ten changes within a second, and never without a change", async () => {
    const team = await newTeam();
    const put = async () => {
      const password = secretText("password");
      await team.put("app", { password });
      return password;
    };
    await put();
    await team.workloads.deploy({ web: { envFrom: ["app"] }, other: { envFrom: ["app"] } });
    await claim(team, "app", { rolloutRestartTargets: [{ kind: "Deployment", name: "web" }] });
    await says(team, "app", "SecretSynced", "Synced");
    await says(team, "app", "RolloutRestart", "RolledOut");
    assert.deepEqual(await team.workloads.restarts(), { web: 0, other: 0 });

    const passwords: string[] = [];
    for (let change = 0; change < 10; change++) passwords.push(await put());
    const last = { password: passwords.at(-1) ?? "" };
    await holds(team, "app", last);
    await team.team.barrier({ controller: setUp.controller });
    const { status } = await eventually(async () => {
      const binding = await team.workloads.until("app-vault", "RolledOut");
      assert.ok(binding.status.rollout.revision > 0);
      assert.equal(binding.status.rollout.pending, undefined);
      return binding;
    });
    await team.workloads.run(["web"]);
    const { web = 0, other } = await team.workloads.restarts();
    assert.ok(web >= 1 && web <= 2, `${web} restarts`);
    assert.equal(other, 0);
    // Its pods were created after the last value was written.
    const { items } = await team.team.api.get(`${team.team.path("apps/v1", "replicasets")}?labelSelector=app=web`);
    const replaced = items
      .map(({ metadata }: AnyObject) => metadata.creationTimestamp)
      .sort()
      .at(-1);
    const { metadata: secret } = await team.team.api.get(secretPath(team, "app"));
    const written = secret.managedFields
      .map(({ time }: AnyObject) => time)
      .sort()
      .at(-1);
    assert.ok(replaced >= written, `${replaced} is before ${written}`);
    const stamp = (await team.workloads.annotations("web"))[STAMP];
    assert.ok(Date.parse(stamp ?? "") > 0, `${stamp}`);

    // A write to the Secret, unchanged data, an edit of the claim and a restart of the controller restart no workload.
    await team.team.api.merge(secretPath(team, "app"), { data: { password: encode(secretText("drift")) } });
    await holds(team, "app", last);
    await team.put("app", last);
    await team.team.api.merge(path(team, "app"), { spec: { refreshAfter: "2s" } });
    await eventually(async () => {
      const { metadata, status: now } = await team.team.api.get(path(team, "app"));
      assert.deepEqual([now.lastGeneration, metadata.generation], [2, 2]);
    });
    await setUp.controller.stop();
    await setUp.controller.start();
    await team.team.barrier({ controller: setUp.controller });
    assert.deepEqual(await team.workloads.restarts(), { web, other: 0 });
    assert.equal(
      (await team.workloads.until("app-vault", "RolledOut")).status.rollout.revision,
      status.rollout.revision,
    );

    const next = await put();
    await holds(team, "app", { password: next });
    await team.workloads.rolledOut("app-vault", status.rollout.revision + 1);
    assert.deepEqual(await team.workloads.restarts(), { web: web + 1, other: 0 });
  });

  it("repeat a failed restart once it is permitted", async () => {
    const team = await newTeam({}, { rules: [...usualRules, seesDeployments] });
    await team.put("app", { password: secretText("password") });
    await team.workloads.deploy({ web: { envFrom: ["app"] } });
    await claim(team, "app", { rolloutRestartTargets: [{ kind: "Deployment", name: "web" }] });
    await says(team, "app", "RolloutRestart", "RolledOut");
    await team.put("app", { password: secretText("password") });
    assert.match(await says(team, "app", "RolloutRestart", "Forbidden"), /patch.*deployments/);
    await team.team.grant([{ ...seesDeployments, verbs: ["patch"] }], { role: "restarts" });
    await team.workloads.rolledOut("app-vault", 1);
    await says(team, "app", "RolloutRestart", "RolledOut");
    assert.deepEqual(await team.workloads.restarts(), { web: 1 });
  });

  it("create the Secret that they describe, from the data that passes their filters", async () => {
    const team = await newTeam();
    const [one, two, mine] = [secretText("one"), secretText("two"), secretText("mine")];
    await Promise.all(
      ["typed", "filtered", "pinned", "absent", "taken", "differs"].map(async (name) => {
        await team.put(name, { one, "tls.crt": two });
        await team.put(name, { one, "tls.crt": two, other: "text", nested: { list: [1, true] } });
      }),
    );
    for (const name of ["taken", "differs"]) await team.team.secret(name, { one: mine });
    const labels = { tier: "web" };
    await team.connect({}, "default");
    await claim(
      team,
      "typed",
      { vaultAuthRef: undefined },
      { type: "example.com/login", labels, annotations: { note: "a b" } },
    );
    await claim(team, "filtered", {}, { transformation: { includes: ["^o", "crt$"], excludes: ["^other$"] } });
    await claim(team, "pinned", { version: 1 });
    await claim(team, "absent", {}, { create: false, labels });
    await claim(team, "taken", {}, { overwrite: true });
    await claim(team, "differs");

    const all = { one, "tls.crt": two, other: "text", nested: '{"list":[1,true]}' };
    await holds(team, "typed", all);
    const { type, metadata } = await team.team.api.get(secretPath(team, "typed"));
    assert.deepEqual([type, metadata.labels.tier, metadata.annotations.note], ["example.com/login", "web", "a b"]);
    await holds(team, "filtered", { one, "tls.crt": two });
    await holds(team, "pinned", { one, "tls.crt": two });
    await holds(team, "taken", all);
    assert.match(await says(team, "differs", "SecretSynced", "Conflict"), /differ/);
    assert.deepEqual(await dataOf(team, "differs"), { one: mine });
    await says(team, "absent", "SecretSynced", "TargetNotFound");
    await team.team.secret("absent", { own: mine });
    await holds(team, "absent", { ...all, own: mine });
    assert.equal((await team.team.api.get(secretPath(team, "absent"))).metadata.labels?.tier, undefined);

    // Labels and filters that a claim no longer has disappear from the Secret, and version 0 means the latest.
    await team.team.api.merge(path(team, "typed"), { spec: { destination: { labels: null } } });
    await team.team.api.merge(path(team, "filtered"), { spec: { destination: { transformation: null } } });
    await team.team.api.merge(path(team, "pinned"), { spec: { version: 0 } });
    await team.team.api.merge(path(team, "differs"), { spec: { destination: { overwrite: true } } });
    for (const name of ["filtered", "pinned", "differs"]) await holds(team, name, all);
    await eventually(async () => {
      assert.equal((await team.team.api.get(secretPath(team, "typed"))).metadata.labels?.tier, undefined);
    });
    const { status } = await team.team.api.get(path(team, "pinned"));
    assert.deepEqual(
      status.conditions.map((each: AnyObject) => [each.type, each.status, each.reason, each.observedGeneration]),
      [
        ["SecretSynced", "True", "Synced", 2],
        ["Healthy", "True", "Healthy", 2],
        ["Ready", "True", "Ready", 2],
        ["RolloutRestart", "True", "RolledOut", 2],
      ],
    );
    await team.team.api.delete(path(team, "typed"));
    await team.team.untilGone(secretPath(team, "typed"));
  });

  it("are read at their interval, from 1s to 24h, and restart an Argo Rollout by its own field", async () => {
    const team = await newTeam();
    const instantUpdates = (isOn: boolean) => ({ syncConfig: { instantUpdates: isOn } });
    const cases: Record<string, [object, string]> = {
      unsaid: [{ refreshAfter: undefined }, "1m"],
      fast: [{ refreshAfter: "0.5s" }, "1s"],
      zero: [{ refreshAfter: "0s" }, "1m"],
      half: [{ refreshAfter: "0.5h" }, "0.5h"],
      day: [{ refreshAfter: "24h" }, "24h"],
      slow: [{ refreshAfter: "720h" }, "24h"],
      events: [{ refreshAfter: "1h", ...instantUpdates(true) }, "5s"],
      only: [{ refreshAfter: undefined, ...instantUpdates(true) }, "5s"],
      none: [{ refreshAfter: "48h", ...instantUpdates(false) }, "24h"],
    };
    const rolloutRestartTargets = [{ kind: "argo.Rollout", name: "web" }];
    for (const [name, [spec]] of Object.entries(cases)) await claim(team, name, { rolloutRestartTargets, ...spec });
    for (const [name, [, refresh]] of Object.entries(cases)) {
      const { spec } = await eventually(() => team.team.binding(`${name}-vault`));
      assert.deepEqual([name, intervalOf(spec.sources[0].vault)], [name, refresh]);
      assert.deepEqual(spec.rollout.targets, [{ kind: "Rollout", name: "web", restartPath: "spec.restartAt" }]);
    }
  });

  it("report unsupported and denied requests, each in its own status", async () => {
    const team = await newTeam({ paths: [`${MOUNT}/{namespace}/*`, `${MOUNT}/denied/*`] });
    await team.put("fine", { password: secretText("password") });
    await team.connect({}, "other");
    const text = { text: "{{ .Secrets.password }}" };
    await claim(team, "templates", {}, { transformation: { templates: { url: text } } });
    await claim(team, "refs", {}, { transformation: { transformationRefs: [{ name: "shared" }] } });
    await claim(team, "elsewhere", { vaultAuthRef: "platform/vault" });
    await claim(team, "enterprise", { namespace: "team" });
    await claim(team, "foreign", { path: "another-team/app" });
    await claim(team, "denied", { path: "denied/app" });
    await claim(team, "ungranted", { vaultAuthRef: "other" });
    await claim(team, "lost", { path: team.in("fine"), rolloutRestartTargets: [{ kind: "Deployment", name: "lost" }] });
    await claim(team, "fine");

    await says(team, "fine", "SecretSynced", "Synced");
    const synced = (name: string, reason: string) => says(team, name, "SecretSynced", reason);
    assert.match(await synced("templates", "NotSupported"), /write a SecretBinding/);
    assert.match(await synced("refs", "NotSupported"), /includes and excludes/);
    assert.match(await synced("elsewhere", "NotSupported"), /in this namespace/);
    assert.match(await synced("enterprise", "NotSupported"), /VaultConnection/);
    await synced("foreign", "ForbiddenPath");
    await synced("denied", "VaultDenied");
    assert.match(await synced("ungranted", "NotGranted"), /VaultConnection .*\/other/);
    assert.match(await says(team, "lost", "RolloutRestart", "WorkloadNotFound"), /Deployment .*lost/);
    // There is no binding for an older generation either.
    const { status } = await team.team.api.get(path(team, "templates"));
    assert.equal(status.lastGeneration, 0);
    // A corrected claim takes effect.
    await team.put("templates", { password: secretText("password") });
    await team.team.api.merge(path(team, "templates"), { spec: { destination: { transformation: null } } });
    await synced("templates", "Synced");
  });

  it("name the operator that still runs and writes other data", async () => {
    const team = await newTeam();
    await team.put("app", { password: secretText("password") });
    await claim(team, "app", {}, { overwrite: true });
    await says(team, "app", "SecretSynced", "Synced");
    const theirs = { data: { password: encode(secretText("theirs")) } };
    await whileBusy(
      () => team.team.api.merge(secretPath(team, "app"), theirs, OPERATOR),
      50,
      async () => assert.match(await says(team, "app", "SecretSynced", "Contended"), new RegExp(OPERATOR)),
    );
  });
});
