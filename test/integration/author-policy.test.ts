/** A user may write a binding only if that user may read its sources and impersonate its account. */
import assert from "node:assert/strict";
import { parse } from "yaml";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { namespaceWithoutRights, policyAuthor, RBAC } from "../controller/policy-author.ts";
import { CONTROLLER } from "../controller/requests.ts";
import type { Rule, TestNamespace } from "../controller/test-namespace.ts";

const secret = (name: string) => ({ secret: { name } });
/** A source from the VaultConnection of that name. */
const vault = (name: string, connection: object = {}) => ({
  name,
  vault: { connection: { name, ...connection }, data: { mount: "kv", path: "registry/s3" } },
});
const actAs = (name: string): Rule => ({
  apiGroups: [""],
  resources: ["serviceaccounts"],
  resourceNames: [name],
  verbs: ["impersonate"],
});
const useConnections = (...resourceNames: string[]): Rule => ({
  apiGroups: ["inlay.dev"],
  resources: ["vaultconnections"],
  resourceNames,
  verbs: ["use"],
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

describe("the policy on a binding's author", () => {
  let team: TestNamespace;
  /** A namespace that no test uses as its own. */
  let far = "";

  const {
    author,
    collection: bindings,
    bound,
    bindRole: roleRef,
    give: grant,
    lets: allowed,
    refuses: refused,
  } = policyAuthor("alice", "secretbindings", () => team);
  const clusterPath = (plural: string) => `/apis/${RBAC}/v1/${plural}`;
  const adminCreates = (object: object) => team.api.create(bindings(), object);

  /** Grants the author a ClusterRole in the whole cluster, until the test ends. */
  const grantInCluster = async (...rules: Rule[]) => {
    const name = team.namespace;
    await team.api.create(clusterPath("clusterroles"), { metadata: { name }, rules });
    await team.api.create(clusterPath("clusterrolebindings"), { metadata: { name }, ...bound("ClusterRole", name) });
  };

  before(async () => {
    team = await namespaceWithoutRights();
    far = team.namespace;
    await roleRef("ClusterRole", "inlay-edit");
    await refused(binding([secret("bucket")]), /inlay-binding-authors.* denied request/);
  });

  beforeEach(async () => {
    team = await namespaceWithoutRights();
  });

  afterEach(async () => {
    for (const plural of ["clusterroles", "clusterrolebindings"]) {
      await team.api.remove(`${clusterPath(plural)}/${team.namespace}`);
    }
  });

  for (const role of ["edit", "admin"]) {
    it(`permits a user with the role ${role}, who may read and impersonate any account of the namespace anyway`, async () => {
      await roleRef("ClusterRole", role);
      await allowed(binding([secret("bucket"), { configMap: { name: "ca" } }, vault("vault")]));
      await allowed(binding([secret("bucket")], { serviceAccountName: "rotator" }));
    });
  }

  it("refuses a user with the role view, who may impersonate no account and read no Secret", async () => {
    await roleRef("ClusterRole", "view");
    await roleRef("ClusterRole", "inlay-edit");
    await refused(binding([secret("bucket")]), /alice may not impersonate serviceaccounts "inlay"/);
    await grant(actAs("inlay"));
    await refused(binding([secret("bucket")]), /alice may not get secrets "bucket" in namespace team-/);
    await allowed(binding([{ configMap: { name: "ca" } }]));
    await refused(binding([vault("vault")]), /alice may not use vaultconnections.inlay.dev "vault" in namespace team-/);
  });

  it("refuses a user who may only write bindings", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await refused(binding([secret("bucket")]), /alice may not impersonate serviceaccounts "inlay"/);
  });

  it("does not refuse a user who may not write bindings, because RBAC does", () =>
    refused(binding([secret("bucket")]), /cannot create resource "secretbindings"/));

  it("refuses an account that the author may not impersonate, even if another account is permitted", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await grant(actAs("inlay"), readSecrets("bucket"));
    await allowed(binding([secret("bucket")]));
    const denial = /alice may not impersonate serviceaccounts "rotator"/;
    await refused(binding([secret("bucket")], { serviceAccountName: "rotator" }), denial);
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
    "the data of a VaultConnection": vault("vault"),
    "the metadata of a VaultConnection": {
      name: "s3",
      vault: { connection: { name: "vault" }, metadata: { mount: "kv", path: "registry/s3" } },
    },
    "the versions of a SecretProviderClass": { providerClass: { name: "database" } },
    "the health of a VaultConnection": { name: "s3", vault: { connection: { name: "vault" }, health: {} } },
  };
  for (const [what, source] of Object.entries(unread)) {
    it(`refuses ${what} that the author may not get, and permits it after a grant of the rule in the message`, async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
      const denial = /alice may not (get|use|list) .* with \{.*\} bound to the author/;
      const refusal = await refused(binding([source]), denial);
      const verb = "vault" in source ? "use" : "providerClass" in source ? "list" : "get";
      assert.ok(refusal.includes(` may not ${verb} `), refusal);
      const [, kind, rule] = refusal.match(/a (Role|ClusterRole) .*?with (\{.*\})/) ?? [];
      const named = parse(rule ?? "") as Rule;
      await (kind === "ClusterRole" ? grantInCluster(named) : grant(named));
      await allowed(binding([source]));
    });
  }

  it("names the rule that permits the account", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    const refusal = await refused(binding([{ configMap: { name: "ca" } }]), /impersonate/);
    await roleRef("ClusterRole", "view");
    await grant(parse(refusal.match(/\{.*\}/)?.[0] ?? "") as Rule);
    await allowed(binding([{ configMap: { name: "ca" } }]));
  });

  it("does not accept a permission in the namespace as one in the cluster", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    await grant(actAs("inlay"), { apiGroups: ["*"], resources: ["*"], verbs: ["get"] });
    await allowed(binding([secret("bucket")]));
    const node = { object: { apiVersion: "v1", resource: "nodes", name: "n1", scope: "Cluster" } };
    await refused(binding([node]), /alice may not get nodes "n1" in the cluster/);
  });

  it("does not accept a permission for one API group or subresource as one for another", async () => {
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

  it("does not accept get or write of a VaultConnection, or use of another one, as permission to use it", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    const resources = ["vaultconnections"];
    await grant(
      actAs("inlay"),
      { apiGroups: ["inlay.dev"], resources, verbs: ["get", "list", "watch", "create", "update", "patch", "delete"] },
      { apiGroups: [""], resources, verbs: ["use"] },
      useConnections("other"),
    );
    await allowed(binding([vault("other")]));
    const denial = /alice may not use vaultconnections.inlay.dev "vault" in namespace team-\d+/;
    await refused(binding([vault("vault")]), denial);
    await refused(binding([vault("vault", { namespace: team.namespace })]), denial);
    await grant(useConnections("vault"));
    await allowed(binding([vault("vault"), vault("other")]));
  });

  it("checks each of sixteen VaultConnections", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    const names = Array.from({ length: 16 }, (_, i) => `vault-${i}`);
    await grant(actAs("inlay"), useConnections(...names));
    const sources = names.map((name) => vault(name));
    await allowed(binding(sources));
    for (const index of names.keys()) {
      const changed = sources.with(index, vault("foreign"));
      await refused(binding(changed), /alice may not use vaultconnections.inlay.dev "foreign"/);
    }
  });

  it("checks each of sixteen sources", async () => {
    await roleRef("ClusterRole", "inlay-edit");
    const names = Array.from({ length: 16 }, (_, i) => `bucket-${i}`);
    await grant(actAs("inlay"), readSecrets(...names));
    await allowed(binding(names.map(secret)));
    for (const index of names.keys()) {
      const sources = names.map(secret).with(index, secret("foreign"));
      await refused(binding(sources), /alice may not get secrets "foreign"/);
    }
  });

  describe("for a source in another namespace", () => {
    const elsewhere = (name: string) => ({ name, secret: { name, namespace: far } });
    beforeEach(async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
    });

    it("checks nothing, because a SecretGrant there decides", async () => {
      await allowed(binding([elsewhere("bucket"), { configMap: { name: "ca", namespace: far } }]));
      await allowed(binding(Array.from({ length: 16 }, (_, i) => elsewhere(`bucket-${i}`))));
      await allowed(binding([vault("vault", { namespace: far })]));
    });

    it("checks the source if that namespace is the binding's own", async () => {
      await refused(
        binding([{ secret: { name: "bucket", namespace: team.namespace } }]),
        /alice may not get secrets "bucket"/,
      );
      await refused(
        binding([{ configMap: { name: "ca", namespace: team.namespace } }]),
        /alice may not get configmaps "ca"/,
      );
    });

    it("checks each of the other sources among sixteen", async () => {
      const names = Array.from({ length: 16 }, (_, i) => `bucket-${i}`);
      await grant(readSecrets(...names));
      const mixed = names.map((name, i) => (i % 2 === 0 ? secret(name) : elsewhere(name)));
      await allowed(binding(mixed));
      for (const index of names.keys()) {
        await refused(binding(mixed.with(index, secret("foreign"))), /alice may not get secrets "foreign"/);
      }
    });

    it("checks again when the source is moved into the binding's own namespace", async () => {
      await adminCreates(binding([elsewhere("bucket")]));
      const moved = { spec: { sources: [{ secret: { name: "bucket", namespace: team.namespace } }] } };
      const move = () => author().merge(team.bindingPath("harbor-s3"), moved);
      await eventually(() => assert.rejects(move, /alice may not get secrets "bucket"/));
      const sources = [vault("bucket", { namespace: team.namespace })];
      const toConnection = author().merge(team.bindingPath("harbor-s3"), { spec: { sources } });
      await assert.rejects(toConnection, /alice may not use vaultconnections.inlay.dev "bucket"/);
    });
  });

  describe("for a source with granted", () => {
    const granted = (name: string, is = true) => ({ secret: { name, granted: is } });
    beforeEach(async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
    });

    it("checks nothing, because a SecretGrant of the namespace decides instead of the author", async () => {
      await allowed(binding([granted("bucket"), { configMap: { name: "ca", granted: true } }]));
      await allowed(binding(Array.from({ length: 16 }, (_, i) => granted(`bucket-${i}`))));
      await allowed(binding([{ secret: { name: "bucket", namespace: team.namespace, granted: true } }]));
      await refused(binding([granted("bucket", false)]), /alice may not get secrets "bucket"/);
      await refused(binding([{ configMap: { name: "ca", granted: false } }]), /alice may not get configmaps "ca"/);
      await allowed(binding([vault("vault", { granted: true })]));
      await refused(
        binding([vault("vault", { granted: false })]),
        /alice may not use vaultconnections.inlay.dev "vault"/,
      );
    });

    it("checks each of the other sources among sixteen", async () => {
      const names = Array.from({ length: 16 }, (_, i) => `bucket-${i}`);
      await grant(readSecrets(...names));
      const mixed = names.map((name, i) => (i % 2 === 0 ? secret(name) : granted(name)));
      await allowed(binding(mixed));
      for (const index of names.keys()) {
        await refused(binding(mixed.with(index, secret("foreign"))), /alice may not get secrets "foreign"/);
      }
    });

    it("checks the account as usual", async () => {
      const denial = /alice may not impersonate serviceaccounts "rotator"/;
      await refused(binding([granted("bucket")], { serviceAccountName: "rotator" }), denial);
    });

    it("checks again when granted is removed, or the same Secret is listed without it", async () => {
      await adminCreates(binding([granted("bucket")]));
      const patch = (...sources: object[]) => author().merge(team.bindingPath("harbor-s3"), { spec: { sources } });
      const denial = /alice may not get secrets "bucket"/;
      await eventually(() => assert.rejects(patch(secret("bucket")), denial));
      await assert.rejects(patch(granted("bucket", false)), denial);
      await assert.rejects(patch(granted("bucket"), { name: "again", ...secret("bucket") }), denial);
      await patch(granted("other"));
      await grant(readSecrets("other"));
      await eventually(() => patch(secret("other")));
    });
  });

  describe("for sixteen sources of every kind", () => {
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
      it(`permits a user with the role ${role}, for the objects of the namespace`, async () => {
        await roleRef("ClusterRole", role);
        await allowed(binding(sixteen));
        const withNode = binding(sixteen.with(15, ofCluster));
        await refused(withNode, /alice may not get nodes "n1" in the cluster/);
      });
    }

    it("refuses each Secret to a user with the role view, who may write bindings and impersonate the account", async () => {
      await roleRef("ClusterRole", "view");
      await refused(binding(sixteen), /cannot create resource "secretbindings"/);
      await roleRef("ClusterRole", "inlay-edit");
      await refused(binding(sixteen), /alice may not impersonate serviceaccounts "inlay"/);
      await grant(actAs("inlay"));
      await allowed(binding([...ofNamespace, ...more]));
      for (const [index, one] of secrets.entries()) {
        const denial = new RegExp(`alice may not get secrets "bucket-${index}"`);
        await refused(binding([...ofNamespace, ...more.with(index, one)]), denial);
      }
    });

    it("refuses each kind to a user who may only write bindings, and permits a cluster admin", async () => {
      await roleRef("ClusterRole", "inlay-edit");
      await grant(actAs("inlay"));
      const own = { object: { apiVersion: "inlay.dev/v1alpha1", resource: "secretbindings", name: "other" } };
      await allowed(binding([own]));
      for (const source of [...sixteen, ofCluster]) await refused(binding([source]), /alice may not get /);
      await adminCreates({ ...binding([...sixteen.slice(1), ofCluster]), metadata: { name: "of-the-admin" } });
    });
  });

  describe("for a binding that exists", () => {
    const patch = (body: object) => author().merge(team.bindingPath("harbor-s3"), body);
    const refuses = (spec: object, denial: RegExp) => eventually(() => assert.rejects(patch({ spec }), denial));

    beforeEach(async () => {
      await adminCreates(binding([secret("bucket")]));
      await roleRef("ClusterRole", "inlay-edit");
    });

    it("permits any user who may write bindings to change its labels and to delete it", async () => {
      await eventually(() => patch({ metadata: { labels: { team: "storage" } } }));
      await author().delete(team.bindingPath("harbor-s3"));
      assert.equal(await team.api.find(team.bindingPath("harbor-s3")), undefined);
    });

    it("checks a user who changes only the name of one source, the account or a target", async () => {
      await refuses({ serviceAccountName: "rotator" }, /may not impersonate serviceaccounts "rotator"/);
      await grant(actAs("inlay"), readSecrets("bucket"));
      await eventually(() => patch({ spec: { defaults: { onConflict: "Force" } } }));
      await refuses({ sources: [secret("other")] }, /may not get secrets "other"/);
      await refuses({ serviceAccountName: "rotator" }, /may not impersonate serviceaccounts "rotator"/);
    });

    it("checks the unchanged sources when only a target changes", async () => {
      await grant(actAs("inlay"));
      const { targets } = binding([], {}).spec;
      const elsewhere = targets.map((target) => ({ ...target, name: "elsewhere" }));
      await refuses({ targets: elsewhere }, /may not get secrets "bucket"/);
    });

    it("checks a user who writes it by server-side apply, or replaces it", async () => {
      const path = team.bindingPath("harbor-s3");
      const other = binding([secret("other")]);
      const denial = /alice may not impersonate/;
      await eventually(() => assert.rejects(author().apply(path, other, "author", true), denial));
      await assert.rejects(author().merge(path, other), denial);
      // A running controller writes it too. So the request names the version that was read, and is repeated if that was
      // outdated.
      await eventually(async () => {
        const { metadata } = await team.api.get(path);
        await assert.rejects(author().replace(path, { ...other, metadata }), denial);
      });
    });

    it("permits the controller to set its finalizer and the status, but no spec", async () => {
      const controller = team.api.as(CONTROLLER);
      const path = team.bindingPath("harbor-s3");
      await controller.merge(path, { metadata: { finalizers: ["inlay.dev/release"] } });
      // A running controller writes it too. So the request names the version that was read, and is repeated if that was
      // outdated.
      await eventually(async () => {
        const found: AnyObject = await team.api.get(path);
        await controller.replace(`${path}/status`, { ...found, status: { synced: "1/1" } });
      });
      const other = { spec: { sources: [secret("other")] } };
      await assert.rejects(controller.merge(path, other), /may not get secrets "other"/);
      await controller.merge(path, { metadata: { finalizers: null } });
    });
  });
});
