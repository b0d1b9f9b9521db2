/** What counts as a change besides another value: a created or deleted source, and a version that no pod had before. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Digests, RolloutSpec, RolloutStatus } from "../../../../src/api/rollout.ts";
import { decideRollout, type RolloutDecision } from "../../../../src/rollout/decide/engine.ts";
import type { Dependent } from "../../../../src/rollout/types.ts";
import { dependentOf } from "../../objects.ts";

const ID = "bucket/*";
const [ABSENT, UNMOUNTED] = ["absent", "unmounted"];
const BOTH: RolloutSpec["restartOn"] = ["SourceCreated", "SourceDeleted"];

interface Seen {
  restartOn?: RolloutSpec["restartOn"];
  required?: boolean;
  isRolling?: boolean;
  rollFirst?: boolean;
  rekeyed?: { former: Digests | undefined };
}

/** One decision for the workload `core`, for a value with that digest, or a missing one. */
function decide(digest: string | undefined, before?: RolloutStatus, seen: Seen = {}): RolloutDecision {
  const { restartOn, required = false, isRolling = false, rollFirst = false, rekeyed } = seen;
  const progress = { state: isRolling ? ("Rolling" as const) : ("Done" as const), message: "" };
  const stamps = before?.pending?.workloads?.flatMap(({ stamp }) => stamp ?? []) ?? [];
  const core: Dependent = {
    ...dependentOf({
      ref: { name: "core" },
      version: { uid: "uid-core" },
      workload: { progress, stamps },
      uses: new Set([ID]),
    }),
    ...(required && { required: new Set(["bucket"]) }),
  };
  return decideRollout({
    now: Date.parse("2026-11-21T10:00:00.000Z"),
    binding: { uid: "uid-of-the-binding", name: "harbor", namespace: "registry" },
    restartLimit: undefined,
    restartTimesOf: () => [],
    steps: [{ name: undefined, timeoutMs: 600_000, onFailure: "Continue" }],
    dependents: [core],
    before,
    key: rekeyed === undefined ? "one" : "two",
    used: new Set([ID]),
    digests: digest === undefined ? {} : { [ID]: digest },
    ...(rekeyed && { rekeyed }),
    rollFirst,
    restartOn,
    maxConcurrent: 1,
    block: () => undefined,
    unknown: [],
    refusal: () => undefined,
    wasRefused: () => false,
    take: () => true,
    isSeen: () => true,
    revertOf: () => undefined,
    isAgain: false,
    startedWith: () => undefined,
    isYounger: () => false,
  });
}

/** How often it restarts for these digests one after the other, each rollout to its end. */
function restarts(digests: readonly (string | undefined)[], seen: Seen = {}): number {
  let before: RolloutStatus | undefined;
  let count = 0;
  for (const digest of digests)
    for (let turns = 0; turns < 3; turns++) {
      const decided = decide(digest, before, seen);
      count += decided.stamps.length;
      before = decided.status;
    }
  return count;
}

describe("a created or deleted source", () => {
  const created: Seen = { restartOn: ["SourceCreated"] };
  const deleted: Seen = { restartOn: ["SourceDeleted"] };
  const cases: [string, Seen, (string | undefined)[], number][] = [
    ["what is not there at first is the baseline", { restartOn: BOTH }, [ABSENT, ABSENT], 0],
    ["and so is what is there", { restartOn: BOTH }, ["a", "a"], 0],
    ["one that comes counts", created, [ABSENT, "a", "a"], 1],
    ["one that goes does not, where only what comes counts", created, ["a", ABSENT], 0],
    ["one that is back as it was has come", created, ["a", ABSENT, "a"], 1],
    ["one that goes counts", deleted, ["a", ABSENT, ABSENT], 1],
    ["one that comes does not, where only what goes counts", deleted, [ABSENT, "a", "a"], 0],
    ["and is the baseline for the next value", deleted, [ABSENT, "a", "b"], 1],
    ["each time counts", { restartOn: BOTH }, ["a", ABSENT, "a", ABSENT], 3],
    ["a key that its source comes without is new when it comes", created, [ABSENT, undefined, "a"], 0],
    [
      "at first nothing restarts for what is not there, by onFirstSync either",
      { ...created, rollFirst: true },
      [ABSENT],
      0,
    ],
  ];
  for (const [title, seen, digests, count] of cases) it(title, () => assert.equal(restarts(digests, seen), count));

  it("is no change any more once restartOn is removed, and its record in the status restarts nothing", () => {
    const { status } = decide(ABSENT, undefined, { restartOn: BOTH });
    assert.equal(status.digests?.[ID], ABSENT);
    const without = decide(undefined, status);
    assert.deepEqual(decide("a", without.status).stamps, []);
    assert.equal(decide("a", status).status.digests?.[ID], "a");
  });

  it("keeps back a workload that can't start without it, with a message, and ends that when it exists again unchanged", () => {
    const first = decide("a", undefined, { restartOn: BOTH });
    const gone = decide(ABSENT, first.status, { restartOn: BOTH, required: true });
    assert.deepEqual(gone.stamps, []);
    assert.equal(gone.status.pending?.reason, "RestartBlocked");
    assert.match(
      gone.status.pending?.message ?? "",
      /can't start without the source bucket, which was deleted; create/,
    );
    const back = decide("a", gone.status, { restartOn: BOTH, required: true });
    assert.deepEqual([back.stamps, back.status.pending], [[], undefined]);
  });

  it("is waited for if it is deleted during a rollout and only creation counts", () => {
    const first = decide("a", undefined, created);
    const began = decide("b", first.status, created);
    assert.equal(began.stamps.length, 1);
    const gone = decide(ABSENT, began.status, { ...created, isRolling: true });
    assert.deepEqual(gone.stamps, []);
    assert.equal(gone.status.digests?.[ID], "a");
    assert.deepEqual(decide("b", gone.status, created).stamps, []);
  });

  it("counts although the digest key has changed in the meantime", () => {
    const { status } = decide(ABSENT, undefined, created);
    const came = decide("a by two", status, { ...created, rekeyed: { former: { [ID]: "a" } } });
    assert.equal(came.stamps.length, 1);
    const same = decide(ABSENT, status, { ...created, rekeyed: { former: { [ID]: ABSENT } } });
    assert.deepEqual([same.stamps.length, same.status.digests?.[ID]], [0, ABSENT]);
  });
});

describe("versions of mounted objects", () => {
  const cases: [string, (string | undefined)[], number][] = [
    ["a version that no pod had before restarts once", ["1", "1,2", "2"], 1],
    ["so does one that all pods have at once", ["1", "2"], 1],
    ["pods that go take their version along, and nothing restarts", ["1,2", "1", "1"], 0],
    ["a version that is back when it was gone is new", ["1", "1,2", "2", "1,2"], 2],
    ["two at once restart once", ["1", "1,2,3", "2,3", "3"], 1],
    ["pods that all go and come with another version have it", ["1", UNMOUNTED, "2", "2"], 0],
    ["where no pod was at first, those that come have what there is", [UNMOUNTED, "1", "2"], 1],
  ];
  for (const [title, digests, count] of cases) it(title, () => assert.equal(restarts(digests), count));

  it("continue the present rollout while the last former pods are deleted, in any order", () => {
    const { status } = decide("1", undefined);
    let { status: now, stamps } = decide("1,2", status);
    assert.equal(stamps.length, 1);
    for (const digest of ["1", "1,2", UNMOUNTED, "2", "1,2"]) {
      ({ status: now, stamps } = decide(digest, now, { isRolling: true }));
      assert.deepEqual([digest, stamps], [digest, []]);
    }
    const next = decide("2,3", now, { isRolling: true });
    assert.equal(next.stamps.length, 1, "another version is another change");
  });

  it("restart at most once for each new version, however pods are created and deleted", () => {
    const set = fc.subarray(["1", "2", "3", "4"], { minLength: 1 }).map((each) => each.join());
    fc.assert(
      fc.property(fc.array(set, { maxLength: 8 }), (seen) => {
        let fresh = 0;
        for (const [at, digest] of seen.slice(1).entries()) {
          const before = seen[at]?.split(",") ?? [];
          if (digest.split(",").some((each) => !before.includes(each))) fresh++;
        }
        assert.ok(restarts(seen) <= fresh);
      }),
    );
  });

  it("are compared with the key in the status", () => {
    const { status } = decide("1,2", undefined);
    const fewer = decide("one", status, { rekeyed: { former: { [ID]: "1" } } });
    assert.deepEqual([fewer.stamps, fewer.status.digests?.[ID]], [[], "one"]);
    assert.equal(decide("three", status, { rekeyed: { former: { [ID]: "3" } } }).stamps.length, 1);
  });
});
