/** Shows how workloads of every kind restart, and that Inlay reports where users have to act or take care. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";

const STAMP = /^1-[0-9a-f]{6}-[0-9a-f]{10}$/;
const sources = [{ secret: { name: "bucket" } }];
const uses = { env: { bucket: ["token"] } };

/** Creates a team with a Secret, whose account may restart workloads. */
async function newShop(
  more: typeof rolloutRules = [],
): Promise<{ team: TestNamespace; shop: Workloads; rotate(): Promise<void> }> {
  const team = await createNamespace({ rules: [...rolloutRules, ...more] });
  const rotate = () => team.secret("bucket", { token: secretText("token") });
  await rotate();
  return { team, shop: new Workloads(team), rotate };
}

/** The pod template of a workload, like that of a Deployment. */
function template(pods: object = {}): AnyObject {
  return (deployment("app", { ...uses, pods }) as AnyObject).spec.template;
}

/** Creates a workload with these pods. */
function make(team: TestNamespace, plural: string, kind: string, spec: object): Promise<AnyObject> {
  const object = { apiVersion: "apps/v1", kind, metadata: { name: "app" } };
  const selector = { matchLabels: { app: "app" } };
  return team.api.create(team.path("apps/v1", plural), {
    ...object,
    spec: { selector, template: template(), ...spec },
  });
}

/** The number of revisions of a StatefulSet or DaemonSet. */
async function revisions(team: TestNamespace): Promise<number> {
  return (await team.api.get(team.path("apps/v1", "controllerrevisions"))).items.length;
}

async function pods(team: TestNamespace): Promise<{ uid: string; stamp: string | undefined }[]> {
  const { items } = await team.api.get(team.path("v1", "pods"));
  const alive = items.filter(({ metadata }: AnyObject) => metadata.deletionTimestamp === undefined);
  return alive.map(({ metadata }: AnyObject) => ({
    uid: metadata.uid,
    stamp: metadata.annotations?.["inlay.dev/rollout"],
  }));
}

const stampOf = ({ metadata }: AnyObject): string | undefined => metadata?.annotations?.["inlay.dev/rollout"];

describe("the workload that restarts when a value changes", function () {
  this.timeout("2m");

  for (const [kind, plural, count] of [
    ["StatefulSet", "statefulsets", 2],
    ["DaemonSet", "daemonsets", 1],
  ] as const) {
    it(`is a ${kind}: each of its pods, once`, async () => {
      const { team, shop, rotate } = await newShop();
      await make(team, plural, kind, kind === "StatefulSet" ? { serviceName: "app", replicas: count } : {});
      await eventually(async () => assert.equal((await pods(team)).length, count));
      await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
      await shop.rolledOut("rolls", 0);
      const before = await pods(team);
      await rotate();
      await shop.rolledOut("rolls", 1);
      const after = await pods(team);
      assert.equal(after.length, count);
      const stamp = stampOf((await team.api.get(`${team.path("apps/v1", plural)}/app`)).spec.template);
      assert.match(stamp ?? "", STAMP);
      for (const pod of after) {
        assert.equal(pod.stamp, stamp);
        assert.ok(before.every(({ uid }) => uid !== pod.uid));
      }
      assert.equal(await revisions(team), 2);
    });
  }

  it("is a StatefulSet with OnDelete: its pods stay, an event says that they must be deleted, and it waits for that", async () => {
    const { team, shop, rotate } = await newShop();
    await make(team, "statefulsets", "StatefulSet", { serviceName: "app", updateStrategy: { type: "OnDelete" } });
    await eventually(async () => assert.equal((await pods(team)).length, 1));
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    const before = await pods(team);
    await rotate();
    await shop.until("rolls", "RollingOut");
    await eventually(async () => {
      const said = (await team.events("rolls")).filter(({ reason }) => reason === "PodsNotReplaced");
      assert.deepEqual(
        said.map(({ type }) => type),
        ["Warning"],
      );
      assert.match(said[0]?.note ?? "", new RegExp(`^StatefulSet ${team.namespace}/app: .*OnDelete`));
    });
    assert.deepEqual(await pods(team), before);
    await rolloutBarrier(team);
    assert.equal((await shop.until("rolls", "RollingOut")).status.rollout.pending.workloads[0].state, "Rolling");
    await team.api.delete(`${team.path("v1", "pods")}/app-0`);
    await shop.rolledOut("rolls", 1);
    assert.match((await pods(team))[0]?.stamp ?? "", STAMP);
  });

  it("is a StatefulSet with a partition: it waits until you lower that, because the other pods have the former value", async () => {
    const { team, shop, rotate } = await newShop();
    const partitioned = (partition: number) => ({
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
    });
    await make(team, "statefulsets", "StatefulSet", { serviceName: "app", replicas: 2, ...partitioned(1) });
    await eventually(async () => assert.equal((await pods(team)).length, 2));
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    await rotate();
    await eventually(async () => {
      const { status } = await shop.until("rolls", "RollingOut");
      assert.match(status.rollout.pending.workloads[0].message, /^1 of 2 pods .*partition/);
    });
    await team.api.merge(`${team.path("apps/v1", "statefulsets")}/app`, { spec: partitioned(0) });
    await shop.rolledOut("rolls", 1);
    for (const { stamp } of await pods(team)) assert.match(stamp ?? "", STAMP);
  });

  it("is a CronJob, from its next Job on, and no Job is created at once", async () => {
    const { team, shop, rotate } = await newShop([
      { apiGroups: ["batch"], resources: ["cronjobs"], verbs: ["get", "list", "watch", "patch"] },
    ]);
    const path = team.path("batch/v1", "cronjobs");
    const month = ((new Date().getUTCMonth() + 6) % 12) + 1;
    await team.api.create(path, {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "app" },
      spec: {
        schedule: `0 0 1 ${month} *`,
        jobTemplate: { spec: { template: template({ restartPolicy: "Never" }) } },
      },
    });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], kinds: ["CronJob"] } });
    await shop.rolledOut("rolls", 0);
    await rotate();
    await shop.rolledOut("rolls", 1);
    const { spec } = await team.api.get(`${path}/app`);
    assert.match(stampOf(spec.jobTemplate.spec.template) ?? "", STAMP);
    assert.equal(stampOf(spec.jobTemplate), undefined);
    await rolloutBarrier(team);
    assert.deepEqual((await team.api.get(team.path("batch/v1", "jobs"))).items, []);
  });

  it("is a paused Deployment once it is resumed, together with other changes, and the rollout waits for it", async () => {
    const { team, shop, rotate } = await newShop();
    await shop.deploy({ app: uses, other: uses });
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], maxConcurrent: 1 } });
    await shop.rolledOut("rolls", 0);
    await team.api.merge(shop.path("app"), { spec: { paused: true } });
    await rotate();
    const workloads = await eventually(async () => {
      const { status } = await team.binding("rolls");
      const { pending } = status.rollout;
      const [paused, other] = pending?.workloads ?? [];
      assert.match(paused?.message ?? "", /paused; .*resume/, JSON.stringify(status));
      assert.equal(other.state, "Done");
      return pending.workloads;
    }, 60_000);
    assert.equal(workloads[0].state, "Rolling");
    assert.match((await shop.annotations("app"))["inlay.dev/rollout"] ?? "", STAMP);
    assert.equal((await team.api.get(shop.path("app"))).spec.paused, true);
    assert.deepEqual(await shop.restarts(), { app: 0, other: 1 });
    await team.api.merge(shop.path("app"), { spec: { template: { metadata: { labels: { tier: "web" } } } } });
    await team.api.merge(shop.path("app"), { spec: { paused: false } });
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { app: 1, other: 1 });
  });

  it("is an object of a custom kind whose pod template the binding names", async () => {
    const kind: Kind = {
      group: "rollout.example.com",
      kind: "Engine",
      plural: "engines",
      spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    };
    const { team, shop, rotate } = await newShop([mayWrite(kind)]);
    await installKind(team.api, kind);
    await createObject(team.api, kind, "app", { size: 3, podTemplate: template() }, team.namespace);
    const target = { apiVersion: apiVersionOf(kind), kind: kind.kind, name: "app" };
    const rolls = (more: object) => team.bind("rolls", { sources, rollout: { targets: [{ ...target, ...more }] } });
    await assert.rejects(rolls({}), /needs template or restartPath/);
    await rolls({ template: "spec.podTemplate" });
    await shop.rolledOut("rolls", 0);
    await rotate();
    await shop.rolledOut("rolls", 1);
    const { spec } = await team.api.get(objectPath(kind, team.namespace, "app"));
    assert.match(stampOf(spec.podTemplate) ?? "", STAMP);
    const { podTemplate, ...rest } = spec;
    assert.deepEqual(rest, { size: 3 });
    assert.deepEqual({ ...podTemplate, metadata: { labels: podTemplate.metadata.labels } }, template());
  });
});

describe("a Deployment without a readiness probe", function () {
  this.timeout("2m");
  const path = "/spec/template/spec/containers/0/readinessProbe";

  /** Deploys one whose container has no readiness probe. */
  async function newUnprobed(rollout: object) {
    const { team, shop, rotate } = await newShop();
    await shop.deploy({ app: uses, probed: uses });
    await team.api.jsonPatch(shop.path("app"), [{ op: "remove", path }]);
    await shop.run(["app"]);
    await team.bind("rolls", { sources, rollout: { consumersOf: ["bucket"], ...rollout } });
    await shop.rolledOut("rolls", 0);
    return { team, shop, rotate };
  }

  it("restarts with one warning", async () => {
    const { team, shop, rotate } = await newUnprobed({});
    for (const revision of [1, 2]) {
      await rotate();
      await shop.rolledOut("rolls", revision);
    }
    const restarted = await eventually(async () => {
      const events: AnyObject[] = await team.events("app");
      const restarted = events.filter(({ reason }) => reason === "Restarted");
      assert.equal(restarted.length, 2, JSON.stringify(events));
      return events;
    });
    const warnings = restarted.filter(({ reason }) => reason === "NoReadinessProbe");
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0].series, undefined);
    assert.match(warnings[0].note, /readiness probe in app\b/);
    const others = await team.events("probed");
    assert.ok(others.every(({ reason }) => reason !== "NoReadinessProbe"));
  });

  it("does not restart where the binding requires a probe, reports that, and has the value once a user adds one", async () => {
    const { team, shop, rotate } = await newUnprobed({ requireReadinessProbe: true });
    const before = await shop.restarts();
    await rotate();
    const { status } = await shop.until("rolls", "RestartBlocked");
    const { message } = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(message, /1 of 2 waiting: spec\.rollout\.requireReadinessProbe: .* app; add one$/);
    await shop.run(["probed"]);
    await rolloutBarrier(team);
    assert.deepEqual(await shop.restarts(), { ...before, probed: 1 });
    const probe = { exec: { command: ["true"] } };
    await team.api.jsonPatch(shop.path("app"), [{ op: "add", path, value: probe }]);
    await shop.rolledOut("rolls", 1);
    // The pods of the new template start with the value.
    assert.deepEqual(await shop.annotations("app"), {});
    assert.deepEqual(await shop.restarts(), { ...before, probed: 1, app: (before["app"] ?? 0) + 1 });
  });
});
