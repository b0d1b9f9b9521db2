/** Shows that a workload with several bindings, Secrets or managers restarts once for one change. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";

const sources = [{ secret: { name: "bucket" } }];

async function newShop(): Promise<{
  team: TestNamespace;
  shop: Workloads;
  rotate(...names: string[]): Promise<unknown>;
}> {
  const team = await createNamespace({ rules: rolloutRules });
  const rotate = (...names: string[]) =>
    Promise.all(names.map((name) => team.secret(name, { token: secretText("token") })));
  await rotate("bucket");
  return { team, shop: new Workloads(team), rotate };
}

describe("one workload", function () {
  this.timeout("2m");

  it("restarts once for one change that two bindings observe", async () => {
    const { team, shop, rotate } = await newShop();
    await shop.deploy({ app: { env: { bucket: ["token"] } } });
    for (const name of ["one", "two"]) {
      await team.bind(name, { sources, rollout: { consumersOf: ["bucket"] } });
      await shop.rolledOut(name, 0);
    }
    for (const revision of [1, 2, 3]) {
      await rotate("bucket");
      for (const name of ["one", "two"]) await shop.rolledOut(name, revision);
      assert.deepEqual(await shop.restarts(), { app: revision });
    }
  });

  it("restarts for the later change of another binding too", async () => {
    const { team, shop, rotate } = await newShop();
    await rotate("other");
    await shop.deploy({ app: { env: { bucket: ["token"], other: ["token"] } } });
    await team.bind("one", { sources, rollout: { consumersOf: ["bucket"] } });
    await team.bind("two", { sources: [{ secret: { name: "other" } }], rollout: { consumersOf: ["other"] } });
    for (const name of ["one", "two"]) await shop.rolledOut(name, 0);
    await rotate("bucket");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { app: 1 }));
    await rotate("other");
    for (const name of ["one", "two"]) await shop.rolledOut(name, 1);
    await shop.run(["app"]);
    assert.deepEqual(await shop.restarts(), { app: 2 });
  });

  it("restarts once for two Secrets of a binding that change within its debounce", async () => {
    const { team, shop, rotate } = await newShop();
    await rotate("other");
    await shop.deploy({ app: { env: { bucket: ["token"], other: ["token"] } } });
    await team.bind("rolls", {
      sources: [...sources, { secret: { name: "other" } }],
      rollout: { consumersOf: ["bucket", "other"], debounce: "1h" },
    });
    await shop.rolledOut("rolls", 0);
    await rotate("bucket");
    await rotate("other");
    await team.barrier();
    await shop.until("rolls", "Debounce");
    await team.rebind("rolls", { rollout: { debounce: null } });
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { app: 1 });
    await eventually(async () => {
      const notes = (await team.events("app")).map(({ note }) => note);
      const why = new RegExp(`SecretBinding ${team.namespace}/rolls\\b.* bucket/token, other/token\\b`);
      assert.ok(
        notes.some((note) => why.test(note)),
        notes.join("\n"),
      );
    });
  });

  it("restarts no more for a Secret that is deleted during the rollout, and not again when it is recreated", async () => {
    const { team, shop } = await newShop();
    await shop.deploy({ app: { env: { bucket: ["token"] } }, other: { env: { bucket: ["token"] } } });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], maxConcurrent: 1 } });
    await shop.rolledOut("rolls", 0);
    // No node accepts its pods for now.
    await team.api.merge(shop.path("app"), { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } });
    const token = secretText("token");
    await team.secret("bucket", { token });
    await shop.until("rolls", "MaxConcurrent");
    const { metadata, spec } = await team.api.get(shop.path("app"));
    assert.match(spec.template.metadata.annotations["inlay.dev/rollout"], /^1-/);
    await team.api.delete(`${team.path("v1", "secrets")}/bucket`);
    const { status } = await shop.until("rolls", "RestartBlocked");
    assert.match(status.rollout.pending.message, /1 of 2 waiting: .*bucket\/token is missing/);
    await team.secret("bucket", { token });
    await shop.until("rolls", "MaxConcurrent");
    await rolloutBarrier(team);
    assert.equal((await team.api.get(shop.path("app"))).metadata.generation, metadata.generation);
    await team.api.merge(shop.path("app"), { spec: { template: { spec: { nodeSelector: null } } } });
    await shop.rolledOut("rolls", 1);
    assert.equal((await shop.restarts())["other"], 1);
    assert.deepEqual(await shop.annotations("app"), spec.template.metadata.annotations);
  });
});

describe("a Deployment that a GitOps tool applies", function () {
  this.timeout("2m");

  for (const [manager, force] of [
    ["argocd-controller", true],
    ["kustomize-controller", false],
  ] as const) {
    it(`by ${manager} keeps its restart annotation, and a change of its spec alone restarts it`, async () => {
      const { team, shop, rotate } = await newShop();
      // As in git: without annotations.
      const apply = (more: object = {}) =>
        team.api.apply(shop.path("app"), deployment("app", { env: { bucket: ["token"] }, ...more }), manager, force);
      await apply();
      await shop.run(["app"]);
      await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
      await shop.rolledOut("rolls", 0);
      await rotate("bucket");
      await eventually(async () => assert.ok((await shop.annotations("app"))["inlay.dev/rollout"]));
      // Applies during the rollout, and after it.
      await apply();
      const { metadata } = (await shop.rolledOut("rolls", 1)) && (await apply());
      const stamps = await shop.annotations("app");
      assert.match(stamps["inlay.dev/rollout"] ?? "", /^1-/);
      assert.equal(metadata.generation, 2);
      await apply({ pods: { terminationGracePeriodSeconds: 7 } });
      await shop.run(["app"]);
      await rolloutBarrier(team);
      assert.deepEqual(await shop.annotations("app"), stamps);
      assert.deepEqual(await shop.restarts(), { app: 2 });
      await rotate("bucket");
      await shop.rolledOut("rolls", 2);
      assert.deepEqual(await shop.restarts(), { app: 3 });
    });
  }
});
