/** Restarts that are too frequent: when Inlay stops them, and when it continues. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import { decideRollout, type RolloutDecision, type RolloutInput } from "../../../../src/rollout/decide/engine.ts";
import { withoutUnwritten } from "../../../../src/rollout/decide/intent-status.ts";
import { RecentRestarts } from "../../../../src/rollout/memory.ts";
import type { Dependent } from "../../../../src/rollout/types.ts";
import { dependentOf } from "../../objects.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const MINUTE = 60_000;
const LIMIT = { max: 3, window: "10m", windowMs: 10 * MINUTE };
const ID = "bucket/key";

/** One binding with Deployments that roll out at once. */
class Rollouts {
  now = START;
  limit: RolloutInput["restartLimit"] = LIMIT;
  uid = "uid-of-the-binding";
  names = ["core"];
  /** Another binding restarts the workloads just before this one does the next time. */
  isLate = false;
  /** How often each was restarted. */
  readonly restarts = new Map<string, number>();
  recent = new RecentRestarts();
  status: RolloutStatus | undefined;
  last: RolloutDecision | undefined;
  readonly #stamps = new Map<string, string>();
  /** The times in the annotations. */
  readonly #annotated = new Map<string, readonly number[]>();

  #dependents(): Dependent[] {
    return this.names.map((name) => {
      const [stamp, restarts] = [this.#stamps.get(name), this.#annotated.get(name)];
      return dependentOf({
        ref: { name },
        version: { uid: `uid-${name}` },
        workload: {
          progress: { state: "Done", message: "rolled out" },
          ...(stamp !== undefined && { stamps: [stamp], marks: { "inlay.dev/rollout": stamp } }),
          ...(restarts && { restarts }),
        },
      });
    });
  }

  /** Decides for a value until nothing more is due, and returns whether the workloads restarted. */
  take(value: string, more: Partial<RolloutInput> = {}): boolean {
    let hasRestarted = false;
    for (const options of [more, { ...more, isAgain: false }]) {
      this.last = decideRollout({
        used: new Set([ID]),
        now: this.now,
        binding: { uid: this.uid, name: "harbor", namespace: "registry" },
        restartLimit: this.limit,
        restartTimesOf: (each) => this.recent.timesOf(each),
        steps: [{ name: undefined, timeoutMs: 600_000, onFailure: "Continue" }],
        dependents: this.#dependents(),
        before: this.status,
        key: "one",
        digests: { [ID]: value },
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
        ...options,
      });
      this.status = this.last.status;
      for (const { dependent, stamp } of this.last.stamps) {
        const { name } = dependent.ref;
        if (this.isLate) {
          if (this.limit) this.recent.remember(dependent, this.recent.after(dependent, this.now, this.limit));
          this.status = withoutUnwritten(new Map([[dependent, "stale"]]), this.last).status;
          continue;
        }
        hasRestarted = true;
        this.restarts.set(name, (this.restarts.get(name) ?? 0) + 1);
        this.#stamps.set(name, stamp);
        if (this.limit === undefined) continue;
        const times = this.recent.after(dependent, this.now, this.limit);
        this.#annotated.set(name, times);
        this.recent.remember(dependent, times);
      }
      this.isLate = false;
    }
    return hasRestarted;
  }

  /** Takes other values, one every second. */
  change(count: number): void {
    for (let at = 0; at < count; at++) {
      this.now += 1_000;
      this.take(`value ${this.now}`);
    }
  }

  get reason(): string | undefined {
    return this.status?.pending?.reason;
  }
}

/** After as many restarts as the limit permits. */
function restarted(): Rollouts {
  const rollouts = new Rollouts();
  rollouts.take("first");
  rollouts.change(LIMIT.max);
  assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [LIMIT.max, undefined]);
  return rollouts;
}

describe("restarts that are too frequent", () => {
  it("stop after the limit, and are reported once with the command to continue", () => {
    const rollouts = restarted();
    rollouts.now += 1_000;
    rollouts.take("next");
    assert.equal(rollouts.reason, "RestartsTooFrequent");
    const { pending, unsettledTime } = rollouts.status ?? assert.fail();
    assert.match(
      pending?.message ?? "",
      /Deployment registry\/core: it restarted 3 times within 10m, .*bucket\/key\. /,
    );
    assert.match(pending?.message ?? "", /at 2026-11-21T10:10:04.000Z at .* with: inlay sync harbor -n registry$/);
    assert.equal(pending?.workloads?.[0]?.message, "it restarted 3 times within 10m, because values keep changing");
    assert.equal(unsettledTime, "2026-11-21T10:00:04.000Z");
    const reports: string[] = [];
    for (let at = 0; at < 3 * 60 * 60; at++) {
      rollouts.change(1);
      reports.push(...(rollouts.last?.happened ?? []).map(({ what }) => what));
    }
    assert.deepEqual(reports, []);
    assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [LIMIT.max, "RestartsTooFrequent"]);
  });

  it("continue once when the values have stayed the same for the window, and stop again after the limit", () => {
    const rollouts = restarted();
    rollouts.change(20);
    const { requeueAfterMs = 0 } = rollouts.last ?? assert.fail();
    assert.equal(requeueAfterMs, LIMIT.windowMs);
    const value = `value ${rollouts.now}`;
    rollouts.now += requeueAfterMs - 1;
    assert.equal(rollouts.take(value), false);
    rollouts.now += 1;
    assert.equal(rollouts.take(value), true);
    assert.deepEqual([rollouts.reason, rollouts.status?.unsettledTime], [undefined, undefined]);
    rollouts.change(20);
    assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [2 * LIMIT.max, "RestartsTooFrequent"]);
  });

  it("do not continue if two values take turns, although each second one is the one that the pods have", () => {
    const rollouts = restarted();
    const mine = `value ${rollouts.now}`;
    for (let at = 0; at < 60 * 60; at++) {
      rollouts.now += 1_000;
      rollouts.take(at % 2 === 0 ? "other" : mine);
    }
    assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [LIMIT.max, undefined]);
    rollouts.now += rollouts.last?.requeueAfterMs ?? assert.fail();
    rollouts.take(mine);
    assert.deepEqual([rollouts.status?.unsettledTime, rollouts.last?.requeueAfterMs], [undefined, undefined]);
    assert.equal(rollouts.take("other"), true);
  });

  it("continue when a user asks for it, also if a window of the binding delays that", () => {
    const rollouts = restarted();
    rollouts.change(5);
    const value = `value ${rollouts.now}`;
    const block = () => ({ reason: "OutsideWindow", message: "closed" }) as const;
    assert.equal(rollouts.take(value, { isAgain: true, block }), false);
    rollouts.now += MINUTE;
    assert.equal(rollouts.take(value), true);
    rollouts.change(20);
    assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [2 * LIMIT.max, "RestartsTooFrequent"]);
  });

  it("are counted for all bindings together, and by the next leader", () => {
    const rollouts = restarted();
    rollouts.recent = new RecentRestarts();
    rollouts.status = undefined;
    rollouts.uid = "uid-of-another-binding";
    rollouts.take("mine");
    rollouts.change(1);
    assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [LIMIT.max, "RestartsTooFrequent"]);
  });

  it("stop if another binding makes the last one before the restart of this binding is written", () => {
    const rollouts = new Rollouts();
    rollouts.take("first");
    rollouts.change(LIMIT.max - 1);
    rollouts.now += 1_000;
    rollouts.isLate = true;
    assert.equal(rollouts.take("next"), false);
    assert.deepEqual([rollouts.restarts.get("core"), rollouts.reason], [LIMIT.max - 1, "RestartsTooFrequent"]);
  });

  it("stop for the workload alone, and do not stop if they are slow or not limited", () => {
    const rollouts = restarted();
    rollouts.names = ["core", "other"];
    rollouts.change(LIMIT.max);
    assert.deepEqual(Object.fromEntries(rollouts.restarts), { core: LIMIT.max, other: LIMIT.max });
    const slow = new Rollouts();
    slow.take("first");
    for (let at = 0; at < 50; at++) {
      slow.now += LIMIT.windowMs / LIMIT.max;
      slow.change(1);
    }
    assert.equal(slow.restarts.get("core"), 50);
    const unlimited = new Rollouts();
    unlimited.limit = undefined;
    unlimited.take("first");
    unlimited.change(50);
    assert.equal(unlimited.restarts.get("core"), 50);
  });
});
