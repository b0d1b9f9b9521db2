/**
 * Fields that are written after the rollout, the record of another tool as the baseline, and named workloads that are
 * missing.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, RESTARTED_WITHIN_MS, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const rules: Rule[] = [...rolloutRules, { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] }];
const RECORD = "data.key";

/** A team with the Secret `keys`, a Deployment that reads it, and the ConfigMap `record` that gets the id of the key. */
async function newTeam(record: object = {}): Promise<{ team: TestNamespace; shop: Workloads }> {
  const team = await createNamespace({ rules });
  await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "record" }, ...record });
  await publish(team, "one");
  const shop = new Workloads(team);
  await shop.deploy({ web: { env: { keys: ["key"] } } });
  return { team, shop };
}

/** Writes a new key into the Secret. Its id is not secret. */
const publish = (team: TestNamespace, id: string) => team.secret("keys", { key: secretText("key"), id });

const spec = (rollout: object = {}, target: object = {}) => ({
  acknowledge: ["ReadableCopies"],
  sources: [{ secret: { name: "keys" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "record",
      when: "AfterRollout",
      fields: [{ path: RECORD, from: { source: "keys", key: "id" } }],
      ...target,
    },
  ],
  rollout: { consumersOf: ["keys"], ...rollout },
});

const recorded = async (team: TestNamespace): Promise<string | undefined> =>
  (await team.api.get(`${team.path("v1", "configmaps")}/record`)).data?.key;

/** Waits until the record has this value. */
async function untilRecorded(team: TestNamespace, id: string, withinMs?: number): Promise<void> {
  await eventually(async () => assert.equal(await recorded(team), id), withinMs);
}

/** The same team, with a binding that has written the id of the first key. */
async function newRecord(): Promise<{ team: TestNamespace; shop: Workloads }> {
  const { team, shop } = await newTeam();
  await team.bind("rolls", spec());
  await untilRecorded(team, "one");
  return { team, shop };
}

/** The same team, with a second key that no pod has yet, because the Deployment is paused. */
async function newRotation(): Promise<{ team: TestNamespace; shop: Workloads }> {
  const { team, shop } = await newRecord();
  await team.api.merge(shop.path("web"), { spec: { paused: true } });
  await publish(team, "two");
  await team.until("rolls", "RolloutPending");
  return { team, shop };
}

describe("a field that is written after the rollout", function () {
  this.timeout("3m");

  it("is written once the workloads have rolled out for its value, and not before", async () => {
    const { team, shop } = await newRotation();
    await shop.until("rolls", "RollingOut");
    const { status } = await team.until("rolls", "RolloutPending");
    assert.equal(status.synced, "0/1");
    assert.match(status.conditions[0].message, /ConfigMap .*\/record: .*AfterRollout/);
    await rolloutBarrier(team);
    assert.equal(await recorded(team), "one");
    await team.api.merge(shop.path("web"), { spec: { paused: false } });
    await untilRecorded(team, "two");
    await team.until("rolls", "Synced");
    assert.deepEqual(await shop.restarts(), { web: 1 });
  });

  it("skips a value that changes before its rollout has ended", async () => {
    const { team, shop } = await newRotation();
    const seen = new Set<string | undefined>();
    await publish(team, "three");
    await rolloutBarrier(team);
    await team.api.merge(shop.path("web"), { spec: { paused: false } });
    await eventually(async () => {
      const value = await recorded(team);
      seen.add(value);
      assert.equal(value, "three");
    });
    assert.deepEqual(
      [...seen].filter((each) => each === "two"),
      [],
    );
  });

  it("is reverted when another user changes it, and waits for no rollout when only its own value changes", async () => {
    const { team, shop } = await newRecord();
    await team.api.merge(`${team.path("v1", "configmaps")}/record`, { data: { key: "other" } });
    await untilRecorded(team, "one");
    await team.secret("keys", { id: "renamed" });
    await untilRecorded(team, "renamed");
    assert.deepEqual(await shop.restarts(), { web: 0 });
  });

  it("is written once after the controller was killed before the write, without another restart", async () => {
    const { team, shop } = await newRotation();
    await team.controller.stop("SIGKILL");
    await team.api.merge(shop.path("web"), { spec: { paused: false } });
    await shop.run(["web"]);
    assert.equal(await recorded(team), "one");
    const before = await team.api.get(`${team.path("v1", "configmaps")}/record`);
    await team.controller.start();
    await untilRecorded(team, "two", RESTARTED_WITHIN_MS);
    await rolloutBarrier(team);
    const after = await team.api.get(`${team.path("v1", "configmaps")}/record`);
    assert.notEqual(after.metadata.resourceVersion, before.metadata.resourceVersion);
    assert.deepEqual(await shop.restarts(), { web: 1 });
  });

  it("waits for the targets that are written before it, even if no workload restarts", async () => {
    const { team } = await newTeam();
    const published = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "published",
      fields: [{ path: RECORD, from: { source: "keys", key: "id" } }],
    };
    const { targets, ...rest } = spec();
    await team.bind("rolls", { ...rest, targets: [published, ...targets] });
    await team.until("rolls", "TargetNotFound");
    await rolloutBarrier(team);
    assert.equal(await recorded(team), undefined);
    await team.api.create(team.path("v1", "configmaps"), { metadata: { name: "published" } });
    await untilRecorded(team, "one");
  });

  it("is refused without a rollout", async () => {
    const { team } = await newTeam();
    const { rollout: _, ...without } = spec();
    await assert.rejects(team.bind("rolls", without), /when is AfterRollout, but the binding has no rollout/);
    await assert.rejects(
      team.bind("rolls", { ...spec({ onFirstSync: "IfDifferent" }), targets: [] }),
      /onFirstSync is IfDifferent, but no target/,
    );
    await assert.rejects(team.bind("rolls", spec({ consumersBy: [] })), /consumersBy/);
    await assert.rejects(
      team.bind("rolls", spec({ consumersOfTargets: true })),
      /consumersOfTargets needs a Secret or ConfigMap/,
    );
  });
});

describe("the record of another tool", function () {
  this.timeout("2m");

  it("is the baseline of onFirstSync IfDifferent: only a different value restarts workloads", async () => {
    const ifDifferent = spec({ onFirstSync: "IfDifferent" }, { onConflict: "Force" });
    for (const [record, restarts] of [
      [{ data: { key: "one" } }, 0],
      [{ data: { key: "zero" } }, 1],
      [{}, 0],
    ] as const) {
      const { team, shop } = await newTeam(record);
      await team.bind("rolls", ifDifferent);
      await untilRecorded(team, "one");
      await rolloutBarrier(team);
      assert.deepEqual(await shop.restarts(), { web: restarts }, JSON.stringify(record));
    }
  });
});

describe("a workload that is named and missing", function () {
  this.timeout("2m");

  it("leaves the binding ready, with a hint, until the workload exists", async () => {
    const { team, shop } = await newTeam();
    const targets = [{ kind: "Deployment", name: "late" }];
    await team.bind("rolls", spec({ consumersOf: undefined, targets }, { when: "BeforeRollout" }));
    await shop.until("rolls", "WorkloadNotFound");
    const { status } = await team.until("rolls", "Synced");
    assert.match(status.conditions[0].message, /the value of 1 field; .*\(WorkloadNotFound\), see .* RolledOut$/);
    const { stdout } = await controlPlane().kubectl("get", "sb", "rolls", `--namespace=${team.namespace}`);
    assert.match(stdout, /\nrolls +True +1\/1 +Synced +WorkloadNotFound /);
    await shop.deploy({ late: {} });
    await shop.until("rolls", "RolledOut");
    assert.match((await team.binding("rolls")).status.conditions[0].message, /the value of 1 field$/);
  });

  it("is reported, while the others restart, and fields that are written after the rollout wait for it", async () => {
    const { team, shop } = await newTeam();
    const targets = [
      { kind: "Deployment", name: "web" },
      { kind: "Deployment", name: "wbe" },
    ];
    await team.bind("rolls", spec({ consumersOf: undefined, targets }));
    const { status } = await shop.until("rolls", "WorkloadNotFound");
    const condition = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(condition.message, /Deployment \S+\/wbe \(did you mean web\?\)/);
    await publish(team, "two");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { web: 1 }));
    await rolloutBarrier(team);
    assert.equal(await recorded(team), undefined);
    await shop.deploy({ wbe: {} });
    await untilRecorded(team, "two");
    assert.deepEqual(await shop.restarts(), { web: 1, wbe: 0 });
  });
});

describe("a workload of another namespace", function () {
  this.timeout("2m");

  it("restarts if that namespace grants permission, and delays nothing else if it does not", async () => {
    const { team, shop } = await newTeam();
    const other = await createNamespace({ account: false, rules: [], controller: false });
    const there = new Workloads(other);
    await there.deploy({ api: {} });
    const targets = [
      { kind: "Deployment", name: "web" },
      { kind: "Deployment", name: "api", namespace: other.namespace },
    ];
    await team.bind("rolls", { sources: [{ secret: { name: "keys" } }], rollout: { targets } });
    const { status } = await shop.until("rolls", "Forbidden");
    const condition = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(
      condition.message,
      new RegExp(`namespace ${other.namespace}: .*kubectl create role .* -n ${other.namespace} `),
    );
    await publish(team, "two");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { web: 1 }));
    assert.deepEqual(await there.restarts(), { api: 0 });
    await team.grant(rolloutRules, { namespace: other.namespace, role: "consent" });
    await shop.until("rolls", "RolledOut");
    assert.deepEqual([await shop.restarts(), await there.restarts()], [{ web: 1 }, { api: 1 }]);
  });

  it("does not restart in a closed namespace", async () => {
    const { team, shop } = await newTeam();
    const targets = [
      { kind: "Deployment", name: "web" },
      { kind: "Deployment", name: "api", namespace: "kube-system" },
    ];
    await team.bind("rolls", { sources: [{ secret: { name: "keys" } }], rollout: { targets } });
    const { status } = await shop.until("rolls", "ForbiddenNamespace");
    const condition = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(condition.message, /namespace kube-system: /);
    await publish(team, "two");
    await eventually(async () => assert.deepEqual(await shop.restarts(), { web: 1 }));
  });
});
