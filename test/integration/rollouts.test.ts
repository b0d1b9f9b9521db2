/** Shows that workloads restart once for a changed value, after the value has arrived, and never without a cause. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { scaled } from "../controller/scale.ts";
import {
  createNamespace,
  harborTarget,
  type Rule,
  type TestNamespace,
  usualRules,
} from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

/** A kind whose controller reports the generation that it has observed. */
const registry: Kind = {
  group: "rollouts.test",
  kind: "Registry",
  plural: "registries",
  spec: { type: "object", properties: { key: { type: "string" } } },
  status: { type: "object", "x-kubernetes-preserve-unknown-fields": true } as object,
};

const sources = [{ secret: { name: "bucket" } }];
const pair = () => ({ access: secretText("access"), secret: secretText("secret") });

const rotate = (team: TestNamespace) => team.secret("bucket", pair());

/** Creates a team whose account may restart workloads, with the Secret `bucket`. */
async function newShop(rules = rolloutRules): Promise<{ team: TestNamespace; shop: Workloads }> {
  const team = await createNamespace({ rules });
  await rotate(team);
  return { team, shop: new Workloads(team) };
}

/** The same, with a workload that uses a key of the Secret, and a binding that has not restarted it yet. */
async function newCore(rollout: object = {}): Promise<{ team: TestNamespace; shop: Workloads }> {
  const { team, shop } = await newShop();
  await shop.deploy({ core: { env: { bucket: ["access"] } } });
  await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], ...rollout } });
  await shop.rolledOut("rolls", 0);
  return { team, shop };
}

describe("the consumers of a Secret", function () {
  this.timeout("2m");

  it("restart once each when a key changes that they refer to, and not at the first reconcile or for a label", async () => {
    const { team, shop } = await newShop();
    await team.secret("other", { token: secretText("token") });
    await shop.deploy({
      core: { env: { bucket: ["access"] } },
      jobs: { env: { bucket: ["secret"] } },
      all: { envFrom: ["bucket"] },
      none: { env: { other: ["token"] } },
    });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    const first = await shop.rolledOut("rolls", 0);
    assert.deepEqual(Object.keys(first.status.rollout.digests).sort(), ["bucket/*", "bucket/access", "bucket/secret"]);
    await team.until("rolls", "Synced");
    await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { metadata: { labels: { touched: "true" } } });
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { core: 0, jobs: 0, all: 0, none: 0 });

    await team.secret("bucket", { access: secretText("access") });
    await shop.rolledOut("rolls", 1);
    await shop.run(["core", "all"]);
    assert.deepEqual(await shop.restarts(), { core: 1, jobs: 0, all: 1, none: 0 });
    assert.match((await shop.annotations("core"))["inlay.dev/rollout"] ?? "", /^1-[0-9a-f]{6}-[0-9a-f]{10}$/);

    await rotate(team);
    await shop.rolledOut("rolls", 2);
    assert.deepEqual(await shop.restarts(), { core: 2, jobs: 1, all: 2, none: 0 });
  });

  it("show by which binding and why they restarted, and the binding shows their progress", async () => {
    const { team, shop } = await newCore();
    await rotate(team);
    await shop.rolledOut("rolls", 1);
    await eventually(async () => {
      const notes = (await team.events("core")).map(({ reason, note }) => `${reason}: ${note}`);
      const why = new RegExp(`^Restarted: .*SecretBinding ${team.namespace}/rolls\\b.* bucket/access\\b`);
      assert.ok(
        notes.some((note) => why.test(note)),
        notes.join("\n"),
      );
      const reasons = (await team.events("rolls")).map(({ reason }) => reason);
      for (const reason of ["RolloutStarted", "RolledOut"]) assert.ok(reasons.includes(reason), reasons.join());
    });
  });

  it("are not guessed where the account may not list them: the condition says what to allow", async () => {
    const { team, shop } = await newShop(usualRules);
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], kinds: ["Deployment"] } });
    const { status } = await shop.until("rolls", "Forbidden");
    assert.match(
      status.conditions[1].message,
      /kubectl create role .*--verb=get,list,watch,patch --resource=deployments\.apps/,
    );
    await team.grant(rolloutRules, { role: "rolls" });
    await shop.until("rolls", "RolledOut");
  });

  it("restart again when the value changes during the rollout, and when it changes back", async () => {
    const { team, shop } = await newShop();
    const before = pair();
    await team.secret("bucket", before);
    await shop.deploy({ core: { env: { bucket: ["access"] }, replicas: 3 } });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    await rotate(team);
    await eventually(async () => assert.deepEqual(await shop.restarts(), { core: 1 }));
    await team.secret("bucket", before);
    await eventually(async () => assert.deepEqual(await shop.restarts(), { core: 2 }));
    await shop.until("rolls", "RolledOut");
    await shop.run(["core"]);
    assert.deepEqual(await shop.restarts(), { core: 2 });
  });

  it("stay unchanged when a user undoes a restart, and restart for the next change", async () => {
    const { team, shop } = await newCore();
    await rotate(team);
    await shop.rolledOut("rolls", 1);
    const { annotations } = (await team.api.get(shop.path("core"))).spec.template.metadata;
    await shop.undo("core");
    await shop.run(["core"]);
    assert.deepEqual(await shop.annotations("core"), {});
    await rolloutBarrier(team);
    assert.deepEqual(await shop.annotations("core"), {});
    await rotate(team);
    await shop.rolledOut("rolls", 2);
    assert.notDeepEqual(await shop.annotations("core"), annotations);
  });
});

describe("a rollout of a binding with targets", function () {
  this.timeout("2m");

  it("begins when every target holds the new values, and not before", async () => {
    const { team, shop } = await newShop();
    await shop.deploy({ core: { env: { bucket: ["access"] } }, named: {} });
    await team.bind("rolls", {
      sources,
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "access" } } })],
      rollout: { consumersOf: ["bucket"], targets: [{ kind: "Deployment", name: "named" }] },
    });
    await team.until("rolls", "TargetNotFound");
    await team.harbor();
    await shop.rolledOut("rolls", 0);
    await team.api.delete(team.harborPath());
    await team.until("rolls", "TargetNotFound");
    await rotate(team);
    const { status } = await shop.until("rolls", "TargetsNotSynced");
    assert.match(status.conditions[0].message, /^HarborCluster .*: there is no/);
    assert.match(status.conditions[1].message, /see the condition Ready$/);
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { core: 0, named: 0 });
    await team.harbor();
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { core: 1, named: 1 });
  });

  it("waits until the controllers of the targets have observed the values, if the binding requires it", async () => {
    const { team, shop } = await newShop([...rolloutRules, mayWrite(registry)]);
    await installKind(team.api, registry);
    await shop.deploy({ core: { env: { bucket: ["access"] } } });
    await createObject(team.api, registry, "harbor", {}, team.namespace);
    const path = objectPath(registry, team.namespace, "harbor");
    const says = async (status: string) => {
      const { generation } = (await team.api.get(path)).metadata;
      await team.api.merge(`${path}/status`, {
        status: { conditions: [{ type: "Ready", status, observedGeneration: generation }] },
      });
    };
    await team.bind("rolls", {
      sources,
      targets: [
        {
          apiVersion: apiVersionOf(registry),
          kind: registry.kind,
          name: "harbor",
          fields: [{ path: "spec.key", from: { source: "bucket", key: "access" } }],
        },
      ],
      rollout: { consumersOf: ["bucket"], waitForTargets: { condition: "Ready" } },
    });
    await shop.rolledOut("rolls", 0);
    await says("True");
    await rotate(team);
    const messageOf = async () => (await shop.until("rolls", "TargetsNotReady")).status.conditions[1].message;
    assert.match(await messageOf(), /Registry .*harbor .*condition Ready/);
    await says("False");
    await eventually(async () => assert.match(await messageOf(), /it is not True$/));
    assert.deepEqual(await shop.restarts(), { core: 0 });
    await says("True");
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("does not wait for a former target that can't be released", async () => {
    const [secrets, workloads] = [usualRules[0] as Rule, rolloutRules.at(-1) as Rule];
    const { team, shop } = await newShop([secrets, workloads]);
    const one = (name: string) => ({ ...(usualRules[1] as Rule), resourceNames: [name] });
    for (const name of ["harbor", "former"]) await team.grant([one(name)], { role: name });
    await rotate(team);
    await shop.deploy({ core: { env: { bucket: ["access"] } } });
    for (const name of ["harbor", "former"]) await team.harbor(name);
    const fields = { accesskey: { from: { source: "bucket", key: "access" } } };
    const targets = ["harbor", "former"].map((name) => harborTarget(fields, { name, onRelease: "Remove" }));
    await team.bind("rolls", { sources, targets, rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    await team.revoke("former");
    await team.rebind("rolls", { targets: targets.slice(0, 1) });
    await team.until("rolls", "Forbidden");
    await rotate(team);
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("restarts the workloads that it names, selects or finds by the owner, for the keys that fields use and no others", async () => {
    const { team, shop } = await newShop();
    const { metadata } = await team.harbor();
    const owner = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor", uid: metadata.uid };
    await shop.deploy({ named: {}, picked: {}, owned: {}, other: {} });
    await team.api.merge(shop.path("owned"), { metadata: { ownerReferences: [owner] } });
    await team.api.merge(shop.path("picked"), { metadata: { labels: { tier: "web" } } });
    await team.bind("rolls", {
      sources,
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "access" } } })],
      rollout: {
        ownedByTargets: true,
        targets: [
          { kind: "Deployment", name: "named" },
          { kind: "Deployment", selector: { matchLabels: { tier: "web" } } },
        ],
      },
    });
    await shop.rolledOut("rolls", 0);
    await team.secret("bucket", { secret: secretText("secret") });
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { named: 0, picked: 0, owned: 0, other: 0 });
    await team.secret("bucket", { access: secretText("access") });
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { named: 1, picked: 1, owned: 1, other: 0 });
  });
});

describe("the steps of a rollout", function () {
  this.timeout("2m");

  it("run in order, stop at a workload that does not roll out, and continue once it has", async () => {
    const { team, shop } = await newShop();
    await shop.deploy({ server: { env: { bucket: ["access"] } }, client: { env: { bucket: ["access"] } } });
    const step = (name: string) => ({ name, targets: [{ kind: "Deployment", name }] });
    await team.bind("rolls", { sources, rollout: { steps: [{ ...step("server"), timeout: "1s" }, step("client")] } });
    await shop.rolledOut("rolls", 0);
    // From now on, no node accepts its pods.
    await team.api.merge(shop.path("server"), { spec: { paused: true } });
    await team.api.merge(shop.path("server"), { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } });
    await rotate(team);
    await eventually(async () => assert.ok((await shop.annotations("server"))["inlay.dev/rollout"]));
    await team.api.merge(shop.path("server"), { spec: { paused: false } });
    const { status } = await shop.until("rolls", "RolloutFailed");
    assert.match(status.conditions[1].message, /^step server: Deployment .*server: /);
    const states = status.rollout.pending.workloads.map(({ name, step: at, state }: AnyObject) => [name, at, state]);
    assert.deepEqual(states, [
      ["server", "server", "Failed"],
      ["client", "client", "Waiting"],
    ]);
    await rolloutBarrier(team);
    assert.equal((await shop.restarts())["client"], 0);
    await team.api.merge(shop.path("server"), { spec: { template: { spec: { nodeSelector: null } } } });
    await shop.rolledOut("rolls", 1);
    assert.equal((await shop.restarts())["client"], 1);
  });
});

describe("a rollout with limits", function () {
  this.timeout("3m");

  it("begins after the values have not changed for the debounce", async () => {
    const { team, shop } = await newCore({ debounce: "500ms" });
    const began = Date.now();
    await rotate(team);
    await shop.rolledOut("rolls", 1);
    assert.ok(Date.now() - began >= 500);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("rolls out as many at once as maxConcurrent permits, and finally all", async () => {
    const { team, shop } = await newShop();
    const names = Array.from({ length: scaled(50, 12) }, (_, at) => `core-${at}`);
    await shop.deploy(Object.fromEntries(names.map((name) => [name, { env: { bucket: ["access"] } }])));
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], maxConcurrent: 5 } });
    await shop.rolledOut("rolls", 0);
    await rotate(team);
    let most = 0;
    await eventually(async () => {
      const { status } = await team.binding("rolls");
      const workloads = status.rollout.pending?.workloads ?? [];
      most = Math.max(most, workloads.filter(({ state }: AnyObject) => state === "Rolling").length);
      assert.equal(status.rollout.revision, 1);
    }, 120_000);
    assert.ok(most >= 1 && most <= 5, String(most));
    assert.deepEqual(await shop.restarts(), Object.fromEntries(names.map((name) => [name, 1])));
  });

  it("waits outside of its windows and while it is suspended, and then restarts once for all changes", async () => {
    const { team, shop } = await newShop();
    await shop.deploy({ core: { env: { bucket: ["access"] } } });
    const month = ((new Date().getUTCMonth() + 6) % 12) + 1;
    const rollout = { consumersOf: ["bucket"], windows: [{ schedule: `0 0 1 ${month} *`, duration: "1h" }] };
    await team.bind("rolls", { sources, rollout });
    await shop.rolledOut("rolls", 0);
    await rotate(team);
    const { status } = await shop.until("rolls", "OutsideWindow");
    assert.match(status.conditions[1].message, /continues at \d{4}-\d\d-01T00:00:00\.000Z$/);
    await rotate(team);
    await team.rebind("rolls", { rollout: { windows: null, suspend: true } });
    await shop.until("rolls", "Suspended");
    assert.deepEqual(await shop.restarts(), { core: 0 });
    await team.rebind("rolls", { rollout: { suspend: false } });
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });
});

describe("the restart annotation", function () {
  this.timeout("2m");

  for (const [value, pattern] of Object.entries({
    Time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    ResourceVersion: /^\d+$/,
  })) {
    it(`has another form and another key where the binding sets ${value}`, async () => {
      const { team, shop } = await newShop();
      await shop.deploy({ core: { env: { bucket: ["access"] } } });
      const stamp = { annotation: "ops.corp.com/triggerrestart", value };
      await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], stamp } });
      await shop.rolledOut("rolls", 0);
      await rotate(team);
      await shop.rolledOut("rolls", 1);
      assert.match((await shop.annotations("core"))["ops.corp.com/triggerrestart"] ?? "", pattern);
      assert.deepEqual(await shop.restarts(), { core: 1 });
    });
  }

  it("stays when the binding is deleted, and belongs to one field manager for all bindings", async () => {
    const { team, shop } = await newShop();
    await shop.deploy({ core: { env: { bucket: ["access", "secret"] } } });
    for (const name of ["one", "two"]) {
      await team.bind(name, { sources, rollout: { consumersOf: ["bucket"] } });
      await shop.rolledOut(name, 0);
    }
    await rotate(team);
    await Promise.all(["one", "two"].map((name) => shop.rolledOut(name, 1)));
    const stamps = await shop.annotations("core");
    const { managedFields } = (await team.api.get(shop.path("core"))).metadata;
    const managers = managedFields.filter(({ fieldsV1 }: AnyObject) =>
      JSON.stringify(fieldsV1).includes('"f:inlay.dev/rollout"'),
    );
    assert.deepEqual(
      managers.map(({ manager }: AnyObject) => manager),
      ["inlay-rollout"],
    );
    const restarts = await shop.restarts();
    for (const name of ["one", "two"]) await team.unbind(name);
    await rolloutBarrier(team);
    assert.deepEqual(await shop.annotations("core"), stamps);
    assert.deepEqual(await shop.restarts(), restarts);
  });
});
