/**
 * Shows that nothing is lost when Inlay is removed in the wrong order: if its CRDs are deleted before its bindings, all values and
 * objects stay, and Inlay works again when the CRDs are back.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import {
  compose,
  compositionPath,
  HARBOR_CLAIMS,
  installCompositions,
  READS_SECRETS,
  removeCompositions,
  untilComposition,
} from "../controller/compositions.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { guard } from "../controller/guarded.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { applyFile } from "../controller/manifests.ts";
import { Installation } from "../controller/one-namespace.ts";
import { accessKeyFrom, untilEvent } from "../controller/released.ts";
import { accessKeySpec, createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const apis = join(import.meta.dirname, "..", "..", "apis");
const CRDS = ["secretbindings", "secretgrants", "vaultconnections", "bindingcompositions"].map(
  (plural) => `crd/${plural}.inlay.dev`,
);
/** The garbage collector looks for new kinds every 30 seconds. */
const FOLLOWED_WITHIN_MS = 90_000;

const creates = {
  apiGroups: [""],
  resources: ["secrets", "configmaps"],
  verbs: ["get", "list", "watch", "create", "patch", "delete"],
};
const created = (kind: "Secret" | "ConfigMap", name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind,
  name,
  create: { manifest: {} },
  fields: [{ path: "data.token", ...(kind === "Secret" ? accessKeyFrom : { template: "x" }) }],
  ...more,
});
const sources = [{ secret: { name: "bucket" } }];

describe("a removal of Inlay in the wrong order", function () {
  this.timeout("3m");
  let api: Api;
  let controller: ControllerProcess;
  let team: TestNamespace;
  let other: TestNamespace;
  let inUse: object;

  before(async () => {
    api = new Api(controlPlane());
    await installCompositions([...HARBOR_CLAIMS, READS_SECRETS]);
    controller = new ControllerProcess(controlPlane());
    await controller.start();
  });
  after(async () => {
    await removeCompositions();
    await controller.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  const path = (plural: string, name: string, { namespace }: TestNamespace = team) =>
    `/api/v1/namespaces/${namespace}/${plural}/${name}`;
  /** The objects that Inlay created, and the fields that it wrote, with the number of owners that the garbage collector knows. */
  async function written(): Promise<{ values: object; owners: number }> {
    const copies = [path("secrets", "copied"), path("secrets", "copied", other)];
    const objects = [...copies, path("configmaps", "guarded"), path("configmaps", "composed")];
    const found = await Promise.all(objects.map((each) => api.get(each)));
    const values = found.map(({ metadata, data }: AnyObject) => ({ uid: metadata.uid, data }));
    const owners = found.flatMap(({ metadata }: AnyObject) => metadata.ownerReferences ?? []).length;
    return { values: [await team.s3(), ...values], owners };
  }

  /** Creates an object of which only the garbage collector knows that the binding owns it. Returns its path. */
  async function owned(binding: string): Promise<string> {
    const { apiVersion, kind, metadata } = await team.binding(binding);
    const ownerReferences = [{ apiVersion, kind, name: binding, uid: metadata.uid }];
    await api.create(team.path("v1", "configmaps"), { metadata: { name: binding, ownerReferences } });
    return path("configmaps", binding);
  }

  /** Creates bindings that would release in every way. */
  beforeEach(async () => {
    other = await createNamespace({ controller: false });
    team = await createNamespace({ controller: false, rules: [...usualRules, creates] });
    await team.grant([creates], { role: "of-team", namespace: other.namespace });
    await team.boundHarbor({ onRelease: "Remove" });
    const targets = [created("Secret", "copied"), created("Secret", "copied", { namespace: other.namespace })];
    await team.bind("copy", { sources, targets });
    const writers = [{ kind: "SecretBinding", name: "copy" }] as const;
    const protects = [{ secret: { name: "copied" }, protect: { writers: [...writers] } }];
    await api.create(
      team.path("inlay.dev/v1alpha1", "secretbindings"),
      guard(protects, { targets: [created("ConfigMap", "guarded")] }),
    );
    const base = { spec: { sources, targets: [created("ConfigMap", "composed")] } };
    await compose(team, "made", { bindings: [{ name: "made", base, patches: [] }] });
    await untilComposition(team, "made", "Ready");
    for (const name of ["copy", "guard"]) await team.until(name, "Synced");
    const { values, owners } = await written();
    assert.equal(owners, 3);
    inUse = values;
  });

  afterEach(() => applyFile(api, apis));

  async function assertAllStays(): Promise<void> {
    assert.deepEqual(await written(), { values: inUse, owners: 0 });
    await untilEvent(team, "copy", "Retained", /kept all values and objects/);
  }

  it("keeps all values and objects, and the same process works when the CRDs are back", async () => {
    const { pid } = controller;
    // The garbage collector follows bindings.
    await team.bind("probe", { ...accessKeySpec(), suspend: true });
    const probe = await owned("probe");
    await team.unbind("probe");
    await team.untilGone(probe, FOLLOWED_WITHIN_MS);
    const collected = await owned("copy");
    await controlPlane().kubectl("delete", ...CRDS, "--timeout=60s");
    await team.untilGone(collected);
    await assertAllStays();
    await eventually(async () => assert.match(await controller.page("/readyz"), /failed: inlay\.dev\/secretbindings/));
    await applyFile(api, apis);
    await team.bind("harbor-s3", accessKeySpec({ onRelease: "Remove" }));
    await team.until("harbor-s3", "Synced");
    await team.unbind("harbor-s3");
    assert.equal((await team.s3()).accesskey, undefined);
    const adopting = created("Secret", "copied", { create: { manifest: {}, adopt: "Equal" } });
    await team.bind("copy", { sources, targets: [adopting] });
    await team.until("copy", "Synced");
    assert.equal(controller.pid, pid);
  });

  it("keeps them also if no controller runs, and the CRDs go as soon as one does", async () => {
    await controller.stop();
    await controlPlane().kubectl("delete", ...CRDS, "--wait=false");
    await eventually(async () => assert.ok((await team.binding("copy")).metadata.deletionTimestamp));
    await controller.start();
    await controlPlane().kubectl("wait", "--for=delete", ...CRDS, "--timeout=90s");
    await assertAllStays();
    assert.equal(await api.find(compositionPath(team, "made")), undefined);
  });

  it("keeps them also in an installation for one namespace, which may not read CRDs", async () => {
    await controller.stop();
    const one = new Installation(team);
    await one.apply("*.yaml");
    await one.start();
    try {
      await controlPlane().kubectl("delete", "crd/secretbindings.inlay.dev", "--timeout=60s");
      const { values, owners } = await written();
      assert.deepEqual([values, owners], [inUse, 0]);
    } finally {
      await one.stop();
      await controller.start();
    }
  });
});
