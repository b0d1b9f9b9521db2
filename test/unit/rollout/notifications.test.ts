/** Which refused and stopped restarts receivers are notified of. The refused ones are compared with those in the status. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../src/api/rollout.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { withFewMessages, withoutUnwritten } from "../../../src/rollout/decide/intent-status.ts";
import { failureNotifications, refusalNotifications } from "../../../src/rollout/events.ts";
import { bindingOf, dependentOf } from "../objects.ts";

const BINDING = bindingOf({});
const DEPENDENTS = Array.from({ length: 30 }, (_, at) =>
  dependentOf({ ref: { name: `core-${at}` }, version: { uid: `uid-${at}` } }),
);
type Refusals = ReadonlyMap<(typeof DEPENDENTS)[number], Problem>;

/** The decision, and the status after some restarts could not be written. */
function decisionFor(stamp: string, refused: Refusals) {
  const workloads = DEPENDENTS.map(({ ref: { name }, version: { uid } }) => {
    const entry = { apiVersion: "apps/v1", kind: "Deployment", namespace: "registry", name, uid };
    return { ...entry, state: "Rolling" as const, stamp, restartTime: "2026-01-01T00:00:00.000Z" };
  });
  const time = "2026-01-01T00:00:00.000Z";
  const texts = { firstChangeTime: time, lastChangeTime: time, reason: "RollingOut", message: "" };
  const status: RolloutStatus = { digestKeyID: "one", revision: 1, digests: {}, pending: { ...texts, workloads } };
  const stamps = [...refused.keys()].map((dependent) => ({ dependent, stamp, causes: [] }));
  const decided = { status, stamps, unstamped: {}, rolling: [], unread: [], unaged: [], happened: [] };
  return { decided, said: withFewMessages(withoutUnwritten(refused, decided).status) };
}

describe("notifications of refused restarts", () => {
  const refusals = (length: number, why: string): Refusals =>
    new Map(
      DEPENDENTS.slice(0, length).map((each) => [each, new Problem("Forbidden", `${each.ref.name} ${why}`.repeat(20))]),
    );
  /** The workloads of which receivers are notified. */
  const notified = (refused: Refusals, stored: RolloutStatus | undefined, stamp = "1") =>
    refusalNotifications(BINDING, refused, decisionFor(stamp, refused).decided, stored).map(
      ({ workload }) => workload.name,
    );

  it("are not sent again by the next leader, however few messages the status has room for", () => {
    const refused = refusals(30, "denied");
    const { said } = decisionFor("1", refused);
    assert.equal(said.pending?.workloads?.filter(({ message }) => message !== undefined).length, 10);
    assert.equal(notified(refused, undefined).length, 30);
    assert.deepEqual(notified(refused, said), []);
  });

  it("are sent for a new restart, another restart, and another reason that the status has room for", () => {
    const { said } = decisionFor("1", refusals(12, "denied"));
    assert.deepEqual(notified(refusals(14, "denied"), said), ["core-12", "core-13"]);
    assert.equal(notified(refusals(30, "denied"), said, "2").length, 20);
    const few = decisionFor("1", refusals(3, "denied")).said;
    assert.deepEqual(notified(refusals(3, "other"), few), ["core-0", "core-1", "core-2"]);
  });
});

describe("a notification of a stopped restart", () => {
  it("has the reason, the workload and the changed values", () => {
    const [dependent = assert.fail()] = DEPENDENTS;
    const { decided } = decisionFor("1", new Map());
    const status = { ...decided.status, pending: { ...decided.status.pending, digests: { "bucket/key": "digest" } } };
    const happened = [{ what: "stopped", dependent, message: "it restarted 5 times" } as const];
    const all = failureNotifications(BINDING, { happened, status: status as RolloutStatus });
    assert.deepEqual(
      all.map(({ event, reason, message, workload, keys }) => [event, reason, message, workload.name, keys]),
      [["RestartFailed", "RestartsTooFrequent", "it restarted 5 times", "core-0", ["bucket/key"]]],
    );
  });
});
