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
 * What a write of the object changes. Controllers write the status and aggregated rules meanwhile. The API server sorts managedFields by
 * times, also where a write changes nothing.
 */
function contentOf({ status: _, metadata, ...rest }: AnyObject): AnyObject {
  const { resourceVersion: __, managedFields = [], ...known } = metadata;
  const own = managedFields.filter(({ manager }: AnyObject) => manager === ARGO_CD);
  const owns = own.map(({ fieldsV1 }: AnyObject) => fieldsV1);
  return { ...rest, ...(rest.aggregationRule && { rules: rest.rules?.length > 0 }), metadata: { ...known, owns } };
}

interface Pair {
  git: AnyObject;
  live: AnyObject;
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

  /** Asserts that applying an object again changes nothing, also for clients that do not force it. */
  async function assertStays({ git, live }: Pair): Promise<void> {
    assert.deepEqual(contentOf(await api.apply(await pathOf(api, git), git, ARGO_CD)), contentOf(live));
  }

  /** Asserts that Argo CD shows no difference, with and without ServerSideApply=true. */
  async function assertSynced(pairs: readonly Pair[]): Promise<void> {
    const schemas = await eventually(async () => {
      const published = await api.get("/openapi/v2");
      const text = JSON.stringify(published);
      for (const { kind } of pairs.map(({ git }) => git)) assert.ok(text.includes(`"kind":"${kind}"`), kind);
      return published;
    });
    const diffs = await diffsOf(schemas, pairs);
    const named = pairs.map(({ git: { kind, metadata } }, index) => [`${kind} ${metadata.name}`, diffs[index]]);
    assert.deepEqual(
      named.filter(([, diff]) => Object.keys(diff as object).length > 0),
      [],
    );
  }

  /** The object after the controllers of Kubernetes have added what is theirs. */
  const pairOf = (git: AnyObject): Promise<Pair> =>
    eventually(async () => {
      const live = await api.get(await pathOf(api, git));
      if (git.aggregationRule) assert.ok(live.rules?.length, git.metadata.name);
      if (git.kind === "Deployment") assert.equal(live.status?.observedGeneration, live.metadata.generation);
      return { git, live };
    });

  const chartWith = async (values: object) => {
    const args = ["template", "inlay", chart, "-n", HOME, "--no-hooks", "--kube-version", KUBERNETES];
    const set = Object.entries(values).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]);
    return objectsOf((await helm([...args, ...set])).stdout);
  };

  it("is in git as the API server stores it: samples, compositions and examples", async () => {
    const crds = await filesIn("apis/*.yaml", "{samples,compositions}/*/crd/*.yaml");
    await applyObjects(api, crds, ARGO_CD);
    const shipped = await filesIn("{samples,compositions}/**/!(crd)/*.yaml", "apis/examples/*.yaml");
    const pairs: Pair[] = [];
    for (const object of shipped) {
      // A patch of a status, and the configuration of the controller, are no objects of git.
      if (object.status !== undefined || object.apiVersion === undefined || object.metadata === undefined) continue;
      const git = await placed(object);
      await applyObjects(api, [git], ARGO_CD);
      const pair = await pairOf(git);
      await assertStays(pair);
      pairs.push(pair);
    }
    assert.ok(pairs.length > 200);
    await assertSynced([...(await Promise.all(crds.map(pairOf))), ...pairs]);
  });

  /** The object in the namespace that its page names, which exists. */
  async function placed(object: AnyObject): Promise<AnyObject> {
    const { namespace = "default" } = object.metadata;
    const git = { ...object, metadata: { ...object.metadata, namespace } };
    if (!(await pathOf(api, git)).includes(`/namespaces/${namespace}/`)) return object;
    await applyObjects(api, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }], "test");
    return git;
  }

  it("changes nothing after Kubernetes and Inlay have added what is theirs: deploy/ and the chart", async () => {
    // deploy/namespaced is the chart with the scope Namespace.
    const installed: AnyObject[][] = [
      await filesIn("apis/*.yaml", "deploy/{policies,manifests}/**/*.yaml"),
      await chartWith({ ...EVERYTHING, scope: "Cluster" }),
      await chartWith({ ...EVERYTHING, scope: "Namespace" }),
    ];
    for (const objects of installed) {
      await applyObjects(api, objects, ARGO_CD);
      if (objects.some(({ kind }) => kind === "Secret"))
        await api.merge(KEY, { data: { primary: "bm90LWEta2V5" } }, "inlay-controller");
      const pairs = await Promise.all(objects.map(pairOf));
      await Promise.all(pairs.map(assertStays));
      await assertSynced(pairs);
    }
  });
});
