/** Every file that the project ships stays as it is applied: applying it again changes nothing, and Argo CD sees no difference. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { applyObjects, objectsIn, objectsOf, pathOf } from "../controller/manifests.ts";
import { diffsOf, useTools } from "../gitops/tools.ts";
import { chart, helm, KUBERNETES } from "../helm/helm.ts";
import { root } from "./pages.ts";

const ARGO_CD = "argocd-controller";
const HOME = "inlay-system";
const KEY = `/api/v1/namespaces/${HOME}/secrets/inlay-digest-key`;
const on = { enabled: true };
/** The values that turn everything on. The kinds of the Prometheus operator are not installed. */
const EVERYTHING = {
  compositions: on,
  dashboard: on,
  clusterAccess: true,
  clusterWideWatches: { workloads: true, secrets: true },
  config: {
    reloader: { namespaces: ["default"], jobs: true, runCronJobs: true },
    notifications: [{ name: "ops", type: "Slack", url: { secret: { name: "a", key: "b" } } }],
  },
  policies: { authorAnnotation: true, reserveAccounts: true },
};

/**
 * What a write of the object changes. Controllers write the status meanwhile. The API server sorts managedFields by times, also where a
 * write changes nothing.
 */
function contentOf({ status: _, metadata, ...rest }: AnyObject): AnyObject {
  const { resourceVersion: __, managedFields, ...known } = metadata;
  const owners = managedFields
    .filter(({ subresource }: AnyObject) => subresource !== "status")
    .map(({ manager, operation, fieldsV1 }: AnyObject) => [manager, operation, fieldsV1]);
  return { ...rest, metadata: { ...known, owners: new Set(owners) } };
}

const filesIn = async (...patterns: string[]): Promise<AnyObject[]> => {
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: root }).sort());
  assert.ok(files.length > 0);
  return (await Promise.all(files.map((file) => objectsIn(join(root, file))))).flat();
};

describe("a shipped file that is applied again", function () {
  this.timeout("2m");
  let cluster: ControlPlane;
  let api: Api;

  before(async () => {
    await useTools();
    cluster = await startControlPlane();
    api = new Api(cluster);
  });
  after(() => cluster?.stop());

  /** Asserts that applying the objects again changes nothing, also for clients that do not force it, and that Argo CD's diff is empty. */
  async function assertUnchanged(pairs: { git: AnyObject; live: AnyObject }[]): Promise<void> {
    await Promise.all(
      pairs.map(async ({ git, live }) => {
        const again = await api.apply(await pathOf(api, git), git, ARGO_CD);
        assert.deepEqual(contentOf(again), contentOf(live));
      }),
    );
    const diffs = await diffsOf(await api.get("/openapi/v2"), pairs);
    assert.deepEqual(
      pairs.map(({ git: { kind, metadata } }, index) => [kind, metadata.name, diffs[index]]),
      pairs.map(({ git: { kind, metadata } }) => [kind, metadata.name, {}]),
    );
  }

  const chartWith = async (values: object) => {
    const args = ["template", "inlay", chart, "-n", HOME, "--no-hooks", "--kube-version", KUBERNETES];
    const set = Object.entries(values).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]);
    return objectsOf((await helm([...args, ...set])).stdout);
  };

  it("changes nothing after Kubernetes and Inlay have added what is theirs: deploy/ and the chart", async () => {
    const installed: AnyObject[][] = [
      await filesIn("apis/*.yaml", "deploy/{policies,manifests}/**/*.yaml"),
      await filesIn("deploy/namespaced/**/*.yaml"),
      ...(await Promise.all(["Cluster", "Namespace", "None"].map((scope) => chartWith({ ...EVERYTHING, scope })))),
    ];
    await applyObjects(api, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "registry" } }]);
    for (const objects of installed) {
      await applyObjects(api, objects, ARGO_CD);
      if (objects.some(({ kind }) => kind === "Secret"))
        await api.merge(KEY, { data: { primary: "bm90LWEta2V5" } }, "inlay-controller");
      await eventually(async () => {
        for (const object of objects) {
          const { metadata, rules, status } = await api.get(await pathOf(api, object));
          if (object.aggregationRule) assert.ok(rules?.length, metadata.name);
          if (object.kind === "Deployment") assert.equal(status?.observedGeneration, metadata.generation);
        }
      });
      const live = async (git: AnyObject) => ({ git, live: await api.get(await pathOf(api, git)) });
      await assertUnchanged(await Promise.all(objects.map(live)));
    }
  });
});
