/** `inlay diff` on a real API server: it predicts what comes, changes nothing, and shows no value. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import jsonPatch from "fast-json-patch";
import { stringify } from "yaml";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const admin = () => controlPlane().kubeconfigFile;
const ACCESS_KEY = "spec.storage.spec.s3.accesskey";
const WRITE_SECRETS = { apiGroups: [""], resources: ["secrets"], verbs: ["patch"] };
const COUNTERS: Kind = {
  group: "diff.example.com",
  kind: "Counter",
  plural: "counters",
  spec: {
    type: "object",
    properties: {
      total: { type: "integer", format: "int64" },
      texts: { type: "object", additionalProperties: { type: "string" } },
    },
  },
};

describe("inlay diff", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-diff-"));
  });
  after(() => rm(folder, { recursive: true }));

  async function fileOf(...objects: object[]): Promise<string> {
    const file = join(folder, `${Math.random()}.yaml`);
    await writeFile(file, objects.map((each) => stringify(each)).join("---\n"));
    return file;
  }

  async function diff(file: string, code: number, kubeconfig = admin(), ...args: string[]): Promise<AnyObject> {
    const said = await inlay(kubeconfig, "diff", "-f", file, "-o", "json", ...args);
    assert.equal(said.code, code, `${said.stderr}\n${said.stdout}`);
    return JSON.parse(said.stdout);
  }

  const bindingOf = (team: TestNamespace, changes: object = {}) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3", namespace: team.namespace },
    spec: { ...accessKeySpec(), ...changes },
  });

  /** The resourceVersions of everything that the diff looks at. */
  async function versions(team: TestNamespace): Promise<string[]> {
    const paths = [
      `${team.path("v1", "secrets")}`,
      `${team.path("goharbor.io/v1beta1", "harborclusters")}`,
      `${team.path("inlay.dev/v1alpha1", "secretbindings")}`,
      `${team.path("v1", "configmaps")}`,
    ];
    const lists = await Promise.all(paths.map((path) => team.api.get(path)));
    return lists.flatMap(({ items }) =>
      items.map(({ metadata }: AnyObject) => `${metadata.uid} ${metadata.resourceVersion}`),
    );
  }

  it("predicts a new binding, changes nothing, and says the same once it is synced", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("key") });
    await team.harbor("harbor");
    const file = await fileOf(bindingOf(team));
    const before = await versions(team);
    const predicted = await diff(file, 1);
    assert.deepEqual(await versions(team), before);
    const [binding] = predicted.bindings;
    assert.equal(binding.own.change, "create");
    assert.equal(binding.as, `ServiceAccount ${team.namespace}/inlay`);
    const [target] = binding.targets;
    assert.equal(target.problem, undefined);
    assert.equal(target.change, "update");
    assert.ok(target.fields.length > 0);
    assert.ok(target.fields.every(({ path }: AnyObject) => ACCESS_KEY.startsWith(path)));

    const [harbor] = target.patch;
    assert.equal(JSON.stringify(harbor.value), JSON.stringify("(hidden)"));
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "Synced");
    const same = await diff(file, 0);
    assert.deepEqual(
      same.bindings[0].targets.map(({ change }: AnyObject) => change),
      ["none"],
    );
    assert.equal(same.bindings[0].own.change, "none");
  });

  it("predicts exactly the patch that Inlay then writes, and a removed field", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("key"), host: secretText("host") });
    await team.harbor("harbor");
    await team.bind("harbor-s3", { ...accessKeySpec(), defaults: { onRelease: "Remove" } });
    await team.until("harbor-s3", "Synced");
    const spec = accessKeySpec() as AnyObject;
    const [target] = spec["targets"];
    const moved = {
      sources: spec["sources"],
      defaults: { onRelease: "Remove" },
      targets: [
        { ...target, fields: [{ path: "spec.storage.spec.s3.regionendpoint", template: "https://{{bucket.host}}" }] },
      ],
    };
    const file = await fileOf(bindingOf(team, moved));
    const [binding] = (await diff(file, 1)).bindings;
    assert.equal(binding.own.change, "update");
    const fields = Object.fromEntries(binding.targets[0].fields.map(({ path, change }: AnyObject) => [path, change]));
    const path = `${team.path("goharbor.io/v1beta1", "harborclusters")}/harbor`;
    const before = await team.api.get(path);
    await team.rebind("harbor-s3", moved);
    await team.until("harbor-s3", "Synced");
    await team.barrier();
    const after = await team.api.get(path);
    const s3 = (object: AnyObject) => object.spec.storage.spec.s3;
    assert.equal(s3(before).accesskey !== undefined && s3(after).accesskey === undefined, true);
    assert.deepEqual(fields, { [ACCESS_KEY]: "removed", "spec.storage.spec.s3.regionendpoint": "added" });
    await diff(file, 0);
  });

  it("predicts a created object, and deletes none that the binding would delete", async () => {
    const team = await createNamespace({
      rules: [
        {
          apiGroups: [""],
          resources: ["secrets", "configmaps"],
          verbs: ["get", "list", "watch", "create", "patch", "delete"],
        },
      ],
    });
    await team.secret("bucket", { host: secretText("host") });
    const create = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "made",
      create: { manifest: {} },
      fields: [{ path: "data.host", from: { source: "bucket", key: "host" } }],
    };
    const spec = { sources: [{ secret: { name: "bucket" } }], targets: [create], defaults: { onRelease: "Remove" } };
    const file = await fileOf(bindingOf(team, spec));
    const [{ targets }] = (await diff(file, 1)).bindings;
    assert.deepEqual([targets[0].change, targets[0].problem], ["create", undefined]);
    await team.bind("harbor-s3", spec);
    await team.until("harbor-s3", "Synced");
    const other = { ...create, name: "other" };
    const renamed = await fileOf(bindingOf(team, { ...spec, targets: [other] }));
    const before = await versions(team);
    const mark = await auditLog().mark();
    const [binding] = (await diff(renamed, 1)).bindings;
    assert.deepEqual(
      binding.targets.map(({ name, change }: AnyObject) => [name, change]),
      [
        ["other", "create"],
        ["made", "delete"],
      ],
    );
    assert.deepEqual(await versions(team), before);
    const isDiff = ({ uri, user }: { uri: string; user: string }) =>
      uri.includes(`/${team.namespace}/`) && !user.endsWith(":inlay-controller");
    const requests = (await auditLog().since(mark)).filter(isDiff);
    const verbs = requests.map(({ verb }) => verb).filter((verb) => !["get", "list", "watch"].includes(verb));
    assert.deepEqual(verbs.sort(), ["create", "delete", "update"]);
    assert.deepEqual(
      requests.filter(({ verb, uri }) => verbs.includes(verb) && !uri.includes("dryRun=All")),
      [],
    );
  });

  it("uses the permissions of a user who may not impersonate, and says so", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("key") });
    await team.harbor("harbor");
    await team.createAccount("dev");
    const rules = [
      { apiGroups: ["inlay.dev"], resources: ["*"], verbs: ["get", "list"] },
      { apiGroups: ["goharbor.io"], resources: ["*"], verbs: ["get", "list", "watch", "patch"] },
      { apiGroups: [""], resources: ["secrets", "serviceaccounts"], verbs: ["get"] },
    ];
    await team.grant(rules, { account: "dev", role: "dev" });
    const kubeconfig = await controlPlane().kubeconfigForServiceAccount(team.namespace, "dev");
    const file = await fileOf(bindingOf(team));
    const [binding] = (await diff(file, 1, kubeconfig)).bindings;
    assert.equal(binding.as, "you");
    assert.deepEqual([binding.targets[0].change, binding.targets[0].problem], ["update", undefined]);
    await team.revoke("dev");
    const [refused] = (await diff(file, 2, kubeconfig)).bindings;
    assert.equal(refused.problem.reason, "Forbidden");
    assert.match(refused.problem.message, /^you may not get secretbindings/);
  });

  it("plans a binding whose account does not exist as the user, and names the command that creates it", async () => {
    const team = await createNamespace({ account: false, controller: false });
    await team.secret("bucket", { accessKeyID: secretText("key") });
    await team.harbor("harbor");
    const file = await fileOf(bindingOf(team));
    const [binding] = (await diff(file, 1)).bindings;
    assert.deepEqual([binding.as, binding.targets[0].change, binding.targets[0].problem], ["you", "update", undefined]);
    const { reason, message, command } = binding.account;
    assert.equal(reason, "ServiceAccountNotFound");
    assert.match(
      message,
      /^there is no ServiceAccount .*\/inlay, so reads and dry runs are sent as you; create it with:$/,
    );
    assert.equal(command, `inlay rbac -f ${file} --cluster | kubectl apply -f -`);
    const { stdout } = await inlay(admin(), "diff", "-f", file);
    assert.ok(stdout.includes(`\n  ${command}\n`), stdout);
    await team.createAccount();
    assert.equal((await diff(file, 1)).bindings[0].account, undefined);
  });

  it("says that a protected object denies the binding, or that only Inlay may try a binding that is a writer", async () => {
    const team = await createNamespace({ controller: false, rules: [...usualRules, WRITE_SECRETS] });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.secret("copy", { a: secretText("copy") });
    const fields = [{ path: "data.b", from: { source: "bucket", key: "accessKeyID" } }];
    const targets = [{ apiVersion: "v1", kind: "Secret", name: "copy", fields }];
    await team.bind("copies", { sources: [{ secret: { name: "bucket" } }], targets, suspend: true });
    const file = await fileOf({
      ...bindingOf(team),
      metadata: { name: "copies", namespace: team.namespace },
      spec: { sources: [{ secret: { name: "bucket" } }], targets },
    });
    const protection = (writers: object[]) => ({
      sources: [{ secret: { name: "copy" }, protect: { writers } }],
      targets: [],
    });
    const guard = {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: { name: "guard", labels: { "inlay.dev/protects": "true" } },
      spec: protection([]),
    };
    await team.api.create(team.path("inlay.dev/v1alpha1", "secretbindings"), guard);
    const denied = async (kubeconfig: string) => {
      const { bindings } = await diff(file, 1, kubeconfig);
      return bindings[0].targets[0].problem;
    };
    await eventually(async () => {
      const { reason, message } = await denied(admin());
      assert.equal(reason, "Protected");
      assert.match(message, /^SecretBinding guard protects it, and this binding is not one of the writers there/);
    });
    await team.api.merge(team.bindingPath("guard"), { spec: protection([{ kind: "SecretBinding", name: "copies" }]) });
    await eventually(async () => assert.equal(await denied(admin()), undefined));
    // With edit, a user acts as the account, but not as Inlay.
    await team.createAccount("dev");
    await team.grant(
      [
        { apiGroups: ["inlay.dev"], resources: ["*"], verbs: ["get", "list", "patch"] },
        { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["get", "impersonate"] },
        { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
      ],
      { account: "dev", role: "dev" },
    );
    const dev = await controlPlane().kubeconfigForServiceAccount(team.namespace, "dev");
    const { reason, message } = await denied(dev);
    assert.equal(reason, "Protected");
    assert.match(
      message,
      /which you may not send as Inlay does; Inlay itself may write it if \{kind: SecretBinding, name: copies/,
    );
  });

  it("predicts the bindings that a composition makes for live claims, with a grant that is only in the files", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("key") });
    await team.harbor("harbor");
    const { targets } = accessKeySpec() as AnyObject;
    const own = (kind: string, metadata: { name: string; namespace?: string }, spec: object) => ({
      apiVersion: "inlay.dev/v1alpha1",
      kind,
      metadata,
      spec,
    });
    const base = { spec: { sources: [{ secret: { name: "bucket", granted: true } }], targets } };
    const composition = own(
      "BindingComposition",
      { name: `diff-${team.namespace}` },
      {
        for: {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          namespaceSelector: { names: [team.namespace] },
        },
        bindings: [{ name: "s3", base }],
      },
    );
    const grant = own(
      "SecretGrant",
      { name: "g", namespace: team.namespace },
      { from: [{ composition: composition.metadata.name }], to: [{ kind: "Secret", name: "bucket" }] },
    );
    const { objects, bindings } = await diff(await fileOf(composition, grant), 1);
    assert.deepEqual(
      objects.map(({ kind, change }: AnyObject) => [kind, change]),
      [
        ["BindingComposition", "create"],
        ["SecretGrant", "create"],
      ],
    );
    const [binding] = bindings;
    assert.deepEqual([binding.composition, binding.own.change], [composition.metadata.name, "create"]);
    assert.deepEqual([binding.targets[0].change, binding.targets[0].problem], ["update", undefined]);
    const [ungranted] = (await diff(await fileOf(composition), 1)).bindings;
    assert.equal(ungranted.targets[0].problem.reason, "NotGranted");
  });

  it("prints patches that turn the live objects into what Inlay then writes, with exact integers", async () => {
    const configMaps = {
      apiGroups: [""],
      resources: ["configmaps"],
      verbs: ["get", "list", "watch", "create", "patch"],
    };
    const team = await createNamespace({ rules: [...usualRules, configMaps, mayWrite(COUNTERS)] });
    await installKind(team.api, COUNTERS);
    await createObject(team.api, COUNTERS, "one", { texts: { other: "a.b/c" } }, team.namespace);
    const data = { total: "9007199254740993", host: "a.example" };
    const configMapPath = `${team.path("v1", "configmaps")}`;
    await team.api.create(configMapPath, { metadata: { name: "settings" }, data });
    const from = (key: string) => ({ from: { source: "settings", key } });
    const specWith = (fields: object[], ...more: object[]) => ({
      sources: [{ configMap: { name: "settings" } }],
      defaults: { onRelease: "Remove" },
      targets: [{ apiVersion: apiVersionOf(COUNTERS), kind: COUNTERS.kind, name: "one", fields }, ...more],
    });
    await team.bind("counts", specWith([{ path: "spec.texts.gone", ...from("host") }]));
    await team.until("counts", "Synced");
    const made = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "made",
      create: { manifest: { metadata: { labels: { "example.com/a": "b" } } } },
      fields: [{ path: 'data["a.b"]', ...from("host") }],
    };
    const fields = [
      { path: "spec.total", ...from("total"), as: "integer" },
      { path: 'spec.texts["x.y/z"]', ...from("host") },
      { path: 'metadata.annotations["example.com/host"]', ...from("host") },
    ];
    const wanted = specWith(fields, made);
    const paths = {
      SecretBinding: team.bindingPath("counts"),
      Counter: objectPath(COUNTERS, team.namespace, "one"),
      ConfigMap: `${configMapPath}/made`,
    };
    const read = async (path: string) => essenceOf(await team.api.find(path));
    const before = await Promise.all(Object.values(paths).map(read));
    const file = await fileOf({
      ...bindingOf(team, {}),
      metadata: { name: "counts", namespace: team.namespace },
      spec: wanted,
    });
    const { code, stdout, stderr } = await inlay(admin(), "diff", "-f", file, "-o", "jsonpatch", "--show-values");
    assert.deepEqual([code, stderr], [1, ""]);
    assert.match(stdout, /"value": 9007199254740993\b/);
    const patches: AnyObject[] = JSON.parse(stdout);
    assert.deepEqual(patches.map(({ kind }) => kind).sort(), Object.keys(paths).sort());
    const predicted = Object.keys(paths).map((kind, at) => {
      const { patch } = patches.find((each) => each.kind === kind);
      return jsonPatch.applyPatch(before[at] ?? {}, patch, true).newDocument;
    });
    await team.rebind("counts", wanted);
    await team.until("counts", "Synced");
    assert.deepEqual(await Promise.all(Object.values(paths).map(read)), predicted);
  });

  it("uses the rules of a configuration, and the namespace of the controller", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("key") });
    await team.harbor("harbor");
    const file = await fileOf(bindingOf(team));
    const config = await fileOf({
      apiVersion: "config.inlay.dev/v1alpha1",
      kind: "ControllerConfiguration",
      targets: { deny: [{ kinds: ["HarborCluster"] }] },
    });
    const [denied] = (await diff(file, 1, admin(), "--config", config)).bindings;
    assert.deepEqual([denied.targets[0].change, denied.targets[0].problem.reason], ["none", "ForbiddenKind"]);
    const [closed] = (await diff(file, 2, admin(), "--controller-namespace", team.namespace)).bindings;
    assert.equal(closed.problem.reason, "ForbiddenNamespace");
    const wrong = await inlay(admin(), "diff", "-f", file, "--config", file);
    assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
    assert.match(wrong.stderr, /^can't use the configuration [^\n]*\n$/);
  });

  describe("of a binding that restarts workloads", () => {
    const secretOf = (team: TestNamespace, name: string, token: string) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: team.namespace },
      stringData: { token },
    });
    const sourcesOf = (...names: string[]) => names.map((name) => ({ name: "bucket", secret: { name } }));
    const shortOf = ({ restarts }: AnyObject) =>
      restarts.workloads.map(({ name, when, after, why }: AnyObject) => [name, when, after, why]);

    /** Deployments that have rolled out with the value of the Secret `bucket`, and the value. */
    async function newShop(rollout: object, ...names: string[]) {
      const team = await createNamespace({ rules: rolloutRules });
      const shop = new Workloads(team);
      const token = secretText("token");
      await team.secret("bucket", { token });
      await shop.deploy(Object.fromEntries(names.map((name) => [name, { env: { bucket: ["token"] } }])));
      const spec = { sources: sourcesOf("bucket"), rollout };
      await team.bind("harbor-s3", spec);
      await shop.rolledOut("harbor-s3", 0);
      const binding = { ...bindingOf(team), spec: { ...spec, targets: [] } };
      return { team, shop, binding, token, bucket: `Secret ${team.namespace}/bucket` };
    }

    it("predicts the workloads of each step, in the order in which Inlay then restarts them", async () => {
      const steps = ["first", "second"].map((name) => ({ name, targets: [{ kind: "Deployment", name }] }));
      const { team, shop, binding, token, bucket } = await newShop({ steps }, "first", "second");
      const same = await fileOf(binding, secretOf(team, "bucket", token));
      assert.equal((await diff(same, 0)).bindings[0].restarts, undefined);
      const rotated = secretText("token");
      const changed = await fileOf(binding, secretOf(team, "bucket", rotated));
      const [{ restarts, ...found }] = (await diff(changed, 1)).bindings;
      assert.deepEqual(shortOf({ restarts }), [
        ["first", "AtOnce", undefined, `${bucket} changed`],
        ["second", "Later", "first", `${bucket} changed`],
      ]);
      assert.equal(found.own.change, "none");
      assert.deepEqual(await shop.restarts(), { first: 0, second: 0 });
      const { stdout } = await inlay(admin(), "diff", "-f", changed);
      assert.match(stdout, /Deployment \S+\/first +at once +Secret \S+\/bucket changed/);
      assert.match(stdout, /Deployment \S+\/second +after step first +Secret \S+\/bucket changed/);
      await team.secret("bucket", { token: rotated });
      await shop.rolledOut("harbor-s3", 1, 60_000);
      assert.deepEqual(await shop.restarts(), { first: 1, second: 1 });
      assert.equal((await diff(changed, 0)).bindings[0].restarts, undefined);
    });

    it("predicts the limit of restarts, the window, and a source that is replaced", async () => {
      const rollout = { targets: ["core", "portal"].map((name) => ({ kind: "Deployment", name })) };
      const { team, shop, binding, bucket } = await newShop(rollout, "core", "portal");
      await team.secret("other", { token: secretText("token") });
      const predicted = async (sources: object[], changes: object) => {
        const spec = { ...binding.spec, sources, rollout: { ...rollout, ...changes } };
        const { bindings } = await diff(
          await fileOf({ ...binding, spec }, secretOf(team, "bucket", secretText("t"))),
          1,
        );
        return bindings[0].restarts;
      };
      const limited = await predicted(sourcesOf("bucket"), { maxConcurrent: 1 });
      assert.deepEqual(shortOf({ restarts: limited }), [
        ["core", "AtOnce", undefined, `${bucket} changed`],
        ["portal", "Later", undefined, `${bucket} changed`],
      ]);
      assert.match(limited.waits.message, /spec\.rollout\.maxConcurrent/);
      // A window that is half a year away.
      const month = ((new Date().getUTCMonth() + 6) % 12) + 1;
      const closed = await predicted(sourcesOf("bucket"), {
        windows: [{ schedule: `0 3 1 ${month} *`, duration: "1h" }],
      });
      assert.deepEqual(
        [closed.waits.reason, closed.waits.until.slice(5)],
        ["OutsideWindow", `${String(month).padStart(2, "0")}-01T03:00:00.000Z`],
      );
      assert.deepEqual(new Set(closed.workloads.map(({ when }: AnyObject) => when)), new Set(["Later"]));
      const replaced = await predicted(sourcesOf("other"), {});
      const other = `Secret ${team.namespace}/other replaces ${bucket}`;
      assert.deepEqual(shortOf({ restarts: replaced }), [
        ["core", "AtOnce", undefined, other],
        ["portal", "AtOnce", undefined, other],
      ]);
      assert.deepEqual(await shop.restarts(), { core: 0, portal: 0 });
    });

    it("says which workloads it can't know, and predicts a first rollout", async () => {
      const team = await createNamespace({ controller: false });
      const shop = new Workloads(team);
      await team.secret("bucket", { token: secretText("token") });
      await shop.deploy({ core: { env: { bucket: ["token"] } } });
      const rollout = { consumersOf: ["bucket"], onFirstSync: "Rollout" };
      const file = await fileOf({ ...bindingOf(team), spec: { sources: sourcesOf("bucket"), targets: [], rollout } });
      const [unseen] = (await diff(file, 1)).bindings;
      assert.deepEqual([unseen.restarts.workloads, unseen.restarts.problem.reason], [[], "Forbidden"]);
      await team.grant(rolloutRules, { role: "rollouts" });
      const [first] = (await diff(file, 1)).bindings;
      const why = `its pods may not have the values of Secret ${team.namespace}/bucket`;
      assert.deepEqual(shortOf(first), [["core", "AtOnce", undefined, why]]);
      assert.equal(first.restarts.problem, undefined);
    });
  });

  it("fails with 2 for a file with mistakes, and for one that it can't read", async () => {
    const team = await createNamespace();
    const wrong = await fileOf({ ...bindingOf(team), spec: { targets: [] } });
    const said = await inlay(admin(), "diff", "-f", wrong);
    assert.equal(said.code, 2);
    assert.match(said.stderr, /:\d+: spec/);
    assert.equal((await inlay(admin(), "diff", "-f", join(folder, "none"))).code, 2);
    assert.equal((await inlay(admin(), "diff")).code, 2);
  });
});

/** What a patch can change: the object without what the API server sets. */
function essenceOf(object: AnyObject): AnyObject {
  if (object === undefined) return undefined;
  const { metadata, status: _, ...rest } = object;
  const { name, namespace, labels, annotations, ownerReferences, finalizers } = metadata;
  const kept = { name, namespace, labels, annotations, ownerReferences, finalizers };
  return JSON.parse(JSON.stringify({ ...rest, metadata: kept }));
}
