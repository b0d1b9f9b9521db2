/** Whether a target is written, with or without force, and what is recorded before. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue, ManagedFieldsEntry } from "../../../src/apimachinery/objects.ts";
import { MissingValue, type Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { type Decision, decide, recordedPaths } from "../../../src/apply/decide.ts";
import type { ListType } from "../../../src/transform/target-shape.ts";
import { recordOf } from "../objects.ts";
import { byKeys, countedList, entry, liveObject, OURS, shape } from "./managed.ts";

const SECRET = "hunter2-s3cr3t";

interface Case {
  /** The wanted value at each path. */
  want: Record<string, JsonValue>;
  live: JsonObject;
  entries?: ManagedFieldsEntry[];
  /** The paths that the status records as owned, and the parents that it records. */
  ours?: string[];
  parents?: string[];
  uid?: string;
  onConflict?: "Fail" | "Force";
  /** Fields whose value is missing, and which keep their current one. */
  waiting?: string[];
  lists?: Record<string, ListType>;
  append?: boolean;
}

const omitted = (paths: string[]) =>
  paths.map((path) => ({
    path: FieldPath.parse(path),
    why: new MissingValue("KeyNotFound", "no key", { onMissing: "Wait", optional: true }),
  }));

function decided({
  want,
  live,
  entries = [],
  ours,
  parents = [],
  uid = "uid-1",
  onConflict = "Fail",
  waiting = [],
  lists = {},
  append = false,
}: Case): Decision {
  const fields = Object.entries(want).map(([path, value]) => ({
    path: FieldPath.parse(path),
    value: new SecretValue(value),
    fromSecret: true,
    append,
  }));
  const record = ours && recordOf({ uid, paths: ours, parents });
  return decide(
    { plan: { fields, omitted: omitted(waiting) }, shape: shape(lists), fieldManager: OURS, onConflict },
    liveObject(live, entries),
    record,
  );
}

function conflicts(some: Case, ...says: string[]): void {
  assert.throws(
    () => decided(some),
    (problem: Problem) => {
      assert.equal(problem.reason, "Conflict");
      for (const text of says) assert.ok(problem.message.includes(text), problem.message);
      assert.ok(!problem.message.includes(SECRET));
      return true;
    },
  );
}

describe("a target", () => {
  it("is not written if every value is there and owned", () => {
    const { write, takenBy, acquires } = decided({
      want: { "spec.a": SECRET, "spec.b": [{ n: 1 }] },
      live: { spec: { a: SECRET, b: [{ n: 1 }] } },
      entries: [entry(OURS, ["spec.a", "spec.b"])],
      ours: ["spec.a", "spec.b"],
    });
    assert.deepEqual({ write, takenBy, acquires }, { write: false, takenBy: [], acquires: [] });
  });

  it("is written if every value is there, but from another version of the kind", () => {
    const some = { want: { "spec.a": SECRET }, live: { spec: { a: SECRET } }, ours: ["spec.a"] };
    for (const version of ["v1", "v1beta1"]) {
      const entries = [entry(OURS, ["spec.a"], { apiVersion: `goharbor.io/${version}` })];
      assert.equal(decided({ ...some, entries }).write, version === "v1");
    }
  });

  it("is written if one value differs, is absent, or has another type", () => {
    for (const a of [{ a: "old" }, {}, { a: 1 }, { a: null }]) {
      const some = { want: { "spec.a": "1", "spec.b": "y" }, live: { spec: { ...a, b: "y" } } };
      assert.ok(
        decided({ ...some, entries: [entry(OURS, ["spec.a", "spec.b"])], ours: ["spec.a", "spec.b"] }).write,
        JSON.stringify(a),
      );
    }
  });

  it("is not written if an object also contains defaults or fields of others", () => {
    const some = {
      want: { "spec.s3": { bucket: "a", tls: { on: true } } },
      live: { spec: { s3: { bucket: "a", tls: { on: true, port: 443 }, region: "eu" } } },
      ours: ["spec.s3"],
    };
    const whole = [entry(OURS, ["spec.s3.bucket", "spec.s3.tls.on"]), entry("argocd", ["spec.s3.region"])];
    assert.equal(decided({ ...some, entries: whole }).write, false);
    const more = [entry(OURS, ["spec.s3.bucket", "spec.s3.tls.on", "spec.s3.region"])];
    assert.equal(decided({ ...some, entries: more }).write, true);
    assert.equal(decided({ ...some, entries: [entry("argocd", ["spec.s3"])] }).write, true);
  });

  it("is in conflict if another manager owns a field that would change, and not if they own a field beside it", () => {
    const live = { data: { theirs: "x", same: "x" } };
    const entries = [entry("kubectl", ["data.theirs", "data.same"])];
    const { write, takenBy, force } = decided({ want: { data: { ours: "x" } }, live, entries });
    assert.deepEqual({ write, takenBy, force }, { write: true, takenBy: [], force: false });
    assert.throws(() => decided({ want: { data: { ours: "x", theirs: "y" } }, live, entries }), {
      reason: "Conflict",
      message: /data belongs to "kubectl"/,
    });
  });

  it("is written to own values that are there but not owned yet", () => {
    const { write, force, takenBy } = decided({
      want: { "spec.a": "x" },
      live: { spec: { a: "x" } },
      entries: [entry("kubectl", ["spec.a"])],
    });
    assert.deepEqual({ write, force, takenBy }, { write: true, force: false, takenBy: [] });
  });

  it("is written if it is recorded as owned, but not in managedFields", () => {
    assert.ok(decided({ want: { "spec.a": "x" }, live: { spec: { a: "x" } }, ours: ["spec.a"] }).write);
  });
});

describe("an omitted field", () => {
  const live = { spec: { a: "x", b: SECRET, c: { mine: 1, theirs: 2 }, d: ["y"] } };
  const ours = ["spec.a", "spec.b", "spec.c", "spec.d"];
  const carriedBy = (decision: Decision) =>
    decision.repeated.map(({ path, value }) => [String(path), value.reveal()] as const);

  it("is repeated with its value when the others are written", () => {
    const entries = [entry(OURS, ["spec.a", "spec.b", "spec.d"])];
    const decision = decided({ want: { "spec.a": "new" }, live, entries, ours, waiting: ["spec.b", "spec.d"] });
    assert.deepEqual(carriedBy(decision), [
      ["spec.b", SECRET],
      ["spec.d", ["y"]],
    ]);
    assert.ok(decision.write);
    assert.ok(!JSON.stringify(decision).includes(SECRET));
  });

  it("is repeated without the fields of others in it", () => {
    const entries = [entry(OURS, ["spec.a", "spec.c.mine"]), entry("argocd", ["spec.c.theirs"])];
    const decision = decided({ want: { "spec.a": "new" }, live, entries, ours, waiting: ["spec.c"] });
    assert.deepEqual(carriedBy(decision), [["spec.c", { mine: 1 }]]);
  });

  it("is not repeated if another manager took it, or it is gone", () => {
    const entries = [entry(OURS, ["spec.a", "spec.gone"]), entry("kubectl", ["spec.b"])];
    const waiting = ["spec.b", "spec.gone"];
    assert.deepEqual(carriedBy(decided({ want: { "spec.a": "new" }, live, entries, ours, waiting })), []);
  });

  it("causes no write", () => {
    const entries = [entry(OURS, ["spec.a", "spec.b"])];
    assert.equal(decided({ want: { "spec.a": "x" }, live, entries, ours, waiting: ["spec.b"] }).write, false);
    const alone = [entry(OURS, ["spec.b"])];
    assert.equal(decided({ want: {}, live, entries: alone, ours, waiting: ["spec.b"] }).write, false);
  });
});

describe("a field of another manager", () => {
  const theirs = { want: { "spec.s3.key": SECRET }, live: { spec: { s3: { key: "old" } } } };

  it("is not taken by a first write: the problem names the owner of each path, and the fix", () => {
    conflicts(
      { ...theirs, entries: [entry("argocd", ["spec.s3.key"]), entry("kubectl", ["spec.s3.key"])] },
      'spec.s3.key belongs to "argocd"',
      'spec.s3.key belongs to "kubectl"',
      "nothing was written",
      "onConflict: Force",
    );
  });

  it("is taken with onConflict: Force", () => {
    const { write, force } = decided({
      ...theirs,
      entries: [entry("argocd", ["spec.s3.key"])],
      onConflict: "Force",
    });
    assert.deepEqual({ write, force }, { write: true, force: true });
  });

  it("is no conflict if its value is equal", () => {
    const { force, write } = decided({
      want: { "spec.a": "x" },
      live: { spec: { a: "x" } },
      entries: [entry("argocd", ["spec.a"])],
    });
    assert.deepEqual({ force, write }, { force: false, write: true });
  });

  it("is retaken if it is recorded as owned, and its other owner is named once", () => {
    const { write, force, takenBy, acquires } = decided({
      want: { "spec.a": "x", "spec.b": "y" },
      live: { spec: { a: "edited", b: "edited" } },
      entries: [entry("kubectl-edit", ["spec.a", "spec.b"], { operation: "Update" })],
      ours: ["spec.a", "spec.b"],
    });
    assert.deepEqual(
      { write, force, takenBy, acquires },
      { write: true, force: true, takenBy: ["kubectl-edit"], acquires: [] },
    );
  });

  it("is not owned because of a record of an earlier object of that name", () => {
    conflicts({ ...theirs, entries: [entry("argocd", ["spec.s3.key"])], ours: ["spec.s3.key"], uid: "uid-0" });
  });

  it("prevents the write of the whole target, including recorded fields", () => {
    conflicts(
      {
        want: { "spec.mine": "x", "spec.theirs": "y" },
        live: { spec: { mine: "edited", theirs: "z" } },
        entries: [entry("argocd", ["spec.theirs"])],
        ours: ["spec.mine"],
      },
      "spec.theirs belongs to",
    );
  });
});

describe("a first write", () => {
  it("is not forced: the API server reports other owners", () => {
    assert.equal(decided({ want: { "spec.a": "x" }, live: { spec: {} } }).force, false);
  });

  it("is forced together with owned fields", () => {
    const { force, acquires } = decided({
      want: { "spec.mine": "x", "spec.new": "y" },
      live: { spec: { mine: "x" } },
      entries: [entry(OURS, ["spec.mine"])],
      ours: ["spec.mine"],
    });
    assert.deepEqual({ force, acquires }, { force: true, acquires: ["spec.new"] });
  });

  it("records the parents that it creates, and no existing ones", () => {
    const { parents } = decided({
      want: { "spec.a.b.c": "x", "spec.a.b.d": "y", "spec.there.e": "z", "metadata.annotations.k": "v" },
      live: { spec: { there: {} } },
    });
    assert.deepEqual(parents.toSorted(), ["metadata.annotations", "spec.a", "spec.a.b"]);
  });

  it("records existing parents in which only bindings own anything, and none of one value or without any owner", () => {
    const live = { spec: { a: { b: { c: "retained" } }, list: [{ id: "x" }], map: [{ id: "x" }] } };
    const want = { "spec.a.b.c": "x", "spec.a.b.d": "y", "spec.list[id=x].e": "x", "spec.map[id=x].e": "x" };
    const parentsWith = (...entries: ManagedFieldsEntry[]) =>
      decided({ want, live, entries, lists: { "spec.map": byKeys("id") } }).parents.toSorted();
    const elsewhere = entry("kubectl", ["spec.map", "spec.other"]);
    assert.deepEqual(parentsWith(elsewhere), ["spec.a", "spec.a.b", "spec.map[id=x]"]);
    assert.deepEqual(parentsWith(elsewhere, entry("inlay/team/two", ["spec.a.b.e"])).length, 3);
    assert.deepEqual(parentsWith(elsewhere, entry("kubectl", ["spec.a.f"])), ["spec.a.b", "spec.map[id=x]"]);
    assert.deepEqual(parentsWith(entry("kubectl", ["spec.a.b", "spec.map[id=x]"])), []);
    assert.deepEqual(parentsWith(), []);
  });

  it("records parents that a correction creates, once", () => {
    const some = { want: { "spec.a.b": "x" }, live: { spec: {} }, ours: ["spec.a.b"] };
    assert.deepEqual(decided(some).parents, ["spec.a"]);
    assert.deepEqual(decided({ ...some, parents: ["spec.a"] }).parents, []);
  });
});

describe("a quantity that the API server normalizes", () => {
  const path = "spec.limits.cpu";
  const live = (cpu: string) => ({ spec: { limits: { cpu, memory: "1Gi" }, size: cpu } });
  const git = [entry("git", [path])];

  it("is not written again in another notation", () => {
    const given = { entries: [entry(OURS, [path]), ...git], ours: [path] };
    assert.equal(decided({ want: { [path]: "0.5" }, live: live("500m"), ...given }).write, false);
    const { differing, takenBy } = decided({ want: { [path]: "0.5" }, live: live("501m"), ...given });
    assert.deepEqual([differing, takenBy], [[path], ["git"]]);
  });

  it("is shared in the notation of the object with a manager that applies an equal one, and else a conflict", () => {
    const { fields, force, write } = decided({ want: { [path]: "0.5" }, live: live("500m"), entries: git });
    assert.deepEqual([fields.map(({ value }) => value.reveal()), force, write], [["500m"], false, true]);
    conflicts({ want: { [path]: "0.6" }, live: live("500m"), entries: git }, "git");
  });

  it("may be within an object or list", () => {
    const owned = { entries: [entry(OURS, ["spec.limits"])], ours: ["spec.limits"] };
    const want = { "spec.limits": { cpu: "0.5", memory: "1024Mi", list: [{ cpu: "1k" }] } };
    const there = { spec: { limits: { cpu: "500m", memory: "1Gi", list: [{ cpu: "1000" }] } } };
    assert.equal(decided({ want, live: there, ...owned }).write, false);
  });

  it("is the text as given in any other field", () => {
    const given = { entries: [entry(OURS, ["spec.size"])], ours: ["spec.size"] };
    assert.equal(decided({ want: { "spec.size": "0.5" }, live: live("500m"), ...given }).write, true);
  });
});

describe("an element of a long list", () => {
  it("is searched once for a decision, whatever it decides", () => {
    const [count, length] = [30, 500];
    const paths = Array.from({ length: count }, (_, n) => `spec.env[name=n${n * 10}].value`);
    for (const lists of [{ "spec.env": { kind: "map" as const, keys: ["name"] } }, {}]) {
      for (const [value, ours] of [
        ["old", paths],
        ["new", paths],
        ["new", []],
      ] as const) {
        const { list, reads } = countedList(length);
        const want = Object.fromEntries(paths.map((path) => [path, value]));
        const entries = [entry(OURS, "spec.env" in lists ? ours : ["spec.env"])];
        const { differing } = decided({ want, live: { spec: { env: list } }, entries, ours: [...ours], lists });
        assert.equal(differing.length, value === "old" ? 0 : count);
        const more = reads() - count * length;
        assert.ok(more <= 2 * length, `${reads()} reads`);
      }
    }
  });
});

describe("a record", () => {
  it("applies only to the object that it was made for", () => {
    const live = liveObject({});
    assert.deepEqual(recordedPaths(recordOf({ uid: "uid-1", paths: ["spec.a"] }), live), ["spec.a"]);
    assert.deepEqual(recordedPaths(recordOf({ uid: "uid-1" }), live), []);
    assert.deepEqual(recordedPaths(recordOf({ uid: "uid-0", paths: ["spec.a"] }), live), []);
    assert.deepEqual(recordedPaths(recordOf({ paths: ["spec.a"] }), live), []);
    assert.deepEqual(recordedPaths(undefined, live), []);
  });
});
