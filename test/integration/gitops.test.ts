/** Argo CD and Flux as the API server sees them: they apply what is in git again and again, beside bindings whose values rotate. */
import assert from "node:assert/strict";
import { luaOf } from "../../deploy/argocd/generate.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { harborCluster } from "../controller/harbor.ts";
import { secretText } from "../controller/leak-detector.ts";
import { accessKeySpec, createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";
import { kstatusOf, runLua, useTools } from "../gitops/tools.ts";

const ROTATIONS = 3;
/** How often a tool applies between two rotations. */
const SYNCS = 3;
const KUBECTL = "kubectl.kubernetes.io/last-applied-configuration";

/** Applies what is in git, as a tool does. */
type Sync = (team: TestNamespace, object: object, path: string) => Promise<unknown>;

const forcedBy =
  (manager: string): Sync =>
  (team, object, path) =>
    team.api.apply(path, object, manager, true);

const TOOLS: Readonly<Record<string, Sync>> = {
  "Argo CD with server-side apply": forcedBy("argocd-controller"),
  "Argo CD with client-side apply": (team, object) => {
    const { metadata, ...rest } = object as AnyObject;
    const stdin = JSON.stringify({ ...rest, metadata: { ...metadata, namespace: team.namespace } });
    return controlPlane().kubectlWith({ stdin }, "apply", "--filename=-");
  },
  // It removes the fields of kubectl, unless the object has the annotation ssa: Merge.
  Flux: async (team, object, path) => {
    const { metadata } = await team.api.get(path);
    const entries = metadata.managedFields.filter(({ manager }: AnyObject) => !/^kubectl|^before-first/.test(manager));
    if (entries.length < metadata.managedFields.length)
      await team.api.jsonPatch(path, [{ op: "replace", path: "/metadata/managedFields", value: entries }]);
    await forcedBy("kustomize-controller")(team, object, path);
  },
  "Flux with ssa: Merge": forcedBy("kustomize-controller"),
};

/** Writes of the HarborCluster by Inlay while the Secret rotates and the tool applies. */
async function writesWhile(team: TestNamespace, sync: () => Promise<unknown>): Promise<number> {
  const requests = await team.requestsDuring(async () => {
    for (let rotation = 0; rotation < ROTATIONS; rotation++) {
      const accessKeyID = secretText("rotated");
      await team.secret("bucket", { accessKeyID });
      for (let n = 0; n < SYNCS; n++) await sync();
      await eventually(async () => assert.equal((await team.s3()).accesskey, accessKeyID));
      await sync();
      assert.equal((await team.s3()).accesskey, accessKeyID);
    }
  });
  return requests.filter(
    ({ verb, name, resource }) => verb === "patch" && name === "harbor" && /harborclusters$/.test(resource),
  ).length;
}

describe("a GitOps tool that applies again and again", function () {
  this.timeout("2m");
  before(() => installCompositions());
  after(() => removeCompositions());

  for (const [tool, sync] of Object.entries(TOOLS)) {
    it(`keeps all values of a binding, and Inlay writes once for each rotation: ${tool}`, async () => {
      const team = await createNamespace();
      await team.secret("bucket", { accessKeyID: secretText("first") });
      await team.harbor();
      const inGit = harborCluster("harbor");
      await sync(team, inGit, team.harborPath());
      await team.bind("harbor-s3", accessKeySpec());
      const { spec, metadata } = await team.until("harbor-s3", "Synced");
      const binding = {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "SecretBinding",
        metadata: { name: "harbor-s3" },
        spec,
      };
      const both = async () => {
        await sync(team, inGit, team.harborPath());
        await sync(team, binding, team.bindingPath("harbor-s3"));
      };
      assert.equal(await writesWhile(team, both), ROTATIONS);
      const now = (await team.until("harbor-s3", "Synced")).metadata;
      assert.deepEqual([now.generation, now.finalizers], [metadata.generation, ["inlay.dev/release"]]);
      assert.deepEqual(
        (await team.events("harbor-s3")).filter(({ type }) => type === "Warning"),
        [],
      );
    });
  }

  it("keeps generated bindings and their values, when it applies only the claim", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("first") });
    const inGit = harborCluster("harbor");
    const sync = () => forcedBy("argocd-controller")(team, inGit, team.harborPath());
    await sync();
    await compose(team, "harbor", { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] });
    const { metadata } = await team.until("harbor-s3", "Synced");
    assert.equal(await writesWhile(team, sync), ROTATIONS);
    const now = (await team.until("harbor-s3", "Synced")).metadata;
    assert.deepEqual([now.uid, now.generation], [metadata.uid, metadata.generation]);
  });

  it("is named when it applies an atomic list of which a binding writes an element, and the fight is reported", async () => {
    const team = await createNamespace();
    const host = secretText("host");
    await team.secret("bucket", { host });
    const inGit = harborCluster("harbor");
    await team.harbor();
    const sync = () => forcedBy("argocd-controller")(team, inGit, team.harborPath());
    await sync();
    const target = harborTarget({});
    const fields = [{ path: "spec.database.spec.postgresql.hosts[0].host", from: { source: "bucket", key: "host" } }];
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets: [{ ...target, fields }] });
    const hostIn = async () =>
      (await team.api.get(team.harborPath())).spec.database.spec.postgresql.hosts[0].host as string;
    await eventually(async () => assert.equal(await hostIn(), host));
    await eventually(async () => {
      const notes = (await team.events("harbor-s3")).filter(({ reason }) => reason === "Written");
      assert.match(notes.map(({ note }) => note).join("\n"), /hosts.*argocd-controller/);
    });
    const reported = await eventually(async () => {
      await sync();
      const { status } = await team.binding("harbor-s3");
      assert.equal(status.conditions[0].reason, "Contended");
      return status.conditions as AnyObject[];
    }, 30_000);
    assert.match(reported[0]?.["message"], /argocd-controller/);
    assert.deepEqual(
      reported.map(({ type }) => type),
      ["Ready", "Reconciling"],
    );
    await eventually(async () => assert.equal(await hostIn(), host), 30_000);
  });
});

describe("the health of a binding on the cluster", function () {
  this.timeout("2m");
  before(useTools);

  const script = luaOf("health.lua");
  const healthOf = async (binding: AnyObject) => [(await runLua(script, binding))["status"], await kstatusOf(binding)];

  it("is Progressing, Degraded, Suspended or Healthy in Argo CD, and the same by kstatus", async () => {
    const unseen = await createNamespace({ controller: false });
    const created = await unseen.bind("harbor-s3", accessKeySpec());
    assert.deepEqual(await healthOf(await unseen.api.get(unseen.bindingPath("harbor-s3"))), [
      "Progressing",
      "InProgress",
    ]);
    assert.equal(created.status.observedGeneration, -1);

    const team = await createNamespace();
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    assert.deepEqual(await healthOf(await team.until("harbor-s3", "SourceNotFound")), ["Progressing", "InProgress"]);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    assert.deepEqual(await healthOf(await team.until("harbor-s3", "Synced")), ["Healthy", "Current"]);
    await team.rebind("harbor-s3", accessKeySpec({ fields: [{ path: "status.a", template: "a" }] }));
    assert.deepEqual(await healthOf(await team.until("harbor-s3", "ForbiddenPath")), ["Degraded", "Failed"]);

    // The actions of Argo CD change the object that it then applies.
    const act = async (action: string) => {
      const changed = await runLua(luaOf(`actions/${action}.lua`), await team.api.get(team.bindingPath("harbor-s3")));
      const { metadata, spec } = changed as AnyObject;
      await team.api.merge(team.bindingPath("harbor-s3"), {
        metadata: { annotations: metadata.annotations },
        spec: { suspend: spec.suspend },
      });
    };
    await act("suspend");
    assert.deepEqual(await healthOf(await team.until("harbor-s3", "Suspended")), ["Suspended", "InProgress"]);
    await act("resume");
    await team.until("harbor-s3", "ForbiddenPath");
    await act("sync-now");
    const { annotations } = (await team.binding("harbor-s3")).metadata;
    assert.match(annotations["inlay.dev/refresh"], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(annotations[KUBECTL], undefined);
  });
});
