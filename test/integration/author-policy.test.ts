/** That only he may write a binding who may himself read its sources and act as its account. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { controlPlane } from "../control-plane/shared.ts";
import { Api } from "../controller/api.ts";

const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";
const AUTHOR = "alice";
const RIGHTS_ARRIVE_WITHIN = 10_000;

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

const secret = (name: string) => ({ secret: { name } });
const actAs = (name: string): Rule => ({
  apiGroups: [""],
  resources: ["serviceaccounts"],
  resourceNames: [name],
  verbs: ["impersonate"],
});
const readSecrets = (...resourceNames: string[]): Rule => ({
  apiGroups: [""],
  resources: ["secrets"],
  resourceNames,
  verbs: ["get"],
});

const binding = (sources: object[], changes: object = {}) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name: "harbor-s3" },
  spec: {
    sources,
    targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "target", fields: [{ path: "data.a", template: "a" }] }],
    ...changes,
  },
});

/** Rights arrive at the authorizer, and policies at admission, a moment after they are written. */
async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + RIGHTS_ARRIVE_WITHIN; ; await sleep(50)) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

describe("the policy on a binding's author", () => {
  let namespace = "";
  let count = 0;

  const kubectlAs = (user: string, ...args: string[]) =>
    controlPlane().kubectl(`--as=${user}`, `--namespace=${namespace}`, ...args);
  const adminApplies = (object: object) =>
    controlPlane().kubectlWith({ stdin: JSON.stringify(object) }, "create", "-f", "-", `--namespace=${namespace}`);

  const roleRef = (kind: "Role" | "ClusterRole", name: string) =>
    adminApplies({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { generateName: "author-" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
      subjects: [{ kind: "User", name: AUTHOR, apiGroup: "rbac.authorization.k8s.io" }],
    });
  /** Gives the author a Role of this namespace. */
  const grant = async (...rules: Rule[]) => {
    const name = `author-${++count}`;
    await adminApplies({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata: { name }, rules });
    await roleRef("Role", name);
  };
  /** Gives the author a ClusterRole in the whole cluster, until the test ends. */
  const grantInCluster = async (...rules: Rule[]) => {
    const metadata = { name: namespace };
    const apiVersion = "rbac.authorization.k8s.io/v1";
    await adminApplies({ apiVersion, kind: "ClusterRole", metadata, rules });
    await adminApplies({
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: namespace },
      subjects: [{ kind: "User", name: AUTHOR, apiGroup: "rbac.authorization.k8s.io" }],
    });
  };

  const authorCreates = (object: object, ...flags: string[]) =>
    controlPlane().kubectlWith(
      { stdin: JSON.stringify(object), user: AUTHOR },
      ...["create", "--filename=-", `--namespace=${namespace}`, ...flags],
    );
  const allowed = (object: object) => eventually(() => authorCreates(object, "--dry-run=server"));
  /** The refusal's text; once more while the author lacks even the right to write bindings. */
  const refused = (object: object, saying: RegExp) =>
    eventually(async () => {
      const refusal = await authorCreates(object, "--dry-run=server").catch((error: Error) => error.message);
      assert.equal(typeof refusal, "string", "it was let through");
      assert.match(refusal as string, saying);
      return refusal as string;
    });

  before(async function () {
    this.timeout(30_000);
    namespace = "author-policy";
    await controlPlane().kubectl("create", "namespace", namespace);
    await roleRef("ClusterRole", "inlay-edit");
    await refused(binding([secret("bucket")]), /inlay-binding-authors.* denied request/);
  });

  beforeEach(async () => {
    namespace = `author-policy-${++count}`;
    await controlPlane().kubectl("create", "namespace", namespace);
  });

  afterEach(async () => {
    const mine = ["clusterrole", "clusterrolebinding"].map((kind) => `${kind}/${namespace}`);
    await controlPlane().kubectl("delete", "--ignore-not-found", ...mine);
  });

  for (const role of ["edit", "admin"]) {
    it(`lets in whoever has the role ${role}, who may read and act as any account of the namespace anyway`, async () => {
      await roleRef("ClusterRole", role);
      await allowed(binding([secret("bucket"), { configMap: { name: "ca" } }]));
      await allowed(binding([secret("bucket")], { serviceAccountName: "rotator" }));
    });
  }

  it("refuses whoever has the role view, who may act as no account and read no Secret", async () => {
    await roleRef("ClusterRole", "view");
    await roleRef("ClusterRole", "inlay-edit");
    await refused(binding([secret("bucket")]), /alice may not impersonate serviceaccounts "inlay"/);
    await grant(actAs("inlay"));
    await refused(binding([secret("bucket")]), /alice may not get secrets "bucket" in namespace author-policy-/);
    await allowed(binding([{ configMap: { name: "ca" } }]));
  });

  it("refuses whoever may write bindings and nothing else", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await refused(binding([secret("bucket")]), /alice may not impersonate serviceaccounts "inlay"/);
  });

  it("leaves the refusal to RBAC where somebody may not even write bindings", () =>
    refused(binding([secret("bucket")]), /cannot create resource "secretbindings"/));

  it("refuses an account that the author may not act as, though he may act as another", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await grant(actAs("inlay"), readSecrets("bucket"));
    await allowed(binding([secret("bucket")]));
    const said = /alice may not impersonate serviceaccounts "rotator"/;
    await refused(binding([secret("bucket")], { serviceAccountName: "rotator" }), said);
  });

  const unread: Record<string, object> = {
    "a Secret": secret("bucket"),
    "a ConfigMap": { configMap: { name: "ca" } },
    "a core object": { object: { apiVersion: "v1", resource: "services", name: "minio" } },
    "an object of a group": { object: { apiVersion: "apps/v1", resource: "deployments", name: "minio" } },
    "an object of the cluster": { object: { apiVersion: "v1", resource: "nodes", name: "n1", scope: "Cluster" } },
    "an object of the cluster and of a group": {
      object: { apiVersion: "storage.k8s.io/v1", resource: "storageclasses", name: "fast", scope: "Cluster" },
    },
  };
  for (const [what, source] of Object.entries(unread)) {
    it(`refuses ${what} that the author may not get, and is content with the rule that it names`, async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
      const refusal = await refused(binding([source]), /alice may not get .* with \{.*\} bound to the author/);
      const [, kind, rule] = refusal.match(/a (Role|ClusterRole) .*?with (\{.*\})/) ?? [];
      const named = parse(rule ?? "") as Rule;
      await (kind === "ClusterRole" ? grantInCluster(named) : grant(named));
      await allowed(binding([source]));
    });
  }

  it("names the rule that allows an account, too", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    const refusal = await refused(binding([{ configMap: { name: "ca" } }]), /impersonate/);
    await roleRef("ClusterRole", "view");
    await grant(parse(refusal.match(/\{.*\}/)?.[0] ?? "") as Rule);
    await allowed(binding([{ configMap: { name: "ca" } }]));
  });

  it("does not take a right in the namespace for one in the cluster", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await grant(actAs("inlay"), { apiGroups: ["*"], resources: ["*"], verbs: ["get"] });
    await allowed(binding([secret("bucket")]));
    const node = { object: { apiVersion: "v1", resource: "nodes", name: "n1", scope: "Cluster" } };
    await refused(binding([node]), /alice may not get nodes "n1" in the cluster/);
  });

  it("does not take a right in one group, or to one subresource, for one in another", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await grant(
      actAs("inlay"),
      { apiGroups: [""], resources: ["services", "pods/log"], verbs: ["get"] },
      { apiGroups: ["example.com"], resources: ["pods"], verbs: ["get", "list", "watch"] },
    );
    await allowed(binding([{ object: { apiVersion: "v1", resource: "services", name: "a" } }]));
    const foreign = { object: { apiVersion: "example.com/v1", resource: "services", name: "a" } };
    await refused(binding([foreign]), /alice may not get services.example.com "a"/);
    const pod = { object: { apiVersion: "v1", resource: "pods", name: "a" } };
    await refused(binding([pod]), /alice may not get pods "a"/);
  });

  it("asks about each of sixteen sources", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    const names = Array.from({ length: 16 }, (_, i) => `bucket-${i}`);
    await grant(actAs("inlay"), readSecrets(...names));
    await allowed(binding(names.map(secret)));
    for (const index of names.keys()) {
      const sources = names.map(secret).with(index, secret("foreign"));
      await refused(binding(sources), /alice may not get secrets "foreign"/);
    }
  });

  describe("about a source in another namespace", () => {
    const elsewhere = (name: string) => ({ name, secret: { name, namespace: "author-policy" } });
    beforeEach(async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
    });

    it("asks nothing, since a SecretGrant there speaks for it", async () => {
      await allowed(binding([elsewhere("bucket"), { configMap: { name: "ca", namespace: "author-policy" } }]));
      await allowed(binding(Array.from({ length: 16 }, (_, i) => elsewhere(`bucket-${i}`))));
    });

    it("is not taken in by the binding's own, spelled out", async () => {
      await refused(binding([{ secret: { name: "bucket", namespace } }]), /alice may not get secrets "bucket"/);
      await refused(binding([{ configMap: { name: "ca", namespace } }]), /alice may not get configmaps "ca"/);
    });

    it("asks about each of the others among sixteen", async () => {
      const names = Array.from({ length: 16 }, (_, i) => `bucket-${i}`);
      await grant(readSecrets(...names));
      const mixed = names.map((name, i) => (i % 2 === 0 ? secret(name) : elsewhere(name)));
      await allowed(binding(mixed));
      for (const index of names.keys()) {
        await refused(binding(mixed.with(index, secret("foreign"))), /alice may not get secrets "foreign"/);
      }
    });

    it("asks again when it is moved into the binding's own namespace after it was let in", async () => {
      await adminApplies(binding([elsewhere("bucket")]));
      const moved = JSON.stringify({ spec: { sources: [{ secret: { name: "bucket", namespace } }] } });
      const patchAs = () =>
        kubectlAs(AUTHOR, "patch", "secretbinding", "harbor-s3", "--type=merge", `--patch=${moved}`);
      await eventually(() => assert.rejects(patchAs, /alice may not get secrets "bucket"/));
    });
  });

  describe("with sixteen sources of every kind", () => {
    const ofNamespace: object[] = [
      ...Array.from({ length: 6 }, (_, i) => ({ configMap: { name: `settings-${i}` } })),
      ...Array.from({ length: 4 }, (_, i) => ({ object: { apiVersion: "v1", resource: "services", name: `s-${i}` } })),
      { object: { apiVersion: "apps/v1", resource: "deployments", name: "minio" } },
      { object: { apiVersion: "batch/v1", resource: "jobs", name: "backup" } },
    ];
    const secrets = Array.from({ length: 4 }, (_, i) => secret(`bucket-${i}`));
    const more: object[] = secrets.map((_, i) => ({ configMap: { name: `more-${i}` } }));
    const ofCluster = { object: { apiVersion: "v1", resource: "nodes", name: "n1", scope: "Cluster" } };
    const sixteen = [...ofNamespace, ...secrets];

    for (const role of ["edit", "admin"]) {
      it(`lets in whoever has the role ${role}, for what is of the namespace`, async () => {
        await roleRef("ClusterRole", role);
        await allowed(binding(sixteen));
        const withNode = binding(sixteen.with(15, ofCluster));
        await refused(withNode, /alice may not get nodes "n1" in the cluster/);
      });
    }

    it("refuses whoever has the role view each of the Secrets, though he may write bindings and act as the account", async () => {
      await roleRef("ClusterRole", "view");
      await refused(binding(sixteen), /cannot create resource "secretbindings"/);
      await roleRef("ClusterRole", "inlay-edit");
      await refused(binding(sixteen), /alice may not impersonate serviceaccounts "inlay"/);
      await grant(actAs("inlay"));
      await allowed(binding([...ofNamespace, ...more]));
      for (const [index, one] of secrets.entries()) {
        const said = new RegExp(`alice may not get secrets "bucket-${index}"`);
        await refused(binding([...ofNamespace, ...more.with(index, one)]), said);
      }
    });

    it("refuses whoever has nothing but the right to write bindings each kind, and lets in a cluster admin", async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
      const own = { object: { apiVersion: "inlay.dev/v1alpha1", resource: "secretbindings", name: "other" } };
      await allowed(binding([own]));
      for (const source of [...sixteen, ofCluster]) await refused(binding([source]), /alice may not get /);
      await adminApplies({ ...binding([...sixteen.slice(1), ofCluster]), metadata: { name: "of-the-admin" } });
    });
  });

  describe("on a binding that is there", () => {
    const patch = (spec: object) => JSON.stringify({ spec });
    const patchAs = (user: string, body: string) =>
      kubectlAs(user, "patch", "secretbinding", "harbor-s3", "--type=merge", `--patch=${body}`);
    const refuses = (user: string, body: string, saying: RegExp) =>
      eventually(() => assert.rejects(patchAs(user, body), saying));

    beforeEach(async () => {
      await adminApplies(binding([secret("bucket")]));
      await roleRef("ClusterRole", "inlay-edit");
    });

    it("lets anyone who may write bindings change its labels, and delete it", async () => {
      await eventually(() => patchAs(AUTHOR, '{"metadata": {"labels": {"team": "storage"}}}'));
      await kubectlAs(AUTHOR, "delete", "secretbinding", "harbor-s3");
    });

    it("asks whoever changes but the name of one source, the account or a target", async () => {
      await refuses(AUTHOR, patch({ serviceAccountName: "rotator" }), /may not impersonate serviceaccounts "rotator"/);
      await grant(actAs("inlay"), readSecrets("bucket"));
      await eventually(() => patchAs(AUTHOR, patch({ defaults: { onConflict: "Force" } })));
      await refuses(AUTHOR, patch({ sources: [secret("other")] }), /may not get secrets "other"/);
      await refuses(AUTHOR, patch({ serviceAccountName: "rotator" }), /may not impersonate serviceaccounts "rotator"/);
    });

    it("asks about the sources that stay, when only a target changes", async () => {
      await grant(actAs("inlay"));
      const { targets } = binding([], {}).spec;
      const elsewhere = targets.map((target) => ({ ...target, name: "elsewhere" }));
      await refuses(AUTHOR, patch({ targets: elsewhere }), /may not get secrets "bucket"/);
    });

    it("asks whoever puts it there by server-side apply, or replaces it", async () => {
      const applyAs = (...flags: string[]) =>
        controlPlane().kubectlWith(
          { stdin: JSON.stringify(binding([secret("other")])), user: AUTHOR },
          ...["apply", "--filename=-", `--namespace=${namespace}`, ...flags],
        );
      await eventually(() => assert.rejects(applyAs("--server-side", "--force-conflicts"), /may not impersonate/));
      await eventually(() => assert.rejects(applyAs(), /may not impersonate/));
    });

    it("lets the controller set its finalizer and the status, but no spec", async () => {
      // It has no right to get a binding, which kubectl patch begins with.
      const controller = new Api(controlPlane()).as(CONTROLLER);
      const path = `/apis/inlay.dev/v1alpha1/namespaces/${namespace}/secretbindings/harbor-s3`;
      await controller.merge(path, { metadata: { finalizers: ["inlay.dev/release"] } });
      // A controller that runs writes to it too, so this is for the version that was read, and for the next if it was late.
      await eventually(async () => {
        const found = await new Api(controlPlane()).get(path);
        await controlPlane().kubectlWith(
          { stdin: JSON.stringify({ ...found, status: { synced: "1/1" } }) },
          ...["replace", `--as=${CONTROLLER}`, "--subresource=status", "--filename=-"],
        );
      });
      const other = { spec: { sources: [secret("other")] } };
      await assert.rejects(controller.merge(path, other), /may not get secrets "other"/);
      await controller.merge(path, { metadata: { finalizers: null } });
    });
  });
});
