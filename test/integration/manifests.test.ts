/** Shows that the API server accepts deploy/manifests, and that the controller gets exactly the permissions it needs. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type Access, describeAccess, may, untilMay } from "../controller/access.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile, applyObjects, deleteFile, deleteObjects, objectsOf } from "../controller/manifests.ts";
import { CONTROLLER } from "../controller/requests.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { isRolling } from "../controller/workloads.ts";

const root = join(import.meta.dirname, "..", "..");
const manifests = join(root, "deploy", "manifests");
const harbor = join(root, "samples", "harbor");
const SERVICE_NAME = "kubernetes.io/service-name";

const named = (name: string) => ({
  fieldSelector: { requirements: [{ key: "metadata.name", operator: "In" as const, values: [name] }] },
});

const api = () => new Api(controlPlane());
const newNamespace = () => createNamespace({ account: false, rules: [], controller: false });

/** Binds a ClusterRole to the account `name` in a namespace. Returns the account's user name. */
async function accountWith(clusterRole: string, team: TestNamespace, name: string): Promise<string> {
  await team.api.create(team.path("rbac.authorization.k8s.io/v1", "rolebindings"), {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: clusterRole },
    subjects: [{ kind: "ServiceAccount", name, namespace: team.namespace }],
  });
  return `system:serviceaccount:${team.namespace}:${name}`;
}

describe("deploy/manifests", () => {
  const bindings = { group: "inlay.dev", resource: "secretbindings" };
  const grants = { group: "inlay.dev", resource: "secretgrants" };
  const connections = { group: "inlay.dev", resource: "vaultconnections" };
  const accounts = { resource: "serviceaccounts" };
  const leases = { group: "coordination.k8s.io", resource: "leases" };
  const ownLease = { ...leases, namespace: "inlay-system", name: "inlay-controller" };
  const ownPods = { resource: "pods", namespace: "inlay-system" };
  const ownKey = { resource: "secrets", namespace: "inlay-system", name: "inlay-digest-key" };

  it("is accepted by the API server when you apply it once, and again", async () => {
    await controlPlane().kubectl("apply", "--dry-run=server", `--filename=${manifests}`);
    await controlPlane().kubectl("apply", `--filename=${manifests}`);
  });

  it("creates a Deployment whose pod the Pod Security Standard of the namespace admits", async () => {
    const path = "/apis/apps/v1/namespaces/inlay-system/deployments/inlay-controller";
    await eventually(async () => assert.ok(!isRolling(await api().get(path))), 50_000);
  });

  it("runs two replicas, of which one may be evicted at a time, and has a Service with the metrics port", async () => {
    const get = (group: string, plural: string) => api().get(`/apis/${group}/v1/namespaces/inlay-system/${plural}`);
    await eventually(async () =>
      assert.equal((await get("apps", "deployments/inlay-controller")).status.readyReplicas, 2),
    );
    await eventually(async () =>
      assert.equal((await get("policy", "poddisruptionbudgets/inlay-controller")).status.disruptionsAllowed, 1),
    );
    await eventually(async () => {
      const { items } = await get("discovery.k8s.io", "endpointslices");
      const slices = items.filter(({ metadata }: AnyObject) => metadata.labels[SERVICE_NAME] === "inlay-metrics");
      assert.equal(slices.flatMap(({ endpoints }: AnyObject) => endpoints ?? []).length, 2);
      assert.deepEqual(slices[0].ports, [{ name: "metrics", port: 8443, protocol: "TCP" }]);
    });
  });

  it("assigns requests for the controller's Lease the priority of leader election", async () => {
    const schema = await api().get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/inlay-leader-election");
    assert.equal(schema.spec.priorityLevelConfiguration.name, "leader-election");
    const answerTo = async (what: string) => {
      const args = ["get", what, "--namespace=inlay-system", `--as=${CONTROLLER}`, "--ignore-not-found", "-v=8"];
      return (await controlPlane().kubectl(...args)).stderr;
    };
    await eventually(async () =>
      assert.match(
        await answerTo("leases/inlay-controller"),
        new RegExp(`Flowschema-Uid: ${schema.metadata.uid}`, "i"),
      ),
    );
    assert.doesNotMatch(await answerTo("secrets/inlay-digest-key"), new RegExp(schema.metadata.uid));
  });

  it("closes the ports of its pods, except the metrics port for labelled namespaces and the health port for its own pods", async () => {
    const get = (group: string, plural: string) =>
      api().get(`/apis/${group}/v1/namespaces/inlay-system/${plural}/inlay-controller`);
    const { spec } = await get("networking.k8s.io", "networkpolicies");
    const { template } = (await get("apps", "deployments")).spec;
    assert.deepEqual(spec.policyTypes, ["Ingress"]);
    const { matchLabels } = spec.podSelector;
    assert.ok(Object.keys(matchLabels).length > 0);
    for (const [key, value] of Object.entries(matchLabels)) assert.equal(template.metadata.labels[key], value);
    const [{ args, ports }] = template.spec.containers;
    const { containerPort } = ports.find(({ name }: AnyObject) => name === "metrics");
    assert.ok(args.includes(`--metrics-port=${containerPort}`) && !args.includes("--insecure-metrics"));
    const health = ports.find(({ name }: AnyObject) => name === "health").containerPort;
    assert.deepEqual(spec.ingress, [
      {
        from: [{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }],
        ports: [{ protocol: "TCP", port: containerPort }],
      },
      { from: [{ podSelector: { matchLabels } }], ports: [{ protocol: "TCP", port: health }] },
    ]);
  });

  it("complies with that standard without a warning", async () => {
    const file = join(manifests, "40-controller.yaml");
    const { stderr } = await controlPlane().kubectl("apply", "--dry-run=server", `--filename=${file}`);
    assert.equal(stderr, "");
  });

  describe("allows the controller to", () => {
    const needed: Access[] = [
      ...["list", "watch", "patch"].map((verb) => ({ verb, ...bindings })),
      { verb: "update", ...bindings, subresource: "status" },
      { verb: "impersonate", ...accounts, namespace: "registry", name: "inlay" },
      { verb: "get", ...accounts, namespace: "registry", name: "inlay" },
      { verb: "list", ...accounts, name: "inlay", ...named("inlay") },
      { verb: "watch", ...accounts, name: "inlay", ...named("inlay") },
      ...["get", "list", "watch"].map((verb) => ({ verb, ...grants })),
      ...["list", "watch"].map((verb) => ({ verb, ...connections })),
      { verb: "update", ...connections, subresource: "status" },
      { verb: "get", resource: "namespaces", name: "registry" },
      ...["list", "watch"].map((verb) => ({ verb, resource: "namespaces" })),
      { verb: "create", group: "events.k8s.io", resource: "events", namespace: "registry" },
      { verb: "create", group: "authentication.k8s.io", resource: "tokenreviews" },
      { verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews" },
      { verb: "create", ...leases, namespace: "inlay-system" },
      { verb: "get", ...ownLease },
      { verb: "update", ...ownLease },
      { verb: "get", ...ownKey },
      { verb: "patch", ...ownKey },
      ...["list", "watch", "patch"].map((verb) => ({ verb, ...ownPods })),
    ];
    for (const request of needed) {
      it(describeAccess(request), async () => assert.equal(await may(CONTROLLER, request), true));
    }

    it("list the accounts called inlay of all namespaces", async () => {
      await api().as(CONTROLLER).get("/api/v1/serviceaccounts?fieldSelector=metadata.name%3Dinlay");
    });
  });

  describe("does not allow the controller to", () => {
    const refused: Access[] = [
      ...["get", "list", "watch", "create", "update", "patch", "delete"].map((verb) => ({ verb, resource: "secrets" })),
      { verb: "get", resource: "secrets", namespace: "inlay-system" },
      { verb: "get", ...ownKey, name: "other" },
      ...["get", "patch"].map((verb) => ({ verb, ...ownKey, namespace: "registry" })),
      ...["list", "watch", "create", "update", "delete"].map((verb) => ({ verb, ...ownKey })),
      { verb: "get", resource: "configmaps" },
      ...["get", "create", "update", "delete"].map((verb) => ({ verb, ...ownPods })),
      ...["list", "watch", "patch"].map((verb) => ({ verb, ...ownPods, namespace: "registry" })),
      ...["exec", "status", "ephemeralcontainers"].map((subresource) => ({ verb: "patch", ...ownPods, subresource })),
      ...["get", "create", "update", "delete"].map((verb) => ({ verb, ...bindings })),
      { verb: "impersonate", ...accounts, namespace: "registry", name: "default" },
      { verb: "impersonate", ...accounts, namespace: "registry" },
      { verb: "impersonate", resource: "users", name: "inlay" },
      { verb: "impersonate", resource: "groups", name: "system:masters" },
      { verb: "create", ...accounts, subresource: "token", namespace: "registry", name: "inlay" },
      { verb: "list", ...accounts },
      ...["create", "update", "patch", "delete"].map((verb) => ({ verb, ...grants })),
      ...["get", "create", "update", "patch", "delete", "use"].map((verb) => ({ verb, ...connections })),
      ...["create", "update", "patch", "delete"].map((verb) => ({ verb, resource: "namespaces" })),
      { verb: "patch", group: "goharbor.io", resource: "harborclusters", namespace: "registry" },
      ...["patch", "delete", "list", "watch"].map((verb) => ({ verb, ...ownLease })),
      { verb: "update", ...ownLease, name: "other" },
      ...["get", "create", "update"].map((verb) => ({ verb, ...ownLease, namespace: "kube-system" })),
      { verb: "get", group: "*", resource: "*" },
    ];
    for (const request of refused) {
      it(describeAccess(request), async () => assert.equal(await may(CONTROLLER, request), false));
    }
  });

  it("allows another account by the Role that docs/tasks/allow-a-namespace.md shows", async () => {
    const { namespace } = await newNamespace();
    const role = inNamespace(namespace, await yamlIn("docs/tasks/allow-a-namespace.md", "inlay-may-act-as-rotator"));
    const rotator = { ...accounts, namespace, name: "rotator" };
    assert.equal(await may(CONTROLLER, { verb: "impersonate", ...rotator }), false);
    await applyObjects(api(), objectsOf(role));
    for (const verb of ["impersonate", "get", "list", "watch"]) await untilMay(CONTROLLER, { verb, ...rotator });
    assert.equal(await may(CONTROLLER, { verb: "impersonate", ...rotator, namespace: "elsewhere" }), false);
  });

  it("shares one watch of a kind only after the ClusterRole of docs/operations.md is applied", async () => {
    const role = objectsOf(await yamlIn("docs/operations.md", "aggregate-to-controller"));
    const watch: Access = { verb: "watch", group: "goharbor.io", resource: "harborclusters" };
    assert.equal(await may(CONTROLLER, watch), false);
    try {
      await applyObjects(api(), role);
      await untilMay(CONTROLLER, watch);
    } finally {
      await deleteObjects(api(), role);
    }
  });

  it("shares one watch of each workload kind only after the shipped file is applied", async () => {
    const file = join(manifests, "optional", "workloads-cluster-wide.yaml");
    const watch: Access = { verb: "watch", group: "apps", resource: "deployments" };
    assert.equal(await may(CONTROLLER, watch), false);
    try {
      await applyFile(api(), file);
      for (const resource of ["deployments", "statefulsets", "daemonsets"]) {
        await untilMay(CONTROLLER, { ...watch, resource });
      }
      await untilMay(CONTROLLER, { verb: "list", group: "batch", resource: "cronjobs" });
      await untilMay(CONTROLLER, { verb: "list", group: "argoproj.io", resource: "rollouts" });
      for (const verb of ["get", "patch"]) assert.equal(await may(CONTROLLER, { ...watch, verb }), false);
    } finally {
      await deleteFile(api(), file);
    }
  });

  it("allows the bindings of a namespace to restart workloads by the command of docs/tasks/allow-a-namespace.md", async () => {
    const team = await newNamespace();
    const { namespace } = team;
    const account = `system:serviceaccount:${namespace}:inlay`;
    const deployments = { group: "apps", resource: "deployments", namespace };
    const admin = await accountWith("admin", team, "admin");
    await untilMay(admin, { verb: "patch", ...deployments });
    assert.equal(await may(account, { verb: "patch", ...deployments }), false);
    const page = await readFile(join(root, "docs", "tasks", "allow-a-namespace.md"), "utf8");
    const command = /^kubectl create rolebinding inlay-rollouts .*$/m.exec(page)?.[0] ?? assert.fail();
    const words = command.replaceAll("registry", namespace).split(" ").slice(1);
    await controlPlane().kubectl(`--as=${admin}`, ...words);
    for (const verb of ["get", "list", "watch", "patch"]) {
      for (const resource of ["deployments", "statefulsets", "daemonsets"]) {
        await untilMay(account, { verb, ...deployments, resource });
      }
      await untilMay(account, { verb, group: "batch", resource: "cronjobs", namespace });
    }
    await untilMay(account, { verb: "list", group: "policy", resource: "poddisruptionbudgets", namespace });
    for (const resource of ["replicasets", "controllerrevisions"])
      await untilMay(account, { verb: "list", ...deployments, resource });
    for (const verb of ["create", "update", "delete"]) {
      assert.equal(await may(account, { verb, ...deployments }), false);
    }
    assert.equal(await may(account, { verb: "patch", ...deployments, namespace: "default" }), false);
  });

  it("allows the account of a namespace to log in to Vault by the command of docs/tasks/allow-a-namespace.md", async () => {
    const team = await newNamespace();
    const { namespace } = team;
    const account = `system:serviceaccount:${namespace}:inlay`;
    const token = { verb: "create", ...accounts, subresource: "token", namespace, name: "inlay" };
    const admin = await accountWith("admin", team, "admin");
    await untilMay(admin, { verb: "create", group: "rbac.authorization.k8s.io", resource: "rolebindings", namespace });
    assert.equal(await may(account, token), false);
    const page = await readFile(join(root, "docs", "tasks", "allow-a-namespace.md"), "utf8");
    const command = /^kubectl create rolebinding inlay-vault-login .*$/m.exec(page)?.[0] ?? assert.fail();
    const words = command.replaceAll("registry", namespace).split(" ").slice(1);
    await controlPlane().kubectl(`--as=${admin}`, ...words);
    await untilMay(account, token);
    assert.equal(await may(account, { ...token, name: "default" }), false);
    assert.equal(await may(account, { ...token, namespace: "default" }), false);
    assert.equal(await may(account, { ...token, verb: "get" }), false);
  });

  it("gives permissions to users by view, edit and admin, and none of them may write the status", async () => {
    for (const [role, writesBindings, isAdmin] of [
      ["view", false, false],
      ["edit", true, false],
      ["admin", true, true],
    ] as const) {
      const team = await newNamespace();
      const { namespace } = team;
      const user = await accountWith(role, team, "user");
      await untilMay(user, { verb: "get", ...bindings, namespace });
      assert.equal(await may(user, { verb: "get", ...grants, namespace }), true, `${role} may get grants`);
      assert.equal(await may(user, { verb: "get", ...connections, namespace }), true, `${role} may get connections`);
      const uses = await may(user, { verb: "use", ...connections, namespace });
      assert.equal(uses, writesBindings, `${role} may use connections`);
      for (const verb of ["create", "patch", "delete"]) {
        assert.equal(await may(user, { verb, ...bindings, namespace }), writesBindings, `${role} may ${verb} bindings`);
        for (const kind of [grants, connections])
          assert.equal(await may(user, { verb, ...kind, namespace }), isAdmin, `${role} may ${verb} ${kind.resource}`);
        for (const kind of [bindings, connections])
          assert.equal(await may(user, { verb, ...kind, subresource: "status", namespace }), false);
      }
    }
  });
});

describe("samples/harbor", () => {
  before(() => applyFile(api(), join(harbor, "crd")));

  it("is accepted unchanged from a user who applies the folder", async () => {
    const team = await newNamespace();
    const files = (await readdir(harbor)).filter((file) => file.endsWith(".yaml")).sort();
    const story = await Promise.all(files.map((file) => readFile(join(harbor, file), "utf8")));
    const stdin = inNamespace(team.namespace, story.join("---\n"));
    await controlPlane().kubectlWith({ stdin }, "apply", "--filename=-");
    const names = async (path: string) =>
      (await team.api.get(path)).items.map(({ metadata }: AnyObject) => metadata.name);
    assert.deepEqual(await names(team.path("inlay.dev/v1alpha1", "secretbindings")), ["harbor-s3"]);
    assert.deepEqual(await names(team.path("goharbor.io/v1beta1", "harborclusters")), ["harbor"]);
  });

  it("asks for no more permissions than the example needs", async () => {
    const { namespace } = await newNamespace();
    const account = `system:serviceaccount:${namespace}:inlay`;
    const rights = inNamespace(namespace, await readFile(join(harbor, "01-account.yaml"), "utf8"));
    await applyObjects(api(), objectsOf(rights));
    const secret = { resource: "secrets", namespace, name: "bucket" };
    const cluster = { group: "goharbor.io", resource: "harborclusters", namespace, name: "harbor" };
    for (const verb of ["get", "list", "watch"]) {
      await untilMay(account, { verb, ...secret });
      await untilMay(account, { verb, ...cluster });
      assert.equal(await may(account, { verb, ...secret, name: "other" }), false);
      assert.equal(await may(account, { verb, ...cluster, name: "other" }), false);
    }
    await untilMay(account, { verb: "patch", ...cluster });
    assert.equal(await may(account, { verb: "patch", ...secret }), false);
    for (const verb of ["create", "update", "delete"]) {
      assert.equal(await may(account, { verb, ...cluster }), false);
      assert.equal(await may(account, { verb, ...secret }), false);
    }
  });
});

/** The one YAML block of a page that contains a text. */
async function yamlIn(page: string, saying: string): Promise<string> {
  const text = await readFile(join(root, page), "utf8");
  const matches = [...text.matchAll(/```yaml\n(.*?)```/gs), ...text.matchAll(/<<'EOF'\n(.*?)^EOF$/gms)];
  const blocks = matches.map(([, block = ""]) => block);
  const [found, ...more] = blocks.filter((block) => block.includes(saying));
  assert.ok(found !== undefined && more.length === 0, `${page} shows ${saying} not just once`);
  return found;
}

/** Moves the objects of the namespace `registry` to the namespace of a test. */
const inNamespace = (namespace: string, yaml: string) =>
  yaml.replace(/\b(namespace|name): registry\b/g, `$1: ${namespace}`);
