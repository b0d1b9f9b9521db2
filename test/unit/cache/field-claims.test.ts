/** Which bindings claim an object, by spec and status, and which bindings a change concerns. */
import assert from "node:assert/strict";
import { mock } from "node:test";
import fc from "fast-check";
import { bindingKey, type StoredBinding, type StoredRecord, type Target } from "../../../src/api/binding.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { mayOverlap } from "../../../src/apimachinery/path-overlap.ts";
import { FieldClaims, type ResolvedTarget } from "../../../src/cache/field-claims.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { bindingOf, targetOf } from "../objects.ts";
import { WIDGETS } from "../resources.ts";

const ref = (name: string, namespace?: string): ObjectRef => ({
  resource: WIDGETS,
  name,
  ...(namespace && { namespace }),
});

interface Says {
  namespace?: string;
  generation?: number;
  spec?: Partial<StoredBinding["spec"]>;
  targets?: Target[];
  records?: StoredRecord[];
  /** Other fields of the status. */
  status?: Partial<NonNullable<StoredBinding["status"]>>;
  deletionTimestamp?: string;
  creationTimestamp?: string;
}

function binding(
  name: string,
  { namespace = "team", generation = 1, targets = [], records, status, ...more }: Says = {},
): StoredBinding {
  const { spec, ...stamps } = more;
  return {
    ...bindingOf({
      metadata: { name, namespace, uid: `uid-${name}`, generation, ...stamps },
      spec: { targets, ...spec },
    }),
    ...((records || status) && { status: { ...(records && { targets: records }), ...status } }),
  };
}
const target = (name: string, paths: string[], more: Partial<Parameters<typeof targetOf>[0]> = {}) =>
  targetOf({
    apiVersion: "example.com/v1beta1",
    kind: "Widget",
    name,
    fields: paths.map((path) => ({ path, from: { source: "bucket" } })),
    ...more,
  });
const record = (more: Partial<StoredRecord>) =>
  ({ apiVersion: "example.com/v1", kind: "Widget", reason: "Synced", ...more }) as StoredRecord;

/** Claims that are up to date after each change, which returns the bindings to reconcile. */
class UpdatedClaims {
  readonly claims = new FieldClaims();

  put(changed: StoredBinding): Set<string> {
    this.claims.put(changed);
    return finish(this.claims.update(bindingKey(changed)));
  }

  resolved(key: string, named: readonly ResolvedTarget[]): Set<string> {
    this.claims.resolved(key, named);
    return finish(this.claims.update(key));
  }

  remove(key: string): Set<string> {
    this.claims.remove(key);
    return finish(this.claims.update(key));
  }

  competing(...asked: Parameters<FieldClaims["competing"]>) {
    return finish(this.claims.competing(...asked));
  }
}

/** A binding that names nothing, younger than all others. */
const OTHER = { key: "z/z", createdAt: "9" };

describe("field claims", () => {
  let claims: UpdatedClaims;
  beforeEach(() => {
    claims = new UpdatedClaims();
  });
  const at = (name: string, namespace?: string) =>
    claims
      .competing(OTHER, ref(name, namespace), [["spec"]])
      .map(({ key, paths, held }) => `${key} ${held ? "holds" : "names"} ${paths}`);

  it("are the fields that targets name in the spec, in any version, and the fields owned by record", () => {
    claims.put(binding("a", { targets: [target("w", ["spec.a", "spec.b"])] }));
    claims.put(binding("b", { records: [record({ namespace: "team", name: "w", paths: ["spec.c"] })] }));
    assert.deepEqual(at("w", "team"), ["team/b holds spec.c", "team/a names spec.a,spec.b"]);
    assert.deepEqual(at("w", "other"), []);
    assert.deepEqual(at("x", "team"), []);
  });

  it("of selected objects are in their grouped records", () => {
    claims.put(binding("a", { records: [record({ objects: ["one/w u1", "two/w u2"], paths: ["spec.a"] })] }));
    assert.deepEqual(at("w", "two"), ["team/a holds spec.a"]);
  });

  it("are for the resolved objects of the targets, until the spec changes", () => {
    claims.put(binding("a", { targets: [target("w", ["spec.a"])] }));
    claims.resolved("team/a", [
      { ref: ref("w"), paths: ["spec.a"] },
      { ref: ref("v"), paths: ["spec.b"] },
    ]);
    assert.deepEqual([at("w"), at("v"), at("w", "team")], [["team/a names spec.a"], ["team/a names spec.b"], []]);
    claims.put(binding("a", { generation: 2, targets: [target("w", ["spec.c"])] }));
    assert.deepEqual([at("w", "team"), at("v")], [["team/a names spec.c"], []]);
  });

  it("of announced fields count while the outcome of the write is unknown, separate from owned fields", () => {
    const there = { namespace: "team", name: "w", paths: ["spec.b"], pendingPaths: ["spec.a", "spec.b"] };
    for (const reason of [
      "Pending",
      "Unavailable",
      "Forbidden",
      "SourceNotFound",
      "TypeMismatch",
      "VersionDropsFields",
    ])
      claims.put(binding(reason, { records: [record({ ...there, reason })] }));
    const pending = claims
      .competing(OTHER, ref("w", "team"), [["spec"]])
      .map((claim) => `${claim.key} ${claim.paths} ${claim.held} ${claim.pending}`);
    const inOrder = ["Forbidden", "Pending", "SourceNotFound", "TypeMismatch", "Unavailable", "VersionDropsFields"];
    const unknown = ["Pending", "Unavailable"].map((name) => `team/${name} spec.a true true`);
    assert.deepEqual(pending, [...inOrder.map((name) => `team/${name} spec.b true false`), ...unknown]);
  });

  it("of a suspended or deleted binding are the fields that it owns", () => {
    const says = {
      targets: [target("w", ["spec.a", "spec.b"])],
      records: [record({ namespace: "team", name: "w", paths: ["spec.a"] })],
    };
    claims.put(binding("a", { ...says, spec: { suspend: true } }));
    claims.put(binding("b", { ...says, deletionTimestamp: "2026-01-02T03:04:05Z" }));
    assert.deepEqual(at("w", "team"), ["team/a holds spec.a", "team/b holds spec.a"]);
  });

  /** Whether a binding with a target has no precedence for the fields that it only names, by its status. */
  const isPassed = (says: Says) => {
    claims.put(binding("a", { targets: [target("w", ["spec.a"])], ...says }));
    return at("w", "team").length === 0;
  };
  const said = (reason: string, observedGeneration = 1): Says => ({
    records: [record({ namespace: "team", name: "w", reason })],
    status: { observedGeneration },
  });

  it("that are only named have no precedence once the status of the current spec reports them as not written", () => {
    assert.equal(isPassed({}), false);
    for (const reason of ["SourceNotFound", "Forbidden", "Rejected", "Conflict", "Synced", "Unavailable"])
      assert.equal(isPassed(said(reason)), true, reason);
    assert.equal(isPassed(said("TargetNotFound")), false, "it is the same for all");
    assert.equal(isPassed(said("SourceNotFound", 0)), false, "of an earlier spec");
    const condition = { type: "Ready", reason: "OutOfScope", message: "", lastTransitionTime: "" } as const;
    const refused = (status: "True" | "False"): Says => ({
      status: { observedGeneration: 1, conditions: [{ ...condition, status }] },
    });
    assert.deepEqual([isPassed(refused("False")), isPassed(refused("True"))], [true, false]);
  });

  it("that wait for another binding keep their precedence, but those next to them do not", () => {
    const targets = [target("w", ["spec.a", "spec.b"])];
    const records = [record({ namespace: "team", name: "w", reason: "Conflict", awaitedPaths: ["spec.b"] })];
    claims.put(binding("a", { targets, records, status: { observedGeneration: 1 } }));
    assert.deepEqual(at("w", "team"), ["team/a names spec.b"]);
  });

  it("concern younger bindings when they lose or regain precedence", () => {
    claims.put(binding("a", { targets: [target("w", ["spec.a"])] }));
    claims.put(binding("b", { targets: [target("w", ["spec.a"])] }));
    for (const [reason, concerned] of [
      ["Forbidden", ["team/b"]],
      ["SourceNotFound", []],
      ["TargetNotFound", ["team/b"]],
    ] as const) {
      const targets = [target("w", ["spec.a"])];
      assert.deepEqual([...claims.put(binding("a", { targets, ...said(reason) }))], concerned, reason);
    }
  });

  it("of younger bindings count, and concern older ones, if they own fields", () => {
    const targets = [target("w", ["spec.a"])];
    claims.put(binding("a", { targets }));
    const competing = () =>
      claims
        .competing({ key: "team/a", createdAt: "" }, ref("w", "team"), [["spec.a"]])
        .map(({ key, held, isOlder }) => ({ key, held, isOlder }));
    assert.deepEqual([[...claims.put(binding("b", { targets }))], competing()], [[], []]);
    const holds = binding("b", { targets, records: [record({ namespace: "team", name: "w", paths: ["spec.a"] })] });
    assert.deepEqual([...claims.put(holds)], ["team/a"]);
    assert.deepEqual(competing(), [{ key: "team/b", held: true, isOlder: false }]);
    assert.deepEqual([...claims.remove("team/b")], ["team/a"]);
  });

  it("that are named concern only younger bindings that touch the changed fields", () => {
    const first = binding("a", { targets: [target("w", ["spec.a"])] });
    assert.deepEqual([...claims.put(binding("b", { targets: [target("w", ["spec"])] }))], []);
    assert.deepEqual([...claims.put(binding("c", { targets: [target("w", ["spec.a.x", "spec.b"])] }))], []);
    assert.deepEqual([...claims.put(binding("d", { targets: [target("v", ["spec.a"])] }))], []);
    assert.deepEqual([...claims.put(first)].sort(), ["team/b", "team/c"]);
    assert.deepEqual([...claims.put(first)], []);
    assert.deepEqual([...claims.put(binding("a", { targets: [target("w", ["spec.b"])] }))].sort(), [
      "team/b",
      "team/c",
    ]);
    assert.deepEqual([...claims.put(binding("a", { targets: [target("w", ["status"])] }))].sort(), [
      "team/b",
      "team/c",
    ]);
    assert.deepEqual([...claims.put(binding("a", { targets: [target("v", ["spec.a"])] }))], ["team/d"]);
    assert.deepEqual([...claims.remove("team/a")], ["team/d"]);
    assert.deepEqual(
      [at("w", "team"), at("v", "team")],
      [["team/b names spec", "team/c names spec.a.x,spec.b"], ["team/d names spec.a"]],
    );
  });

  it("of the binding that created the object count as the oldest, and concern all", () => {
    const targets = [target("w", ["spec.a"])];
    claims.put(binding("a", { creationTimestamp: "2026-01-02T00:00:00Z", targets }));
    const late = { creationTimestamp: "2026-01-03T00:00:00Z", targets };
    claims.put(binding("b", late));
    const made = record({ namespace: "team", name: "w", paths: ["spec.a"], created: true, uid: "u" });
    assert.deepEqual([...claims.put(binding("b", { ...late, records: [made] }))], ["team/a"]);
    const older = (name: string, createdAt: string) =>
      claims.competing({ key: `team/${name}`, createdAt }, ref("w", "team"), []).map(({ key }) => key);
    assert.deepEqual(older("a", "2026-01-02T00:00:00Z"), ["team/b", "team/b"]);
    assert.deepEqual(older("b", "2026-01-03T00:00:00Z"), []);
  });

  /** A binding that names a path, and waits for another one there unless its status differs. */
  const naming = (name: string, path: string, more: Says = {}) => {
    const awaited = record({ namespace: "team", name: "w", reason: "Conflict", awaitedPaths: [path] });
    return binding(name, {
      targets: [target("w", [path])],
      records: [awaited],
      status: { observedGeneration: 1 },
      ...more,
    });
  };
  const account = (serviceAccountName: string): Says => ({ spec: { serviceAccountName } });

  it("that are not owned concern the next waiting binding of each account at each path", () => {
    for (let n = 100; n < 300; n++) claims.put(naming(`b${n}`, "spec.a"));
    for (let n = 300; n < 500; n++) claims.put(naming(`b${n}`, "spec.a", said("Forbidden")));
    claims.put(naming("c", "spec.a"));
    claims.put(naming("d", "spec.a.x"));
    claims.put(naming("e", "spec.a", account("another")));
    claims.put(naming("f", "spec.a", account("another")));
    const next = ["team/b100", "team/d", "team/e"];
    assert.deepEqual([...claims.put(naming("a", "spec.a"))], next);
    assert.deepEqual([...claims.put(naming("a", "spec.a", said("SourceNotFound")))], next);
    assert.deepEqual([...claims.put(naming("a", "spec.b"))], []);
    assert.deepEqual([...claims.put(naming("b400", "spec.a"))], ["team/c", "team/d", "team/e"]);
  });

  it("that are given up concern one binding after the other until one owns the path, and then all", () => {
    const names = Array.from({ length: 20 }, (_, n) => `b${n + 10}`);
    for (const name of names) claims.put(naming(name, "spec.a"));
    for (const [n, name] of names.slice(0, -2).entries())
      assert.deepEqual([...claims.put(naming(name, "spec.a", said("Forbidden")))], [`team/${names[n + 1]}`]);
    const held = { records: [record({ namespace: "team", name: "w", paths: ["spec.a"] })] };
    assert.equal(claims.put(naming("b28", "spec.a", held)).size, 19);
    assert.equal(claims.remove("team/b28").size, 19);
  });

  it("that may be owned after an unknown outcome concern only the next binding, even an older one", () => {
    for (const name of ["a", "b", "d"]) claims.put(naming(name, "spec.a"));
    const announced = { namespace: "team", name: "w", pendingPaths: ["spec.a"] };
    const now = (reason: string) => claims.put(naming("c", "spec.a", { records: [record({ ...announced, reason })] }));
    for (const reason of ["Pending", "Forbidden", "Unavailable", "Rejected"])
      assert.deepEqual([...now(reason)], ["team/a"], reason);
  });

  it("that did not change concern no binding when another claim of the binding changes", () => {
    for (const name of ["b", "c"]) claims.put(naming(name, "spec.a"));
    const records = [record({ namespace: "team", name: "w", paths: ["spec.a"] })];
    const holding = (named: string) => naming("a", named, { records, status: { observedGeneration: 0 } });
    assert.deepEqual([...claims.put(holding("spec.a"))], ["team/b", "team/c"]);
    assert.deepEqual([...claims.put(holding("spec.b"))], ["team/b"]);
    assert.deepEqual([...claims.put(holding("spec.c"))], []);
  });

  it("of one account compete once for each path, and those without precedence do not compete", () => {
    for (let n = 10; n < 40; n++) claims.put(naming(`b${n}`, "spec.a"));
    for (let n = 40; n < 70; n++) claims.put(naming(`b${n}`, "spec.a", said("Forbidden")));
    claims.put(naming("c", "spec.a.x"));
    claims.put(naming("d", "spec.a", account("another")));
    assert.deepEqual(at("w", "team"), ["team/b10 names spec.a", "team/c names spec.a.x", "team/d names spec.a"]);
  });

  it("concern each waiting binding that may have the path from then on, whatever others do and whichever accounts may write", () => {
    const states = ["waits", "fails", "announces", "holds", "is new", "is gone"] as const;
    const path = fc.constantFrom("spec", "spec.a", "spec.a.x", "spec.b");
    const change = fc.record({
      n: fc.nat(7),
      account: fc.constantFrom("x", "y", "z"),
      path,
      state: fc.constantFrom(...states),
    });
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 8, maxLength: 40 }),
        fc.subarray(["x", "y", "z"]),
        (changes, mayWrite) => {
          const some = new UpdatedClaims();
          const last = new Map<string, (typeof changes)[number]>();
          const isFree = (n: string, named: string) =>
            some
              .competing({ key: `team/${n}`, createdAt: "" }, ref("w", "team"), [[named]])
              .every(({ held, pending, account }) => !(held && !pending) && !mayWrite.includes(account));
          const waiting = () =>
            [...last].filter(
              ([, { state, account }]) => ["waits", "is new"].includes(state) && mayWrite.includes(account),
            );
          const free = () =>
            waiting()
              .filter(([n, { path }]) => isFree(n, path))
              .map(([n]) => `team/${n}`);
          for (const each of changes) {
            const [name, before] = [`n${each.n}`, free()];
            last.set(name, each);
            const at = { namespace: "team", name: "w" };
            const records = {
              waits: [record({ ...at, reason: "Conflict", awaitedPaths: [each.path] })],
              fails: [record({ ...at, reason: "Forbidden" })],
              announces: [record({ ...at, reason: "Unavailable", pendingPaths: [each.path] })],
              holds: [record({ ...at, paths: [each.path] })],
              "is new": [],
              "is gone": [],
            }[each.state];
            const status = { observedGeneration: each.state === "is new" ? 0 : 1 };
            const woken =
              each.state === "is gone"
                ? some.remove(`team/${name}`)
                : some.put(naming(name, each.path, { ...account(each.account), records, status }));
            const missed = free().filter((key) => !before.includes(key) && key !== `team/${name}` && !woken.has(key));
            assert.deepEqual(missed, []);
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  const objects = (count: number) => Array.from({ length: count }, (_, n) => `w${n}`);
  const holding = (name: string, count: number, paths: string[], more: Says = {}) =>
    binding(name, { records: [record({ objects: objects(count).map((each) => `team/${each} u`), paths })], ...more });
  const stepsOf = (work: Generator<void, Set<string>>) => {
    let steps = 1;
    while (!work.next().done) steps++;
    return steps;
  };

  it("of many objects are shared, and replaced in steps, but only if something has changed that decides them", () => {
    const { claims: many } = claims;
    const update = (changed: StoredBinding) => {
      many.put(changed);
      return stepsOf(many.update("team/a"));
    };
    const condition = { type: "Synced", status: "True", reason: "", message: "", lastTransitionTime: "" } as const;
    assert.ok(update(holding("a", 5_000, ["spec.a"])) > 5_000);
    const [first, last] = ["w0", "w4999"].map(
      (name) => finish(many.competing(OTHER, ref(name, "team"), [["spec"]]))[0],
    );
    assert.ok(first !== undefined && first.paths === last?.paths);
    assert.ok(update(holding("a", 5_000, ["spec.a"], { status: { conditions: [condition] } })) < 5);
    const targets = [{ ref: ref("w0", "team"), paths: new Set(["spec.b"]) }];
    many.resolved("team/a", targets);
    assert.ok(stepsOf(many.update("team/a")) > 5_000);
    many.resolved("team/a", structuredClone(targets));
    assert.equal(stepsOf(many.update("team/a")), 1);
  });

  it("are not compared with others if it does not matter which bindings they concern", () => {
    const paths = Array.from({ length: 64 }, (_, n) => `spec.a${n}`);
    const steps = [5, 4, 3, 2, 1].map((n) => {
      const creationTimestamp = `202${n}-01-01T00:00:00Z`;
      claims.claims.put(
        binding(`b${n}`, {
          creationTimestamp,
          targets: [
            target(
              "w",
              paths.map((at) => `${at}.b${n}`),
            ),
          ],
        }),
      );
      return stepsOf(claims.claims.update(`team/b${n}`, false));
    });
    assert.deepEqual(new Set(steps), new Set([steps[0]]));
    assert.equal(at("w", "team").length, 5);
  });

  it("are those of the latest state, also if it changes during an update", () => {
    const { claims: many } = claims;
    many.put(holding("a", 100, ["spec.a"]));
    const early = many.update("team/a");
    for (let n = 0; n < 50; n++) early.next();
    many.put(holding("a", 20, ["spec.b"]));
    assert.equal(many.isDue("team/a"), true);
    finish(early);
    finish(many.update("team/a"));
    const found = ["w0", "w19", "w20", "w99"].map((name) => at(name, "team"));
    assert.deepEqual(found, [["team/a holds spec.b"], ["team/a holds spec.b"], [], []]);
    many.remove("team/a");
    finish(many.update("team/a"));
    assert.deepEqual(at("w0", "team"), []);
  });

  it("are found without an index where the indexes would become too large", () => {
    const names = Array.from({ length: 34 }, (_, n) => `b${n + 10}`);
    const paths = Array.from({ length: 15 }, (_, n) => `spec.a${n}`);
    for (const name of names) claims.put(holding(name, 250, paths));
    for (const name of ["w0", "w249"])
      assert.equal(claims.competing(OTHER, ref(name, "team"), [["spec.a14"]]).length, names.length);
    assert.equal(claims.remove("team/b10").size, names.length - 1);
  });

  it("of many bindings are found in steps, also for many paths that touch all of them", () => {
    const [few, many] = [40, 400];
    const named = Array.from({ length: few }, (_, n) => `b${n + 100}`);
    for (const name of named) claims.put(binding(name, { targets: [target("w", ["data"])] }));
    const paths = Array.from({ length: many }, (_, n) => `data.a${n}`);
    const visits = mock.method(Set.prototype, "add");
    const search = claims.claims.competing(OTHER, ref("w", "team"), [paths]);
    let steps = 1;
    let step = search.next();
    for (; !step.done; step = search.next()) steps++;
    visits.mock.restore();
    assert.deepEqual(
      step.value.map(({ key }) => key),
      // All have the same account and path, so only the oldest may be in the way.
      ["team/b100"],
    );
    assert.ok(steps > many + few, `${steps}`);
    assert.ok(visits.mock.callCount() < 3 * (many + few), `${visits.mock.callCount()}`);
  });

  it("of many bindings are found like those of few", () => {
    const text = fc.array(fc.constantFrom("a", "b", "[0]", "[1]", "[n=x]", "[n=y]", "[m=x]"), { maxLength: 3 });
    // Most of the deep path is below what the index distinguishes.
    const start = fc.constantFrom("spec", "spec.a.b.c.d.e.f");
    const path = fc
      .tuple(start, text)
      .map(([from, steps]) => `${from}${steps.map((step) => (step.startsWith("[") ? step : `.${step}`)).join("")}`);
    const changes = fc.array(fc.tuple(fc.nat(30), fc.uniqueArray(path, { maxLength: 3 })), {
      minLength: 40,
      maxLength: 80,
    });
    fc.assert(
      fc.property(changes, path, (all, asked) => {
        const many = new UpdatedClaims();
        const last = new Map<string, string[]>();
        for (const [n, paths] of all) {
          many.put(binding(`n${n}`, { spec: { serviceAccountName: `n${n}` }, targets: [target("w", paths)] }));
          last.set(`team/n${n}`, paths);
        }
        const wanted = [...last].filter(([, paths]) =>
          paths.some((each) => mayOverlap(FieldPath.parse(each), FieldPath.parse(asked))),
        );
        const found = many.competing(OTHER, ref("w", "team"), [[asked]]);
        assert.deepEqual(
          found.map(({ key }) => key),
          wanted.map(([key]) => key).sort(),
        );
      }),
    );
  });
});
