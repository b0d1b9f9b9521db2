/** Argo CD installs Inlay, and applies, heals and prunes the objects of a team, as the pages describe. */
import assert from "node:assert/strict";
import { runSection } from "../e2e/pages.ts";
import { ArgoCd } from "./argo-cd.ts";
import { harbor, inWave } from "./files.ts";
import type { Repository } from "./git.ts";
import { BINDING, binding, HARBOR, prepareRegistry, rotate, survivors, untilAccessKey, versionsOf } from "./stories.ts";
import { World } from "./world.ts";

const INSTALL = "docs/tasks/install-with-gitops.md";
const PAGE = "docs/gitops.md";

describe("Argo CD", function () {
  this.timeout("6m");
  let world: World;
  let platform: Repository;
  let team: Repository;
  let argoCd: ArgoCd;
  before(async () => {
    world = await World.start("platform", "registry");
    [platform, team] = [world.repository("platform"), world.repository("registry")];
    argoCd = await ArgoCd.start(world.cluster);
  });
  afterEach(function () {
    return world.afterEach(this);
  });
  after(() => world?.stop());
  const follow = async (page: string, heading: string, repository: Repository) => {
    const { env, place } = world.reader(repository);
    await runSection(page, heading, env, place);
  };

  it("installs Inlay as the page says", async () => {
    await follow(INSTALL, "## 1. Commit the manifests", platform);
    await follow(INSTALL, "## 2a. Argo CD", platform);
    await world.inlay.start();
  });

  it("applies, rotates, prunes and deletes what a team has, as the page says", async () => {
    await follow(PAGE, "## Before you begin", team);
    await follow(PAGE, "## With Argo CD", team);
  });

  it("writes nothing when it syncs Inlay again", async () => {
    const before = await versionsOf(world);
    assert.ok(before.length > 30, `${before.length} objects`);
    await argoCd.sync("inlay");
    assert.deepEqual(await versionsOf(world), before);
  });

  it("shows a path that the kind does not have as Degraded, and applies the commit with the correction", async () => {
    const accessKey = await prepareRegistry(world);
    const LAST = { "argocd.argoproj.io/sync-wave": "1" };
    const wrong = await team.commit({
      "account.yaml": inWave(harbor.account, "-1"),
      "harborcluster.yaml": harbor.cluster,
      "binding.yaml": binding("spec.storage.spec.s3.acesskey", LAST),
    });
    const retry = { limit: 5, refresh: true, backoff: { duration: "1s", factor: 1 } };
    await argoCd.application("registry", team, { path: "." }, { retry });
    await argoCd.untilHealth("registry", wrong, "Degraded");
    const right = await team.commit({ "binding.yaml": binding(undefined, LAST) });
    await argoCd.until("registry", right);
    await untilAccessKey(world, accessKey);
  });

  it("leaves values and their owner alone at each sync, also while they rotate", async () => {
    for (let n = 0; n < 3; n++) {
      await untilAccessKey(world, await rotate(world));
      await argoCd.sync("registry");
    }
    const { metadata } = await world.api.get(HARBOR);
    await argoCd.sync("registry");
    const now = (await world.api.get(HARBOR)).metadata;
    assert.equal(now.resourceVersion, metadata.resourceVersion);
    const owners = now.managedFields.filter((each: object) => JSON.stringify(each).includes("accesskey"));
    assert.deepEqual(
      owners.map(({ manager }: { manager: string }) => manager),
      ["inlay/registry/harbor-s3"],
    );
  });

  it("needs no setting for the binding, as the page says", () => follow(PAGE, "## Settings for your bindings", team));

  it("keeps bindings, values, the CRDs and the digest key when the Application of Inlay is replaced by one of the chart", async () => {
    const before = await survivors(world);
    // The Application of the page has no finalizer. Most users set one.
    const finalizers = ["resources-finalizer.argocd.argoproj.io"];
    await world.api.merge(argoCd.path("inlay"), { metadata: { finalizers } });
    await world.api.delete(argoCd.path("inlay"));
    await world.untilGone(argoCd.path("inlay"), 60_000);
    await world.untilGone("/apis/apps/v1/namespaces/inlay-system/deployments/inlay-controller");
    // The kubelet would stop the pods.
    await world.inlay.stop();
    assert.deepEqual(await survivors(world), before);
    const helm = { releaseName: "inlay" };
    await argoCd.application("inlay-chart", platform, { path: "inlay/deploy/chart", helm }, {}, "inlay-system");
    await argoCd.until("inlay-chart", (await platform.pushed()) as string);
    assert.deepEqual(await survivors(world), before);
    await world.inlay.start();
    await untilAccessKey(world, await rotate(world));
    const versions = await versionsOf(world);
    await argoCd.sync("inlay-chart");
    assert.deepEqual(await versionsOf(world), versions);
  });

  it("deletes a binding before its account in an earlier wave, so that the value is removed", async () => {
    await team.commit({ "binding.yaml": null, "account.yaml": null });
    await argoCd.refresh("registry");
    await world.untilGone(BINDING, 60_000);
    await untilAccessKey(world, undefined);
  });
});
