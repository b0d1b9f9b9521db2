/** `inlay explain` on a real API server: what it shows of a binding to different users, and what it omits. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay, inlayJson } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { newNeighbours, newOwnReader } from "../controller/neighbours.ts";
import { paste } from "../controller/paste.ts";
import { auditLog, sharedController, stopSharedController } from "../controller/shared.ts";
import { ORIGIN, Spread } from "../controller/spread.ts";
import { accessKeySpec, createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const admin = () => controlPlane().kubeconfigFile;
const explain = (team: TestNamespace, binding = "harbor-s3", kubeconfig = admin()) =>
  inlayJson(kubeconfig, "explain", binding, "-n", team.namespace);
const ACCESS_KEY = "spec.storage.spec.s3.accesskey";

/** A user who may read all of a team's namespace except its Secrets. */
async function auditor(team: TestNamespace): Promise<string> {
  await team.createAccount("auditor");
  const rules = [
    { apiGroups: ["inlay.dev"], resources: ["*"], verbs: ["get", "list"] },
    { apiGroups: ["goharbor.io"], resources: ["*"], verbs: ["get", "list"] },
    { apiGroups: [""], resources: ["serviceaccounts", "configmaps", "events"], verbs: ["get", "list"] },
  ];
  await team.grant(rules, { account: "auditor", role: "auditor" });
  return controlPlane().kubeconfigForServiceAccount(team.namespace, "auditor");
}

describe("inlay explain", () => {
  it("shows the whole chain of a binding that is in sync, and that there is nothing to do", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const { json, text } = await explain(team);
    const { metadata } = await team.api.get(`${team.path("v1", "secrets")}/bucket`);
    assert.deepEqual(json.account, { name: `ServiceAccount ${team.namespace}/inlay`, state: "Found" });
    assert.deepEqual(json.sources, [
      {
        source: "bucket",
        name: "bucket",
        optional: false,
        kind: "Secret",
        namespace: team.namespace,
        state: "Found",
        resourceVersion: metadata.resourceVersion,
        uses: [{ key: "accessKeyID", present: true }],
      },
    ]);
    const [target] = json.targets;
    assert.deepEqual(target.fields, [{ path: ACCESS_KEY, from: ["bucket/accessKeyID"] }]);
    assert.deepEqual(target.objects, [
      {
        namespace: team.namespace,
        name: "harbor",
        state: "Found",
        status: { reason: "Synced", readablePaths: [ACCESS_KEY] },
        fields: [{ path: ACCESS_KEY, held: true, managers: [team.manager("harbor-s3")] }],
      },
    ]);
    assert.equal(json.advice.reason, "Synced");
    assert.match(text, /Ready True, Synced/);
    assert.match(text, /WHAT TO DO\n {2}nothing, the binding is in sync/);
  });

  it("shows which key is missing and which manager owns a field, with exit code 0", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { other: secretText("other") });
    await team.harbor();
    await team.applyS3({ accesskey: secretText("theirs") }, "argocd");
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "KeyNotFound");
    const { json, text } = await explain(team);
    assert.deepEqual(json.sources[0].uses, [{ key: "accessKeyID", present: false }]);
    assert.deepEqual(json.targets[0].objects[0].fields, [{ path: ACCESS_KEY, held: false, managers: ["argocd"] }]);
    assert.equal(json.advice.reason, "KeyNotFound");
    assert.match(text, /accessKeyID \(missing\)/);
  });

  it("shows the chosen keys of all data, and whether there are any", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { other: secretText("other") });
    await team.harbor();
    const annotations = (from: object) => ({ path: "spec.storage.spec.s3", from: { source: "bucket", ...from } });
    const fields = [annotations({ include: ["^access", "key$"] })];
    const { targets, ...spec } = accessKeySpec() as { targets: object[] };
    await team.bind("harbor-s3", { ...spec, targets: [{ ...targets[0], fields }] });
    await team.until("harbor-s3", "KeyNotFound");
    const { json, text } = await explain(team);
    assert.deepEqual(json.sources[0].uses, [{ key: '*{"include":["^access","key$"]}', present: false }]);
    assert.deepEqual(json.targets[0].fields[0].from, ["bucket (keys that match ^access or key$)"]);
    assert.match(text, /keys that match \^access or key\$ \(missing\)/);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await eventually(async () => assert.equal((await explain(team)).json.sources[0].uses[0].present, true));
  });

  it("shows the paths and the VaultConnection of a source from Vault, and its state, to a user who may get the connection", async () => {
    const team = await createNamespace();
    await team.harbor();
    const connections = team.path("inlay.dev/v1alpha1", "vaultconnections");
    const auth = { kubernetes: { role: "inlay-{namespace}" } };
    const connection = { address: "https://vault.example.com:8200", auth, paths: ["kv/{namespace}/*"] };
    const type = { apiVersion: "inlay.dev/v1alpha1", kind: "VaultConnection" };
    await team.api.create(connections, { ...type, metadata: { name: "main" }, spec: connection });
    const data = { mount: "kv", path: `${team.namespace}/s3` };
    const fields = { accesskey: { from: { source: "s3", key: "accessKeyID" } } };
    const sources = (name: string) => [{ name: "s3", vault: { connection: { name }, data } }];
    await team.bind("harbor-s3", { sources: sources("main"), targets: [harborTarget(fields)] });
    const lastTransitionTime = new Date().toISOString();
    const ready = {
      type: "Ready",
      status: "False",
      reason: "ForbiddenAddress",
      message: "list it",
      lastTransitionTime,
    };
    await team.api.merge(`${connections}/main/status`, { status: { conditions: [ready], version: "1.21.4" } });
    const { json, text } = await explain(team);
    const [{ store, resourceVersion, ...source }, ...others] = json.sources;
    assert.deepEqual(others, []);
    assert.ok(resourceVersion);
    assert.deepEqual(source, {
      source: "s3",
      kind: "VaultConnection",
      namespace: team.namespace,
      name: "main",
      optional: false,
      state: "Found",
      uses: [{ key: "accessKeyID" }],
    });
    assert.deepEqual(
      [store.product, store.reads, store.ready.status],
      ["Vault", `data kv/${team.namespace}/s3`, "False"],
    );
    assert.match(text, /Ready False, \w+/);

    await team.bind("harbor-other", { sources: sources("none"), targets: [harborTarget(fields)] });
    const [none] = (await explain(team, "harbor-other")).json.sources;
    assert.deepEqual(
      [none.state, none.store],
      ["NotFound", { product: "Vault", reads: `data kv/${team.namespace}/s3` }],
    );
    await team.createAccount("reader");
    const rules = [{ apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["get"] }];
    await team.grant(rules, { account: "reader", role: "reader" });
    const reader = await controlPlane().kubeconfigForServiceAccount(team.namespace, "reader");
    const [unseen] = (await explain(team, "harbor-s3", reader)).json.sources;
    const message = `you may not get vaultconnections.inlay.dev/main in namespace ${team.namespace}`;
    assert.deepEqual([unseen.state, unseen.message], ["Unreadable", message]);
  });

  it("ends with a command to paste that fixes the binding", async () => {
    const team = await createNamespace({ rules: [] });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Forbidden");
    const { json, text } = await explain(team);
    assert.ok(text.includes(`\n  ${json.advice.command}\n`), text);
    await paste(json.advice.command);
    await eventually(async () => assert.equal((await explain(team)).json.advice.reason, "Synced"), 60_000);
  });

  it("shows what a selector matched, and the templates", async () => {
    const team = await createNamespace();
    const bound = { accessKeyID: secretText("access"), region: secretText("region") };
    await team.secret("bucket", bound);
    for (const name of ["harbor-a", "harbor-b"]) await team.harbor(name);
    const fields = { accesskey: { template: "{{bucket.accessKeyID}}-{{bucket.region}}" } };
    const selector = { names: ["harbor-*"] };
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget(fields, { name: undefined, selector })],
    });
    await team.until("harbor-s3", "Synced");
    const { json } = await explain(team);
    const [{ fields: taken, objects, selects }] = json.targets;
    assert.equal(selects, true);
    assert.deepEqual(taken[0].from, ["bucket/accessKeyID", "bucket/region"]);
    assert.deepEqual(
      objects.map(({ name, status }: AnyObject) => [name, status.reason]),
      [
        ["harbor-a", "Synced"],
        ["harbor-b", "Synced"],
      ],
    );
  });

  it("shows which workloads restart, the progress of a rollout, what it waits for, and what to do", async () => {
    const team = await createNamespace({ rules: rolloutRules });
    const shop = new Workloads(team);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await shop.deploy({ core: { env: { bucket: ["accessKeyID"] } }, jobs: { env: { bucket: ["accessKeyID"] } } });
    const step = (name: string) => ({ name, targets: [{ kind: "Deployment", name }] });
    const rollout = { steps: [step("core"), step("jobs")] };
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], rollout });
    await shop.rolledOut("harbor-s3", 0);
    const quiet = (await explain(team)).json;
    assert.deepEqual(quiet.rollout, {
      suspended: false,
      restarts: ["step core: Deployment core", "step jobs: Deployment jobs"],
      revision: 0,
      trackedValues: ["bucket/*"],
    });
    assert.equal(quiet.advice.reason, "Synced");

    // No node accepts its pods from now on.
    await team.api.merge(shop.path("core"), { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const { status } = await shop.until("harbor-s3", "RollingOut");
    const { firstChangeTime, startTime } = status.rollout.pending;
    const { json, text } = await explain(team);
    const { pending } = json.rollout;
    assert.deepEqual(
      [pending.firstChangeTime, pending.startTime, pending.reason],
      [firstChangeTime, startTime, "RollingOut"],
    );
    assert.deepEqual(
      pending.workloads.map(({ name, step: of, state, namespace }: AnyObject) => [namespace, name, of, state]),
      [
        [team.namespace, "core", "core", "Rolling"],
        [team.namespace, "jobs", "jobs", "Waiting"],
      ],
    );
    assert.deepEqual(json.advice, { reason: "RollingOut", message: pending.message });
    assert.match(text, /RolledOut +False +RollingOut/);
    assert.match(text, /Deployment team-\d+\/core +core +Rolling/);
    assert.match(text, /Deployment team-\d+\/jobs +jobs +Waiting/);

    await team.rebind("harbor-s3", { rollout: { suspend: true } });
    await shop.until("harbor-s3", "Suspended");
    const stopped = await explain(team);
    assert.equal(stopped.json.rollout.suspended, true);
    assert.match(stopped.json.advice.message, /spec\.rollout\.suspend is true; set it to false to continue/);
  });

  it("shows a rollout in many namespaces with unknown workloads, with the command for the first of them", async () => {
    const spread = await Spread.over(3, (index) => index === 0);
    const { team } = spread;
    const closed = spread.namespaces.slice(1).toSorted();
    for (const { workloads } of spread.tenants) await workloads.deploy({ web: { envFrom: [ORIGIN] } });
    const verbs = ["get", "list", "watch", "create", "patch", "delete"];
    const configMaps = { apiGroups: [""], resources: ["configmaps"], verbs };
    await team.grant([configMaps], { role: "records" });
    const record = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "record",
      when: "AfterRollout",
      create: { manifest: {} },
      fields: [{ path: "data.user", from: { source: ORIGIN, key: "user" } }],
    };
    const clones = spread.clones();
    await spread.bind({ consumersOfTargets: true, kinds: ["Deployment"] }, { targets: [clones, record] });
    const own = new Workloads(team);
    await own.until("spread", "Forbidden");
    await spread.rotate();
    await eventually(async () => {
      const { status } = await team.binding("spread");
      assert.deepEqual(status.rollout.unknownNamespaces, closed);
      assert.equal(status.conditions[0].reason, "RolloutPending");
    });
    const { json, text } = await explain(team, "spread");
    assert.deepEqual(json.rollout.restarts, [
      "workloads whose pods refer to a Secret or ConfigMap that this binding writes, among Deployment",
    ]);
    assert.deepEqual(json.rollout.unknownNamespaces, closed);
    assert.equal(json.targets[1].when, "AfterRollout");
    assert.match(text, /TARGET ConfigMap team-\d+\/record \(v1, created by this binding, after the rollout\)/);
    assert.ok(text.includes(`\n  the workloads in these namespaces are unknown: ${closed.join(", ")}\n`), text);
    assert.equal(json.advice.reason, "Forbidden");
    assert.match(json.advice.message, /^namespace (\S+): .* allow what the controller found missing with:$/);
    await paste(json.advice.command);
    await eventually(async () => assert.equal((await explain(team, "spread")).json.advice.reason, "Synced"), 60_000);
    assert.deepEqual(await Promise.all(spread.tenants.map(({ workloads }) => workloads.restarts())), [
      { web: 1 },
      { web: 1 },
      { web: 1 },
    ]);
  });

  it("shows which SecretGrant permits a source of another namespace, and that none does", async () => {
    const { both, value } = await newNeighbours();
    await both.reader.bind("harbor-s3", both.spec());
    await both.reader.until("harbor-s3", "NotGranted");
    const before = await explain(both.reader);
    assert.deepEqual(before.json.sources[0].grants, { state: "NotFound", names: [] });
    assert.deepEqual(await paste(before.json.advice.command), []);
    await both.untilHeld(value);
    await both.reader.until("harbor-s3", "Synced");
    const { grants } = (await explain(both.reader)).json.sources[0];
    assert.equal(grants.state, "Found");
    assert.match(grants.names[0], /reads-secrets-bucket$/);
  });

  it("shows which SecretGrant permits a source of its own namespace with granted", async () => {
    const { both, value } = await newOwnReader();
    const { reader } = both;
    await both.grant("others", { from: [{ namespaceSelector: { names: ["*"] } }] });
    await reader.bind("harbor-s3", both.spec());
    await reader.until("harbor-s3", "NotGranted");
    assert.deepEqual((await explain(reader)).json.sources[0].grants, { state: "NotFound", names: [] });
    await both.grant("own");
    await both.untilHeld(value);
    assert.deepEqual((await explain(reader)).json.sources[0].grants, { state: "Found", names: ["own"] });
  });

  it("shows a user who may not read Secrets everything else, and that this permission is missing", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const { json, text } = await explain(team, "harbor-s3", await auditor(team));
    const [source] = json.sources;
    assert.equal(source.state, "Unreadable");
    assert.equal(source.message, `you may not get secrets/bucket in namespace ${team.namespace}`);
    assert.deepEqual(source.uses, [{ key: "accessKeyID" }]);
    assert.equal(json.targets[0].objects[0].state, "Found");
    assert.equal(json.advice.reason, "Synced");
    assert.match(text, /accessKeyID \(unknown\)/);
  });

  it("reports to a user without permissions that they are missing, with exit code 1, as for a binding that does not exist", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const refused = await inlay(
      controlPlane().kubeconfigFor("carol"),
      "explain",
      "harbor-s3",
      "--namespace",
      team.namespace,
    );
    assert.deepEqual(refused, {
      stdout: "",
      stderr: `you may not get secretbindings.inlay.dev/harbor-s3 in namespace ${team.namespace}; ask for this permission\n`,
      code: 1,
    });
    const absent = await inlay(admin(), "explain", "nope", "-n", team.namespace);
    assert.equal(absent.code, 1);
    assert.match(absent.stderr, /^there is no SecretBinding team-\d+\/nope; .*kubectl get secretbindings -A\n$/);
  });

  it("only reads, as the user", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const kubeconfig = await auditor(team);
    const mark = await auditLog().mark();
    await explain(team, "harbor-s3", kubeconfig);
    const requests = (await auditLog().since(mark)).filter(
      ({ user }) => user === `system:serviceaccount:${team.namespace}:auditor`,
    );
    assert.ok(requests.length > 5, `${requests.length} requests`);
    assert.deepEqual(
      requests.filter(({ verb, as }) => !["get", "list"].includes(verb) || as !== undefined),
      [],
    );
  });

  it("says that no controller runs if the leader no longer renews its Lease", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const lease = "/apis/coordination.k8s.io/v1/namespaces/inlay-system/leases/inlay-controller";
    const renewed = (ago: number) => new Date(Date.now() - ago).toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: "gone", leaseDurationSeconds: 9, renewTime: renewed(600_000) };
    // Without leader election too, a controller renews the Lease while it runs.
    await eventually(async () => assert.notEqual((await team.api.find(lease))?.spec.holderIdentity, undefined));
    await stopSharedController();
    await team.api.merge(lease, { spec });
    try {
      const { json, text } = await explain(team);
      assert.equal(json.advice.reason, "ControllerNotRunning");
      assert.match(text, /ControllerNotRunning: no controller has renewed .* for 10m/);
      assert.match(text, /kubectl get pods -n inlay-system/);
      await team.api.merge(lease, { spec: { renewTime: renewed(0) } });
      assert.equal((await explain(team)).json.advice.reason, "Synced");
      // Controllers for one namespace have their Lease there.
      await team.api.remove(lease);
      await team.api.create(`/apis/coordination.k8s.io/v1/namespaces/${team.namespace}/leases`, {
        metadata: { name: "inlay-controller" },
        spec,
      });
      assert.match((await explain(team)).json.advice.command, new RegExp(`get pods -n ${team.namespace} `));
    } finally {
      await team.api.remove(lease);
      await sharedController(controlPlane()).start();
    }
  });
});
