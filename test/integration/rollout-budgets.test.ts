/** Shows that workloads with several replicas and without a PodDisruptionBudget restart with a warning, or not at all. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const sources = [{ secret: { name: "bucket" } }];
const uses = { env: { bucket: ["token"] } };
const mayList: Rule = { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list"] };

/**
 * Creates a team with two Deployments of two replicas, one of them with a PodDisruptionBudget, and a Deployment of one replica.
 */
async function newShop(rollout: object, more: Rule[] = [mayList]) {
  const team = await createNamespace({ rules: [...rolloutRules, ...more] });
  const shop = new Workloads(team);
  const rotate = () => team.secret("bucket", { token: secretText("token") });
  await rotate();
  await shop.deploy({ bare: { ...uses, replicas: 2 }, safe: { ...uses, replicas: 2 }, single: uses });
  await budget(team, "safe");
  await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], ...rollout } });
  await shop.rolledOut("rolls", 0);
  return { team, shop, rotate };
}

const budget = (team: TestNamespace, app: string) =>
  team.api.create(team.path("policy/v1", "poddisruptionbudgets"), {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: app },
    spec: { minAvailable: 1, selector: { matchLabels: { app } } },
  });

const warningsOf = async (team: TestNamespace, name: string) =>
  (await team.events(name)).filter(({ reason }) => reason === "NoPodDisruptionBudget");

describe("a workload with several replicas and without a PodDisruptionBudget", function () {
  this.timeout("2m");

  it("restarts with one warning", async () => {
    const { team, shop, rotate } = await newShop({});
    for (const revision of [1, 2]) {
      await rotate();
      await shop.rolledOut("rolls", revision);
    }
    await eventually(async () => {
      const restarted = (await team.events("bare")).filter(({ reason }) => reason === "Restarted");
      assert.equal(restarted.length, 2);
      assert.equal((await warningsOf(team, "bare")).length, 1);
    });
    assert.match((await warningsOf(team, "bare"))[0]?.note ?? "", /PodDisruptionBudget/);
    for (const other of ["safe", "single"]) assert.deepEqual(await warningsOf(team, other), [], other);
    assert.deepEqual(await shop.restarts(), { bare: 2, safe: 2, single: 2 });
  });

  it("restarts without a warning where the account may not list budgets, which is no failure", async () => {
    const { team, shop, rotate } = await newShop({}, []);
    await rotate();
    await shop.rolledOut("rolls", 1);
    await eventually(async () => {
      assert.ok((await team.events("bare")).some(({ reason }) => reason === "Restarted"));
    });
    assert.deepEqual(await warningsOf(team, "bare"), []);
  });

  it("does not restart where the binding requires a budget, reports that, and restarts once there is one", async () => {
    const { team, shop, rotate } = await newShop({ requireDisruptionBudget: true });
    await rotate();
    const { status } = await shop.until("rolls", "RestartBlocked");
    const { message } = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(message, /spec\.rollout\.requireDisruptionBudget: .* bare; add one$/);
    await shop.run(["safe", "single"]);
    assert.deepEqual(await shop.restarts(), { bare: 0, safe: 1, single: 1 });
    await budget(team, "bare");
    await shop.rolledOut("rolls", 1, 60_000);
    assert.deepEqual(await shop.restarts(), { bare: 1, safe: 1, single: 1 });
    assert.deepEqual(await warningsOf(team, "bare"), []);
  });

  it("does not restart, like all others, where a budget is required and the account may not list budgets: the condition says what to allow", async () => {
    const { team, shop, rotate } = await newShop({ requireDisruptionBudget: true }, []);
    await rotate();
    const { status } = await shop.until("rolls", "Forbidden");
    const { message } = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(message, /kubectl create role .*--verb=list --resource=poddisruptionbudgets\.policy/);
    assert.deepEqual(await shop.restarts(), { bare: 0, safe: 0, single: 0 });
    await budget(team, "bare");
    await team.grant([mayList], { role: "budgets" });
    await shop.rolledOut("rolls", 1);
  });
});
