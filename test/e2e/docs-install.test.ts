/** The pages on installation, word for word, each from a cluster without Inlay or from what the page before has left. */
import assert from "node:assert/strict";
import { globSync, readdirSync } from "node:fs";
import { mkdtemp, symlink } from "node:fs/promises";
import { join } from "node:path";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { objectsIn, objectsOf } from "../controller/manifests.ts";
import { type Place, root, runPage, shell } from "./pages.ts";

describe("the pages on installation", function () {
  this.timeout("3m");
  let cluster: ControlPlane;
  let place: Place;
  let controller: ControllerProcess | undefined;

  before(async () => {
    cluster = await startControlPlane();
    // Pages write files into the root of the clone.
    const folder = await mkdtemp(join(cluster.folder, "clone-"));
    for (const name of readdirSync(root)) await symlink(join(root, name), join(folder, name));
    place = { cluster, folder };
  });
  after(async () => {
    await controller?.stop();
    await cluster?.stop();
  });

  const page = (name: string) => runPage(name, {}, undefined, place);
  const sh = (commands: string) => shell(commands, {}, place);
  const KINDS =
    "crd,namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas";
  const installed = async () =>
    (await sh(`kubectl get ${KINDS} -o name`)).split("\n").filter((name) => name.includes("inlay"));

  it("install and uninstall Inlay for one namespace", async () => {
    await page("deploy/namespaced/README.md");
    assert.deepEqual(
      (await installed()).filter((name) => !/policy|policies|customresource/.test(name)),
      [],
    );
    // The last sentence of the page, for a cluster without another Inlay.
    await sh("kubectl delete -f deploy/policies/ -f apis/");
    assert.deepEqual(await installed(), []);
  });

  it("install Inlay in a cluster", async () => {
    await page("docs/tasks/install.md");
    const { stdout } = await cluster.kubectl(
      "get",
      "deployment",
      "inlay-controller",
      "-n",
      "inlay-system",
      "-o",
      "jsonpath={..image}",
    );
    assert.match(stdout, /^registry\.example\.com\/inlay:0\.1\.0\b/);
  });

  it("upgrade it", async () => {
    controller = new ControllerProcess(cluster);
    await controller.start();
    await page("docs/tasks/upgrade.md");
  });

  it("uninstall it with a binding and its value, and leave nothing", async () => {
    await sh(
      "kubectl apply -f samples/harbor/crd/ && kubectl wait --for=condition=Established crd/harborclusters.goharbor.io",
    );
    await sh(
      "kubectl apply -f samples/harbor/ && kubectl wait --for=condition=Ready secretbinding/harbor-s3 -n registry --timeout=60s",
    );
    await page("docs/tasks/uninstall.md");
    assert.deepEqual(await installed(), []);
    const kept = await sh("kubectl get harborcluster harbor -n registry -o jsonpath={.spec.storage.spec.s3.accesskey}");
    assert.match(kept, /^AKIAEXAMPLE/);
  });

  it("install, upgrade and uninstall it with kustomize, and leave nothing", async () => {
    await page("docs/tasks/install-with-kustomize.md");
    assert.deepEqual(await installed(), []);
  });

  it("use a kustomization with every file of apis, deploy/policies and deploy/manifests, and no other", async () => {
    const folders = ["apis", "deploy/policies", "deploy/manifests"];
    const files = folders.flatMap((folder) => globSync(`${folder}/*.yaml`, { cwd: root }));
    const expected = (await Promise.all(files.map((file) => objectsIn(join(root, file))))).flat();
    const rendered = objectsOf(await sh("kubectl kustomize deploy"));
    const sorted = (objects: typeof rendered) => objects.map((each) => JSON.stringify(sortedKeys(each))).sort();
    assert.deepEqual(sorted(rendered), sorted(expected));
    const kinds = rendered.map(({ kind }) => kind);
    assert.ok(kinds.lastIndexOf("CustomResourceDefinition") < kinds.indexOf("ValidatingAdmissionPolicy"));
    assert.ok(kinds.lastIndexOf("ValidatingAdmissionPolicyBinding") < kinds.indexOf("Deployment"));
  });
});

function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sortedKeys(each)]));
}
