/** Argo CD and Flux as the API server sees them: they apply what is in git again and again, beside bindings whose values rotate. */
import assert from "node:assert/strict";
import { luaOf } from "../../deploy/argocd/generate.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { age, untilProgress } from "../controller/aged.ts";
import { type AnyObject, unlessGone } from "../controller/api.ts";
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

const WITH_PLACEHOLDER = harborCluster("harbor", { accesskey: "placeholder" });

/** The tools with the settings of `inlay gitops` for the placeholder. They apply it only while the object does not exist. */
const WITH_SETTINGS: Readonly<Record<string, Sync>> = {
  // RespectIgnoreDifferences: it applies the live value.
  "Argo CD": async (team, object, path) => {
    const live = await team.api.get(path).catch(unlessGone);
    const applied = structuredClone(object) as AnyObject;
    if (live !== undefined) applied.spec.storage.spec.s3.accesskey = live.spec.storage.spec.s3.accesskey;
    await team.api.apply(path, applied, "argocd-controller", true);
  },
  // It omits what another manager applies, and otherwise applies the live value.
  Flux: async (team, object, path) => {
    const live = await team.api.get(path).catch(unlessGone);
    const applied = structuredClone(object) as AnyObject;
    const { s3 } = applied.spec.storage.spec;
    if (live !== undefined) s3.accesskey = live.spec.storage.spec.s3.accesskey;
    const isOthers = live?.metadata.managedFields.some(
      ({ manager, operation, fieldsV1 }: AnyObject) =>
        operation === "Apply" &&
        manager !== "kustomize-controller" &&
        fieldsV1["f:spec"]?.["f:storage"]?.["f:spec"]?.["f:s3"]?.["f:accesskey"] !== undefined,
    );
    if (isOthers) delete s3.accesskey;
    await team.api.apply(path, applied, "kustomize-controller", true);
  },
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
    it(`keeps all values of a binding until the release removes them, and Inlay writes once for each rotation: ${tool}`, async () => {
      const team = await createNamespace();
      await team.secret("bucket", { accessKeyID: secretText("first") });
      await team.harbor();
      const inGit = harborCluster("harbor");
      await sync(team, inGit, team.harborPath());
      await team.bind("harbor-s3", accessKeySpec({ onRelease: "Remove" }));
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
      await team.unbind("harbor-s3");
      await sync(team, inGit, team.harborPath());
      assert.equal((await team.s3()).accesskey, undefined);
    });
  }

  for (const [tool, sync] of Object.entries(WITH_SETTINGS)) {
    it(`keeps the value of a field with a placeholder in git if the binding has onConflict: Force, and else causes a conflict: ${tool}`, async () => {
      const team = await createNamespace();
      await team.secret("bucket", { accessKeyID: secretText("first") });
      const inGit = WITH_PLACEHOLDER;
      await sync(team, inGit, team.harborPath());
      await team.bind("harbor-s3", accessKeySpec());
      await team.until("harbor-s3", "Conflict");
      await team.rebind("harbor-s3", accessKeySpec({ onConflict: "Force", onRelease: "Remove" }));
      await team.until("harbor-s3", "Synced");
      const writes = await writesWhile(team, () => sync(team, inGit, team.harborPath()));
      // Argo CD may apply a value that it read before a rotation. Inlay then writes again.
      assert.ok(tool === "Flux" ? writes === ROTATIONS : writes >= ROTATIONS, `${writes} writes`);
    });
  }

  it("is named when a release leaves a value that it owns too, by the event and the status, with the command that removes it", async () => {
    const team = await createNamespace();
    await team.boundHarbor({ onRelease: "Remove" });
    await WITH_SETTINGS["Argo CD"]?.(team, WITH_PLACEHOLDER, team.harborPath());
    const other = { path: "spec.storage.spec.s3.bucket", template: "other" };
    await team.rebind("harbor-s3", accessKeySpec({ onRelease: "Remove", onConflict: "Force", fields: [other] }));
    const { notes } = (await team.until("harbor-s3", "Synced")).status;
    assert.equal(notes?.length, 1);
    assert.match(notes[0], /^did not remove spec\.storage\.spec\.s3\.accesskey \("argocd-controller"\) of /);
    await eventually(async () => {
      const retained = (await team.events("harbor-s3")).filter(({ reason }) => reason === "Retained");
      assert.deepEqual(
        retained.map(({ type, note }) => [type, note]),
        [["Warning", notes[0]]],
      );
    });
    assert.notEqual((await team.s3()).accesskey, undefined);
    const [, kind, name, patch] = /with: kubectl patch (\S+) (\S+) -n \S+ --type=json -p '(.*)'$/.exec(notes[0]) ?? [];
    await controlPlane().kubectl("patch", `${kind}`, `${name}`, "-n", team.namespace, "--type=json", "-p", `${patch}`);
    assert.equal((await team.s3()).accesskey, undefined);
  });

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
    await age(team.api, team.bindingPath("harbor-s3"));
    await untilProgress(team.api, team.bindingPath("harbor-s3"), "Stalled SourceNotFound");
    assert.deepEqual(await healthOf(await team.binding("harbor-s3")), ["Degraded", "Failed"]);
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
