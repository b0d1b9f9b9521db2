/** Objects of Inlay in a kustomization that renames what they refer to, built by the real kustomize. */
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDocuments } from "../../src/render/documents.ts";
import { validate } from "../../src/validate/validate.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";

const root = join(import.meta.dirname, "..", "..");

const ACCOUNT = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: inlay}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: inlay}
rules:
  - {apiGroups: [""], resources: [secrets], verbs: [get], resourceNames: [bucket]}
  - {apiGroups: [goharbor.io], resources: [harborclusters], verbs: [get, patch], resourceNames: [harbor]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: inlay}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: inlay}
subjects: [{kind: ServiceAccount, name: inlay, namespace: registry}]
`;

const SPEC = `
sources:
  - {name: bucket, secret: {name: bucket}}
  - {name: settings, configMap: {name: settings}}
  - {name: harbor, object: {apiVersion: goharbor.io/v1beta1, resource: harborclusters, name: harbor}}
  - {name: class, providerClass: {name: class}}
  - {name: kv, vault: {connection: {name: vault}, data: {mount: kv, path: registry/s3}}}
  - {name: elsewhere, secret: {name: elsewhere, namespace: platform}}
targets:
  - apiVersion: goharbor.io/v1beta1
    kind: HarborCluster
    name: harbor
    fields: [{path: spec.a, from: {source: bucket, key: a}}, {path: spec.b, template: "{{settings.b}}"}]
  - {apiVersion: v1, kind: Secret, name: outside, namespace: platform, fields: [{path: data.a, from: {source: bucket, key: a}}]}
rollout:
  steps: [{name: first, targets: [{kind: StatefulSet, name: database}]}, {name: second, consumersOf: [bucket]}]
`;

const indented = (text: string, by: number) => text.replaceAll("\n", `\n${" ".repeat(by)}`);

const OBJECTS = `
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: harbor-s3}
spec:
${indented(SPEC, 2)}
---
apiVersion: inlay.dev/v1alpha1
kind: SecretBinding
metadata: {name: restarts}
spec:
  sources: [{name: bucket, secret: {name: bucket}}]
  targets: []
  rollout: {targets: [{kind: Deployment, name: core}]}
---
apiVersion: inlay.dev/v1alpha1
kind: BindingComposition
metadata: {name: all}
spec:
  for: {apiVersion: stable.example.com/v1, kind: Claim}
  serviceAccount: {namespace: registry, name: inlay}
  bindings:
    - name: s3
      base:
        spec:
${indented(SPEC, 10)}
---
apiVersion: inlay.dev/v1alpha1
kind: SecretGrant
metadata: {name: grant}
spec:
  from: [{namespace: registry, serviceAccountName: inlay}, {composition: all}]
  to: [{kind: Secret, name: bucket}, {kind: ConfigMap, name: settings}, {kind: VaultConnection, name: vault}]
---
apiVersion: inlay.dev/v1alpha1
kind: VaultConnection
metadata: {name: vault}
spec:
  address: https://vault.example.com
  tls: {ca: {configMap: {name: settings, key: b}}}
  paths: ["kv/{namespace}/*"]
  auth: {appRole: {roleID: inlay, secretID: {secret: {name: bucket, key: id}}}}
---
apiVersion: goharbor.io/v1beta1
kind: HarborCluster
metadata: {name: harbor}
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: class}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: core}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: database}
`;

const named = (components: string) => `
namePrefix: dev-
nameSuffix: -eu
resources: [objects.yaml]
${components}
secretGenerator: [{name: bucket, literals: [a=x, id=y]}]
configMapGenerator: [{name: settings, literals: [b=x]}]
`;

describe("a kustomization with Inlay's objects that renames objects", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-kustomize-"));
    await cp(join(root, "deploy", "kustomize"), join(folder, "component"), { recursive: true });
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function build(files: Record<string, string>): Promise<string> {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(join(folder, name, ".."), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return (await controlPlane().kubectl("kustomize", join(folder, "top"))).stdout;
  }
  const warningsIn = async (text: string) => {
    const { errors } = await validate({ files: [{ name: "built.yaml", text }], crds: [], namespace: "default" });
    return errors.map(({ severity, reason, message }) => `${severity} ${reason} ${message.split(":")[0]}`);
  };
  const withAccount = (components: string, objects = OBJECTS) => ({
    "top/kustomization.yaml": "namespace: registry\nresources: [../named, ../account]\n",
    "account/kustomization.yaml": "resources: [account.yaml]\n",
    "account/account.yaml": ACCOUNT,
    "named/kustomization.yaml": named(components),
    "named/objects.yaml": objects,
  });

  it("renames each reference with the component, and leaves namespaces, accounts and the names of sources alone", async () => {
    const built = await build(withAccount("components: [../component]"));
    const objects = readDocuments([{ name: "built.yaml", text: built }]).documents.map(
      ({ object }) => object as AnyObject,
    );
    const one = (kind: string) => objects.find((each) => each.kind === kind);
    const [bucket, settings] = [one("Secret").metadata.name, one("ConfigMap").metadata.name];
    assert.match(bucket, /^dev-bucket-eu-\w{10}$/);
    const [first, second] = objects.filter(({ kind }) => kind === "SecretBinding");
    const { sources, targets, rollout } = first.spec;
    assert.equal(second.spec.rollout.targets[0].name, "dev-core-eu");
    assert.deepEqual(
      sources.map(({ name, secret, configMap, object, providerClass, vault }: AnyObject) => [
        name,
        (secret ?? configMap ?? object ?? providerClass ?? vault.connection).name,
      ]),
      [
        ["bucket", bucket],
        ["settings", settings],
        ["harbor", "dev-harbor-eu"],
        ["class", "dev-class-eu"],
        ["kv", "dev-vault-eu"],
        ["elsewhere", "elsewhere"],
      ],
    );
    assert.equal(sources[5].secret.namespace, "platform");
    assert.deepEqual(
      targets.map(({ name, namespace }: AnyObject) => [namespace, name]),
      [
        [undefined, "dev-harbor-eu"],
        ["platform", "outside"],
      ],
    );
    assert.deepEqual(targets[0].fields[0].from.source, "bucket");
    assert.deepEqual([rollout.steps[0].targets[0].name, rollout.steps[1].consumersOf], ["dev-database-eu", ["bucket"]]);
    const { bindings, serviceAccount } = one("BindingComposition").spec;
    assert.deepEqual(bindings[0].base.spec, first.spec);
    assert.equal(serviceAccount.name, "inlay");
    const { from, to } = one("SecretGrant").spec;
    assert.deepEqual(
      to.map(({ name }: AnyObject) => name),
      [bucket, settings, "dev-vault-eu"],
    );
    assert.deepEqual([from[0].serviceAccountName, from[1].composition], ["inlay", "dev-all-eu"]);
    const { tls, auth } = one("VaultConnection").spec;
    assert.deepEqual([tls.ca.configMap.name, auth.appRole.secretID.secret.name], [settings, bucket]);
    assert.equal(one("ServiceAccount").metadata.name, "inlay");
    assert.deepEqual(
      one("Role").rules.map(({ resourceNames }: AnyObject) => resourceNames),
      [[bucket], ["dev-harbor-eu"]],
    );
    assert.deepEqual(await warningsIn(built), ["warning TargetNotFound spec.for"]);
  });

  it("is found by inlay validate without the component, for every name that kustomize left", async () => {
    const objects = OBJECTS.split("---").filter((each) => !each.includes("BindingComposition"));
    const built = await build(withAccount("", objects.join("---")));
    assert.deepEqual(await warningsIn(built), [
      "warning WorkloadNotFound spec.rollout.steps[0].targets[0].name",
      "warning SourceNotFound spec.sources[0].secret.name",
      "warning SourceNotFound spec.sources[1].configMap.name",
      "warning SourceNotFound spec.sources[2].object.name",
      "warning SourceNotFound spec.sources[3].providerClass.name",
      "warning ConnectionNotFound spec.sources[4].vault.connection",
      "warning TargetNotFound spec.targets[0].name",
      "warning WorkloadNotFound spec.rollout.targets[0].name",
      "warning SourceNotFound spec.sources[0].secret.name",
      "warning SourceNotFound spec.to[0].name",
      "warning SourceNotFound spec.to[1].name",
      "warning SourceNotFound spec.to[2].name",
      "warning SourceNotFound spec.auth.appRole.secretID.secret.name",
      "warning SourceNotFound spec.tls.ca.configMap.name",
    ]);
  });

  it("needs a name for each source, and an account outside of the prefix, as inlay validate says", async () => {
    const unnamed = OBJECTS.split("---")[0]?.replace("{name: bucket, secret", "{secret") ?? "";
    const built = await build({
      "top/kustomization.yaml": named("components: [../component]").replace(
        "[objects.yaml]",
        "[objects.yaml, account.yaml]",
      ),
      "top/objects.yaml": unnamed,
      "top/account.yaml": ACCOUNT,
    });
    const found = await warningsIn(built);
    assert.ok(found.includes("warning InvalidBinding spec.sources[0]"), found.join("\n"));
    assert.ok(found.includes("warning ServiceAccountNotFound spec.serviceAccountName"), found.join("\n"));
    assert.ok(!found.some((each) => each.includes("SourceNotFound spec.sources[0]")), found.join("\n"));
  });
});
