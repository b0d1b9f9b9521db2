/** A restart that another client reverts before the pods have the new values: what counts as rolled out, and how it continues. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { CLUSTER, newSite } from "../controller/fields.ts";
import { secretText } from "../controller/leak-detector.ts";
import { isReady } from "../controller/replaced.ts";
import { OPERATOR, type Reverting, revertRestarts } from "../controller/reverting.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";

const rules: Rule[] = [...rolloutRules, { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] }];
const mayListPods: Rule = { apiGroups: [""], resources: ["pods"], verbs: ["list"] };
const REPEATED = 2;

/** Publishes a new key. Its id is not secret. */
const publish = (team: TestNamespace, id: string) => team.secret("keys", { key: secretText("key"), id });

const record = {
  apiVersion: "v1",
  kind: "ConfigMap",
  name: "record",
  when: "AfterRollout",
  fields: [{ path: "data.key", from: { source: "keys", key: "id" } }],
};

const recorded = async (team: TestNamespace): Promise<string | undefined> =>
  (await team.api.get(`${team.path("v1", "configmaps")}/record`)).data?.key;

const podsOf = async (team: TestNamespace): Promise<AnyObject[]> =>
  (await team.api.get(team.path("v1", "pods"))).items.filter(
    ({ metadata }: AnyObject) => metadata.deletionTimestamp === undefined,
  );

const messageOf = ({ status }: AnyObject): string =>
  status.conditions.find(({ type }: AnyObject) => type === "RolledOut").message;

describe("a restart that another client reverts", function () {
  this.timeout("3m");

  let operator: Reverting | undefined;
  afterEach(async () => {
    await operator?.stop();
    operator = undefined;
  });

  /** A team whose Deployment `web` an operator owns, a second one, `later`, in a later step, and a record after the rollout. */
  async function newTeam(rollout: object = {}, more: Rule[] = []): Promise<{ team: TestNamespace; shop: Workloads }> {
    const team = await createNamespace({ rules: [...rules, ...more] });
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "record" } });
    await publish(team, "one");
    const shop = new Workloads(team);
    const strategy = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0 } };
    const slow = { minReadySeconds: 3, strategy };
    await shop.deploy({ web: { env: { keys: ["key"] }, spec: slow }, later: { env: { keys: ["key"] } } });
    // The operator owns a field of the template.
    const owned = { spec: { template: { spec: { terminationGracePeriodSeconds: 1 } } } };
    await team.api.merge(shop.path("web"), owned, OPERATOR);
    await shop.run(["web"]);
    const named = (name: string) => ({ targets: [{ kind: "Deployment", name }] });
    const steps = [named("web"), named("later")].map((each, at) => ({ name: `s${at}`, ...each }));
    await team.bind("rolls", {
      acknowledge: ["ReadableCopies"],
      sources: [{ secret: { name: "keys" } }],
      targets: [record],
      rollout: { steps, ...rollout },
    });
    await shop.rolledOut("rolls", 0);
    await eventually(async () => assert.equal(await recorded(team), "one"));
    return { team, shop };
  }

  it("is repeated once, and then reported with its manager, while nothing that depends on it continues", async () => {
    const { team, shop } = await newTeam();
    operator = revertRestarts(team);
    await publish(team, "two");
    const found = await shop.until("rolls", "RestartReverted", 60_000);
    assert.match(messageOf(found), /s0: .*Deployment .*\/web.*restartPath/);
    assert.match(messageOf(found), new RegExp(OPERATOR));
    await rolloutBarrier(team);
    assert.equal(operator.removed.get("web")?.size, REPEATED);
    assert.deepEqual(await shop.annotations("later"), {});
    assert.equal(await recorded(team), "one");
    const [entry] = (await team.binding("rolls")).status.rollout.pending.workloads;
    assert.equal(entry.state, "Failed");
    assert.equal((await team.events("rolls")).filter(({ reason }) => reason === "RestartReverted").length, 1);
    // Neither another controller nor the operator's end repeats it at once.
    await team.controller.stop("SIGKILL");
    await team.controller.start();
    await rolloutBarrier(team);
    assert.equal(operator.removed.get("web")?.size, REPEATED);
    await operator.stop();
    await team.api.merge(team.bindingPath("rolls"), { metadata: { annotations: { "inlay.dev/refresh": "now" } } });
    await shop.rolledOut("rolls", 1, 60_000);
    await eventually(async () => assert.equal(await recorded(team), "two"));
  });

  it("counts as rolled out if the account may list the pods, and all of them are newer", async () => {
    const { team, shop } = await newTeam({}, [mayListPods]);
    operator = revertRestarts(team);
    await publish(team, "two");
    const { status } = await shop.until("rolls", "RestartReverted", 60_000);
    assert.equal(await recorded(team), "one");
    // A pod of the second of the restart does not count.
    const restarted = Date.parse(status.rollout.pending.workloads[0].firstRestartTime);
    await eventually(() => assert.ok(Date.now() > restarted + 1_000));
    for (const { metadata } of await podsOf(team))
      if (metadata.labels.app === "web") await team.api.delete(`${team.path("v1", "pods")}/${metadata.name}`);
    await operator.stop();
    await shop.rolledOut("rolls", 1, 60_000);
    await eventually(async () => assert.equal(await recorded(team), "two"));
    assert.deepEqual(await shop.annotations("web"), {});
  });

  it("is repeated if it was removed once, and the rollout ends", async () => {
    const { team, shop } = await newTeam();
    await team.api.merge(shop.path("web"), { spec: { paused: true } });
    await publish(team, "two");
    await eventually(async () => assert.notDeepEqual(await shop.annotations("web"), {}));
    const template = { metadata: { annotations: null } };
    await team.api.merge(shop.path("web"), { spec: { paused: false, template } });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.match((await shop.annotations("web"))["inlay.dev/rollout"] ?? "", /^1-/);
    await eventually(async () => assert.equal(await recorded(team), "two"));
  });

  it("is covered by a later restart of a user", async () => {
    const { team, shop } = await newTeam();
    operator = revertRestarts(team);
    await publish(team, "two");
    await shop.until("rolls", "RestartReverted", 60_000);
    await operator.stop();
    const annotations = { "kubectl.kubernetes.io/restartedAt": new Date().toISOString() };
    await team.api.merge(shop.path("web"), { spec: { template: { metadata: { annotations } } } }, "kubectl-rollout");
    await shop.rolledOut("rolls", 1, 60_000);
    assert.deepEqual(await shop.annotations("web"), annotations);
  });

  for (const [plural, kind, spec] of [
    ["statefulsets", "StatefulSet", { serviceName: "web", minReadySeconds: 3 }],
    ["daemonsets", "DaemonSet", { minReadySeconds: 3 }],
  ] as const)
    it(`is reported for a ${kind} that a target owns, too`, async () => {
      const team = await createNamespace({ rules });
      await publish(team, "one");
      const shop = new Workloads(team);
      const { metadata } = await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "owner" } });
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: metadata.uid, controller: true };
      const { selector, template } = (deployment("web") as AnyObject).spec;
      const object = { apiVersion: "apps/v1", kind, metadata: { name: "web", ownerReferences: [owner] } };
      await team.api.create(team.path("apps/v1", plural), { ...object, spec: { selector, template, ...spec } });
      await eventually(async () => assert.equal((await podsOf(team)).filter(isReady).length, 1));
      await team.bind("rolls", {
        acknowledge: ["ReadableCopies"],
        sources: [{ secret: { name: "keys" } }],
        targets: [{ ...record, name: "owner", when: "BeforeRollout" }],
        rollout: { ownedByTargets: true, kinds: [kind] },
      });
      await shop.rolledOut("rolls", 0);
      operator = revertRestarts(team, plural);
      await publish(team, "two");
      const found = await shop.until("rolls", "RestartReverted", 60_000);
      assert.match(messageOf(found), /a field of ConfigMap owner/);
      assert.equal(operator.removed.get("web")?.size, REPEATED);
    });

  it("is reported for a restart field, too", async () => {
    const site = await newSite(CLUSTER, { instances: 1 }, "spec.restartToken");
    const { team, shop, path, rotate, workload } = site;
    const observe = async (change: object) => {
      const { metadata } = await team.api.merge(path, change, OPERATOR);
      await team.api.merge(`${path}/status`, { status: { observedGeneration: metadata.generation } });
    };
    await observe({});
    await shop.rolledOut("main", 0);
    await rotate();
    for (let restarts = 1; restarts <= REPEATED; restarts++) {
      await eventually(async () => assert.ok((await workload()).spec.restartToken));
      await observe({ spec: { restartToken: null, instances: restarts + 1 } });
    }
    assert.match(
      messageOf(await shop.until("main", "RestartReverted")),
      /spec\.restartToken .*example-operator.* changed spec/,
    );
    assert.equal((await workload()).spec.restartToken, undefined);
  });
});
