/** Flux's kustomize-controller installs Inlay, and applies, changes and prunes the objects of a team, as the pages describe. */
import assert from "node:assert/strict";
import { inlay } from "../controller/cli.ts";
import { eventually } from "../controller/eventually.ts";
import { runSection, shell } from "../e2e/pages.ts";
import { harbor } from "./files.ts";
import { Flux, urlOf } from "./flux.ts";
import type { Repository } from "./git.ts";
import { BINDING, binding, HARBOR, prepareRegistry, rotate, survivors, untilAccessKey, versionsOf } from "./stories.ts";
import { World } from "./world.ts";

const INSTALL = "docs/tasks/install-with-gitops.md";
const PAGE = "docs/gitops.md";

describe("Flux", function () {
  this.timeout("6m");
  let world: World;
  let platform: Repository;
  let team: Repository;
  let flux: Flux;
  before(async () => {
    world = await World.start("platform", "registry");
    [platform, team] = [world.repository("platform"), world.repository("registry")];
    flux = await Flux.start(world.cluster, [platform, team]);
  });
  afterEach(function () {
    return world.afterEach(this);
  });
  after(() => world?.stop());
  const follow = async (page: string, heading: string, repository: Repository) => {
    const { env, place } = world.reader(repository, urlOf(repository.name));
    await runSection(page, heading, env, place);
  };

  it("installs Inlay as the page says", async () => {
    await follow(INSTALL, "## 1. Commit the manifests", platform);
    await follow(INSTALL, "## 2b. Flux", platform);
    await world.inlay.start();
  });

  it("applies, rotates, prunes and deletes what a team has, as the page says", async () => {
    await follow(PAGE, "## Before you begin", team);
    await follow(PAGE, "## With Flux", team);
  });

  it("writes nothing when it reconciles Inlay again", async () => {
    await flux.reconcile("flux-system", "inlay", 60_000);
    const before = await versionsOf(world);
    assert.ok(before.length > 30, `${before.length} objects`);
    await flux.reconcile("flux-system", "inlay", 60_000);
    assert.deepEqual(await versionsOf(world), before);
  });

  const APPLIED = { path: "./harbor", wait: true, timeout: "3m", retryInterval: "1s" };

  it("reports a path that the kind does not have, and applies the commit with the correction", async () => {
    const accessKey = await prepareRegistry(world);
    const files = { "access/account.yaml": harbor.account, "harbor/harborcluster.yaml": harbor.cluster };
    const wrong = await team.commit({ ...files, "harbor/binding.yaml": binding("spec.storage.spec.s3.acesskey") });
    await flux.kustomize("registry", "access", team, { path: "./access" });
    await flux.kustomize("registry", "registry", team, { ...APPLIED, deletionPolicy: "WaitForTermination" });
    // The timeout is 3 minutes.
    const { message } = await flux.until("registry", "registry", "False", wrong, 30_000);
    assert.match(message, /stalled|failed/i);
    const right = await team.commit({ "harbor/binding.yaml": binding() });
    await flux.until("registry", "registry", "True", right, 30_000);
    await untilAccessKey(world, accessKey);
  });

  it("corrects what a user changes in a binding, and writes no target", async () => {
    await untilAccessKey(world, await rotate(world));
    const { metadata } = await world.api.get(HARBOR);
    await world.api.jsonPatch(BINDING, [{ op: "replace", path: "/spec/targets/0/onRelease", value: "Retain" }]);
    await flux.reconcile("registry", "registry", 60_000);
    assert.equal((await world.api.get(BINDING)).spec.targets[0].onRelease, "Remove");
    assert.equal((await world.api.get(HARBOR)).metadata.resourceVersion, metadata.resourceVersion);
  });

  it("keeps bindings, values, the CRDs and the digest key when the Kustomization of Inlay is renamed", async () => {
    const before = await survivors(world);
    await world.api.delete(flux.path("flux-system", "inlay"));
    await world.untilGone(flux.path("flux-system", "inlay"), 60_000);
    await world.untilGone("/apis/apps/v1/namespaces/inlay-system/deployments/inlay-controller");
    // The kubelet would stop the pods.
    await world.inlay.stop();
    assert.deepEqual(await survivors(world), before);
    const commit = (await platform.pushed()) as string;
    const spec = { path: "./my-cluster", wait: true, timeout: "2m" };
    await flux.kustomize("flux-system", "platform-inlay", platform, spec);
    await flux.until("flux-system", "platform-inlay", "True", commit, 90_000);
    assert.deepEqual(await survivors(world), before);
    await world.inlay.start();
    await untilAccessKey(world, await rotate(world));
  });

  it("gives the command that removes the value if the account is deleted before the binding", async () => {
    await world.api.delete(flux.path("registry", "access"));
    await world.untilGone(flux.path("registry", "access"));
    await team.commit({ "harbor/binding.yaml": null });
    await world.untilGone(BINDING, 120_000);
    await eventually(async () => {
      const { items } = await world.api.get("/apis/events.k8s.io/v1/namespaces/registry/events");
      const found = items.filter(
        ({ reason, regarding }: { reason: string; regarding: { kind: string } }) =>
          reason === "ReleaseAbandoned" && regarding.kind === "HarborCluster",
      );
      assert.equal(found.length, 1);
    });
    const { stdout } = await inlay(world.cluster.kubeconfigFile, "explain", "harborcluster/harbor", "-n", "registry");
    const command = /^ *(kubectl patch .*)$/m.exec(stdout)?.[1] ?? assert.fail(stdout);
    const { place } = world.reader(team);
    await shell(command, {}, place);
    await untilAccessKey(world, undefined);
  });

  it("keeps nothing when Inlay is removed as the page says", async () => {
    await world.api.delete(flux.path("registry", "registry"));
    await world.untilGone(flux.path("registry", "registry"), 60_000);
    await world.api.delete(flux.path("flux-system", "platform-inlay"));
    await world.untilGone(flux.path("flux-system", "platform-inlay"), 60_000);
    await world.inlay.stop();
    await follow(INSTALL, "## Move or remove", platform);
    assert.deepEqual(await versionsOf(world), []);
  });
});
