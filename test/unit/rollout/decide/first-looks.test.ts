/** Which values the pods of a workload started with, and that each pair of workload and source is judged once. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import { FirstLooks, startedWith } from "../../../../src/rollout/decide/first-looks.ts";
import { dependentOf } from "../../objects.ts";

/** The controller observed the creation of this workload: version 100, at second 50. */
const OBSERVED = { createdAt: 50, createdAs: "100" };
/** This workload was in the first list. */
const LISTED = { createdAt: 50 };
const EVER = 0;

const source = (
  resourceVersion: string,
  dataAt?: number,
  more: { createdAt?: number; createdAs?: string; markedAt?: number } = {},
) => ({
  resourceVersion,
  createdAt: 10,
  ...(dataAt !== undefined && { dataAt }),
  ...more,
});

describe("the pods of a workload", () => {
  const cases: [string, ReturnType<typeof startedWith>, object, ReturnType<typeof source>, number?][] = [
    ["of an older source have its present values", "present", OBSERVED, source("99", 50)],
    ["miss a change after the creation of the workload", "former", OBSERVED, source("101", 51)],
    ["miss a change in the second of the creation", "former", OBSERVED, source("101", 50)],
    ["miss no change if only metadata changed since", "present", OBSERVED, source("101", 49)],
    ["can't be judged if managedFields was cleared", undefined, OBSERVED, source("101")],
    ["miss no change before the binding was created", undefined, OBSERVED, source("101", 51), 52],
    [
      "miss no change before an annotation of the source chose it",
      undefined,
      OBSERVED,
      source("102", 51, { markedAt: 51 }),
    ],
    [
      "waited for a source that was created later",
      undefined,
      OBSERVED,
      source("101", 50, { createdAt: 50, createdAs: "101" }),
    ],
    [
      "miss a later change of such a source",
      "former",
      OBSERVED,
      source("102", 52, { createdAt: 51, createdAs: "101" }),
    ],
    ["waited for a source that is younger by its time", undefined, OBSERVED, source("102", 51, { createdAt: 51 })],
    ["of a listed workload that is younger than the change have the values", "present", LISTED, source("200", 49)],
    ["of another listed workload can't be judged", undefined, LISTED, source("99", 50)],
    ["can't be judged by versions that are no numbers", "former", OBSERVED, source("abc", 51)],
  ];
  for (const [title, expected, workload, seen, since = EVER] of cases)
    it(title, () => assert.equal(startedWith(workload, seen, since), expected));
});

describe("the first look at a workload", () => {
  const KEY = "bucket/key";
  const dependent = dependentOf({ version: OBSERVED });
  const status = (more: Partial<RolloutStatus> = {}): RolloutStatus => ({
    digestKeyID: "one",
    revision: 0,
    digests: { [KEY]: "a" },
    ...more,
  });
  const judge = (looks: FirstLooks, before: RolloutStatus | undefined, seen = source("101", 51)) =>
    looks.judge([dependent], before, EVER, () => seen)(dependent, KEY);

  it("reports missed values until the status has the rollout, and not again", () => {
    const looks = new FirstLooks();
    assert.equal(judge(looks, undefined), "former");
    // The status could not be written.
    assert.equal(judge(looks, undefined), "former");
    assert.equal(judge(looks, status()), "former");
    assert.equal(judge(looks, status({ revision: 1 })), undefined);
    assert.equal(judge(looks, status({ revision: 1 })), undefined);
  });

  it("is over once a look without a difference is in the status: later changes have other digests", () => {
    const looks = new FirstLooks();
    assert.equal(judge(looks, undefined, source("99", 20)), "present");
    assert.equal(judge(looks, undefined, source("101", 51)), "former");
    const again = new FirstLooks();
    assert.equal(judge(again, undefined, source("99", 20)), "present");
    assert.equal(judge(again, status(), source("101", 51)), undefined);
  });

  it("is open while the source is not seen in the version of the digest", () => {
    const looks = new FirstLooks();
    const unseen = looks.judge([dependent], status(), EVER, () => undefined);
    assert.equal(unseen(dependent, KEY), undefined);
    assert.equal(judge(looks, status()), "former");
  });
});
