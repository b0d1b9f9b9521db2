/**
 * Shows that the permissions that `inlay rbac` prints are enough and the least: with them a binding writes, restarts and releases, and
 * without any single verb it does not.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import { applyObjects, objectsIn, objectsOf } from "../controller/manifests.ts";
import {
  bindingOf,
  type Feature,
  forget,
  newTeam,
  notDone,
  notReleased,
  notWaiting,
  permit,
  reduced,
  release,
  releaseWithoutAccount,
  renamed,
  type Trial,
  until,
  usual,
} from "../controller/permitted.ts";
import { everything } from "../controller/permitted-everything.ts";
import { scaled } from "../controller/scale.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const compositions = join(import.meta.dirname, "..", "..", "compositions");
/** Restarts of pods take longer than the restart of a CronJob. */
const WITHIN_MS = 120_000;

interface Stage {
  act: (team: TestNamespace) => Promise<unknown>;
  problem: (team: TestNamespace) => Promise<string | undefined>;
}

describe("the permissions that inlay rbac prints", function () {
  this.timeout("10m");
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-rbac-"));
  });
  after(() => rm(folder, { recursive: true }));

  async function printed(binding: AnyObject): Promise<AnyObject[]> {
    const file = join(folder, "binding.json");
    await writeFile(file, JSON.stringify(binding));
    const { stdout, stderr, code } = await inlay(controlPlane().kubeconfigFile, "rbac", "-f", file, "--cluster");
    assert.deepEqual([code, stderr], [0, ""]);
    return objectsOf(stdout);
  }

  async function assertLeast(feature: Feature): Promise<void> {
    const whole = await newTeam(feature);
    const manifests = await printed(bindingOf(whole, feature));
    const trials = await Promise.all(
      reduced(manifests).map(async ({ lacks, manifests: fewer }): Promise<Trial> => {
        const team = await newTeam(feature);
        const objects = renamed(fewer, whole.namespace, team.namespace);
        await applyObjects(team.api, objects);
        return { lacks, team, objects };
      }),
    );
    assert.ok(trials.length > 10, `${trials.length} verbs`);
    const stages: Stage[] = [
      { act: (team) => applyObjects(team.api, [bindingOf(team, feature)]), problem: (team) => notDone(team, 0) },
      {
        act: feature.rotate,
        problem: async (team) => (await notDone(team, 1)) ?? feature.missing(team),
      },
      { act: (team) => releaseWithoutAccount(team, feature), problem: notWaiting },
      { act: (team) => release(team, feature), problem: notReleased },
    ];
    try {
      await permit(whole, manifests);
      let working = trials;
      for (const { act, problem } of stages) {
        await Promise.all([...working.map(({ team }) => team), whole].map(act));
        await until(() => problem(whole), WITHIN_MS);
        await whole.controller.idle();
        const problems = await Promise.all(working.map(({ team }) => problem(team)));
        working = working.filter((_, at) => problems[at] === undefined);
      }
      assert.deepEqual(
        working.map(({ lacks }) => lacks),
        [],
      );
    } finally {
      await forget([...manifests, ...trials.flatMap(({ objects }) => objects)]);
    }
  }

  it("are enough for all that a binding does, and without any single verb it does not", () =>
    assertLeast(scaled(10) < 10 ? usual : everything));

  it("include those for the claims that a composition has in the cluster", async () => {
    const team = await createNamespace({ account: false, rules: [], controller: false });
    const folder = join(compositions, "harbor");
    const [claim] = await objectsIn(join(folder, "sample", "harborcluster.yaml"));
    await applyObjects(team.api, [{ ...claim, metadata: { ...claim.metadata, namespace: team.namespace } }]);
    const file = join(folder, "composition.yaml");
    const { stdout, stderr, code } = await inlay(controlPlane().kubeconfigFile, "rbac", "-f", file, "--cluster");
    assert.deepEqual([code, stderr], [0, ""]);
    const roles = objectsOf(stdout).filter(
      ({ kind, metadata }) => kind === "Role" && metadata.namespace === team.namespace,
    );
    assert.deepEqual(
      roles.map(({ metadata, rules }) => [metadata.name, rules.flatMap(({ resources }: AnyObject) => resources)]),
      [
        ["inlay-bindings:inlay-system:inlay-compositions", ["harborclusters", "secretbindings", "serviceaccounts"]],
        ["inlay-bindings", ["secrets", "harborclusters"]],
      ],
    );
  });
});
