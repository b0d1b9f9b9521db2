/** That what deploy/manifests installs is accepted, starts, and gives the controller its rights and no other. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";

const root = join(import.meta.dirname, "..", "..");
const manifests = join(root, "deploy", "manifests");
const harbor = join(root, "samples", "harbor");
const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";
const ANYWHERE = "";
const SERVICE_NAME = "kubernetes.io/service-name";

interface Request {
  verb: string;
  group?: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  fieldSelector?: { requirements: { key: string; operator: "In"; values: string[] }[] };
}

const named = (name: string) => ({
  fieldSelector: { requirements: [{ key: "metadata.name", operator: "In" as const, values: [name] }] },
});

async function may(user: string, { namespace = ANYWHERE, ...request }: Request): Promise<boolean> {
  const [, , of] = user.split(":");
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user,
      groups: ["system:authenticated", "system:serviceaccounts", `system:serviceaccounts:${of}`],
      resourceAttributes: { ...request, namespace },
    },
  };
  const stdin = JSON.stringify(review);
  const { stdout } = await controlPlane().kubectlWith({ stdin }, "create", "--filename=-", "--output=json");
  return JSON.parse(stdout).status.allowed;
}

const describeRequest = ({ verb, group, resource, subresource, namespace, name, fieldSelector }: Request) =>
  [
    verb,
    resource + (group === undefined ? "" : `.${group}`) + (subresource === undefined ? "" : `/${subresource}`),
    name ?? fieldSelector?.requirements.map(({ values }) => `with the name ${values}`).join(),
    namespace === undefined ? "anywhere" : `in ${namespace}`,
  ]
    .filter((word) => word !== undefined)
    .join(" ");

describe("deploy/manifests", () => {
  const bindings = { group: "inlay.dev", resource: "secretbindings" };
  const grants = { group: "inlay.dev", resource: "secretgrants" };
  const accounts = { resource: "serviceaccounts" };
  const leases = { group: "coordination.k8s.io", resource: "leases" };
  const ownLease = { ...leases, namespace: "inlay-system", name: "inlay-controller" };
  const ownKey = { resource: "secrets", namespace: "inlay-system", name: "inlay-digest-key" };

  it("is accepted by the API server, again and again", async () => {
    await controlPlane().kubectl("apply", "--dry-run=server", `--filename=${manifests}`);
    await controlPlane().kubectl("apply", `--filename=${manifests}`);
  });

  it("makes a Deployment whose pod the namespace's own security standard admits", async () => {
    const { stdout } = await controlPlane().kubectl(
      ...["rollout", "status", "deployment/inlay-controller", "--namespace=inlay-system", "--timeout=50s"],
    );
    assert.match(stdout, /successfully rolled out/);
  });

  it("runs two replicas, of which one may be taken away at a time, and shows where to scrape them", async () => {
    const get = async (what: string) =>
      JSON.parse((await controlPlane().kubectl("get", what, "--namespace=inlay-system", "--output=json")).stdout);
    await eventually(async () => assert.equal((await get("deployment/inlay-controller")).status.readyReplicas, 2));
    await eventually(async () => assert.equal((await get("pdb/inlay-controller")).status.disruptionsAllowed, 1));
    await eventually(async () => {
      const { items } = await get("endpointslices");
      const slices = items.filter(({ metadata }: AnyObject) => metadata.labels[SERVICE_NAME] === "inlay-metrics");
      assert.equal(slices.flatMap(({ endpoints }: AnyObject) => endpoints ?? []).length, 2);
      assert.deepEqual(slices[0].ports, [{ name: "metrics", port: 8081, protocol: "TCP" }]);
    });
  });

  it("keeps to that standard without a warning", async () => {
    const file = join(manifests, "40-controller.yaml");
    const { stderr } = await controlPlane().kubectl("apply", "--dry-run=server", `--filename=${file}`);
    assert.equal(stderr, "");
  });

  describe("lets the controller", () => {
    const needed: Request[] = [
      ...["list", "watch", "patch"].map((verb) => ({ verb, ...bindings })),
      { verb: "update", ...bindings, subresource: "status" },
      { verb: "impersonate", ...accounts, namespace: "registry", name: "inlay" },
      { verb: "get", ...accounts, namespace: "registry", name: "inlay" },
      { verb: "list", ...accounts, name: "inlay", ...named("inlay") },
      { verb: "watch", ...accounts, name: "inlay", ...named("inlay") },
      ...["get", "list", "watch"].map((verb) => ({ verb, ...grants })),
      { verb: "get", resource: "namespaces", name: "registry" },
      ...["list", "watch"].map((verb) => ({ verb, resource: "namespaces" })),
      { verb: "create", group: "events.k8s.io", resource: "events", namespace: "registry" },
      { verb: "create", ...leases, namespace: "inlay-system" },
      { verb: "get", ...ownLease },
      { verb: "update", ...ownLease },
      { verb: "get", ...ownKey },
      { verb: "patch", ...ownKey },
    ];
    for (const request of needed) {
      it(describeRequest(request), async () => assert.equal(await may(CONTROLLER, request), true));
    }

    it("list the accounts called inlay of all namespaces", async () => {
      const called = "--field-selector=metadata.name=inlay";
      await controlPlane().kubectl(`--as=${CONTROLLER}`, "get", "serviceaccounts", "--all-namespaces", called);
    });
  });

  describe("does not let the controller", () => {
    const refused: Request[] = [
      ...["get", "list", "watch", "create", "update", "patch", "delete"].map((verb) => ({ verb, resource: "secrets" })),
      { verb: "get", resource: "secrets", namespace: "inlay-system" },
      { verb: "get", ...ownKey, name: "other" },
      ...["get", "patch"].map((verb) => ({ verb, ...ownKey, namespace: "registry" })),
      ...["list", "watch", "create", "update", "delete"].map((verb) => ({ verb, ...ownKey })),
      { verb: "get", resource: "configmaps" },
      ...["get", "create", "update", "delete"].map((verb) => ({ verb, ...bindings })),
      { verb: "impersonate", ...accounts, namespace: "registry", name: "default" },
      { verb: "impersonate", ...accounts, namespace: "registry" },
      { verb: "impersonate", resource: "users", name: "inlay" },
      { verb: "impersonate", resource: "groups", name: "system:masters" },
      { verb: "create", ...accounts, subresource: "token", namespace: "registry", name: "inlay" },
      { verb: "list", ...accounts },
      ...["create", "update", "patch", "delete"].map((verb) => ({ verb, ...grants })),
      ...["create", "update", "patch", "delete"].map((verb) => ({ verb, resource: "namespaces" })),
      { verb: "patch", group: "goharbor.io", resource: "harborclusters", namespace: "registry" },
      ...["patch", "delete", "list", "watch"].map((verb) => ({ verb, ...ownLease })),
      { verb: "update", ...ownLease, name: "other" },
      ...["get", "create", "update"].map((verb) => ({ verb, ...ownLease, namespace: "kube-system" })),
      { verb: "get", group: "*", resource: "*" },
    ];
    for (const request of refused) {
      it(describeRequest(request), async () => assert.equal(await may(CONTROLLER, request), false));
    }
  });

  it("opens another account by the Role that its README shows", async () => {
    const namespace = "manifests-rotator";
    const role = inNamespace(namespace, await yamlIn("deploy/manifests/README.md", "kind: RoleBinding"));
    const rotator = { ...accounts, namespace, name: "rotator" };
    await createNamespace(namespace);
    assert.equal(await may(CONTROLLER, { verb: "impersonate", ...rotator }), false);
    await apply(role);
    for (const verb of ["impersonate", "get", "list", "watch"]) await allowed({ verb, ...rotator });
    assert.equal(await may(CONTROLLER, { verb: "impersonate", ...rotator, namespace: "elsewhere" }), false);
  });

  it("shares one watch for a kind by the ClusterRole that its README shows, and not before", async () => {
    const role = await yamlIn("deploy/manifests/README.md", "aggregate-to-controller");
    const watch: Request = { verb: "watch", group: "goharbor.io", resource: "harborclusters" };
    assert.equal(await may(CONTROLLER, watch), false);
    try {
      await apply(role);
      await allowed(watch);
    } finally {
      await controlPlane().kubectlWith({ stdin: role }, "delete", "--filename=-");
    }
  });

  it("shares one watch for each kind of workload by the file that is shipped for that, and not before", async () => {
    const file = join(manifests, "optional", "workloads-cluster-wide.yaml");
    const watch: Request = { verb: "watch", group: "apps", resource: "deployments" };
    assert.equal(await may(CONTROLLER, watch), false);
    try {
      await controlPlane().kubectl("apply", `--filename=${file}`);
      for (const resource of ["deployments", "statefulsets", "daemonsets"]) await allowed({ ...watch, resource });
      await allowed({ verb: "list", group: "batch", resource: "cronjobs" });
      await allowed({ verb: "list", group: "argoproj.io", resource: "rollouts" });
      for (const verb of ["get", "patch"]) assert.equal(await may(CONTROLLER, { ...watch, verb }), false);
    } finally {
      await controlPlane().kubectl("delete", `--filename=${file}`);
    }
  });

  it("lets the admin of a namespace have its bindings restart workloads, by the command that its README shows", async () => {
    const namespace = "manifests-rollouts";
    const [account, admin] = [`system:serviceaccount:${namespace}:inlay`, `system:serviceaccount:${namespace}:admin`];
    const deployments = { group: "apps", resource: "deployments", namespace };
    await createNamespace(namespace);
    await controlPlane().kubectl(
      ...["create", "rolebinding", "admin", `--namespace=${namespace}`],
      ...["--clusterrole=admin", `--serviceaccount=${namespace}:admin`],
    );
    await allowed({ verb: "patch", ...deployments }, admin);
    assert.equal(await may(account, { verb: "patch", ...deployments }), false);
    const readme = await readFile(join(manifests, "README.md"), "utf8");
    const command = /^kubectl create rolebinding inlay-rollouts .*$/m.exec(readme)?.[0] ?? assert.fail();
    const words = command.replaceAll("registry", namespace).split(" ").slice(1);
    await controlPlane().kubectl(`--as=${admin}`, ...words);
    for (const verb of ["get", "list", "watch", "patch"]) {
      for (const resource of ["deployments", "statefulsets", "daemonsets"]) {
        await allowed({ verb, ...deployments, resource }, account);
      }
      await allowed({ verb, group: "batch", resource: "cronjobs", namespace }, account);
    }
    await allowed({ verb: "list", group: "policy", resource: "poddisruptionbudgets", namespace }, account);
    for (const verb of ["create", "update", "delete"]) {
      assert.equal(await may(account, { verb, ...deployments }), false);
    }
    assert.equal(await may(account, { verb: "patch", ...deployments, namespace: "default" }), false);
  });

  it("gives users their rights by view, edit and admin, and nobody the status", async () => {
    for (const [role, writesBindings, writesGrants] of [
      ["view", false, false],
      ["edit", true, false],
      ["admin", true, true],
    ] as const) {
      const namespace = `manifests-${role}`;
      const user = `system:serviceaccount:${namespace}:user`;
      await createNamespace(namespace);
      await controlPlane().kubectl(
        ...["create", "rolebinding", "user", `--namespace=${namespace}`],
        ...[`--clusterrole=${role}`, `--serviceaccount=${namespace}:user`],
      );
      await allowed({ verb: "get", ...bindings, namespace }, user);
      assert.equal(await may(user, { verb: "get", ...grants, namespace }), true, `${role} may get grants`);
      for (const verb of ["create", "patch", "delete"]) {
        assert.equal(await may(user, { verb, ...bindings, namespace }), writesBindings, `${role} may ${verb} bindings`);
        assert.equal(await may(user, { verb, ...grants, namespace }), writesGrants, `${role} may ${verb} grants`);
        assert.equal(await may(user, { verb, ...bindings, subresource: "status", namespace }), false);
      }
    }
  });
});

describe("samples/harbor", () => {
  const namespace = "manifests-harbor";
  const account = `system:serviceaccount:${namespace}:inlay`;

  before(async () => {
    await controlPlane().kubectl("apply", `--filename=${join(harbor, "crd")}`);
    const crd = "crd/harborclusters.goharbor.io";
    await controlPlane().kubectl("wait", "--for=condition=established", crd, "--timeout=30s");
  });

  it("is accepted as it stands, by a user who applies the folder", async () => {
    const files = (await readdir(harbor)).filter((file) => file.endsWith(".yaml")).sort();
    const story = await Promise.all(files.map((file) => readFile(join(harbor, file), "utf8")));
    await apply(inNamespace(namespace, story.join("---\n")));
    const { stdout } = await controlPlane().kubectl("get", "sb,harborcluster", "-o=name", `--namespace=${namespace}`);
    assert.deepEqual(stdout.trim().split("\n"), [
      "secretbinding.inlay.dev/harbor-s3",
      "harborcluster.goharbor.io/harbor",
    ]);
  });

  it("asks for no more than the story needs", async () => {
    await createNamespace(namespace);
    await apply(inNamespace(namespace, await readFile(join(harbor, "01-account.yaml"), "utf8")));
    const secret = { resource: "secrets", namespace, name: "bucket" };
    const cluster = { group: "goharbor.io", resource: "harborclusters", namespace, name: "harbor" };
    for (const verb of ["get", "list", "watch"]) {
      await allowed({ verb, ...secret }, account);
      await allowed({ verb, ...cluster }, account);
      assert.equal(await may(account, { verb, ...secret, name: "other" }), false);
      assert.equal(await may(account, { verb, ...cluster, name: "other" }), false);
    }
    await allowed({ verb: "patch", ...cluster }, account);
    assert.equal(await may(account, { verb: "patch", ...secret }), false);
    for (const verb of ["create", "update", "delete"]) {
      assert.equal(await may(account, { verb, ...cluster }), false);
      assert.equal(await may(account, { verb, ...secret }), false);
    }
  });
});

/** Rights arrive at the authorizer a moment after they are written. */
async function allowed(request: Request, user = CONTROLLER): Promise<void> {
  for (const deadline = Date.now() + 10_000; !(await may(user, request)); await sleep(50)) {
    assert.ok(Date.now() < deadline, `${user} still may not ${describeRequest(request)}`);
  }
}

/** The one YAML block of a page in which a text stands. */
async function yamlIn(page: string, saying: string): Promise<string> {
  const text = await readFile(join(root, page), "utf8");
  const blocks = [...text.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = ""]) => block);
  const [found, ...more] = blocks.filter((block) => block.includes(saying));
  assert.ok(found !== undefined && more.length === 0, `${page} shows ${saying} not just once`);
  return found;
}

/** What stands in the namespace registry, moved to one of a test's own. */
const inNamespace = (namespace: string, yaml: string) =>
  yaml.replace(/\b(namespace|name): registry\b/g, `$1: ${namespace}`);

const apply = (yaml: string) => controlPlane().kubectlWith({ stdin: yaml }, "apply", "--filename=-");

const createNamespace = (name: string) =>
  apply(JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
