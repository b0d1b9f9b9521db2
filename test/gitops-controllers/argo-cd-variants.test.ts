/** What the pages say beyond their one path, with Argo CD: waves that fail, hooks, the ways to compare and to apply, placeholders. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { install } from "../control-plane/install.ts";
import type { AnyObject } from "../controller/api.ts";
import { sumIn } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { root } from "../e2e/pages.ts";
import { ArgoCd } from "./argo-cd.ts";
import { harbor, inWave, shipped, withPlaceholder } from "./files.ts";
import type { Repository } from "./git.ts";
import {
  BINDING,
  binding,
  COPIES,
  COPY,
  HARBOR,
  prepareCopies,
  prepareRegistry,
  printed,
  rotate,
  untilAccessKey,
} from "./stories.ts";
import { World } from "./world.ts";

const HOOK = "/api/v1/namespaces/registry/configmaps/after";
const COMPARED = "argocd.argoproj.io/compare-options";

describe("Argo CD, in further cases", function () {
  this.timeout("6m");
  let world: World;
  let team: Repository;
  let shop: Repository;
  let argoCd: ArgoCd;
  let accessKey: string;
  before(async () => {
    world = await World.start("registry", "shipped");
    [team, shop] = [world.repository("registry"), world.repository("shipped")];
    await install(world.cluster);
    await world.cluster.kubectl("apply", "-f", join(root, "deploy/manifests/optional/compositions.yaml"));
    argoCd = await ArgoCd.start(world.cluster);
    accessKey = await prepareRegistry(world);
    await world.inlay.start();
  });
  afterEach(function () {
    return world.afterEach(this);
  });
  after(() => world?.stop());

  it("fails a wave after a minute if the Secret of a binding never comes, and applies a later commit up to the hooks", async () => {
    const metadata = { name: "after", namespace: "registry", annotations: { "argocd.argoproj.io/hook": "PostSync" } };
    const stuck = await team.commit({
      "account.yaml": inWave(harbor.account, "-1"),
      "harborcluster.yaml": harbor.cluster,
      "binding.yaml": binding().replaceAll('"bucket"', '"missing"'),
      "after.yaml": JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata }),
    });
    await argoCd.application("registry", team, { path: "." }, { retry: { limit: 0 } });
    const { operationState } = await eventually(async () => {
      const { status } = await world.api.get(argoCd.path("registry"));
      assert.equal(status?.operationState?.phase, "Failed", JSON.stringify(status?.operationState));
      return status;
    }, 120_000);
    assert.equal(operationState.syncResult.revision, stuck);
    const seconds = (Date.parse(operationState.finishedAt) - Date.parse(operationState.startedAt)) / 1000;
    assert.ok(seconds < 90, `${seconds} seconds`);
    assert.equal(await world.api.find(HOOK), undefined);

    const right = await team.commit({ "binding.yaml": binding() });
    await argoCd.until("registry", right);
    await untilAccessKey(world, accessKey);
    const hook = await world.api.get(HOOK);
    const { managedFields } = (await world.api.get(HARBOR)).metadata;
    const written = managedFields.find(({ manager }: AnyObject) => manager === "inlay/registry/harbor-s3");
    assert.ok(written.time <= hook.metadata.creationTimestamp, `${written.time} ${hook.metadata.creationTimestamp}`);
  });

  it("finds no difference with ServerSideDiff", async () => {
    const path = argoCd.path("registry");
    const label = 'dry_run="All",group="inlay.dev",resource="secretbindings"';
    const dryRuns = async () => sumIn((await world.api.get("/metrics")).message, "apiserver_request_total", label);
    const before = await dryRuns();
    await world.api.merge(path, { metadata: { annotations: { [COMPARED]: "ServerSideDiff=true" } } });
    await untilAccessKey(world, await rotate(world));
    await argoCd.refresh("registry");
    await eventually(async () => assert.ok((await dryRuns()) > before));
    const { reconciledAt } = (await world.api.get(path)).status;
    await argoCd.refresh("registry");
    await eventually(async () => {
      const { status } = await world.api.get(path);
      assert.notEqual(status.reconciledAt, reconciledAt);
      assert.equal(status.sync.status, "Synced", JSON.stringify(status.resources));
    });
  });

  it("takes the value from a target with Replace=true for a moment", async () => {
    const annotation = 'metadata:\n  annotations: { argocd.argoproj.io/sync-options: "Replace=true" }\n';
    await argoCd.until(
      "registry",
      await team.commit({ "harborcluster.yaml": harbor.cluster.replace("metadata:\n", annotation) }),
    );
    const rotated = await rotate(world);
    await untilAccessKey(world, rotated);
    const ended = new AbortController();
    const seen = accessKeys(world, ended.signal);
    await argoCd.sync("registry");
    await untilAccessKey(world, rotated);
    ended.abort();
    assert.deepEqual(await seen, [rotated, undefined, rotated]);
  });

  it("leaves the value where git has a placeholder, with the settings that inlay gitops prints", async () => {
    await argoCd.until("registry", await team.commit({ "harborcluster.yaml": null, "binding.yaml": null }));
    await world.untilGone(HARBOR);
    const files = (version: string) => ({
      "harborcluster.yaml": withPlaceholder(version),
      "binding.yaml": binding(undefined, {}, { onConflict: "Force" }),
    });
    const commit = await team.commit(files("2.5.0"));
    await world.api.merge(argoCd.path("registry"), parse(await printed("argocd", ".", world, team)));
    await argoCd.until("registry", commit);
    await world.untilReason(BINDING, "Synced");
    const rotated = await rotate(world);
    await untilAccessKey(world, rotated);
    const { generation } = (await world.api.get(HARBOR)).metadata;
    await argoCd.until("registry", await team.commit(files("2.5.1")));
    const { metadata, spec } = await world.api.get(HARBOR);
    assert.deepEqual([spec.version, spec.storage.spec.s3.accesskey], ["2.5.1", rotated]);
    assert.equal(metadata.generation, generation + 1);
  });

  it("prunes a composition that has created copies only when the commit before has the annotation", async () => {
    const { composition, annotated } = await prepareCopies(world);
    const file = "copies/composition.yaml";
    // Argo CD refuses an automated sync that prunes everything.
    const other = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "other", namespace: "registry" } };
    const added = await shop.commit({ [file]: composition, "copies/other.yaml": JSON.stringify(other) });
    await argoCd.application("copies", shop, { path: "copies" }, { retry: { limit: 0 } });
    await argoCd.until("copies", added);
    await world.untilReason(COPIES, "Synced");
    await shop.commit({ [file]: null });
    await argoCd.refresh("copies");
    await eventually(async () => {
      const { phase, syncResult } = (await world.api.get(argoCd.path("copies"))).status.operationState;
      assert.equal(phase, "Failed");
      assert.match(JSON.stringify(syncResult.resources), /inlay\.dev\/delete-copies=true/);
    });
    await argoCd.until("copies", await shop.commit({ [file]: annotated }));
    await argoCd.until("copies", await shop.commit({ [file]: null }));
    await world.untilGone("/apis/inlay.dev/v1alpha1/bindingcompositions/replicator");
    await world.untilGone(COPY);
  });

  it("shows what Inlay ships as Synced with server-side apply", async () => {
    for (const name of ["platform", "vault-registry"]) await world.cluster.kubectl("create", "namespace", name);
    const folders = ["samples/vault", "compositions/shared-secret", "compositions/replicator", "apis/examples"];
    const commit = await shop.commit(
      Object.assign({}, ...folders.map((folder) => shipped(folder, join("shipped", folder)))),
    );
    const syncOptions = ["ServerSideApply=true"];
    await argoCd.application("shipped", shop, { path: "shipped", directory: { recurse: true } }, { syncOptions });
    const path = argoCd.path("shipped");
    const untilSynced = () =>
      eventually(async () => {
        const { sync, operationState, resources = [] } = (await world.api.get(path)).status ?? {};
        const others = resources.filter(({ status }: AnyObject) => status !== "Synced");
        assert.deepEqual(
          [sync?.revision, sync?.status, operationState?.phase, others],
          [commit, "Synced", "Succeeded", []],
          operationState?.message,
        );
      }, 60_000);
    await untilSynced();
    await argoCd.sync("shipped");
    await untilSynced();
  });
});

/** The access keys that the HarborCluster has in turn, from now until the signal aborts. */
async function accessKeys({ api }: World, ended: AbortSignal): Promise<(string | undefined)[]> {
  const keys: (string | undefined)[] = [];
  try {
    for await (const { object } of api.watch(
      "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters",
      600,
      ended,
    )) {
      const key = object.spec.storage.spec.s3.accesskey;
      if (keys.length === 0 || keys.at(-1) !== key) keys.push(key);
    }
  } catch (error) {
    if (!ended.aborted) throw error;
  }
  return keys;
}
