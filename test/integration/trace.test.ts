/** `inlay trace` on a real API server: who consumes a Secret, and what restarts when it changes. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay, inlayJson } from "../controller/cli.ts";
import { registerSecret, secretText } from "../controller/leak-detector.ts";
import { newNeighbours } from "../controller/neighbours.ts";
import { auditLog } from "../controller/shared.ts";
import { ORIGIN, Spread } from "../controller/spread.ts";
import { accessKeySpec, createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";
import { Workloads } from "../controller/workloads.ts";

const trace = (team: TestNamespace, kubeconfig = controlPlane().kubeconfigFile, ...more: string[]) =>
  inlayJson(kubeconfig, "trace", "bucket", "-n", team.namespace, ...more);

const fromKey = (key: string) => ({ valueFrom: { secretKeyRef: { name: "bucket", key } } });
const withEnv = { containers: [{ name: "c", image: "c", env: [{ name: "A", ...fromKey("accessKeyID") }] }] };
const withAll = { containers: [{ name: "c", image: "c", envFrom: [{ secretRef: { name: "bucket" } }] }] };
const without = { containers: [{ name: "c", image: "c", env: [{ name: "A", value: "none" }] }] };

function workload(name: string, spec: object): object {
  const labels = { app: name };
  return {
    metadata: { name, labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

/** Creates one workload of every kind that refers to the Secret, and one that does not. */
async function workloads({ api, ...team }: TestNamespace): Promise<void> {
  const path = (apiVersion: string, plural: string) =>
    `/${apiVersion === "v1" ? "api" : "apis"}/${apiVersion}/namespaces/${team.namespace}/${plural}`;
  const once = { template: { spec: { ...withAll, restartPolicy: "Never" } } };
  const puller = { metadata: { name: "puller" }, imagePullSecrets: [{ name: "bucket" }] };
  await api.create(path("v1", "serviceaccounts"), puller); // before the pod, because admission requires it
  await Promise.all([
    api.create(path("apps/v1", "deployments"), workload("core", withEnv)),
    api.create(path("apps/v1", "deployments"), workload("web", withAll)),
    api.create(path("apps/v1", "deployments"), workload("idle", without)),
    api.create(path("apps/v1", "daemonsets"), workload("agent", withAll)),
    api.create(path("batch/v1", "jobs"), { metadata: { name: "once" }, spec: once }),
    api.create(path("batch/v1", "cronjobs"), {
      metadata: { name: "nightly" },
      spec: { schedule: "0 2 * * *", jobTemplate: { spec: once } },
    }),
    api.create(path("networking.k8s.io/v1", "ingresses"), {
      metadata: { name: "edge" },
      spec: {
        tls: [{ secretName: "bucket" }],
        defaultBackend: { service: { name: "x", port: { number: 80 } } },
      },
    }),
    api.create(path("v1", "pods"), {
      metadata: { name: "lonely" },
      spec: { ...withEnv, serviceAccountName: "puller" },
    }),
  ]);
}

const byNamespace = (workloads: AnyObject[]) =>
  workloads.toSorted((x, y) => ((x.namespace ?? "") < (y.namespace ?? "") ? -1 : 1));

const rollout = { rollout: { consumersOf: ["bucket"], kinds: ["Deployment"] } };

describe("inlay trace", () => {
  it("shows who consumes a Secret, where, and which workloads restart by which binding", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await team.bind("restarts", { ...accessKeySpec(), suspend: true, ...rollout });
    await workloads(team);
    const { json, text } = await trace(team);
    assert.equal(json.object.state, "Found");
    assert.deepEqual(json.unreadable, []);
    assert.deepEqual(
      json.bindings.map(({ binding, targets }: AnyObject) => [binding, targets[0].object, targets[0].fields]),
      ["harbor-s3", "restarts"].map((name) => [
        `${team.namespace}/${name}`,
        `${team.namespace}/harbor`,
        [{ path: "spec.storage.spec.s3.accesskey", keys: ["accessKeyID"] }],
      ]),
    );
    const byBinding = [{ binding: `${team.namespace}/restarts`, suspended: true }];
    assert.deepEqual(
      json.workloads.map(({ kind, name, references, keys, restarts }: AnyObject) => [
        kind,
        name,
        references,
        keys,
        restarts,
      ]),
      [
        ["Deployment", "core", ["env"], ["accessKeyID"], byBinding],
        ["Deployment", "web", ["envFrom"], undefined, byBinding],
        ["DaemonSet", "agent", ["envFrom"], undefined, []],
        ["CronJob", "nightly", ["envFrom"], undefined, []],
        ["Job", "once", ["envFrom"], undefined, []],
        // The API server adds those of the pod's account.
        ["Pod", "lonely", ["env", "imagePullSecret"], undefined, []],
      ],
    );
    assert.deepEqual(json.serviceAccounts, ["puller"]);
    assert.deepEqual(json.certificates, [{ kind: "Ingress", namespace: team.namespace, name: "edge" }]);
    assert.match(text, /Deployment core +env +accessKeyID +by binding team-\d+\/restarts \(suspended\)/);
    assert.match(text, /DaemonSet agent +envFrom +all +not by Inlay/);
    const inside = ["-n", team.namespace];
    const [flow, drawing] = await Promise.all([
      inlay(controlPlane().kubeconfigFile, "trace", "bucket", ...inside, "--graph"),
      inlay(controlPlane().kubeconfigFile, "explain", "restarts", ...inside, "--graph=svg"),
    ]);
    assert.match(flow.stdout, /^flowchart LR\n/);
    assert.match(flow.stdout, /"SecretBinding team-\d+\/harbor-s3<br\/>Synced"\]:::good/);
    assert.match(
      flow.stdout,
      /"HarborCluster team-\d+\/harbor<br\/>spec\.storage\.spec\.s3\.accesskey from accessKeyID<br\/>Synced"/,
    );
    assert.match(flow.stdout, /"Deployment team-\d+\/core<br\/>by env<br\/>accessKeyID<br\/>restarts are suspended"/);
    assert.match(
      drawing.stdout,
      /^<svg [^>]*>\n<title id="title">The flow of values through SecretBinding team-\d+\/restarts</,
    );
    for (const shown of ["Suspended", "Deployment team-\\d+/core", "by envFrom"])
      assert.match(drawing.stdout, new RegExp(`<text [^>]*>${shown}</text>`));
  });

  it("shows bindings of other namespaces, the grants that permit them, and bindings that write into the Secret", async () => {
    const { both, value } = await newNeighbours();
    await both.grant("shared");
    await both.grant("other", { to: [{ kind: "Secret", name: "other" }] });
    await both.grant("labelled", { to: [{ kind: "Secret", selector: { matchLabels: { open: "yes" } } }] });
    await both.reader.bind("harbor-s3", both.spec());
    await both.untilHeld(value);
    const { json } = await trace(both.owner);
    assert.deepEqual(
      json.bindings.map(({ binding, source }: AnyObject) => [binding, source]),
      [[`${both.reader.namespace}/harbor-s3`, "bucket"]],
    );
    assert.deepEqual(
      json.grants.map(({ name, from }: AnyObject) => [name, from.length]),
      [["shared", 1]],
    );
    assert.match(json.grants[0].from[0], new RegExp(`namespace ${both.reader.namespace}$`));
    await both.owner.bind("writer", {
      suspend: true,
      sources: [{ configMap: { name: "x" } }],
      targets: [
        {
          apiVersion: "v1",
          kind: "Secret",
          name: "bucket",
          fields: [{ path: "data.other", from: { source: "x", key: "k" } }],
        },
      ],
    });
    const writers = (await trace(both.owner)).json.writers;
    assert.deepEqual(writers, [{ binding: `${both.owner.namespace}/writer`, fields: ["data.other"] }]);
  });

  it("shows which VaultConnections use the Secret, but no binding with a source from Vault", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { secretID: secretText("secret-id") });
    const spec = (name: string) => ({
      address: "https://vault.example.com:8200",
      tls: { ca: { configMap: { name: "bucket", key: "ca.crt" } } },
      auth: { appRole: { roleID: "inlay", secretID: { secret: { name, key: "secretID" } } } },
      paths: ["kv/*"],
    });
    for (const [name, secret] of [
      ["main", "bucket"],
      ["other", "else"],
    ] as const)
      await team.api.create(team.path("inlay.dev/v1alpha1", "vaultconnections"), {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "VaultConnection",
        metadata: { name },
        spec: spec(secret),
      });
    await team.bind("harbor-s3", {
      sources: [{ name: "bucket", vault: { connection: { name: "main" }, data: { mount: "kv", path: "bucket" } } }],
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } })],
    });
    const { json, text } = await trace(team);
    assert.deepEqual([json.bindings, json.unreadable], [[], []]);
    assert.deepEqual(json.connections, [{ kind: "VaultConnection", name: "main", uses: ["SecretID"] }]);
    assert.match(text, /USED BY CONNECTIONS\n.*\n {2}VaultConnection main +SecretID/);
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "bucket" } });
    const { connections } = (await trace(team, undefined, "--config-map")).json;
    assert.deepEqual(
      connections.map(({ name, uses }: AnyObject) => [name, uses]),
      [
        ["main", ["CA"]],
        ["other", ["CA"]],
      ],
    );
  });

  it("shows a user who may not read Secrets and other namespaces all else, and which permissions are missing", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await workloads(team);
    await team.createAccount("auditor");
    const groups = ["", "apps", "batch", "inlay.dev", "networking.k8s.io", "secrets-store.csi.x-k8s.io"];
    const resources = ["deployments", "statefulsets", "daemonsets", "cronjobs", "jobs", "pods", "serviceaccounts"];
    const more = ["ingresses", "secretbindings", "secretgrants", "secretproviderclasses", "vaultconnections"];
    const rules = [{ apiGroups: groups, resources: [...resources, ...more], verbs: ["get", "list"] }];
    await team.grant(rules, { account: "auditor", role: "auditor" });
    const kubeconfig = await controlPlane().kubeconfigForServiceAccount(team.namespace, "auditor");
    const mark = await auditLog().mark();
    const { json } = await trace(team, kubeconfig);
    assert.equal(json.object.state, "Unreadable");
    assert.equal(json.unreadable.length, 1);
    assert.match(json.unreadable[0], /list secretbindings\.inlay\.dev in all namespaces/);
    assert.equal(json.bindings.length, 1);
    assert.equal(json.workloads.length, 6);
    const user = `system:serviceaccount:${team.namespace}:auditor`;
    const requests = (await auditLog().since(mark)).filter((request) => request.user === user);
    assert.ok(requests.length > 10, `${requests.length} requests`);
    const others = requests.filter(({ verb, as }) => !["get", "list"].includes(verb) || as !== undefined);
    assert.deepEqual(others, []);
  });

  it("shows a user without permissions each missing permission in a line", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const { json, text } = await trace(team, controlPlane().kubeconfigFor("carol"));
    assert.match(json.object.message, new RegExp(`get secrets/bucket in namespace ${team.namespace}$`));
    const kinds = ["deployments.apps", "pods", "serviceaccounts", "secretgrants.inlay.dev", "secretbindings.inlay.dev"];
    for (const kind of kinds) {
      const missing = `list ${kind} in namespace ${team.namespace}`;
      assert.ok(
        json.unreadable.some((each: string) => each.endsWith(missing)),
        kind,
      );
    }
    assert.match(text, /nothing that you may read refers to it/);
  });

  it("finds the consumers of clones in other namespaces, and shows for a clone which binding restarts them", async () => {
    const spread = await Spread.over(2);
    const own = new Workloads(spread.team);
    const [first, second] = spread.tenants;
    const [a, b] = spread.namespaces;
    await Promise.all([
      own.deploy({ here: { env: { [ORIGIN]: ["password"] } } }),
      first?.workloads.deploy({ web: { env: { [ORIGIN]: ["user"] } }, other: { env: { elsewhere: ["user"] } } }),
      second?.workloads.deploy({ all: { envFrom: [ORIGIN] } }),
    ]);
    await spread.bind({ consumersOfTargets: true, consumersBy: ["Env"], kinds: ["Deployment"] });
    await own.rolledOut("spread", 0);
    const traced = (namespace = "", kubeconfig = controlPlane().kubeconfigFile) =>
      inlayJson(kubeconfig, "trace", ORIGIN, "-n", namespace);
    const by = [{ binding: `${spread.team.namespace}/spread`, suspended: false }];
    const deployment = { apiVersion: "apps/v1", kind: "Deployment" };
    const copy = { kind: "Secret", name: ORIGIN };
    const web = { ...deployment, name: "web", references: ["env"], keys: ["user"], restarts: by };
    const here = { ...deployment, name: "here", references: ["env"], keys: ["password"], restarts: [] };
    const all = { ...deployment, name: "all", references: ["envFrom"], restarts: [] };

    const origin = await traced(spread.team.namespace);
    const copies = [
      { ...web, namespace: a, copy },
      { ...all, namespace: b, copy },
    ];
    assert.deepEqual(byNamespace(origin.json.workloads), byNamespace([here, ...copies]));
    assert.deepEqual(origin.json.unreadable, []);
    const row = `Deployment ${a}/web +env of Secret ${ORIGIN} +user +by binding ${by[0]?.binding}`;
    assert.match(origin.text, new RegExp(row));
    assert.deepEqual((await traced(a)).json.workloads, [web]);
    assert.deepEqual((await traced(b)).json.workloads, [all]);

    // The workloads that it names do restart.
    await spread.rotate();
    await own.rolledOut("spread", 1);
    assert.deepEqual(await own.restarts(), { here: 0 });
    assert.deepEqual(await first?.workloads.restarts(), { web: 1, other: 0 });
    assert.deepEqual(await second?.workloads.restarts(), { all: 0 });

    await spread.team.createAccount("auditor");
    const resources = ["deployments", "statefulsets", "daemonsets", "cronjobs", "jobs", "secretbindings"];
    const rules = [{ apiGroups: ["apps", "batch", "inlay.dev"], resources, verbs: ["list"] }];
    for (const namespace of [spread.team.namespace, a as string])
      await spread.team.grant(rules, { account: "auditor", role: "auditor", namespace });
    const auditor = await controlPlane().kubeconfigForServiceAccount(spread.team.namespace, "auditor");
    const partly = (await traced(spread.team.namespace, auditor)).json;
    assert.deepEqual(byNamespace(partly.workloads), byNamespace([here, ...copies.slice(0, 1)]));
    const unseen = `you may not list deployments.apps in all namespaces; skipped these namespaces with copies: ${b}`;
    assert.ok(partly.unreadable.includes(unseen), partly.unreadable.join("\n"));
  });

  it("traces ConfigMaps, and exits with 1 when the object does not exist", async () => {
    const team = await createNamespace();
    await team.api.create(team.path("v1", "configmaps"), {
      metadata: { name: "bucket" },
      data: { a: registerSecret("not-to-be-shown") },
    });
    const volumes = [{ name: "v", configMap: { name: "bucket", items: [{ key: "a", path: "a" }] } }];
    await team.api.create(team.path("apps/v1", "statefulsets"), {
      ...workload("db", { ...without, volumes }),
    });
    const { json } = await trace(team, undefined, "--config-map");
    assert.deepEqual(
      json.workloads.map(({ kind, name, references, keys }: AnyObject) => [kind, name, references, keys]),
      [["StatefulSet", "db", ["volume"], ["a"]]],
    );
    const absent = await inlay(controlPlane().kubeconfigFile, "trace", "bucket", "-n", team.namespace);
    assert.deepEqual(absent, {
      stdout: "",
      stderr: `there is no Secret ${team.namespace}/bucket, and nothing refers to it; list all with: kubectl get secrets -A\n`,
      code: 1,
    });
  });

  it("lists who waits for a Secret that does not exist", async () => {
    const team = await createNamespace();
    const containers = [{ name: "c", image: "c", envFrom: [{ secretRef: { name: "later" } }] }];
    await team.api.create(team.path("apps/v1", "statefulsets"), workload("db", { containers }));
    await team.bind("waits", { sources: [{ secret: { name: "later" } }], rollout: { consumersOf: ["later"] } });
    const { stdout, stderr, code } = await inlay(controlPlane().kubeconfigFile, "trace", "later", "-n", team.namespace);
    assert.deepEqual([stderr, code], ["", 0]);
    assert.match(stdout, /^Secret \S+\/later does not exist\. These objects refer to it, and wait for it/);
    assert.match(stdout, /\bwaits\b/);
    assert.match(stdout, /StatefulSet db +envFrom/);
  });
});
