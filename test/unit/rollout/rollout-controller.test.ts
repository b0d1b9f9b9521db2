/** What a rollout records, when it is requeued, and which restarts it shares, with a fake API server. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../src/api/rollout.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { withFewMessages } from "../../../src/rollout/decide/intent-status.ts";
import { CORE, RolloutFixture } from "../rollout-controller.ts";

/** A target of that generation, as its controller has observed it. */
const seenAt = (observedGeneration: number) => async (): Promise<KubeObject> => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "core", uid: "uid-core", resourceVersion: "5", generation: 2 },
  status: { observedGeneration },
});

describe("the rollout of a binding", () => {
  it("leaves in the status what it recorded before a restart", async () => {
    const rollout = new RolloutFixture();
    rollout.spec = { stamp: { annotation: "kubectl.kubernetes.io/restartedAt", value: "Time" } };
    await rollout.roll("a");
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
    assert.equal(rollout.noted.length, 1);
    assert.deepEqual(rollout.status?.pending?.lastChangeTime, rollout.stamped[0]);
  });

  it("writes the version of the source, also when its value changes back during the rollout", async () => {
    const rollout = new RolloutFixture();
    rollout.spec = { stamp: { annotation: "example.com/version", value: "ResourceVersion" } };
    await rollout.roll("1");
    rollout.progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
    await rollout.roll("2");
    await rollout.roll("1");
    assert.deepEqual(rollout.stamped, ["2", "1"]);
    assert.deepEqual(rollout.restarted, ["bucket/key", "bucket/key"]);
  });

  it("writes no version of a source that is not an object of the cluster", async () => {
    const rollout = new RolloutFixture();
    rollout.isObject = false;
    rollout.spec = { stamp: { annotation: "example.com/version", value: "ResourceVersion" } };
    await rollout.roll("1");
    await rollout.roll("2");
    assert.match(rollout.stamped.join(), /^1-[0-9a-f]+-[0-9a-f]+$/);
  });

  it("has its progress in the status when the binding is not processed any more, and not only its plan", async () => {
    const rollout = new RolloutFixture();
    rollout.spec = { stamp: { annotation: "kubectl.kubernetes.io/restartedAt", value: "Time" } };
    await rollout.roll("a");
    rollout.progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
    await rollout.roll("b");
    const statesOf = (status: RolloutStatus | undefined) => status?.pending?.workloads?.map(({ state }) => state);
    assert.deepEqual(statesOf(rollout.status), ["Waiting"]);
    assert.deepEqual(statesOf(rollout.forget()), ["Rolling"]);
    assert.equal(rollout.forget(), undefined);
  });

  for (const [limited, spec] of [
    ["at what time it restarts something", { stamp: { annotation: "example.com/at", value: "Time" as const } }],
    ["what takes a place", {}],
  ] as const) {
    it(`records ${limited} once, however often it is refused, and the status stays`, async () => {
      const rollout = new RolloutFixture();
      rollout.spec = spec;
      rollout.installation.replaceRollouts({ suspend: false, maxConcurrent: 1 });
      rollout.refused = () => new ApiError("PATCH", 403, "Forbidden");
      await rollout.roll("a");
      await rollout.roll("b");
      const { status } = rollout;
      for (let n = 0; n < 3; n++) await rollout.roll("b");
      assert.equal(rollout.noted.length, 1);
      assert.deepEqual(rollout.status, status);
      rollout.refused = undefined;
      await rollout.roll("b");
      assert.equal(rollout.stamped.length, 1);
      await rollout.roll("c");
      assert.equal(rollout.noted.length, 2);
    });
  }

  it("notifies of a restart and of a failure once, also if another process sees it", async () => {
    const rollout = new RolloutFixture();
    const notified = () => rollout.notified.map(({ event, reason, keys, message }) => [event, reason, keys, message]);
    await rollout.roll("a");
    assert.deepEqual(notified(), []);
    await rollout.roll("b");
    const restarted = "restarted by SecretBinding registry/harbor, as bucket/key changed";
    assert.deepEqual(notified(), [["Restarted", "Restarted", ["bucket/key"], restarted]]);
    rollout.workload = { stamps: rollout.stamped };
    rollout.progress = { state: "Failed", message: "no progress" };
    for (let n = 0; n < 3; n++) {
      rollout.forget();
      await rollout.roll("b");
    }
    assert.deepEqual(notified().slice(1), [["RestartFailed", "RolloutFailed", ["bucket/key"], "no progress"]]);
    const [one, failure] = rollout.notified;
    assert.deepEqual(one?.workload, { apiVersion: "apps/v1", kind: "Deployment", namespace: "registry", name: "core" });
    assert.notEqual(one?.id, failure?.id);
  });

  it("notifies of a refused restart once, and not while the API server is unavailable", async () => {
    const rollout = new RolloutFixture();
    await rollout.roll("a");
    rollout.refused = () => new ApiError("PATCH", 503, "ServiceUnavailable");
    await rollout.roll("b");
    assert.equal(rollout.notified.length, 0);
    rollout.refused = () => new ApiError("PATCH", 403, "Forbidden");
    for (let n = 0; n < 3; n++) await rollout.roll("b");
    const notified = rollout.notified.map(({ event, reason, keys }) => [event, reason, keys]);
    assert.deepEqual(notified, [["RestartFailed", "Forbidden", ["bucket/key"]]]);
    assert.match(rollout.notified[0]?.message ?? "", /may not patch/);
  });

  it("counts as waiting for the reason of its condition", async () => {
    const rollout = new RolloutFixture();
    await rollout.roll("a");
    assert.deepEqual([...rollout.waiting], []);
    rollout.refused = () => new ApiError("PATCH", 403, "Forbidden");
    const { problem } = await rollout.roll("b");
    assert.equal(problem?.reason, "Forbidden");
    assert.deepEqual([...rollout.waiting], [["Forbidden", 1]]);
    rollout.refused = undefined;
    rollout.progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
    await rollout.roll("b");
    assert.deepEqual([...rollout.waiting], [["RollingOut", 1]]);
    rollout.problem = new Problem("Unavailable", "the workloads can't be listed");
    await rollout.roll("b");
    assert.deepEqual([...rollout.waiting], [["Unavailable", 1]]);
  });

  it("changes nothing while the workloads are not known", async () => {
    const rollout = new RolloutFixture();
    rollout.installation.replaceRollouts({ suspend: false, maxConcurrent: 1 });
    await rollout.roll("a");
    rollout.progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
    await rollout.roll("b");
    const before = rollout.status;
    rollout.pending = true;
    const { status, workloads, problem, isDone } = await rollout.roll("c");
    assert.deepEqual([status, workloads, problem, isDone], [before, undefined, undefined, false]);
    assert.equal(rollout.slots.take("registry/other", "other", "registry"), false);
    rollout.pending = false;
    await rollout.roll("c");
    assert.equal(rollout.stamped.length, 2);
  });

  it("retries a target that it could not read", async () => {
    const rollout = new RolloutFixture();
    rollout.spec = { waitForTargets: {} };
    rollout.targets = [CORE];
    rollout.read = () => Promise.reject(new ApiError("GET", 503, "ServiceUnavailable"));
    await rollout.roll("a");
    const { requeueAfterMs, status } = await rollout.roll("b");
    assert.equal(status?.pending?.reason, "TargetsNotReady");
    assert.ok(requeueAfterMs !== undefined && requeueAfterMs <= 5_000, String(requeueAfterMs));
    rollout.read = seenAt(2);
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
  });

  it("shares no restart from before the targets' controllers observed the values", async () => {
    const rollout = new RolloutFixture();
    rollout.targets = [CORE];
    rollout.spec = { waitForTargets: {} };
    await rollout.roll("a");
    rollout.read = seenAt(1);
    await rollout.roll("b");
    assert.deepEqual(rollout.stamped, []);
    Object.assign(rollout, { binding: "other", spec: {} });
    await rollout.roll("a");
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
    Object.assign(rollout, { binding: "harbor", spec: { waitForTargets: {} }, read: seenAt(2) });
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 2);
  });

  it("reports a restart that it shares by the binding that wrote it", async () => {
    const rollout = new RolloutFixture();
    Object.assign(rollout, { binding: "other", spec: { suspend: true } });
    for (const value of ["a", "b"]) await rollout.roll(value);
    Object.assign(rollout, { binding: "harbor", spec: {} });
    for (const value of ["a", "b"]) await rollout.roll(value);
    rollout.binding = "other";
    await rollout.roll("b");
    assert.deepEqual([rollout.stamped.length, rollout.restarted, rollout.notified.length], [1, ["bucket/key"], 1]);
  });

  it("holds its slot while the workload is seen to roll out and nothing can be decided, and none once it is suspended", async () => {
    for (const end of [
      async (rollout: RolloutFixture) => {
        rollout.progress = { state: "Done", message: "rolled out" };
        const { isDone } = await rollout.roll("b");
        assert.equal(isDone, true);
      },
      (rollout: RolloutFixture) => rollout.forget(),
    ]) {
      const rollout = new RolloutFixture();
      rollout.installation.replaceRollouts({ suspend: false, maxConcurrent: 1 });
      const isFull = () => {
        const taken = rollout.slots.take("registry/other", "other", "registry");
        rollout.slots.forget("registry/other");
        return !taken;
      };
      await rollout.roll("a");
      await rollout.roll("b");
      assert.ok(isFull());
      rollout.problem = new Problem("KeyNotFound", "a problem that an event heals");
      rollout.progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
      const { isDone } = await rollout.roll("b");
      assert.equal(isDone, false);
      assert.ok(isFull());
      await end(rollout);
      assert.ok(!isFull());
    }
  });

  it("waits while the sources don't belong together, also when they are not read again", async () => {
    const rollout = new RolloutFixture();
    await rollout.roll("a");
    await rollout.roll("b", new Problem("SourceAnnotationMismatch", "they differ"));
    const { status } = await rollout.roll("b");
    assert.deepEqual([rollout.stamped, status?.pending?.reason], [[], "SourceAnnotationMismatch"]);
    await rollout.roll("c");
    assert.equal(rollout.stamped.length, 1);
    const { problem } = await rollout.roll("d", new Problem("Unavailable", "it is tried again"));
    assert.equal(problem?.reason, "Unavailable");
    assert.equal(rollout.stamped.length, 1);
  });

  it("decides again about a workload that has changed since, without a message", async () => {
    const rollout = new RolloutFixture();
    await rollout.roll("a");
    rollout.refused = () => new ApiError("PATCH", 409, "Conflict");
    rollout.read = seenAt(2);
    const { problem, requeueAfterMs, status, isDone } = await rollout.roll("b");
    assert.deepEqual([problem, isDone, status?.pending], [undefined, false, undefined]);
    assert.ok(requeueAfterMs !== undefined && requeueAfterMs <= 1_000, String(requeueAfterMs));
    rollout.refused = undefined;
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
  });

  it("does not restart a workload whose template is in another object", async () => {
    const rollout = new RolloutFixture();
    rollout.workload = { templateElsewhere: true };
    await rollout.roll("a");
    const { status } = await rollout.roll("b");
    assert.deepEqual([rollout.stamped, status?.pending?.reason], [[], "RestartBlocked"]);
    assert.match(status?.pending?.message ?? "", /core has its pod template in another object/);
  });

  it("reports an invalid window before anything changes, and still records the values", async () => {
    const rollout = new RolloutFixture();
    rollout.spec = { windows: [{ schedule: "at 2 at night", duration: "2h", timeZone: "UTC" }] };
    const { problem, isDone } = await rollout.roll("a");
    assert.deepEqual([problem?.reason, isDone], ["InvalidBinding", false]);
    const changed = await rollout.roll("b");
    assert.deepEqual([changed.problem?.reason, changed.status?.pending?.reason], ["InvalidBinding", "InvalidBinding"]);
    assert.deepEqual(rollout.stamped, []);
    rollout.spec = {};
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
  });
});

describe("the rollout of a binding that writes fields after it", () => {
  it("reports the versions of the sources that all workloads have, and none while anything is in progress or missing", async () => {
    const rollout = new RolloutFixture();
    rollout.missing = [{ ...CORE, name: "lost" }];
    const missing = await rollout.roll("a");
    assert.deepEqual([missing.problem?.reason, missing.rolledOutFor], ["WorkloadNotFound", undefined]);
    rollout.missing = [];
    assert.deepEqual((await rollout.roll("a")).rolledOutFor, new Map([["bucket", "uid/a"]]));
    rollout.progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
    assert.equal((await rollout.roll("b")).rolledOutFor, undefined);
  });

  for (const [differs, restarts] of [
    [true, 1],
    [false, 0],
  ] as const)
    it(`restarts ${restarts === 0 ? "nothing" : "what uses it"} at the first reconcile if ${differs ? "another" : "no other"} value is recorded`, async () => {
      const rollout = new RolloutFixture();
      rollout.differs = differs;
      await rollout.roll("a");
      assert.equal(rollout.stamped.length, restarts);
      // Only at the first reconcile.
      rollout.differs = true;
      await rollout.roll("a");
      assert.equal(rollout.stamped.length, restarts);
    });

  it("records no baseline while the recorded values can't be known", async () => {
    const rollout = new RolloutFixture();
    rollout.differs = new Problem("Forbidden", "it may not read it");
    const { problem, status } = await rollout.roll("a");
    assert.deepEqual([problem?.reason, status], ["Forbidden", undefined]);
  });

  it("is not complete while a target lacks its values, although no workload waits for it", async () => {
    const rollout = new RolloutFixture();
    rollout.held.set("elsewhere", "it waits for its target");
    assert.equal((await rollout.roll("a")).rolledOutFor, undefined);
    rollout.held.clear();
    assert.notEqual((await rollout.roll("a")).rolledOutFor, undefined);
  });

  it("keeps a few of many long messages in the status", () => {
    const pending = { firstChangeTime: "", lastChangeTime: "", reason: "", message: "" };
    const of = (at: number) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: "",
      name: `${at}`,
      uid: `${at}`,
    });
    const workloads = Array.from({ length: 1_000 }, (_, at) => {
      const message = at % 2 === 0 ? "it is paused" : `${at} ${"kubectl ".repeat(60)}`;
      return { ...of(at), state: "Waiting" as const, message };
    });
    const status = withFewMessages({ digestKeyID: "", revision: 0, pending: { ...pending, workloads } });
    const messages = status.pending?.workloads?.flatMap(({ message }) => message ?? []) ?? [];
    assert.equal(messages.filter((each) => each === "it is paused").length, 500);
    assert.equal(messages.length, 510);
  });

  it("restarts nothing in a namespace whose target lacks the new values, and says why", async () => {
    const rollout = new RolloutFixture();
    await rollout.roll("a");
    rollout.held.set(CORE.namespace ?? "", "it waits for its target");
    const { status } = await rollout.roll("b");
    assert.deepEqual([rollout.stamped, status?.pending?.reason], [[], "RestartBlocked"]);
    assert.match(status?.pending?.message ?? "", /it waits for its target/);
    rollout.held.clear();
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
  });
});
