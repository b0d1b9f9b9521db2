/** Argo CD installs Inlay, and applies, heals and prunes the objects of a team. */
import assert from "node:assert/strict";
import { applyFile, objectsOf } from "../controller/manifests.ts";
import { ArgoCd } from "./argo-cd.ts";
import { harbor, harborCrd, inlayFiles } from "./files.ts";
import type { Repository } from "./git.ts";
import { World } from "./world.ts";

const HARBOR = "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters/harbor";

describe("Argo CD", function () {
  this.timeout("5m");
  let world: World;
  let argoCd: ArgoCd;
  let platform: Repository;
  let team: Repository;
  before(async () => {
    world = await World.start("platform", "registry");
    [platform, team] = [world.repository("platform"), world.repository("registry")];
    await applyFile(world.api, harborCrd);
    argoCd = await ArgoCd.start(world.cluster);
  });
  afterEach(function () {
    return world.afterEach(this);
  });
  after(() => world?.stop());
  const accessKey = async () => (await world.api.get(HARBOR)).spec.storage.spec.s3.accesskey;

  it("installs Inlay from deploy/, and is Synced and Healthy", async () => {
    const commit = await platform.commit(inlayFiles());
    const options = { syncOptions: ["ServerSideApply=true"] };
    await argoCd.application("inlay", platform, "inlay-system", { path: "my-cluster" }, options);
    await argoCd.until("inlay", commit, "Healthy", 120_000);
    await world.inlay.start();
  });

  it("applies a binding of a team, waits for it, and the value arrives", async () => {
    for (const object of objectsOf(harbor.namespace)) await world.api.create("/api/v1/namespaces", object);
    for (const object of objectsOf(harbor.secret))
      await world.api.create("/api/v1/namespaces/registry/secrets", object);
    const commit = await team.commit({
      "account.yaml": harbor.account,
      "harbor.yaml": harbor.cluster,
      "binding.yaml": harbor.binding,
    });
    await argoCd.application("registry", team, "registry", { path: "." });
    await argoCd.until("registry", commit);
    assert.match(await accessKey(), /^AKIAEXAMPLE/);
  });
});
