/** The permissions that `inlay rbac` prints, compared with those of the samples and compositions, which other tests show to be enough. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Installation } from "../../../src/api/installation.ts";
import { requiredAccounts } from "../../../src/rbac/rbac.ts";
import { rbacList, rbacTable, rbacYaml } from "../../../src/rbac/rbac-text.ts";
import type { TextFile } from "../../../src/render/documents.ts";
import { covers, describeGrant, grantsIn, type Manifest, objectsIn, objectsOf, rightsOf, root } from "./shipped.ts";

const DEFAULTS = { namespace: "shop", installation: new Installation({ ownNamespace: "inlay-system" }) };
const ACCOUNT_ROLES = "deploy/manifests/31-account-role.yaml";
/** The compositions whose sample has claims and every object that the bindings need. */
const COMPOSITIONS =
  "harbor postgres-clone prometheus-remote-write cosi-cloudnativepg bucket-claim-velero shared-secret";
/** Not needed: the warning of a missing PodDisruptionBudget. */
const FOR_A_WARNING = "poddisruptionbudgets.policy";

const filesOf = (glob: string): TextFile[] =>
  globSync(glob, { cwd: root }).map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));
const crds = filesOf("{samples,compositions}/*/crd/*.yaml");

const required = (files: readonly TextFile[], more: object = {}) =>
  requiredAccounts(files, { ...DEFAULTS, crds, ...more });
const printed = async (files: readonly TextFile[]): Promise<Manifest[]> => {
  const all = await required(files);
  assert.deepEqual(all.mistakes, []);
  return objectsOf(rbacYaml(all, "inlay-bindings").join("\n"));
};

function bindingFile(spec: object, metadata: object = {}): TextFile {
  const object = {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "b", ...metadata },
    spec,
  };
  return { name: "binding.yaml", text: JSON.stringify(object) };
}

const sources = [{ secret: { name: "bucket" } }];
const fields = [{ path: "data.token", from: { source: "bucket", key: "token" } }];
const target = (more: object) => ({ apiVersion: "v1", kind: "ConfigMap", fields, ...more });
const rulesFor = async (spec: object, metadata?: object) =>
  grantsIn(await printed([bindingFile(spec, metadata)])).map(describeGrant);

describe("the permissions of the bindings in files", () => {
  for (const name of globSync("samples/*/", { cwd: root }))
    it(`are those that ${name} grants, and no others`, async () => {
      const needed = grantsIn(await printed(filesOf(`${name}/*.yaml`)));
      const shipped = grantsIn([...objectsIn(`${name}/*.yaml`), ...objectsIn(ACCOUNT_ROLES)]);
      assert.ok(needed.length > 0);
      assert.deepEqual(needed.filter((each) => !shipped.some((grant) => covers(grant, each))).map(describeGrant), []);
    });

  for (const name of COMPOSITIONS.split(" "))
    it(`are for the claims of ${name} those of its account.yaml`, async () => {
      const folder = `compositions/${name}`;
      const needed = grantsIn(await printed(filesOf(`${folder}/{composition.yaml,sample/*.yaml}`)));
      const manifests = objectsIn(`{${folder}/account.yaml,deploy/manifests/optional/compositions.yaml}`);
      const ofComposing = (isComposing: boolean, { verb, resource }: { verb: string; resource: string }) =>
        `${isComposing ? "compositions" : "bindings"}: ${verb} ${resource}`;
      const shipped = manifests
        .filter(({ metadata }) => metadata.namespace !== "inlay-system")
        .flatMap(({ metadata, rules = [] }) =>
          rightsOf(rules).map((each) => ofComposing(metadata.name.startsWith("inlay-compositions"), each)),
        );
      const mine = needed.map((each) => ofComposing(each.account === "inlay-system/inlay-compositions", each));
      const sorted = (texts: readonly string[]) =>
        [...new Set(texts)].filter((text) => !text.endsWith(FOR_A_WARNING)).sort();
      assert.deepEqual(sorted(mine), sorted(shipped));
    });

  it("depend on create and onRelease", async () => {
    const on = "shop/inlay:";
    const source = ["get", "list", "watch"].map((verb) => `${on} ${verb} secrets/bucket in shop`);
    const of = async (more: object) =>
      (await rulesFor({ sources, targets: [target({ name: "a", ...more })] })).filter((each) => !source.includes(each));
    const named = (...verbs: string[]) => verbs.map((verb) => `${on} ${verb} configmaps/a in shop`);
    const create = { manifest: {} };
    assert.deepEqual(await of({}), named("get", "list", "watch", "patch"));
    assert.deepEqual((await of({ create, onRelease: "Retain" })).toSorted(), [
      `${on} create configmaps/* in shop`,
      ...named("get", "list", "patch", "watch"),
    ]);
    assert.ok((await of({ create })).includes(`${on} delete configmaps/a in shop`));
  });

  it("are for all namespaces if a selector chooses them by labels, and else for those that it names", async () => {
    const of = (namespaceSelector: object) =>
      rulesFor({ sources, targets: [target({ name: "a", namespaceSelector })] });
    const byLabels = await of({ matchLabels: { team: "web" } });
    assert.ok(byLabels.includes("shop/inlay: patch configmaps/a in *"), byLabels.join());
    assert.deepEqual(
      byLabels.filter((each) => each.includes("namespaces/")),
      ["shop/inlay: list namespaces/* in *", "shop/inlay: watch namespaces/* in *"],
    );
    const byName = await of({ names: ["web", "api"] });
    assert.ok(byName.includes("shop/inlay: patch configmaps/a in web"), byName.join());
    assert.ok(!byName.some((each) => each.includes("namespaces/") || each.endsWith("in *")), byName.join());
  });

  it("let the controller impersonate an account of another name", async () => {
    const all = await rulesFor({ sources, targets: [target({ name: "a" })], serviceAccountName: "rotator" });
    const impersonates = "inlay-system/inlay-controller: impersonate serviceaccounts/rotator in shop";
    assert.ok(all.includes(impersonates), all.join());
    assert.ok(all.includes("shop/rotator: get secrets/bucket in shop"));
  });

  it("are in the namespace of a source in another namespace", async () => {
    const [source] = [{ secret: { name: "bucket", namespace: "storage" } }];
    const all = await rulesFor({ sources: [source], targets: [target({ name: "a" })] });
    assert.ok(all.includes("shop/inlay: get secrets/bucket in storage"), all.join());
  });

  it("don't allow combinations of groups and resources that nothing needs", async () => {
    const selector = { matchLabels: { app: "a" } };
    const harbor = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", selector, fields };
    const paths = [{ path: "spec.externalURL", from: { source: "bucket", key: "token" } }];
    const targets = [target({ selector }), { ...harbor, fields: paths }];
    const all = await printed([bindingFile({ sources, targets })]);
    const rules = all.flatMap((each) => each.rules ?? []);
    assert.ok(rules.every(({ apiGroups }) => apiGroups.length === 1));
    assert.deepEqual(
      rules.filter(({ verbs }) => verbs.includes("patch")).map(({ resources }) => resources),
      [["configmaps"], ["harborclusters"]],
    );
  });

  it("are unknown for a kind without a CRD, or a connection that is in no file, in one line each", async () => {
    const targets = [{ apiVersion: "example.com/v1", kind: "Thing", name: "a", fields }];
    const kind = await required([bindingFile({ sources, targets })], { crds: [] });
    assert.deepEqual(kind.mistakes, [
      {
        file: "binding.yaml",
        line: 1,
        column: 143,
        reason: "KindNotFound",
        message:
          "spec.targets[0]: the kind Thing of example.com/v1 is unknown; add its CRD with --crds, or use --cluster to read it from your cluster",
      },
    ]);
    const vault = { connection: { name: "main" }, refresh: "1m", data: { mount: "kv", path: "s3" } };
    const login = await required([
      bindingFile({ sources: [{ name: "bucket", vault }], targets: [target({ name: "a" })] }),
    ]);
    assert.match(login.mistakes.map(({ message }) => message).join(), /^spec\.sources\[0\]: .*shop\/main is unknown/);
  });

  it("are none for a copy that the configuration requires to be acknowledged, until it is", async () => {
    const installation = new Installation({ ownNamespace: "inlay-system", requireAcknowledgement: ["ReadableCopies"] });
    const secret = (more: object) => ({ apiVersion: "v1", kind: "Secret", fields, ...more });
    const targets = [
      target({ name: "a" }),
      secret({ name: "beside" }),
      secret({ name: "away", namespace: "bank" }),
      secret({ name: "wide", namespaceSelector: { matchLabels: { a: "b" } } }),
    ];
    const { mistakes } = await required([bindingFile({ sources, targets })], { installation });
    assert.deepEqual(
      mistakes.map(({ reason, message }) => [reason, message.split(":")[0]]),
      [0, 2, 3].map((at) => ["NotAcknowledged", `spec.targets[${at}]`]),
    );
    const acknowledged = { sources, targets, acknowledge: ["ReadableCopies"] };
    assert.deepEqual((await required([bindingFile(acknowledged)], { installation })).mistakes, []);
    assert.deepEqual((await required([bindingFile({ sources, targets })])).mistakes, []);
  });

  it("have the reason of each rule in YAML and tables, and are a List in JSON", async () => {
    const all = await required([bindingFile({ sources, targets: [target({ name: "a" })] })]);
    assert.match(rbacYaml(all, "x").join("\n"), /\n {2}# source bucket\n {2}- apiGroups: \[""\]\n/);
    assert.deepEqual(rbacTable(all, "x", 120), [
      "ServiceAccount shop/inlay",
      "  IN    VERBS                    RESOURCE    NAMES   WHY",
      "  shop  get, list, watch         secrets     bucket  source bucket",
      "  shop  get, list, watch, patch  configmaps  a       target ConfigMap a",
    ]);
    const { kind, items } = rbacList(all, "x");
    assert.deepEqual(
      [kind, (items as unknown as Manifest[]).map((each) => each.kind)],
      ["List", ["ServiceAccount", "Role", "RoleBinding"]],
    );
  });

  it("leave out a claim that gets no binding, with a note", async () => {
    const files = filesOf("compositions/reflector/{composition.yaml,sample/*.yaml}");
    const { mistakes, notes } = await required(files);
    assert.deepEqual(mistakes, []);
    assert.match(notes.join("\n"), /notSupported/);
  });
});
