/**
 * Shows that only permitted users change and delete a protected Secret or ConfigMap, and that the cluster's controllers still
 * can.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import {
  type Act,
  bucket,
  edit,
  Guarded,
  guard,
  label,
  newGuarded,
  remove,
  removeAtOnce,
  removeCollection,
  removeEach,
  type Subject,
  untilProtectionWorks,
  type Who,
} from "../controller/guarded.ts";
import { secretText } from "../controller/leak-detector.ts";
import { type Rule, TestNamespace } from "../controller/test-namespace.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";
const writeBucket: Rule = {
  apiGroups: [""],
  resources: ["secrets"],
  resourceNames: ["bucket"],
  verbs: ["get", "list", "watch", "update", "patch", "delete"],
};

/** Every way to change or delete the Secret `bucket`. */
const ways: Record<string, Act> = {
  "edit it": edit({ data: { a: "Yg==" } }),
  "label it": label,
  "give it an owner": edit({
    metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "victim", uid: "a-uid" }] },
  }),
  "delete it": remove,
  "delete it at once": removeAtOnce,
  "delete all": removeEach,
  "delete all by one request": removeCollection,
};

/** Makes `user` a cluster admin. Call the returned function to revert that. */
async function makeClusterAdmin({ team }: Guarded, user: string): Promise<() => Promise<unknown>> {
  const metadata = { name: `${team.namespace}-${user}` };
  const subjects = [{ kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" };
  await team.api.create(`${RBAC}/clusterrolebindings`, { metadata, roleRef, subjects });
  return () => team.api.delete(`${RBAC}/clusterrolebindings/${metadata.name}`);
}

describe("a protected Secret", function () {
  this.timeout("2m");
  let shared: Guarded;
  let deleted: Guarded;

  before(async () => {
    await untilProtectionWorks();
    [shared, deleted] = await Promise.all([newGuarded(), newGuarded()]);
    await deleted.protect(guard([bucket()]));
    // Kubernetes waits five seconds before it empties a namespace. The other tests run in that time.
    await deleted.team.api.delete(`/api/v1/namespaces/${deleted.team.namespace}`);
    const writers: Subject[] = [
      { kind: "User", name: "will" },
      { kind: "Group", name: "storage" },
      { kind: "ServiceAccount", name: "rotator" },
      { kind: "ServiceAccount", name: "rotator", namespace: "vault" },
    ];
    await shared.protect(guard([bucket(...writers)]));
  });

  for (const who of ["edith", "adam"]) {
    for (const [way, act] of Object.entries(ways)) {
      it(`does not allow ${who === "edith" ? "edit" : "admin"} to ${way}`, async () => {
        const said = await shared.refuses(who, /protects it/, act);
        assert.match(said, /(update|delete) secrets "bucket" in namespace team-\d+, .*SecretBinding "guard"/);
      });
    }
  }

  it("names in its refusal all who may write it", async () => {
    const { namespace } = shared.team;
    const said = await shared.refuses("edith", /protects it/, remove);
    const who = "only these may: cluster admins, User will, Group storage, ";
    assert.ok(said.includes(`${who}ServiceAccount ${namespace}/rotator, ServiceAccount vault/rotator`), said);
  });

  it("allows its writers to change it", async () => {
    const { namespace } = shared.team;
    const accounts = [`system:serviceaccount:${namespace}:rotator`, "system:serviceaccount:vault:rotator"];
    const writers: Who[] = ["will", ["dora", "storage"], ...accounts];
    await Promise.all(["will", "dora", ...accounts].map((user) => shared.may(user, writeBucket)));
    await Promise.all(writers.map((who) => shared.changes(who)));
    await shared.refuses("dora", /User dora|protects it/, label);
  });

  it("refuses a user whose name equals the name of a writer of another kind", async () => {
    const users = ["rotator", "storage", "system:serviceaccount:default:rotator"];
    const others: Who[] = [...users, ["dora", "will"], ["dora", "rotator"]];
    await Promise.all([...users, "dora"].map((user) => shared.may(user, writeBucket)));
    await Promise.all(others.map((who) => shared.refuses(who, /protects it/, label)));
  });

  it("refuses a user with many groups also where a binding has many writers", async () => {
    const guarded = await newGuarded();
    const writers = Array.from({ length: 16 }, (_, i): Subject => ({ kind: "Group", name: `${"w".repeat(240)}-${i}` }));
    const eight = Array.from({ length: 8 }, (_, i) => ({ name: `s${i}`, ...bucket(...writers) }));
    await guarded.protect(guard(eight));
    const groups = Array.from({ length: 300 }, (_, i) => `${"w".repeat(200)}-${i}`);
    await guarded.refuses(["edith", ...groups], /protects it/, label);
    // More than 2,000 groups do not count, so the expressions stay below the cost at which the API server would admit the request.
    const more = Array.from({ length: 10_000 }, (_, i) => `team-${i}`);
    await guarded.refuses(["edith", ...more], /protects it/, label);
    await guarded.may("dora", writeBucket);
    await guarded.changes(["dora", ...groups, writers[15]?.name as string]);
  });

  it("allows cluster admins, but not a user with all permissions in the namespace only", async () => {
    const drop = await makeClusterAdmin(shared, "clara");
    await shared.changes("clara");
    await drop();
    await shared.team.api.merge(shared.secretPath, { metadata: { labels: { by: "masters" } } });
    await shared.mayBy("norman", "cluster-admin");
    await shared.refuses("norman", /protects it/, label);
  });

  it("survives a deletion of all other Secrets together", async () => {
    const guarded = await newGuarded();
    const { team } = guarded;
    await guarded.protect(guard([bucket()]));
    await team.secret("a-other", { a: secretText("other") });
    await team.secret("z-other", { a: secretText("other") });
    const left = async () =>
      (await team.api.get(team.path("v1", "secrets"))).items.map((each: never) => each["metadata"]["name"]);
    await assert.rejects(removeEach(guarded.as("edith"), guarded.secretPath), /protects it/);
    assert.deepEqual(await left(), ["bucket"]);
    await team.secret("a-other", { a: secretText("other") });
    await assert.rejects(removeCollection(guarded.as("edith"), guarded.secretPath), /protects it/);
    assert.ok((await left()).includes("bucket"));
  });

  it("does not protect its neighbours, a ConfigMap of its name, or a Secret of its name elsewhere", async () => {
    const { team } = shared;
    await team.secret("neighbour", { a: secretText("neighbour") });
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "bucket" } });
    await shared.changes("edith", `${team.path("v1", "secrets")}/neighbour`);
    await shared.changes("edith", `${team.path("v1", "configmaps")}/bucket`);
    const elsewhere = await newGuarded();
    await elsewhere.changes("edith");
  });

  it("has the same protection if it is a ConfigMap", async () => {
    const guarded = await newGuarded();
    const { team } = guarded;
    const settings = `${team.path("v1", "configmaps")}/settings`;
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "settings" }, data: { a: "b" } });
    await guarded.protect(guard([{ configMap: { name: "settings" }, protect: { writers: [] } }]));
    await guarded.refuses("adam", /delete configmaps "settings"/, remove, settings);
    await guarded.changes("adam");
  });

  it("needs the writer in each of two bindings that protect it", async () => {
    const guarded = await newGuarded();
    const [will, dora] = ["will", "dora"].map((name): Subject => ({ kind: "User", name }));
    await guarded.may("will", writeBucket);
    await guarded.may("dora", writeBucket);
    await guarded.protect(guard([bucket(will as Subject)]));
    await guarded.protect(guard([bucket(will as Subject, dora as Subject)], {}, "second"));
    await guarded.changes("will");
    await guarded.refuses("dora", /SecretBinding "guard" protects it/, label);
  });

  it("loses its protection when its binding is deleted", async () => {
    const guarded = await newGuarded();
    await guarded.protect(guard([bucket()]));
    await guarded.team.unbind("guard");
    await guarded.changes("edith");
  });

  it("is deleted with its namespace", async () => {
    await deleted.team.untilGone(`/api/v1/namespaces/${deleted.team.namespace}`, 60_000);
  });
});

describe("the policies", () => {
  it("have no type error that the API server can find", async () => {
    const api = new Api(controlPlane());
    await eventually(async () => {
      const { items } = await api.get("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies");
      const ours = items.filter(({ metadata }: AnyObject) => metadata.name.startsWith("inlay-"));
      assert.ok(ours.length >= 4);
      for (const { metadata, status } of ours) assert.deepEqual(status?.typeChecking, {}, metadata.name);
    });
  });
});

describe("a protected Secret that controllers of the cluster handle", function () {
  this.timeout("2m");
  before(untilProtectionWorks);

  it("is deleted with its owner by the garbage collector", async () => {
    const guarded = await newGuarded();
    const { team } = guarded;
    const owner = await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "owner" } });
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata.uid };
    await team.api.merge(guarded.secretPath, { metadata: { ownerReferences: [reference] } });
    await guarded.protect(guard([bucket()]));
    await team.api.delete(`${team.path("v1", "configmaps")}/owner`);
    await team.untilGone(guarded.secretPath, 60_000);
  });

  it("can lose its finalizers once it is deleted, but accepts no other change then", async () => {
    const guarded = await newGuarded();
    const { team } = guarded;
    await team.api.merge(guarded.secretPath, { metadata: { finalizers: ["example.com/held"] } });
    await guarded.protect(guard([bucket()]));
    const removeFinalizers = edit({ metadata: { finalizers: null } });
    await guarded.refuses("edith", /protects it/, removeFinalizers);
    await team.api.delete(guarded.secretPath);
    for (const beside of [
      { data: { accessKeyID: "Yg==" } },
      { immutable: true },
      { metadata: { labels: { a: "b" } } },
      { metadata: { annotations: { a: "b" } } },
      { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "mine", uid: "a-uid" }] } },
    ]) {
      const metadata = { ...beside.metadata, finalizers: ["example.com/held"] };
      await guarded.refuses("edith", /protects it/, edit({ ...beside, metadata }));
      await guarded.refuses("edith", /protects it/, edit({ ...beside, metadata: { ...metadata, finalizers: null } }));
    }
    await removeFinalizers(guarded.as("edith"), guarded.secretPath);
    assert.equal(await team.api.find(guarded.secretPath), undefined);
  });
});

describe("Kyverno's example of a Secret that is protected and cloned", function () {
  this.timeout("2m");
  before(untilProtectionWorks);

  it("needs one binding: only cluster-admin changes and deletes blogsecret in platform, and it is cloned", async () => {
    const platform = new Guarded(new TestNamespace("platform"));
    const { team } = platform;
    await team.api.create("/api/v1/namespaces", { metadata: { name: "platform" } });
    await team.api.create("/api/v1/namespaces", { metadata: { name: "blog", labels: { reads: "blogsecret" } } });
    await team.createAccount();
    await team.grantInCluster([
      { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] },
    ]);
    await team.secret("blogsecret", { password: secretText("blog") });
    await platform.mayBy("edith", "edit");
    await platform.mayBy("adam", "admin");
    await team.controller.start();

    const clones = {
      ...{
        apiVersion: "v1",
        kind: "Secret",
        name: "blogsecret",
        namespaceSelector: { matchLabels: { reads: "blogsecret" } },
      },
      create: { manifest: {} },
      fields: [{ path: "data", from: { source: "blogsecret" } }],
    };
    await platform.protect(guard([{ secret: { name: "blogsecret" }, protect: {} }], { targets: [clones] }));
    await team.until("guard", "Synced");

    const blogsecret = `${team.path("v1", "secrets")}/blogsecret`;
    const isRefused = async (who: string) => {
      await platform.may(who, { apiGroups: [""], resources: ["secrets"], verbs: ["get", "patch", "delete"] });
      await platform.refuses(who, /update secrets "blogsecret"/, label, blogsecret);
      await platform.refuses(who, /delete secrets "blogsecret"/, remove, blogsecret);
    };
    await Promise.all(["edith", "adam", CONTROLLER, "system:serviceaccount:platform:inlay"].map(isRefused));

    const value = secretText("blog");
    const drop = await makeClusterAdmin(platform, "clara");
    const data = { password: Buffer.from(value).toString("base64") };
    await eventually(() => platform.as("clara").merge(blogsecret, { data }));
    const clone = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets/blogsecret`;
    const isCloned = (namespace: string) =>
      eventually(async () => assert.deepEqual((await team.api.find(clone(namespace)))?.data, data));
    await isCloned("blog");
    await team.api.create("/api/v1/namespaces", { metadata: { name: "news", labels: { reads: "blogsecret" } } });
    await isCloned("news");
    await team.api.delete(clone("blog"));
    await isCloned("blog");
    await platform.as("clara").delete(blogsecret);
    await drop();
    await platform.confirmDeletion();
    await team.unbind("guard");
    for (const name of ["platform", "blog", "news"]) await team.api.delete(`/api/v1/namespaces/${name}`);
  });
});
