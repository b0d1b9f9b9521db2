/** The two shipped installations differ only in where they work. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { policyRightsFor } from "../../src/controllers/installation/controller.ts";
import { ALL_POLICIES } from "../../src/controllers/installation/policies.ts";
import { describeRight, rightsIn } from "../controller/rights.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const text = (folder: string, file: string) => readFile(join(deploy, folder, file), "utf8");
const objects = (yaml: string) => parseAllDocuments(yaml).map((document) => document.toJS());

describe("deploy/namespaced", () => {
  const MARKS = "impersonate authentication.k8s.io/userextras/inlay.dev/binding";
  const FOR_CLUSTER_ADMINS = ["policies.yaml", "metrics.yaml"].map((name) => join("optional", name));

  it("has no cluster-scoped object, except in two optional files, and everything in one namespace", async () => {
    const files = (await readdir(join(deploy, "namespaced"), { recursive: true })).filter(
      (file) => file.endsWith(".yaml") && !FOR_CLUSTER_ADMINS.includes(file),
    );
    assert.ok(files.length > 0);
    for (const file of files) {
      for (const { kind, metadata, subjects = [] } of objects(await text("namespaced", file))) {
        assert.doesNotMatch(kind, /^Cluster|^Namespace$/);
        for (const { namespace } of [metadata, ...subjects]) assert.equal(namespace, "registry", `${kind} in ${file}`);
      }
    }
  });

  it("lets a cluster admin allow the controller to read exactly the policies that it checks, and to mark requests", async () => {
    const file = await text("namespaced", join("optional", "policies.yaml"));
    const needed = policyRightsFor("registry").map(({ verb, group, plural, name }) =>
      describeRight({ verb, resource: `${group}/${plural}`, name }),
    );
    assert.deepEqual(rightsIn(file).map(describeRight), [...needed, MARKS]);
    const [role, binding] = objects(file);
    assert.deepEqual(
      [role.kind, binding.kind, binding.roleRef.name],
      ["ClusterRole", "ClusterRoleBinding", role.metadata.name],
    );
    assert.deepEqual(
      [role, binding].map(({ metadata }) => metadata.name),
      Array(2).fill("inlay-sees-policies-registry"),
    );
    assert.deepEqual(binding.subjects, [{ kind: "ServiceAccount", name: "inlay-controller", namespace: "registry" }]);
  });

  it("has files that stay apart when a page joins them for one kubectl apply", async () => {
    const files = (await readdir(join(deploy, "namespaced"))).filter((file) => file.endsWith(".yaml"));
    const texts = await Promise.all(files.map((file) => text("namespaced", file)));
    const objectsOf = (yaml: string) => objects(yaml).filter((each) => each !== null);
    assert.deepEqual(objectsOf(texts.join("")), texts.flatMap(objectsOf));
  });

  it("gives the controller the same permissions as deploy/manifests, except those that need a ClusterRole", async () => {
    const rights = async (folder: string) => rightsIn(await text(folder, "10-controller-role.yaml")).map(describeRight);
    const labels = ["list namespaces", "watch namespaces"];
    const reviews = ["authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews"];
    const crds = "get apiextensions.k8s.io/customresourcedefinitions";
    const compositions = [
      ...["list", "watch", "patch"].map((verb) => `${verb} inlay.dev/bindingcompositions`),
      "update inlay.dev/bindingcompositions/status",
    ];
    const policies = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"].flatMap((plural) =>
      ALL_POLICIES.map((name) => `get admissionregistration.k8s.io/${plural} ${name}`),
    );
    const ofCluster = [
      MARKS,
      ...labels,
      crds,
      ...policies,
      ...compositions,
      ...reviews.map((kind) => `create ${kind}`),
    ];
    const all = await rights("manifests");
    assert.deepEqual(
      (await rights("namespaced")).toSorted(),
      all.filter((right) => !ofCluster.includes(right)).toSorted(),
    );
  });

  it("gives accounts the same permissions to restart workloads as deploy/manifests", async () => {
    const roles = async (folder: string) =>
      objects(await text(folder, "31-account-role.yaml")).map(({ metadata, rules }) => [metadata.name, rules]);
    assert.deepEqual(await roles("namespaced"), await roles("manifests"));
  });

  it("gives the account for Reloader's annotations the same permissions as deploy/manifests", async () => {
    const rights = async (folder: string) =>
      rightsIn(await text(`${folder}/optional`, "reloader.yaml")).map(describeRight);
    assert.deepEqual(await rights("namespaced"), await rights("manifests"));
  });

  it("permits the controller to read the one Secret for notifications, as deploy/manifests does", async () => {
    for (const folder of ["namespaced", "manifests"]) {
      const rights = rightsIn(await text(`${folder}/optional`, "notifications.yaml")).map(describeRight);
      assert.deepEqual(rights, ["get secrets inlay-notifications"]);
    }
  });

  for (const file of [
    "35-config.yaml",
    "36-digest-key.yaml",
    "40-controller.yaml",
    "50-metrics.yaml",
    "55-leader.yaml",
  ]) {
    it(`has the content of deploy/manifests/${file}, for its namespace only`, async () => {
      const cluster = (await text("manifests", file))
        .replaceAll("inlay-system", "registry")
        .replace("args: [controller, ", "args: [controller, --watch-namespace=registry, ");
      assert.deepEqual(objects(await text("namespaced", file)), objects(cluster));
    });
  }
});

describe("docs/reference/permissions.md", () => {
  it("lists exactly the permissions of the controller, verb by verb", async () => {
    const page = await readFile(join(deploy, "..", "docs", "reference", "permissions.md"), "utf8");
    const [, section = ""] = /## The controller's own permissions\n(.*?)\n## /s.exec(page) ?? [];
    const words = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);
    const rows = section.split("\n").filter((line) => line.startsWith("| `"));
    const listed = rows.flatMap((row) => {
      const [, resource = "", verbs] = row.split("|");
      const name = /named `([^`]+)`/.exec(resource)?.[1];
      return words(verbs).map((verb) => describeRight({ verb, resource: words(resource)[0] ?? "", name }));
    });
    const granted = rightsIn(await text("manifests", "10-controller-role.yaml")).map(({ name = "", ...right }) =>
      describeRight({
        ...right,
        resource: right.resource.replace(/^[^/]+\.[^/]+\//, ""),
        // The page names the folder of the policies instead.
        name: name === "" || ALL_POLICIES.includes(name) ? undefined : name,
      }),
    );
    assert.deepEqual(listed.toSorted(), [...new Set(granted)].toSorted());
  });
});

describe("the Secret of deploy/manifests", () => {
  it("has no data: applying it again does not remove the keys, and no key is in git", async () => {
    const [secret] = objects(await text("manifests", "36-digest-key.yaml"));
    assert.deepEqual(Object.keys(secret).sort(), ["apiVersion", "kind", "metadata", "type"]);
    assert.equal(secret.metadata.name, "inlay-digest-key");
  });
});

describe("deploy/manifests/optional", () => {
  it("permits the controller to watch Secrets, and neither to get nor to write one", async () => {
    const rights = rightsIn(await text("manifests/optional", "secrets-cluster-wide.yaml"));
    assert.deepEqual(rights.map(describeRight), ["list secrets", "watch secrets"]);
  });

  it("permits the controller to watch the workloads that an account may restart, and neither to get nor to write one", async () => {
    const shared = rightsIn(await text("manifests/optional", "workloads-cluster-wide.yaml"));
    const ofAccount = rightsIn(await text("manifests", "31-account-role.yaml"));
    const kinds = new Set(ofAccount.filter(({ verb }) => verb === "patch").map(({ resource }) => resource));
    assert.deepEqual(
      shared.map(describeRight),
      [...kinds].flatMap((kind) => ["list", "watch"].map((verb) => `${verb} ${kind}`)),
    );
  });
});
