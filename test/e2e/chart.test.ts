/** Helm installs, upgrades, rolls back and uninstalls the chart on a real API server, also where the manifests of 0.1.0 were applied. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { isRolling } from "../controller/workloads.ts";
import { chart, HelmError, helm } from "../helm/helm.ts";

const release010 = join(import.meta.dirname, "release-0.1.0");
const HOME = "inlay-system";
const BINDINGS = "/apis/inlay.dev/v1alpha1/namespaces/states/secretbindings";
const DEPLOYMENT = `/apis/apps/v1/namespaces/${HOME}/deployments/inlay-controller`;
const KEY = `/api/v1/namespaces/${HOME}/secrets/inlay-digest-key`;

/** The reason of each binding: of the rollout, if there is one. */
const REASONS: Record<string, string> = {
  conflict: "Conflict",
  deleting: "Terminating",
  "from-vault": "ForbiddenAddress",
  protecting: "Synced",
  ready: "Synced",
  "rolling-out": "RollingOut",
  suspended: "Suspended",
  waiting: "SourceNotFound",
};

describe("the Helm chart on a cluster", function () {
  this.timeout("2m");
  let cluster: ControlPlane;
  let api: Api;
  let controller: ControllerProcess;
  /** What Inlay must not change by an upgrade. */
  let before010: Record<string, string>;

  before(async () => {
    cluster = await startControlPlane();
    api = new Api(cluster);
    controller = new ControllerProcess(cluster);
  });
  after(async () => {
    await controller?.stop();
    await cluster?.stop();
  });

  const run = async (command: string, ...args: string[]) =>
    (await helm([command, "inlay", ...args, "-n", HOME], cluster)).stdout;
  /** The pods of the controller, in which nothing runs. */
  const pods = async () => {
    await eventually(async () => assert.ok(!isRolling(await api.get(DEPLOYMENT))), 50_000);
    const { items } = await api.get(`/api/v1/namespaces/${HOME}/pods`);
    return items.map(({ metadata }: AnyObject) => metadata.uid).sort();
  };
  const hooks = async () => (await helm(["get", "hooks", "inlay", "-n", HOME], cluster)).stdout;
  const restarted = async () => {
    await controller.stop();
    await controller.start();
    await controller.idle();
  };

  /** The reasons of the bindings, and of the composed one without the hash in its name. */
  async function reasons(): Promise<Record<string, string>> {
    const { items } = await api.get(BINDINGS);
    const entries = items.map(({ metadata, status }: AnyObject) => {
      const reason = (type: string) => status?.conditions?.find((each: AnyObject) => each.type === type)?.reason;
      const isComposed =
        metadata.ownerReferences !== undefined || metadata.labels?.["inlay.dev/composition"] !== undefined;
      const state = metadata.deletionTimestamp ? "Terminating" : (reason("RolledOut") ?? reason("Ready"));
      return [isComposed ? "composed" : metadata.name, state];
    });
    return Object.fromEntries(entries);
  }

  /** The versions of all objects that Inlay may write in the namespace, and the generations of its workloads. */
  async function versions(): Promise<Record<string, string>> {
    const all: Record<string, string> = {};
    for (const plural of ["secrets", "configmaps"]) {
      for (const { metadata } of (await api.get(`/api/v1/namespaces/states/${plural}`)).items)
        all[`${plural} ${metadata.name}`] = metadata.resourceVersion;
    }
    for (const { metadata } of (await api.get("/apis/apps/v1/namespaces/states/deployments")).items)
      all[`deployments ${metadata.name}`] = `${metadata.generation}`;
    for (const { metadata } of (await api.get(BINDINGS)).items)
      all[`secretbindings ${metadata.name}`] = `${metadata.generation}`;
    return all;
  }

  it("finds bindings in every state in an installation of 0.1.0", async () => {
    for (const part of ["apis", "policies", "manifests", "manifests/optional/compositions.yaml"])
      await cluster.kubectl("apply", "--server-side", `--filename=${join(release010, part)}`);
    await controller.start();
    await cluster.kubectl("apply", `--filename=${join(release010, "states.yaml")}`);
    await eventually(async () => assert.equal((await reasons())["rolling-out"], "RolledOut"), 30_000);
    // The Deployment can't finish its next rollout.
    await api.merge("/apis/apps/v1/namespaces/states/deployments/app", {
      spec: { template: { spec: { nodeSelector: { none: "such" } } } },
    });
    await api.merge("/api/v1/namespaces/states/secrets/rotated", { stringData: { key: "not-a-real-value-04" } });
    await eventually(async () => assert.equal((await reasons())["deleting"], "Synced"));
    await api.delete(`${BINDINGS}/deleting`);
    await eventually(async () => assert.deepEqual(await reasons(), { ...REASONS, composed: "Synced" }), 30_000);
    await controller.idle();
    before010 = await versions();
  });

  it("takes over that installation, writes no target, and restarts neither a workload nor the controller", async () => {
    const { spec } = await api.get(DEPLOYMENT);
    const podsBefore = await pods();
    await assert.rejects(
      run("install", chart, "--set", "compositions.enabled=true"),
      /cannot be imported|invalid ownership/,
    );
    const notes = await run("install", chart, "--set", "compositions.enabled=true", "--take-ownership");
    assert.match(notes, /helm test inlay -n inlay-system/);
    assert.deepEqual((await api.get(DEPLOYMENT)).spec, spec);
    await restarted();
    assert.deepEqual(await pods(), podsBefore);
    assert.deepEqual(await reasons(), { ...REASONS, composed: "Synced" });
    assert.deepEqual(await versions(), before010);
  });

  it("passes its own test against a controller, which names what is missing", async () => {
    const [, script = ""] = /- \|-\n(.*?)\n {6}env:/s.exec(await hooks()) ?? assert.fail();
    const ask = (url: string) =>
      promisify(execFile)(process.execPath, ["-e", script.replace("60_000", "0")], { env: { INLAY: url } });
    const { stdout } = await ask(controller.url);
    assert.equal(stdout, "Inlay is ready.\n");
    await assert.rejects(ask("http://127.0.0.1:1"), /http:\/\/127\.0\.0\.1:1: .*\n/);
    const policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/inlay-replicas";
    await api.delete(policy);
    await restarted();
    await eventually(() => assert.rejects(ask(controller.url), /policies degraded: .*inlay-replicas/));
    await run("upgrade", chart, "--reuse-values");
    await restarted();
    await eventually(() => ask(controller.url));
  });

  it("creates pods that the Pod Security Standard restricted admits", async () => {
    await cluster.kubectl("label", "--overwrite", "namespace", HOME, "pod-security.kubernetes.io/enforce=restricted");
    await eventually(async () => assert.ok(!isRolling(await api.get(DEPLOYMENT))), 50_000);
    const { stderr } = await cluster.kubectl("rollout", "restart", "deployment/inlay-controller", "-n", HOME);
    assert.equal(stderr, "");
    await eventually(async () => assert.ok(!isRolling(await api.get(DEPLOYMENT))), 50_000);
    const dryRun = await cluster.kubectlWith({ stdin: await hooks() }, "apply", "--dry-run=server", "-f", "-");
    assert.match(dryRun.stdout, /pod\/inlay-test created/);
    assert.equal(dryRun.stderr, "");
  });

  it("keeps the digest key in an upgrade and a rollback, which only change what the values change", async () => {
    const { data } = await api.get(KEY);
    assert.ok(data.primary);
    await run(
      "upgrade",
      chart,
      "--reuse-values",
      "--set",
      "replicas=3",
      "--set",
      "config.vault.addresses={vault.example.com}",
    );
    assert.equal((await api.get(DEPLOYMENT)).spec.replicas, 3);
    const config = async () =>
      (await api.get(`/api/v1/namespaces/${HOME}/configmaps/inlay-controller`)).data["config.yaml"];
    assert.match(await config(), /vault\.example\.com/);
    await run("rollback", "1");
    assert.equal((await api.get(DEPLOYMENT)).spec.replicas, 2);
    assert.doesNotMatch(await config(), /vault/);
    assert.deepEqual((await api.get(KEY)).data, data);
  });

  it("refuses wrong values in one line, and changes nothing", async () => {
    const { resourceVersion } = (await api.get(DEPLOYMENT)).metadata;
    for (const [value, says] of [
      ["replcas=3", /additional properties 'replcas' not allowed/],
      ["config.reloader.enabled=true", /at '\/config\/reloader'/],
    ] as const) {
      const error = await run("upgrade", chart, "--set", value).then(
        () => assert.fail(value),
        (failure: Error) => failure,
      );
      assert.ok(error instanceof HelmError);
      assert.match(error.message, says);
      assert.doesNotMatch(error.message, /goroutine|panic|\.go:\d/);
    }
    assert.equal((await api.get(DEPLOYMENT)).metadata.resourceVersion, resourceVersion);
  });

  it("leaves the bindings, the CRDs and the digest key when it is uninstalled, and continues with them", async () => {
    const { data } = await api.get(KEY);
    await controller.stop();
    await run("uninstall");
    assert.equal(await api.find(DEPLOYMENT), undefined);
    assert.deepEqual((await api.get(KEY)).data, data);
    const policies = await api.get("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies");
    assert.deepEqual(
      policies.items.filter(({ metadata }: AnyObject) => metadata.name.startsWith("inlay")),
      [],
    );
    assert.deepEqual(await reasons(), { ...REASONS, composed: "Synced" });
    await run("install", chart, "--set", "compositions.enabled=true");
    await controller.start();
    await controller.idle();
    assert.deepEqual(await versions(), before010);
  });

  it("loses no value and no object if Helm deletes the CRDs, and with its namespace deleted, until it is installed again", async () => {
    const secrets = async () =>
      (await api.get("/api/v1/namespaces/states/secrets")).items.map(({ metadata, data }: AnyObject) => [
        metadata.uid,
        data,
      ]);
    const crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/secretbindings.inlay.dev";
    await api.merge(`${BINDINGS}/deleting`, { metadata: { finalizers: null } });
    const before = await secrets();
    await run("upgrade", chart, "--reuse-values", "--set", "crds.keep=false,digestKey.keep=false");
    await controller.stop();
    await run("uninstall");
    await cluster.kubectl("delete", "namespace", HOME);
    assert.ok((await api.get(`${BINDINGS}/protecting`)).metadata.deletionTimestamp);
    await run("install", chart, "--create-namespace");
    await controller.start();
    await eventually(async () => assert.equal(await api.find(crd), undefined));
    await run("upgrade", chart);
    assert.deepEqual(await secrets(), before);
    const fields = [{ path: "data.key", from: { source: "source", key: "key" } }];
    const targets = [{ apiVersion: "v1", kind: "Secret", name: "ready", fields }];
    const spec = { sources: [{ secret: { name: "source" } }], targets };
    const binding = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata: { name: "ready" }, spec };
    await eventually(() => api.create(BINDINGS, binding));
    await eventually(async () => assert.deepEqual(await reasons(), { ready: "Synced" }));
  });

  it("is accepted by the API server in all modes with all options", async () => {
    const everything = [
      [
        "policies.authorAnnotation",
        "policies.reserveAccounts",
        "compositions.enabled",
        "accessFinalizers.enabled",
        "clusterWideWatches.secrets",
        "clusterWideWatches.workloads",
      ],
      ["clusterAccess", "config.reloader.jobs", "config.reloader.runCronJobs"],
    ].flat();
    const receiver = 'config.notifications=[{"name":"ops","type":"Slack","url":{"secret":{"name":"a","key":"b"}}}]';
    const values = [...everything.flatMap((name) => ["--set", `${name}=true`]), "--set-json", receiver];
    for (const scope of ["Cluster", "Namespace", "None"]) {
      const args = ["template", "inlay", chart, "-n", HOME, "--api-versions", "v1", "--kube-version", "1.36.0"];
      const namespaces = ["--set", "config.reloader.namespaces={default}", "--set", `scope=${scope}`];
      const { stdout } = await helm([...args, ...values, ...namespaces]);
      const { stderr } = await cluster.kubectlWith(
        { stdin: stdout },
        ...["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"],
      );
      assert.equal(stderr, "", scope);
    }
    const dryRun = await helm(
      ["install", "other", chart, "-n", "states", "--set", "scope=Namespace", "--dry-run=server"],
      cluster,
    );
    assert.match(dryRun.stdout, /Inlay .* is installed for the namespace states/);
  });
});
