/** Argo CD installs Inlay, and applies, heals and prunes the objects of a team, as the pages describe. */
import { runSection } from "../e2e/pages.ts";
import { ArgoCd } from "./argo-cd.ts";
import type { Repository } from "./git.ts";
import { World } from "./world.ts";

const INSTALL = "docs/tasks/install-with-gitops.md";
const PAGE = "docs/gitops.md";

describe("Argo CD", function () {
  this.timeout("5m");
  let world: World;
  let platform: Repository;
  let team: Repository;
  before(async () => {
    world = await World.start("platform", "registry");
    [platform, team] = [world.repository("platform"), world.repository("registry")];
    await ArgoCd.start(world.cluster);
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
});
