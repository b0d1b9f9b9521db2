/** Flux's kustomize-controller installs Inlay, and applies, changes and prunes the objects of a team. */
import assert from "node:assert/strict";
import { applyFile, objectsOf } from "../controller/manifests.ts";
import { harbor, harborCrd, inlayFiles } from "./files.ts";
import { Flux } from "./flux.ts";
import type { Repository } from "./git.ts";
import { World } from "./world.ts";

const HARBOR = "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters/harbor";

describe("Flux", function () {
  this.timeout("5m");
  let world: World;
  let flux: Flux;
  let platform: Repository;
  let team: Repository;
  before(async () => {
    world = await World.start("platform", "registry");
    [platform, team] = [world.repository("platform"), world.repository("registry")];
    await applyFile(world.api, harborCrd);
    flux = await Flux.start(world.cluster, [platform, team]);
  });
  afterEach(function () {
    return world.afterEach(this);
  });
  after(() => world?.stop());
  const accessKey = async () => (await world.api.get(HARBOR)).spec.storage.spec.s3.accesskey;

  it("installs Inlay from deploy/, and is Ready", async () => {
    await platform.commit(inlayFiles());
    await flux.kustomize("flux-system", "inlay", platform, { path: "./my-cluster", wait: true, timeout: "2m" });
    await flux.until("flux-system", "inlay", "True", 120_000);
    await world.inlay.start();
  });

  it("applies a binding of a team, waits for it, and the value arrives", async () => {
    for (const object of objectsOf(harbor.namespace)) await world.api.create("/api/v1/namespaces", object);
    for (const object of objectsOf(harbor.secret))
      await world.api.create("/api/v1/namespaces/registry/secrets", object);
    await team.commit({
      "access/account.yaml": harbor.account,
      "deploy/harbor.yaml": harbor.cluster,
      "deploy/binding.yaml": harbor.binding,
    });
    await flux.kustomize("registry", "access", team, { path: "./access" });
    await flux.kustomize("registry", "registry", team, {
      path: "./deploy",
      wait: true,
      timeout: "1m",
      dependsOn: [{ name: "access" }],
    });
    await flux.until("registry", "registry", "True", 60_000);
    assert.match(await accessKey(), /^AKIAEXAMPLE/);
  });
});
