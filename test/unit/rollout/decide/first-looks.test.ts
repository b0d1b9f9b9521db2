/** Which values the pods of a workload started with, and that each pair of workload and source is judged once. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import {
  FirstLooks,
  type FormerValue,
  startedWith,
  startedWithDigest,
} from "../../../../src/rollout/decide/first-looks.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf, dependentOf } from "../../objects.ts";

/** The controller observed the creation of this workload: version 100, at second 50. */
const OBSERVED = { createdAt: 50, createdAs: "100", chosen: { version: "100", at: 50 } };
/** This workload was in the first list. */
const LISTED = { createdAt: 50 };
/** This one was in the first list, and a user annotated it later. */
const ANNOTATED = { createdAt: 50, chosen: { version: "300", at: 70 } };
/** This one was in a later list; the last version before that was 90. */
const RELISTED = { createdAt: 50, chosen: { version: "90", at: 50 } };

type Seen = Parameters<typeof startedWith>[1];
const source = (resourceVersion: string, dataAt?: number, more: Partial<Seen> = {}): Seen => ({
  resourceVersion,
  createdAt: 10,
  ...(dataAt !== undefined && { dataAt }),
  ...more,
});

describe("the pods of a workload", () => {
  const cases: [string, ReturnType<typeof startedWith>, Parameters<typeof startedWith>[0], Seen][] = [
    ["of an older source have its present values", "present", OBSERVED, source("99", 50)],
    ["miss a change after the creation of the workload", "former", OBSERVED, source("101", 51)],
    ["miss a change in the second of the creation", "former", OBSERVED, source("101", 50)],
    ["can't be judged if only metadata changed since, or a key was removed", undefined, OBSERVED, source("101", 49)],
    ["can't be judged if managedFields was cleared", undefined, OBSERVED, source("101")],
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
    [
      "miss a change of a source that was created before, in the same second",
      "former",
      OBSERVED,
      source("101", 50, { createdAt: 50, createdAs: "99" }),
    ],
    ["waited for a source that is younger by its time", undefined, OBSERVED, source("102", 51, { createdAt: 51 })],
    ["may have waited for a source of the same second", undefined, OBSERVED, source("102", 50, { createdAt: 50 })],
    ["of a listed workload that is younger than the change have the values", "present", LISTED, source("200", 49)],
    ["of another listed workload can't be judged", undefined, LISTED, source("99", 50)],
    ["miss no change before an annotation chose the workload", undefined, ANNOTATED, source("299", 70)],
    ["miss a change after an annotation chose the workload", "former", ANNOTATED, source("301", 70)],
    ["miss a change that no watch was there to show", "former", RELISTED, source("120", 52)],
    ["have an older source, if no watch showed their creation", "present", RELISTED, source("120", 49)],
    ["may have waited for a source of the same list", undefined, RELISTED, source("120", 50, { createdAt: 50 })],
    ["can't be judged by versions that are no numbers", "former", OBSERVED, source("abc", 51)],
  ];
  for (const [title, expected, workload, seen] of cases)
    it(title, () =>
      assert.equal(
        startedWith(workload, seen, () => true),
        expected,
      ),
    );

  it("miss no change that does not count", () => {
    assert.equal(
      startedWith(OBSERVED, source("101", 51), () => false),
      undefined,
    );
  });
});

describe("the pods of a workload, by what the source contained then,", () => {
  const BOTH: Parameters<typeof startedWithDigest>[2] = ["SourceCreated", "SourceDeleted"];
  const cases: [string, ReturnType<typeof startedWithDigest>, ...Parameters<typeof startedWithDigest>][] = [
    ["have the same value", "present", "a", "a"],
    ["miss another value", "former", "a", "b"],
    ["waited for a source that was created later", undefined, "absent", "a"],
    ["miss a source that was created later, if that counts", "former", "absent", "a", BOTH],
    ["miss no creation if only a deletion counts", undefined, "absent", "a", ["SourceDeleted"]],
    ["miss the deletion of a source, if that counts", "former", "a", "absent", BOTH],
    ["have no source that was deleted before", "present", "absent", "absent", BOTH],
    ["can't be judged if the key was added later", undefined, undefined, "a", BOTH],
  ];
  for (const [title, expected, ...of] of cases) it(title, () => assert.equal(startedWithDigest(...of), expected));

  it("miss a later creation by versions alone, if the state then can't be read", () => {
    const [younger, counts] = [source("101", 50, { createdAt: 50, createdAs: "101" }), () => true];
    assert.equal(startedWith(OBSERVED, younger, counts, BOTH), "former");
    assert.equal(startedWith(OBSERVED, { ...younger, createdAs: "99" }, counts, BOTH), "former");
    assert.equal(startedWith(RELISTED, source("120", 50, { createdAt: 50 }), counts, BOTH), undefined);
  });
});

describe("the first look at a workload", () => {
  const KEY = "bucket/key";
  const dependent = dependentOf({ version: OBSERVED });
  const MISSED = source("101", 51);
  const status = (more: Partial<RolloutStatus> = {}): RolloutStatus => ({
    digestKeyID: "one",
    revision: 0,
    digests: { [KEY]: "a" },
    ...more,
  });
  const binding = (at: number, metadata: object = {}) =>
    bindingOf({ metadata: { creationTimestamp: new Date(at * 1000).toISOString(), ...metadata } });
  type Rollout = Parameters<FirstLooks["judge"]>[0];
  const judge = (
    looks: FirstLooks,
    before: RolloutStatus | undefined,
    seen: Seen | undefined,
    more: Partial<Rollout> = {},
  ) => {
    const dependents = { all: [dependent], unknown: [] };
    const rollout = { binding: binding(0), before, dependents, digests: { [KEY]: "a" }, sourceOf: () => seen, ...more };
    return finish(looks.judge(rollout))(dependent, KEY);
  };

  const rolloutOf = (
    seen: Seen | "absent" | undefined,
    { before, ...more }: Partial<Rollout> & { before?: RolloutStatus } = {},
  ): Rollout => ({
    binding: binding(0),
    before,
    dependents: { all: [dependent], unknown: [] },
    digests: { [KEY]: seen === "absent" ? "absent" : "a" },
    sourceOf: () => seen,
    ...more,
  });
  const generated = { labels: { "inlay.dev/generated-for": "reloader" } };
  const ofReloader = (metadata: object = {}) => {
    const of = binding(0, { ...generated, ...metadata });
    return { ...of, spec: { ...of.spec, serviceAccountName: "inlay-reloader" } };
  };

  it("needs the state of a younger source at the creation of the workload, once", () => {
    for (const seen of [MISSED, "absent"] as const) {
      const looks = new FirstLooks();
      assert.deepEqual(finish(looks.needed(rolloutOf(seen))), [{ id: KEY, version: "100" }]);
      looks.learn({ id: KEY, version: "100" }, "unknown");
      assert.deepEqual(finish(looks.needed(rolloutOf(seen))), []);
    }
    for (const seen of [source("99", 20), undefined])
      assert.deepEqual(finish(new FirstLooks().needed(rolloutOf(seen))), []);
    assert.deepEqual(finish(new FirstLooks().needed(rolloutOf(MISSED, { before: status() }))), []);
    const listed = { all: [dependentOf({ version: LISTED })], unknown: [] };
    assert.deepEqual(finish(new FirstLooks().needed(rolloutOf(MISSED, { dependents: listed }))), []);
  });

  it("needs the state at the version of the binding, or of a later spec, unless the binding is generated", () => {
    const from = (looks: FirstLooks, of: Rollout["binding"]) =>
      finish(looks.needed(rolloutOf(source("400", 60), { binding: of }))).map(({ version }) => version);
    assert.deepEqual(from(new FirstLooks(), binding(0, { resourceVersion: "300" })), ["300"]);
    const looks = new FirstLooks();
    assert.deepEqual(from(looks, ofReloader({ resourceVersion: "300" })), ["100"]);
    assert.deepEqual(from(looks, ofReloader({ generation: 2, resourceVersion: "350" })), ["350"]);
  });

  it("follows that state, and not the times", () => {
    const results: [FormerValue, Seen, ReturnType<typeof startedWith>][] = [
      [{ digest: "a" }, MISSED, "present"],
      [{ digest: "b" }, source("101", 20), "former"],
      [{ digest: "b" }, source("101", 51, { markedAt: 51 }), undefined],
      ["unknown", MISSED, "former"],
    ];
    for (const [value, seen, expected] of results) {
      const looks = new FirstLooks();
      finish(looks.needed(rolloutOf(seen)));
      looks.learn({ id: KEY, version: "100" }, value);
      assert.equal(finish(looks.judge(rolloutOf(seen)))(dependent, KEY), expected);
    }
  });

  it("reads the states of at most a hundred pairs at once", () => {
    const all = Array.from({ length: 150 }, (_, at) =>
      dependentOf({ version: { ...OBSERVED, uid: `${at}`, chosen: { version: `${100 + at}`, at: 50 } } }),
    );
    assert.equal(
      finish(new FirstLooks().needed(rolloutOf(source("400", 60), { dependents: { all, unknown: [] } }))).length,
      100,
    );
  });

  const hiddenIn = (namespace: string): Partial<Rollout> => ({ dependents: { all: [], unknown: [{ namespace }] } });

  it("reports missed values until the status has the rollout, and not again", () => {
    const looks = new FirstLooks();
    assert.equal(judge(looks, undefined, MISSED), "former");
    // The status could not be written.
    assert.equal(judge(looks, undefined, MISSED), "former");
    assert.equal(judge(looks, status(), MISSED), "former");
    assert.equal(judge(looks, status({ revision: 1 }), MISSED), undefined);
    assert.equal(judge(looks, status({ revision: 1 }), MISSED), undefined);
  });

  it("is over once a look without a difference is in the status: later changes have other digests", () => {
    const looks = new FirstLooks();
    assert.equal(judge(looks, undefined, source("99", 20)), "present");
    assert.equal(judge(looks, undefined, MISSED), "former");
    const again = new FirstLooks();
    assert.equal(judge(again, undefined, source("99", 20)), "present");
    assert.equal(judge(again, status(), MISSED, { digests: { [KEY]: "b" } }), undefined);
  });

  it("asks nothing for thousands of workloads with the same values once all looks are in the status", () => {
    const all = Array.from({ length: 10 }, (_, at) => ({
      ...dependent,
      version: { ...OBSERVED, ...dependent.version, uid: `${at}` },
    }));
    let asked = 0;
    const sourceOf = () => {
      asked++;
      return source("99", 20);
    };
    const looks = new FirstLooks();
    const asks = (before: RolloutStatus | undefined) => {
      asked = 0;
      const of = rolloutOf(undefined, {
        dependents: { all, unknown: [] },
        digests: { [KEY]: "a" },
        sourceOf,
        ...(before && { before }),
      });
      finish(looks.needed(of));
      finish(looks.judge(of));
      return asked;
    };
    assert.deepEqual([undefined, status(), status()].map(asks), [20, 20, 0]);
  });

  it("holds until the status has the value that it was for", () => {
    const looks = new FirstLooks();
    const b = { digests: { [KEY]: "b" } };
    judge(looks, status(), undefined, { dependents: { all: [], unknown: [] } });
    assert.equal(judge(looks, status(), source("99", 20), b), "present");
    // The first decision failed.
    assert.equal(judge(looks, status(), source("99", 20), b), "present");
    assert.equal(judge(looks, status(b), source("99", 20), b), undefined);
    // The value changed to another one and back: the pods have restarted for the other one.
    assert.equal(judge(looks, status({ digests: { [KEY]: "c" } }), source("99", 20), b), undefined);
  });

  it("is open while the source is not seen in the version of the digest", () => {
    const looks = new FirstLooks();
    assert.equal(judge(looks, undefined, undefined), undefined);
    assert.equal(judge(looks, status(), MISSED), "former");
  });

  it("stays over while the source, or the namespace of the workload, is not seen", () => {
    const hidden: Partial<Rollout>[] = [{ sourceOf: () => undefined }, hiddenIn("registry")];
    for (const each of hidden) {
      const looks = new FirstLooks();
      judge(looks, undefined, source("99", 20));
      judge(looks, status(), source("99", 20));
      judge(looks, status(), MISSED, each);
      assert.equal(judge(looks, status(), MISSED), undefined);
    }
  });

  it("is forgotten with a workload that is gone, although another namespace is not seen", () => {
    const looks = new FirstLooks();
    judge(looks, undefined, source("99", 20));
    judge(looks, status(), source("99", 20));
    judge(looks, status(), MISSED, hiddenIn("shop"));
    assert.equal(judge(looks, status(), MISSED), "former");
  });

  it("is kept for the newest of many workloads that come and go in a namespace that is not seen as a whole", () => {
    const looks = new FirstLooks();
    const named = (at: number) => dependentOf({ version: { ...OBSERVED, uid: `${at}` } });
    const look = (all: readonly ReturnType<typeof named>[], seen: Seen) => {
      const dependents = { all, unknown: [{ namespace: "registry" }] };
      const of = { binding: binding(0), before: status(), dependents, digests: { [KEY]: "a" }, sourceOf: () => seen };
      return finish(looks.judge(of));
    };
    for (let first = 0; first < 4_400; first += 100) {
      const all = Array.from({ length: 100 }, (_, at) => named(first + at));
      for (const _ of ["judged", "recorded"]) look(all, source("99", 20));
    }
    const judged = (at: number) => look([named(at)], MISSED)(named(at), KEY);
    assert.deepEqual([4_399, 500, 10].map(judged), [undefined, undefined, "former"]);
  });

  it("is the look of a former memory if the status has the value already", () => {
    assert.equal(judge(new FirstLooks(), status(), MISSED), undefined);
    assert.equal(judge(new FirstLooks(), status(), source("99", 20)), "present");
  });

  it("is over if the key is missing: its first value is the baseline", () => {
    const looks = new FirstLooks();
    judge(looks, undefined, source("99", 20), { digests: {} });
    assert.equal(judge(looks, status({ digests: {} }), MISSED), undefined);
  });

  it("counts no change before the binding, or more than a minute before a generated one", () => {
    const generated = (at: number) => {
      const of = binding(at, { labels: { "inlay.dev/generated-for": "reloader" } });
      return { binding: { ...of, spec: { ...of.spec, serviceAccountName: "inlay-reloader" } } };
    };
    const ofUser = (at: number) => ({ binding: binding(at) });
    const results = [ofUser(51), ofUser(52), generated(111), generated(112)].map((each) =>
      judge(new FirstLooks(), undefined, MISSED, each),
    );
    assert.deepEqual(results, ["former", undefined, "former", undefined]);
  });

  it("counts no change before a change of the binding's spec, which may name the source for the first time", () => {
    const of = (generation: number, resourceVersion: string) => ({
      binding: binding(0, { generation, resourceVersion }),
    });
    const none = { dependents: { all: [], unknown: [] } };
    for (const [seen, result] of [
      [MISSED, undefined],
      [source("201", 61), "former"],
    ] as const) {
      const looks = new FirstLooks();
      judge(looks, undefined, undefined, { ...none, ...of(1, "20") });
      judge(looks, undefined, undefined, { ...none, ...of(2, "200") });
      assert.equal(judge(looks, undefined, seen, of(2, "300")), result);
    }
  });
});
