import assert from "node:assert/strict";
import fc from "fast-check";
import type { Digests, Pending, RolloutStatus } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { decideRollout, type RolloutDecision, type RolloutInput } from "../../../../src/rollout/decide/engine.ts";
import { recordedSlots, withoutUnwritten } from "../../../../src/rollout/decide/intent-status.ts";
import type { Dependent, RolloutBlock, Step } from "../../../../src/rollout/types.ts";
import type { Progress } from "../../../../src/workloads/progress.ts";
import { dependentOf } from "../../objects.ts";
import { DEPLOYMENTS } from "../../resources.ts";

const DONE: Progress = { state: "Done", message: "rolled out" };
const ROLLING: Progress = { state: "Rolling", message: "0 of 1 replicas are updated" };
const FAILED: Progress = { state: "Failed", message: "it made no progress" };
const ONE: Step[] = [{ name: undefined, timeoutMs: 600_000, onFailure: "Continue" }];
const ANNOTATION = "inlay.dev/rollout";
const START = Date.parse("2026-11-21T10:00:00.000Z");

interface Options {
  uses?: string[];
  step?: number;
  progress?: Progress;
  paused?: boolean;
  onDelete?: boolean;
  stamps?: string[];
}

function workload(
  name: string,
  { uses = ["bucket/key"], step = 0, progress = DONE, ...more }: Options = {},
): Dependent {
  const [stamp] = more.stamps ?? [];
  const marks = more.stamps && { marks: stamp ? { [ANNOTATION]: stamp } : {} };
  return dependentOf({
    ref: { name },
    version: { uid: `uid-${name}` },
    workload: { progress, ...more, ...marks },
    step,
    uses: new Set(uses),
  });
}

/** The workloads with their restarts in place, unless a test says what they bear. */
function bearing(dependents: Dependent[], before: RolloutStatus | undefined): Dependent[] {
  const stamps = new Map(before?.pending?.workloads?.map(({ uid, stamp }) => [uid, stamp]));
  return dependents.map((each) => {
    const stamp = stamps.get(each.version.uid);
    if (each.workload.marks !== undefined || stamp === undefined) return each;
    return { ...each, workload: { ...each.workload, marks: { [ANNOTATION]: stamp } } };
  });
}

function turn(
  dependents: Dependent[],
  digests: Digests,
  before?: RolloutStatus,
  more: Partial<RolloutInput> = {},
): RolloutDecision {
  const isHidden = (more.unknown ?? []).length > 0 || before?.unknownNamespaces !== undefined;
  const hidden = isHidden ? [...Object.keys(before?.digests ?? {}), ...Object.keys(digests)] : [];
  return decideRollout({
    used: new Set([
      ...dependents.flatMap(({ uses }) => [...uses]),
      ...hidden.filter((id) => id.endsWith("/*") || before?.digests?.[id] !== undefined),
    ]),
    now: START,
    binding: { uid: "uid-of-the-binding", name: "harbor", namespace: "registry" },
    restartLimit: undefined,
    restartTimesOf: () => [],
    steps: ONE,
    dependents: bearing(dependents, before),
    before,
    key: "one",
    digests,
    rollFirst: false,
    maxConcurrent: Number.POSITIVE_INFINITY,
    block: () => undefined,
    unknown: [],
    refusal: () => undefined,
    wasRefused: () => false,
    take: () => true,
    isSeen: () => true,
    revertOf: () => ({ isReplaced: false, by: "it is not known" }),
    isAgain: false,
    startedWith: () => undefined,
    isYounger: () => false,
    ...more,
  });
}

const stamped = ({ stamps }: RolloutDecision) => stamps.map(({ dependent }) => dependent.ref.name);
const states = ({ status }: RolloutDecision) => status.pending?.workloads?.map(({ name, state }) => `${name} ${state}`);

describe("a rollout", () => {
  it("records the first values as the baseline, and restarts nothing", () => {
    const decided = turn([workload("core")], { "bucket/key": "a" });
    assert.deepEqual(decided.stamps, []);
    assert.deepEqual(decided.status, { digestKeyID: "one", revision: 0, digests: { "bucket/key": "a" } });
    assert.deepEqual(turn([workload("core")], { "bucket/key": "a" }, decided.status).status, decided.status);
  });

  it("restarts the workloads that use a changed value, and ends when they have rolled out", () => {
    const first = turn([workload("core")], { "bucket/key": "a", "bucket/other": "x" });
    const all = [workload("core"), workload("other", { uses: ["bucket/other"] })];
    const base = turn(all, { "bucket/key": "a", "bucket/other": "x" }, first.status);
    const began = turn(all, { "bucket/key": "b", "bucket/other": "x" }, base.status);
    assert.deepEqual(stamped(began), ["core"]);
    assert.deepEqual(states(began), ["core Rolling"]);
    const still = turn(
      [workload("core", { progress: ROLLING })],
      { "bucket/key": "b", "bucket/other": "x" },
      began.status,
    );
    assert.deepEqual(stamped(still), []);
    const ended = turn(all, { "bucket/key": "b", "bucket/other": "x" }, still.status);
    assert.equal(ended.status.pending, undefined);
    assert.equal(ended.status.revision, 1);
    assert.deepEqual(ended.status.digests, { "bucket/key": "b", "bucket/other": "x" });
  });

  it("writes the same stamp again after a crash, and another stamp for every other change", () => {
    const before = turn([workload("core")], { "bucket/key": "a" }).status;
    const [one] = turn([workload("core")], { "bucket/key": "b" }, before).stamps;
    const [again] = turn([workload("core")], { "bucket/key": "b" }, before, { now: START + 60_000 }).stamps;
    assert.equal(one?.stamp, again?.stamp);
    const rolled = turn(
      [workload("core")],
      { "bucket/key": "b" },
      turn([workload("core")], { "bucket/key": "b" }, before).status,
    );
    const back = turn([workload("core")], { "bucket/key": "a" }, rolled.status);
    const forth = turn(
      [workload("core")],
      { "bucket/key": "b" },
      turn([workload("core")], { "bucket/key": "a" }, back.status).status,
    );
    const all = [one, back.stamps[0], forth.stamps[0]].map((each) => each?.stamp);
    assert.equal(new Set(all).size, 3, String(all));
  });

  it("checks the pace before every restart, also when it has begun, with the time of the last restart", () => {
    const before = turn([workload("core")], { "bucket/key": "a" }).status;
    const began = turn([workload("core")], { "bucket/key": "b" }, before);
    assert.equal(began.status.pending?.lastRestartTime, "2026-11-21T10:00:00.000Z");
    const asked: unknown[] = [];
    const held = turn([workload("core")], { "bucket/key": "c" }, began.status, {
      now: START + 1_000,
      block: ({ startTime: since, lastRestartTime: restarted, lastChangeTime: changed }) => {
        asked.push(since, restarted, changed);
        return { reason: "Debounce", message: "" };
      },
    });
    assert.deepEqual(asked, ["2026-11-21T10:00:00.000Z", "2026-11-21T10:00:00.000Z", "2026-11-21T10:00:01.000Z"]);
    assert.deepEqual(stamped(held), []);
    const later = turn([workload("core")], { "bucket/key": "c" }, held.status, { now: START + 2_000 });
    assert.deepEqual(stamped(later), ["core"]);
    assert.equal(later.status.pending?.lastRestartTime, "2026-11-21T10:00:02.000Z");
  });

  it("restarts a workload again that restarted for a value that no longer holds, and not one that waits", () => {
    const all = [workload("core", { progress: ROLLING }), workload("jobs", { progress: ROLLING })];
    const before = turn(all, { "bucket/key": "a" }).status;
    const began = turn(all, { "bucket/key": "b" }, before, { maxConcurrent: 1 });
    assert.deepEqual(stamped(began), ["core"]);
    const reverted = turn(all, { "bucket/key": "a" }, began.status, { maxConcurrent: 1 });
    assert.deepEqual(stamped(reverted), ["core"]);
    assert.deepEqual(states(reverted), ["core Rolling"]);
  });

  it("ends too if an older stamp is in another annotation", () => {
    const before = turn([workload("core")], { "bucket/key": "a" }).status;
    const former = turn([workload("core")], { "bucket/key": "b" }, before).stamps[0]?.stamp ?? "";
    const began = turn([workload("core", { stamps: [former] })], { "bucket/key": "c" }, before);
    const stamps = [former, began.stamps[0]?.stamp ?? ""];
    const ended = turn([workload("core", { stamps })], { "bucket/key": "c" }, began.status);
    assert.deepEqual([ended.stamps, ended.status.pending], [[], undefined]);
  });

  it("does not restart a workload that was created after the change", () => {
    const block = (): RolloutBlock => ({ reason: "OutsideWindow", message: "closed" });
    const before = turn([workload("core")], { "bucket/key": "a" }).status;
    const waits = turn([workload("core")], { "bucket/key": "b" }, before, { block });
    const goes = turn([workload("core"), workload("new")], { "bucket/key": "b" }, waits.status);
    assert.deepEqual(stamped(goes), ["core"]);
    const waitsAgain = turn([workload("core"), workload("new")], { "bucket/key": "b" }, waits.status, { block });
    const changed = turn([workload("core"), workload("new")], { "bucket/key": "c" }, waitsAgain.status);
    assert.deepEqual(stamped(changed), ["core", "new"]);
  });

  it("restarts nothing for a value that is missing, or returns unchanged", () => {
    const before = turn([workload("core")], { "bucket/key": "a" }).status;
    const gone = turn([workload("core")], {}, before);
    assert.deepEqual(gone.status, before);
    assert.deepEqual(turn([workload("core")], { "bucket/key": "a" }, gone.status).stamps, []);
    assert.deepEqual(stamped(turn([workload("core")], { "bucket/key": "b" }, gone.status)), ["core"]);
  });

  it("causes no second restart when its value is removed, and starts no workload before the value exists again", () => {
    const all = [workload("core"), workload("jobs", { progress: ROLLING })];
    const before = turn(all, { "bucket/key": "a" }).status;
    const began = turn(all, { "bucket/key": "b" }, before, { maxConcurrent: 1 });
    assert.deepEqual(stamped(began), ["core"]);
    const gone = turn(all, {}, began.status, { maxConcurrent: 1 });
    assert.deepEqual([stamped(gone), states(gone)], [[], ["core Done", "jobs Waiting"]]);
    assert.match(gone.status.pending?.message ?? "", /bucket\/key is missing/);
    const still = turn(all, {}, gone.status, { maxConcurrent: 1, now: START + 60_000 });
    assert.deepEqual(still.status, gone.status);
    const back = turn(all, { "bucket/key": "b" }, still.status, { maxConcurrent: 1 });
    assert.deepEqual(stamped(back), ["jobs"]);
    const other = turn(all, { "bucket/key": "c" }, still.status);
    assert.deepEqual(stamped(other), ["core", "jobs"]);
    const as = turn(all, { "bucket/key": "a" }, still.status);
    assert.deepEqual([stamped(as), states(as)], [["core"], ["core Rolling"]]);
  });

  it("ends after the restarts for a value, even if the value is removed by then", () => {
    const before = turn([workload("core")], { "bucket/key": "a" }).status;
    const began = turn([workload("core")], { "bucket/key": "b" }, before);
    const ended = turn([workload("core")], {}, began.status);
    assert.deepEqual(ended.status, { ...ended.status, revision: 1, digests: { "bucket/key": "b" } });
    assert.equal(ended.status.pending, undefined);
    assert.deepEqual(turn([workload("core")], { "bucket/key": "b" }, ended.status).stamps, []);
  });

  it("restarts once at the first reconcile if onFirstSync asks for it", () => {
    const first = turn([workload("core")], { "bucket/key": "a" }, undefined, { rollFirst: true });
    assert.deepEqual(stamped(first), ["core"]);
    const ended = turn([workload("core")], { "bucket/key": "a" }, first.status, { rollFirst: true });
    assert.equal(ended.status.pending, undefined);
    assert.deepEqual(turn([workload("core")], { "bucket/key": "a" }, ended.status, { rollFirst: true }).stamps, []);
  });

  it("restarts nothing for another digest key, and finds changes with the former key", () => {
    const all = [workload("core"), workload("jobs", { uses: ["bucket/other"] })];
    const before = turn(all, { "bucket/key": "a1", "bucket/other": "x1" }).status;
    const now = { "bucket/key": "a2", "bucket/other": "y2" };
    const renewed = turn(all, now, before, {
      key: "two",
      rekeyed: { former: { "bucket/key": "a1", "bucket/other": "y1" } },
    });
    assert.deepEqual(stamped(renewed), ["jobs"]);
    assert.equal(renewed.status.digestKeyID, "two");
    const lost = turn(all, now, before, { key: "two", rekeyed: { former: undefined } });
    assert.deepEqual(lost.stamps, []);
    assert.deepEqual(lost.status.digests, now);
    assert.deepEqual(lost.happened, [{ what: "renewed" }]);
  });

  it("follows the order of the steps, and halts at a failed one until that has rolled out", () => {
    const steps: Step[] = ["server", "client"].map((name) => ({ name, timeoutMs: 60_000, onFailure: "Halt" }));
    const of = (progress: Progress) => [workload("server", { progress }), workload("client", { step: 1 })];
    const more = { steps };
    const before = turn(of(DONE), { "bucket/key": "a" }, undefined, more).status;
    const began = turn(of(DONE), { "bucket/key": "b" }, before, more);
    assert.deepEqual(stamped(began), ["server"]);
    const failed = turn(of(FAILED), { "bucket/key": "b" }, began.status, more);
    assert.deepEqual([stamped(failed), failed.status.pending?.reason], [[], "RolloutFailed"]);
    assert.match(
      failed.status.pending?.message ?? "",
      /^step server: Deployment registry\/server: it made no progress/,
    );
    const late = turn(of(ROLLING), { "bucket/key": "b" }, began.status, { ...more, now: START + 60_000 });
    assert.deepEqual(states(late), ["server Failed", "client Waiting"]);
    const healed = turn(of(DONE), { "bucket/key": "b" }, late.status, more);
    assert.deepEqual(stamped(healed), ["client"]);
  });

  it("continues after a failure if onFailure says so, and reports the failure until the workload has rolled out", () => {
    const steps: Step[] = ["server", "client"].map((name) => ({ name, timeoutMs: 60_000, onFailure: "Continue" }));
    const of = (progress: Progress) => [workload("server", { progress }), workload("client", { step: 1 })];
    const before = turn(of(DONE), { "bucket/key": "a" }, undefined, { steps }).status;
    const began = turn(of(DONE), { "bucket/key": "b" }, before, { steps });
    const failed = turn(of(FAILED), { "bucket/key": "b" }, began.status, { steps });
    assert.deepEqual(stamped(failed), ["client"]);
    const left = turn(of(FAILED), { "bucket/key": "b" }, failed.status, { steps });
    assert.deepEqual([states(left), left.status.pending?.reason], [["server Failed", "client Done"], "RolloutFailed"]);
    assert.equal(turn(of(DONE), { "bucket/key": "b" }, left.status, { steps }).status.pending, undefined);
  });

  it("is a new one for a value that changes when only failed workloads that hold nothing back are left", () => {
    const steps = (onFailure: Step["onFailure"]): Step[] => [{ name: undefined, timeoutMs: 60_000, onFailure }];
    const begins = (onFailure: Step["onFailure"], progress: Progress) => {
      const more = { steps: steps(onFailure) };
      const all = [workload("core", { progress }), workload("jobs", { uses: ["bucket/key", "bucket/other"] })];
      const of = (key: string) => ({ "bucket/key": key, "bucket/other": key });
      const before = turn(all, of("a"), undefined, more).status;
      const failed = turn(all, of("b"), turn(all, of("b"), before, more).status, more).status;
      const held: Pending[] = [];
      const block = (pending: Pending): RolloutBlock => {
        held.push(pending);
        return { reason: "MinInterval", message: "too soon" };
      };
      const waits = turn(all, { ...of("b"), "bucket/other": "c" }, failed, { ...more, block, now: START + 1 });
      assert.deepEqual(stamped(waits), []);
      turn(all, { ...of("b"), "bucket/other": "c" }, waits.status, { ...more, block, now: START + 2 });
      const again = turn(all, { ...of("b"), "bucket/other": "c" }, waits.status, { ...more, now: START + 3 });
      return [...held.map(({ startTime: began }) => began), again.status.lastStartTime].map(
        (time) => time && Date.parse(time) - START,
      );
    };
    assert.deepEqual(begins("Continue", FAILED), [undefined, undefined, 3]);
    assert.deepEqual(begins("Continue", ROLLING), [0, 0, 0]);
    assert.deepEqual(begins("Halt", FAILED), [0, 0, 0]);
  });

  it("has not begun if its restarts could not be written, and has begun by a restart that a crash kept from the status", () => {
    const all = [workload("core"), workload("jobs")];
    const before = turn(all, { "bucket/key": "a" }).status;
    const decided = turn(all, { "bucket/key": "b" }, before);
    const problem = new Problem("Forbidden", "it may not be patched");
    const none = withoutUnwritten(new Map(all.map((each) => [each, problem])), decided);
    const { startTime: began, lastRestartTime: restarted } = none.status.pending ?? {};
    assert.deepEqual([none.status.lastStartTime, began, restarted], [undefined, undefined, undefined]);
    assert.deepEqual(none.happened, []);
    const [core] = all as [Dependent];
    const one = withoutUnwritten(new Map([[core, problem]]), decided);
    assert.deepEqual(
      one.happened.map(({ what }) => what),
      ["began"],
    );
    const stamps = decided.stamps.map(({ stamp }) => stamp);
    const found = [workload("core", { stamps, progress: ROLLING }), workload("jobs")];
    const crashed = turn(found, { "bucket/key": "b" }, before, {
      block: () => ({ reason: "OutsideWindow", message: "shut" }),
    });
    assert.deepEqual(
      [crashed.status.lastStartTime, crashed.happened.map(({ what }) => what)],
      [decided.status.lastStartTime, ["began"]],
    );
    const over = turn([workload("core", { stamps })], { "bucket/key": "b" }, before).status;
    assert.deepEqual([over.pending, over.lastStartTime], [undefined, decided.status.lastStartTime]);
  });

  it("continues in other namespaces if one has no free slot, and requests a slot once for each namespace", () => {
    const all = ["registry", "registry", "storage", "storage"].map((namespace, at) => {
      const each = workload(`w${at}`);
      return { ...each, ref: { ...each.ref, namespace } };
    });
    const before = turn(all, { "bucket/key": "a" }).status;
    const asked: string[] = [];
    const take = ({ ref }: Dependent) => asked.push(ref.name) > 0 && ref.namespace === "storage";
    const began = turn(all, { "bucket/key": "b" }, before, { take });
    assert.deepEqual(
      [stamped(began), asked],
      [
        ["w2", "w3"],
        ["w0", "w2", "w3"],
      ],
    );
    assert.equal(began.status.pending?.reason, "MaxConcurrent");
  });

  it("releases the slot of a workload after an hour, whatever its timeout", () => {
    const steps: Step[] = [{ name: undefined, timeoutMs: 86_400_000, onFailure: "Continue" }];
    const all = [workload("core", { progress: ROLLING })];
    const before = turn(all, { "bucket/key": "a" }, undefined, { steps }).status;
    const began = turn(all, { "bucket/key": "b" }, before, { steps });
    assert.deepEqual([began.rolling.length, began.requeueAfterMs], [1, 3_600_000]);
    const now = START + 3_600_000;
    assert.equal(recordedSlots(began.status, now - 1).length, 1);
    assert.deepEqual(recordedSlots(began.status, now), []);
    const later = turn(all, { "bucket/key": "b" }, began.status, { steps, now });
    assert.deepEqual([later.rolling, states(later)], [[], ["core Rolling"]]);
  });

  it("shows the present names of the steps", () => {
    const steps = (name: string | undefined): Step[] => [{ name, timeoutMs: 60_000, onFailure: "Halt" }];
    const all = [workload("core", { progress: ROLLING })];
    const before = turn(all, { "bucket/key": "a" }).status;
    const began = turn(all, { "bucket/key": "b" }, before, { steps: steps("server") }).status;
    const stepIn = (status: RolloutStatus) => status.pending?.workloads?.[0]?.step;
    assert.equal(stepIn(began), "server");
    for (const name of ["database", undefined]) {
      const renamed = turn(all, { "bucket/key": "b" }, began, { steps: steps(name) }).status;
      assert.equal(stepIn(renamed), name);
    }
  });

  it("restarts a paused workload, which takes no slot and has no timeout", () => {
    const all = [workload("core", { paused: true, progress: ROLLING }), workload("jobs", { progress: ROLLING })];
    const before = turn(all, { "bucket/key": "a" }).status;
    const began = turn(all, { "bucket/key": "b" }, before, { maxConcurrent: 1 });
    const next = turn(all, { "bucket/key": "b" }, began.status, { maxConcurrent: 1 });
    assert.deepEqual([...stamped(began), ...stamped(next)].sort(), ["core", "jobs"]);
    const later = turn(all, { "bucket/key": "b" }, next.status, { now: START + 3_600_000 });
    assert.deepEqual(states(later), ["core Rolling", "jobs Failed"]);
    assert.match(later.status.pending?.workloads?.[0]?.message ?? "", /is paused/);
  });
});

describe("a long rollout", () => {
  it("counts the timeout of a resumed workload from then on", () => {
    const of = (paused: boolean) => [workload("core", { paused, progress: ROLLING })];
    const before = turn(of(true), { "bucket/key": "a" }).status;
    const began = turn(of(true), { "bucket/key": "b" }, before);
    const paused = turn(of(true), { "bucket/key": "b" }, began.status, { now: START + 3_600_000 });
    const resumed = turn(of(false), { "bucket/key": "b" }, paused.status, { now: START + 7_200_000 });
    assert.deepEqual(states(resumed), ["core Rolling"]);
    const late = turn(of(false), { "bucket/key": "b" }, resumed.status, { now: START + 7_800_000 });
    assert.deepEqual(states(late), ["core Failed"]);
  });

  it("names a few failed workloads, and how many more there are", () => {
    const all = Array.from({ length: 1_000 }, (_, at) => workload(`w${at}`, { progress: FAILED }));
    const before = turn(all, { "bucket/key": "a" }).status;
    const began = turn(all, { "bucket/key": "b" }, before);
    const failed = turn(all, { "bucket/key": "b" }, began.status);
    const { message = "" } = failed.status.pending ?? {};
    assert.match(message, /^Deployment registry\/w0: .*; and 997 more/);
    assert.ok(message.length < 500, message);
  });
});

describe("a restart that another client reverts", () => {
  const steps: Step[] = ["server", "client"].map((name) => ({ name, timeoutMs: 900_000, onFailure: "Halt" }));
  const b = { "bucket/key": "b" };
  const of = (...stamps: string[]) => [workload("server", { stamps }), workload("client", { step: 1 })];
  const before = turn(of(), { "bucket/key": "a" }, undefined, { steps }).status;
  const began = turn(of(), b, before, { steps });
  const [stamp = ""] = began.stamps.map((each) => each.stamp);
  const entryOf = ({ status }: RolloutDecision) => status.pending?.workloads?.[0];
  const MINUTE = 60_000;

  it("is repeated at once, after ten minutes and after an hour, and no more, while later steps wait", () => {
    const restarts: number[] = [];
    let decided = began;
    for (let minute = 0; minute <= 24 * 60; minute++) {
      decided = turn(of(), b, decided.status, { steps, now: START + minute * MINUTE });
      if (stamped(decided).length > 0) restarts.push(minute);
      assert.ok(!stamped(decided).includes("client"));
      assert.ok(decided.stamps.every((each) => each.stamp === stamp));
    }
    assert.deepEqual(restarts, [0, 10, 70]);
    assert.deepEqual([entryOf(decided)?.state, decided.status.pending?.reason], ["Failed", "RestartReverted"]);
    assert.equal(entryOf(decided)?.firstRestartTime, new Date(START).toISOString());
    // Until the user asks for it.
    const asked = turn(of(), b, decided.status, { steps, isAgain: true, now: START + 25 * 60 * MINUTE });
    assert.deepEqual(stamped(asked), ["server"]);
    const again = turn(of(), b, asked.status, { steps, now: START + 25 * 60 * MINUTE });
    assert.deepEqual([stamped(again), again.status.pending?.reason], [[], "RestartReverted"]);
    assert.deepEqual(stamped(turn(of(stamp), b, again.status, { steps })), ["client"]);
  });

  it("is reported once, with the time of the next one", () => {
    const repeated = turn(of(), b, began.status, { steps });
    const reverted = turn(of(), b, repeated.status, { steps });
    assert.deepEqual(
      [reverted.happened.map((each) => [each.what, "reason" in each && each.reason])],
      [[["failed", "RestartReverted"]]],
    );
    assert.equal(reverted.requeueAfterMs, 10 * MINUTE);
    assert.match(
      reverted.status.pending?.message ?? "",
      /^step server: Deployment .*inlay\.dev\/rollout.*it is not known/,
    );
    assert.deepEqual(turn(of(), b, reverted.status, { steps }).happened, []);
  });

  it("is not repeated if all pods are newer than it, and waits until that is read", () => {
    const unread = turn(of(), b, began.status, { steps, revertOf: () => undefined });
    assert.deepEqual([unread.unread.map(({ ref }) => ref.name), stamped(unread)], [["server"], []]);
    const read = turn(of(), b, began.status, { steps, revertOf: () => ({ isReplaced: true, by: "" }) });
    assert.deepEqual([stamped(read), states(read)], [["client"], ["server Done", "client Rolling"]]);
  });

  it("counts as present if a later restart replaced it, and not if an earlier one came back", () => {
    const bears = (marks: Record<string, string>, more: object = {}) => {
      const recorded = { ...began.status, pending: { ...(began.status.pending as Pending) } };
      const [server, ...others] = recorded.pending.workloads ?? [];
      if (server !== undefined) recorded.pending.workloads = [{ ...server, ...more }, ...others];
      const all = [
        dependentOf({ ref: { name: "server" }, version: { uid: "uid-server" }, workload: { marks } }),
        ...of().slice(1),
      ];
      return states(turn(all, b, recorded, { steps }))?.[0] === "server Done";
    };
    const other = "7-3fa9c1-09ab34de12";
    const [restartedAt, time] = ["kubectl.kubernetes.io/restartedAt", "2026-11-21T10:00:00.000Z"];
    assert.ok(bears({ [ANNOTATION]: stamp }));
    assert.ok(bears({ [ANNOTATION]: other }));
    assert.ok(!bears({ [ANNOTATION]: other }, { replaced: other }));
    assert.ok(!bears({ [ANNOTATION]: `1-${stamp.split("-")[1]}-09ab34de12` }));
    assert.ok(bears({ [ANNOTATION]: time }, { written: time, replaced: time }));
    assert.ok(bears({ [restartedAt]: "2026-11-21T10:00:01Z" }));
    assert.ok(!bears({ [restartedAt]: "2026-11-21T10:00:00Z" }));
    assert.ok(!bears({ "example.com/stamp": other }));
    // A text that no restart writes was there before.
    assert.ok(!bears({ [ANNOTATION]: "by-hand" }));
  });

  it("of a workload that had failed is the user's, so it is not repeated", () => {
    const failed = turn([workload("server", { progress: FAILED }), ...of().slice(1)], b, began.status, { steps });
    const undone = turn(of(), b, failed.status, { steps, now: START + 24 * 60 * MINUTE });
    assert.deepEqual([stamped(undone), undone.status.pending?.reason], [[], "RestartReverted"]);
  });

  it("leaves no count for the restart for another value", () => {
    const repeated = turn(of(), b, began.status, { steps });
    const other = turn(of(), { "bucket/key": "c" }, repeated.status, { steps });
    const { reverts, firstRestartTime, state } = entryOf(other) ?? {};
    assert.deepEqual([stamped(other), state, reverts, firstRestartTime], [["server"], "Rolling", undefined, undefined]);
  });

  it("of a CronJob, or removed by Strimzi, is none: their pods are newer anyway", () => {
    const strimzi = {
      stampAt: FieldPath.parse('metadata.annotations["strimzi.io/manual-rolling-update"]'),
      isRestartField: true,
    };
    const jobs = {
      ref: { ...dependentOf().ref, resource: { ...DEPLOYMENTS, group: "batch", kind: "CronJob", plural: "cronjobs" } },
    };
    for (const more of [strimzi, jobs]) {
      const all = () => [{ ...workload("core", { stamps: [] }), ...more }];
      const first = turn(all(), { "bucket/key": "a" }).status;
      const rolls = turn(all(), b, first);
      assert.equal(turn(all(), b, rolls.status).status.pending, undefined);
    }
  });
});

describe("rollouts, whatever happens,", () => {
  const ids = ["s/a", "s/b"];
  const names = ["w0", "w1", "w2", "w3"];
  const action = fc.oneof(
    fc.record({ do: fc.constant("change" as const), id: fc.constantFrom(...ids), to: fc.constantFrom("1", "2", "3") }),
    fc.record({ do: fc.constant("finish" as const), name: fc.constantFrom(...names) }),
    fc.record({ do: fc.constant("undo" as const), name: fc.constantFrom(...names) }),
    // At the first reconcile too.
    fc.record({ do: fc.constantFrom("hide" as const, "show" as const), name: fc.constantFrom(...names) }),
    fc.record({ do: fc.constantFrom("reconcile" as const, "crash" as const) }),
  );
  const uses = fc.array(fc.subarray(ids, { minLength: 1 }), { minLength: names.length, maxLength: names.length });

  /**
   * Workloads, each in its own namespace, that read their values when they are restarted; namespaces that the controller can't
   * see for a while; and a controller whose status is written, or is not.
   */
  function simulate(
    actions: (typeof action extends fc.Arbitrary<infer A> ? A : never)[],
    each: string[][],
    most: number,
    inSteps: boolean,
    hiddenFirst: string[],
  ) {
    const steps: Step[] = inSteps
      ? names.map((name) => ({ name, timeoutMs: Number.POSITIVE_INFINITY, onFailure: "Halt" }))
      : [{ name: undefined, timeoutMs: Number.POSITIVE_INFINITY, onFailure: "Halt" }];
    const values: Record<string, string> = { "s/a": "1", "s/b": "1" };
    const cluster = names.map((name, at) => ({
      name,
      uses: each[at] as string[],
      annotation: "",
      history: [""],
      rolling: false,
      hidden: false,
      wasHidden: false,
      has: { ...values } as Record<string, string>,
      restarts: 0,
    }));
    let status: RolloutStatus | undefined;
    let changes = 0;
    let isNoted = true;
    let seen = { ...values };
    for (const each of cluster) each.hidden = each.wasHidden = hiddenFirst.includes(each.name);
    const reconcile = (isWritten: boolean) => {
      seen = { ...values };
      const stepOf = (each: (typeof cluster)[number]) => (inSteps ? cluster.indexOf(each) : 0);
      const dependents = cluster
        .filter(({ hidden }) => !hidden)
        .map((each): Dependent => {
          const progress = each.rolling ? ROLLING : DONE;
          const { ref, ...rest } = workload(each.name, {
            uses: each.uses,
            progress,
            step: stepOf(each),
            stamps: [each.annotation],
          });
          return { ...rest, ref: { ...ref, namespace: each.name } };
        });
      const problem = new Problem("Forbidden", "it may not list them");
      const unknown = cluster
        .filter(({ hidden }) => hidden)
        .map((each) => ({ namespace: each.name, step: stepOf(each), problem }));
      const decided = turn(dependents, { ...values, "s/*": ids.map((id) => values[id]).join() }, status, {
        steps,
        maxConcurrent: most,
        unknown,
      });
      for (const { dependent, stamp } of decided.stamps) {
        const found = cluster.find(({ name }) => name === dependent.ref.name);
        assert.ok(found);
        // The API server changes nothing, and restarts nothing, if the annotation is the same.
        if (found.annotation === stamp) continue;
        Object.assign(found, { annotation: stamp, rolling: true, has: { ...values }, restarts: found.restarts + 1 });
        found.history.push(stamp);
        if (inSteps) {
          const earlier = cluster.slice(0, cluster.indexOf(found));
          const behind = earlier.filter(({ uses: used, has }) => used.some((id) => has[id] !== values[id]));
          assert.deepEqual(
            behind.map(({ name }) => name),
            [],
            `${found.name} went before them`,
          );
        }
      }
      const rolling = cluster.filter((each) => each.rolling && !each.hidden);
      // A workload that could not be seen while it began to roll out may appear beside others.
      if (!cluster.some(({ wasHidden }) => wasHidden)) assert.ok(rolling.length <= most, "more roll than may");
      isNoted = isWritten;
      if (isWritten) status = decided.status;
    };
    reconcile(true);
    for (const act of actions) {
      const found = "name" in act ? cluster.find(({ name }) => name === act.name) : undefined;
      if (act.do === "change" && values[act.id] !== act.to) {
        values[act.id] = act.to;
        changes++;
      }
      if (act.do === "finish" && found) found.rolling = false;
      // A rollback to the former revision: its pods read the present values, and its annotation is the old one. If the rollback
      // happens within the second before a crash, no record of it is left, and it is rolled out again
      // (docs/decisions/0031-rollouts.md). A value that exists only briefly leaves no record either, so there is no rollback
      // while there is such a value.
      const isSeen = ids.every((id) => values[id] === seen[id]);
      if (act.do === "undo" && found && isNoted && isSeen && !found.rolling && found.history.length > 1) {
        found.annotation = found.history.at(-2) as string;
        // Inlay repeats a restart that it has not seen to end, and then it does so once for each rollback.
        const entry = status?.pending?.workloads?.find(({ name }) => name === act.name);
        if (entry?.state === "Rolling") changes++;
        found.has = { ...values };
      }
      if (act.do === "hide" && found) found.hidden = found.wasHidden = true;
      if (act.do === "show" && found) found.hidden = false;
      if (act.do === "reconcile") reconcile(true);
      if (act.do === "crash") reconcile(false);
    }
    for (const each of cluster) each.hidden = false;
    for (let round = 0; round < 40; round++) {
      reconcile(true);
      for (const each of cluster) each.rolling = false;
    }
    return { cluster, values, status: status as RolloutStatus | undefined, changes };
  }

  it("every workload ends with the present values, nothing stays in progress, and none restarts without a change", () => {
    fc.assert(
      fc.property(
        fc.array(action, { maxLength: 40 }),
        uses,
        fc.integer({ min: 1, max: 4 }),
        fc.boolean(),
        fc.subarray(names),
        (...given) => {
          const { cluster, values, status, changes } = simulate(...given);
          for (const { name, uses: used, has, restarts } of cluster) {
            for (const id of used) assert.equal(has[id], values[id], `${name} has an old value`);
            assert.ok(restarts <= changes, `${name} restarted ${restarts} times for ${changes} changes`);
          }
          assert.equal(status?.pending, undefined);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("a rollout in many namespaces", () => {
  const at = (namespace: string, progress?: Dependent["workload"]["progress"]): Dependent =>
    dependentOf({
      ref: { name: "web", namespace },
      version: { uid: namespace },
      workload: { progress: progress ?? DONE },
      uses: new Set(["bucket/key"]),
    });
  const unknown = [{ namespace: "closed", step: 0, problem: new Problem("Forbidden", "it may not list them") }];
  const placesOf = ({ stamps }: RolloutDecision) => stamps.map(({ dependent }) => dependent.ref.namespace);

  it("continues in the others if one can't be seen, does not end, and restarts workloads there once it can be seen", () => {
    const first = turn([at("open")], { "bucket/key": "a" }, undefined, { unknown });
    assert.equal(first.status.pending, undefined);
    const began = turn([at("open")], { "bucket/key": "b" }, first.status, { unknown });
    assert.deepEqual(placesOf(began), ["open"]);
    const held = turn([at("open")], { "bucket/key": "b" }, began.status, { unknown });
    assert.deepEqual(placesOf(held), []);
    assert.deepEqual(held.status.unknownNamespaces, ["closed"]);
    assert.deepEqual(held.status.digests, { "bucket/key": "a" });
    assert.equal(held.status.pending?.reason, "Forbidden");
    assert.match(
      held.status.pending?.message ?? "",
      /the workloads of namespace closed are not known: it may not list/,
    );
    const seen = turn([at("open"), at("closed"), at("new")], { "bucket/key": "b" }, held.status);
    assert.deepEqual(placesOf(seen), ["closed"]);
    const ended = turn([at("open"), at("closed"), at("new")], { "bucket/key": "b" }, seen.status);
    assert.equal(ended.status.pending, undefined);
    assert.deepEqual([ended.status.revision, ended.status.digests], [1, { "bucket/key": "b" }]);
  });

  it("restarts users of a value that was not known to be used only if its source has changed in the meantime", () => {
    const value = (text: string) => ({ "bucket/key": text, "bucket/*": text });
    const first = turn([], value("a"), undefined, { unknown });
    assert.deepEqual([first.status.digests, first.status.unknownNamespaces], [{ "bucket/*": "a" }, ["closed"]]);
    assert.deepEqual(placesOf(turn([at("closed")], value("a"), first.status)), []);
    // Also if the change and the permission come at the same time.
    assert.deepEqual(placesOf(turn([at("closed")], value("b"), first.status)), ["closed"]);
    const changed = turn([], value("b"), first.status, { unknown });
    assert.equal(changed.status.pending?.reason, "Forbidden");
    const seen = turn([at("closed")], value("b"), changed.status);
    assert.deepEqual(placesOf(seen), ["closed"]);
    const ended = turn([at("closed")], value("b"), seen.status);
    assert.deepEqual([ended.status.pending, ended.status.digests], [undefined, { "bucket/key": "b" }]);
  });

  it("restarts nothing when a namespace is seen for the first time, unless onFirstSync restarts all", () => {
    const value = { "bucket/key": "a", "bucket/*": "a" };
    const first = turn([], value, undefined, { unknown, rollFirst: true });
    assert.deepEqual(placesOf(turn([at("closed")], value, first.status)), ["closed"]);
  });

  it("ends without the namespace that can't be seen when the value changes back", () => {
    const first = turn([at("open")], { "bucket/key": "a" }, undefined, { unknown });
    const began = turn([at("open")], { "bucket/key": "b" }, first.status, { unknown });
    const back = turn([at("open")], { "bucket/key": "a" }, began.status, { unknown });
    assert.deepEqual(placesOf(back), ["open"]);
    assert.equal(turn([at("open")], { "bucket/key": "a" }, back.status, { unknown }).status.pending, undefined);
  });

  it("keeps the record of the workloads of a namespace that can't be seen any more", () => {
    const both = [at("closed"), at("open")];
    const before = turn(both, { "bucket/key": "a" }).status;
    const began = turn(both, { "bucket/key": "b" }, before);
    const hidden = turn([at("open")], { "bucket/key": "b" }, began.status, { unknown });
    assert.deepEqual(
      hidden.status.pending?.workloads?.map(({ namespace, state }) => `${namespace} ${state}`),
      ["open Done", "closed Rolling"],
    );
    const seen = turn(both, { "bucket/key": "b" }, hidden.status);
    assert.deepEqual([placesOf(seen), seen.status.pending], [[], undefined]);
  });

  it("makes later steps wait for a namespace that can't be seen", () => {
    const steps = ["one", "two"].map((name) => ({ name, timeoutMs: 60_000, onFailure: "Halt" as const }));
    const behind = { ...at("open"), step: 1 };
    const before = turn([behind], { "bucket/key": "a" }, undefined, { steps, unknown }).status;
    const held = turn([behind], { "bucket/key": "b" }, before, { steps, unknown });
    assert.deepEqual(placesOf(held), []);
    assert.match(held.status.pending?.message ?? "", /^step one: the workloads of namespace closed are not known/);
    assert.deepEqual(placesOf(turn([behind], { "bucket/key": "b" }, held.status, { steps })), ["open"]);
  });

  it("gives its slots first to workloads whose last restart was not refused", () => {
    const both = [at("denied"), at("open")];
    const before = turn(both, { "bucket/key": "a" }).status;
    const wasRefused = ({ ref }: Dependent) => ref.namespace === "denied";
    const began = turn(both, { "bucket/key": "b" }, before, { maxConcurrent: 1, wasRefused });
    assert.deepEqual(placesOf(began), ["open"]);
  });

  describe("with a workload whose pods are younger than the value", () => {
    const before = { digestKeyID: "one", revision: 3, digests: { "bucket/key": "a", "bucket/other": "x" } };
    const now = { "bucket/key": "b", "bucket/other": "x" };
    const own = { isYounger: ({ version }: Dependent) => version.uid === "uid-own" };
    const of = (progress: Progress) => [workload("own", { progress })];

    it("restarts nothing, and ends when that workload has rolled out", () => {
      const waits = turn(of(DONE), now, before, { block: () => ({ reason: "Debounce", message: "" }) });
      assert.deepEqual(states(waits), ["own Waiting"]);
      const rolls = turn(of(ROLLING), now, waits.status, own);
      const dependent = rolls.rolling[0];
      const events = [{ what: "younger", dependent, changed: ["bucket/key"] }];
      assert.deepEqual([stamped(rolls), states(rolls), rolls.happened], [[], ["own Rolling"], events]);
      assert.match(rolls.status.pending?.workloads?.[0]?.message ?? "", /^it needs no restart, because .* younger/);
      const again = turn(of(ROLLING), now, rolls.status, own);
      assert.deepEqual([stamped(again), again.status, again.happened], [[], rolls.status, []]);
      const { status, happened } = turn(of(DONE), now, again.status, own);
      assert.deepEqual([status.revision, status.pending, status.digests], [4, undefined, { "bucket/key": "b" }]);
      assert.deepEqual(
        happened.flatMap(({ what }) => (what === "began" || what === "ended" ? what : [])),
        ["ended"],
      );
    });

    it("restarts the others, and that one too for a later value or without that knowledge", () => {
      const both = [...of(ROLLING), workload("other")];
      const began = turn(both, now, before, own);
      assert.deepEqual([stamped(began), states(began)], [["other"], ["own Rolling", "other Rolling"]]);
      assert.deepEqual(began.happened.slice(1), [{ what: "began", workloads: 1, changed: ["bucket/key"] }]);
      assert.deepEqual(stamped(turn(of(ROLLING), { ...now, "bucket/key": "c" }, began.status)), ["own"]);
      assert.deepEqual(stamped(turn(of(ROLLING), now, began.status)), ["own"]);
    });

    it("restarts it if another of its changed values is younger than its pods", () => {
      const [dependent] = [workload("own", { uses: ["bucket/key", "bucket/other"] })];
      const ofKey = { isYounger: (_: Dependent, ids: readonly string[]) => !ids.includes("bucket/other") };
      assert.deepEqual(stamped(turn([dependent], { ...now, "bucket/other": "y" }, before, ofKey)), ["own"]);
      assert.deepEqual(stamped(turn([dependent], now, before, ofKey)), []);
    });

    it("does not restart it again if another client restarted it for the next value", () => {
      const began = turn(of(DONE), now, before);
      assert.deepEqual(stamped(began), ["own"]);
      const stamps = began.stamps.map(({ stamp }) => stamp);
      const later = { ...now, "bucket/key": "c" };
      const by = (progress: Progress) => [workload("own", { progress, stamps })];
      const rolls = turn(by(ROLLING), later, began.status, own);
      assert.deepEqual([stamped(rolls), states(rolls)], [[], ["own Rolling"]]);
      assert.equal(rolls.status.pending?.workloads?.[0]?.stamp, undefined);
      const again = turn(by(ROLLING), later, rolls.status, own);
      assert.deepEqual([stamped(again), again.status], [[], rolls.status]);
      assert.equal(turn(by(DONE), later, again.status, own).status.pending, undefined);
    });

    it("asks for the age of those that it would restart now, and of no others", () => {
      const both = [workload("own"), workload("other")];
      const isYounger = () => "unread" as const;
      const asked = ({ unaged }: RolloutDecision) => unaged.map(({ dependent }) => dependent.ref.name);
      assert.deepEqual(asked(turn(both, now, before, { isYounger, maxConcurrent: 1 })), ["own"]);
      const block = () => ({ reason: "Debounce" as const, message: "" });
      assert.deepEqual(asked(turn(both, now, before, { isYounger, block })), []);
    });

    it("counts its failure, and restarts it with onFirstSync Rollout", () => {
      const rolls = turn(of(ROLLING), now, before, own);
      assert.deepEqual(states(turn(of(FAILED), now, rolls.status, own)), ["own Failed"]);
      assert.deepEqual(stamped(turn(of(DONE), now, undefined, { ...own, rollFirst: true })), ["own"]);
    });
  });

  describe("with a workload that it first sees", () => {
    const [young, other] = [workload("young"), workload("other")];
    const lacks = (uid: string) => ({
      startedWith: ({ version }: Dependent) => (version.uid === uid ? ("former" as const) : undefined),
    });

    it("restarts it alone if its pods miss the value of the baseline, once", () => {
      const before = { digestKeyID: "one", revision: 3, digests: { "bucket/key": "b" } };
      const first = turn([young, other], { "bucket/key": "b" }, before, lacks("uid-young"));
      assert.deepEqual(stamped(first), ["young"]);
      const restarted = workload("young", { stamps: first.stamps.map(({ stamp }) => stamp) });
      const last = turn([restarted, other], { "bucket/key": "b" }, first.status);
      assert.deepEqual(stamped(last), []);
      assert.deepEqual(last.status.digests, { "bucket/key": "b" });
      assert.deepEqual([last.status.revision, last.status.pending], [4, undefined]);
      assert.deepEqual(stamped(turn([restarted, other], { "bucket/key": "b" }, last.status)), []);
    });

    it("restarts it when the value is recorded for the first time", () => {
      assert.deepEqual(stamped(turn([young, other], { "bucket/key": "b" }, undefined, lacks("uid-young"))), ["young"]);
    });

    it("restarts the others too if the value changes meanwhile", () => {
      const first = turn([young, other], { "bucket/key": "b" }, undefined, lacks("uid-young"));
      assert.deepEqual(stamped(turn([young, other], { "bucket/key": "c" }, first.status)).sort(), ["other", "young"]);
    });

    it("restarts all but a workload that started with the changed value", () => {
      const before = { digestKeyID: "one", revision: 3, digests: { "bucket/key": "a" } };
      const has = {
        startedWith: ({ version }: Dependent) => (version.uid === "uid-young" ? ("present" as const) : undefined),
      };
      assert.deepEqual(stamped(turn([young, other], { "bucket/key": "b" }, before, has)), ["other"]);
      const alone = turn([young], { "bucket/key": "b" }, before, has);
      assert.deepEqual([stamped(alone), alone.status.digests, alone.status.revision], [[], { "bucket/key": "b" }, 3]);
    });

    it("restarts each with onFirstSync Rollout", () => {
      const has = { rollFirst: true, startedWith: () => "present" as const };
      assert.deepEqual(stamped(turn([young], { "bucket/key": "b" }, undefined, has)), ["young"]);
    });
  });
});
