/** The fields that a patch reads and writes, and its errors. */

import assert from "node:assert/strict";
import type { Patch } from "../../../../src/api/composition.ts";
import type { JsonObject, JsonValue } from "../../../../src/apimachinery/objects.ts";
import { attemptSync, Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import { applyPatch, type PatchOutcome } from "../../../../src/composition/patches/apply.ts";
import { compilePatches } from "../../../../src/composition/patches/compile.ts";
import { Work } from "../../../../src/composition/patches/work.ts";

function apply(patch: Patch, from: JsonObject, into: JsonObject): PatchOutcome {
  const [compiled] = compilePatches([patch], [], "bindings[s3]");
  assert.ok(compiled);
  return applyPatch(compiled, from, into, new Work());
}

/** The state of `into` after the patch, and the written paths. */
function written(patch: Patch, from: JsonObject, into: JsonObject): [JsonObject, string[]] {
  const outcome = apply(patch, from, into);
  assert.equal(outcome.outcome, "written");
  return [into, outcome.outcome === "written" ? outcome.paths.map(String) : []];
}

function problemOf(patch: Patch, from: JsonObject, into: JsonObject, reason: Reason = "InvalidValue"): Problem {
  const problem = attemptSync(() => apply(patch, from, into));
  assert.ok(problem instanceof Problem);
  assert.equal(problem.reason, reason);
  return problem;
}

const combine = (fmt: string, ...paths: string[]): Patch => ({
  type: "CombineFromComposite",
  combine: { strategy: "string", variables: paths.map((fromFieldPath) => ({ fromFieldPath })), string: { fmt } },
  toFieldPath: "spec.text",
});
const toNull = { transforms: [{ type: "map", map: { gone: null } }] };

describe("a patch that is applied", () => {
  it("writes a field of one object into the other one", () => {
    const patch = { fromFieldPath: "spec.a[0]", toFieldPath: "spec.list[1].b" };
    assert.deepEqual(written(patch, { spec: { a: [{ c: 2n ** 60n + 1n }] } }, {}), [
      { spec: { list: [null, { b: { c: 2n ** 60n + 1n } }] } },
      ["spec.list[1].b"],
    ]);
  });

  it("shares nothing between the objects, or between the fields that a wildcard matches", () => {
    const from = { a: { b: [{ c: 1 }] } };
    for (const toFieldPath of ["Replace", "MergeObjects", "ForceMergeObjectsAppendArrays"]) {
      const into: { x: Record<string, { b: { c: number }[] }> } = { x: { p: { b: [] }, q: { b: [] } } };
      written({ fromFieldPath: "a", toFieldPath: "x[*]", policy: { toFieldPath } }, from, into);
      for (const element of into.x["p"]?.b ?? []) element.c = 2;
      assert.deepEqual([from, into.x["p"], into.x["q"]], [{ a: { b: [{ c: 1 }] } }, { b: [{ c: 2 }] }, from.a]);
    }
  });

  it("needs only the field that it reads", () => {
    const read = () => assert.fail("a field that no patch reads was read");
    const spec = Object.defineProperty({ a: 1 }, "large", { get: read, enumerable: true });
    assert.deepEqual(written({ fromFieldPath: "spec.a", toFieldPath: "b" }, { spec }, {}), [{ b: 1 }, ["b"]]);
  });

  it("writes to each field that a wildcard matches, by its policy", () => {
    const into = { list: [{ a: { x: 1 } }, { b: 1 }, { a: { y: 1 } }] };
    const patch = { fromFieldPath: "v", toFieldPath: "list[*].a", policy: { toFieldPath: "MergeObjects" } };
    assert.deepEqual(written(patch, { v: { x: 2, z: 2 } }, into), [
      { list: [{ a: { x: 1, z: 2 } }, { b: 1 }, { a: { y: 1, x: 2, z: 2 } }] },
      ["list[0].a", "list[2].a"],
    ]);
  });

  it("refuses a wildcard whose elements lack the field, and one that matches nothing if the patch is required", () => {
    const patch: Patch = { fromFieldPath: "v", toFieldPath: "list[*].a" };
    const required: Patch = { ...patch, policy: { fromFieldPath: "Required" } };
    for (const into of [{}, { list: [] }] as JsonObject[]) {
      assert.deepEqual(written(patch, { v: 1 }, into), [{ ...into }, []]);
      problemOf(required, { v: 1 }, into);
    }
    for (const into of [{ list: null }, { list: [{ b: 1 }] }, { list: "x" }] as JsonObject[])
      problemOf(patch, { v: 1 }, into);
  });

  it("refuses to write a large value to many fields", () => {
    const list = Array.from({ length: 100 }, () => ({ a: 1 }));
    const patch = { fromFieldPath: "v", toFieldPath: "list[*].a" };
    problemOf(patch, { v: "x".repeat(50_000) }, { list }, "TooLarge");
    assert.equal(written(patch, { v: "x".repeat(10_000) }, { list })[1].length, 100);
  });

  it("removes a field whose value becomes null", () => {
    const from = { v: "gone" };
    const cases: [toFieldPath: string, into: JsonObject, result: JsonObject, paths: string[]][] = [
      ["a.b", { a: { b: 1, c: 2 } }, { a: { c: 2 } }, ["a.b"]],
      ["a.b", {}, {}, ["a.b"]],
      ["a[0]", { a: [1, 2] }, { a: [2] }, ["a[0]"]],
      ["a[*]", { a: [1, 2, 3] }, { a: [] }, ["a[0]", "a[1]", "a[2]"]],
      ["a[*].b", { a: [{ b: 1 }, { c: 1 }] }, { a: [{}, { c: 1 }] }, ["a[0].b"]],
    ];
    for (const [toFieldPath, into, result, paths] of cases)
      assert.deepEqual(written({ fromFieldPath: "v", toFieldPath, ...toNull }, from, into), [result, paths]);
    assert.deepEqual(written({ fromFieldPath: "v" }, { v: null }, { v: 1 }), [{}, ["v"]]);
  });

  it("combines fields, and transforms the text", () => {
    const patch = { ...combine("%s-%s", "a", "b.c"), transforms: [{ type: "string", string: { fmt: "<%s>" } }] };
    assert.deepEqual(written(patch, { a: "x", b: { c: "y" } }, {})[0], { spec: { text: "<x-y>" } });
  });

  it("reports the missing field, and changes nothing", () => {
    const into = {};
    const missing = (path: string) => ({ outcome: "missing", path });
    assert.deepEqual(apply({ fromFieldPath: "a.b.c" }, { a: { b: null } }, into), missing("a.b.c"));
    assert.deepEqual(apply(combine("%s-%s", "a", "c[0]"), { a: 1, c: [] }, into), missing("c[0]"));
    assert.deepEqual(into, {});
  });
});

describe("a patch that can't be applied", () => {
  const secret = { a: "secretvalue", list: ["secretvalue"], labels: { secretkey: "secretvalue" } };
  const cases: [patch: Patch, into: JsonObject, names: string][] = [
    [{ fromFieldPath: "a.b", toFieldPath: "x" }, {}, "a"],
    [{ fromFieldPath: "list.b", toFieldPath: "x" }, {}, "list"],
    [{ fromFieldPath: "labels", toFieldPath: "x.y" }, { x: "secretvalue" }, "x"],
    [{ fromFieldPath: "a", toFieldPath: "x[*].y.z" }, { x: { secretkey: { y: "secretvalue" } } }, "x[*].y"],
    [{ fromFieldPath: "list", toFieldPath: "x", policy: { toFieldPath: "AppendArray" } }, { x: "secretvalue" }, "x"],
    [
      { fromFieldPath: "labels.secretkey", toFieldPath: "x", transforms: [{ type: "map", map: { b: "c" } }] },
      {},
      "labels.secretkey",
    ],
    [combine("%d-%s", "a", "labels.secretkey"), {}, "a"],
  ];
  for (const [patch, into, path] of cases)
    it(`reports its place and the path ${path}, without a value`, () => {
      const { message } = problemOf(patch, secret as Record<string, JsonValue>, into);
      assert.ok(message.startsWith("bindings[s3].patches[0]"));
      assert.ok(message.includes(path));
      assert.doesNotMatch(message, /secretvalue/);
      if (!JSON.stringify(patch).includes("secretkey")) assert.doesNotMatch(message, /secretkey/);
    });
});
