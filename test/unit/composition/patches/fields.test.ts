/** Finding, writing and removing values at paths, compared with Crossplane; and the elements that our paths can identify. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Segment } from "../../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../../../../src/apimachinery/objects.ts";
import { attemptSync, Problem } from "../../../../src/apimachinery/problem.ts";
import { expandWildcards, getField, removeField, setField } from "../../../../src/composition/patches/fields.ts";
import { copyJson } from "../../../../src/composition/patches/merge.ts";
import { parseCompositePath, textOf } from "../../../../src/composition/patches/path.ts";
import { ask, useOracle } from "../../../oracle/oracle.ts";
import { object, path, pathWithWildcards, value } from "./arbitraries.ts";

const concrete = (text: string) => parseCompositePath(text).segments as readonly Segment[];
const get = (from: JsonObject, text: string) => getField(from, concrete(text));

/** The object after a change, or the Problem. */
function changed(from: JsonObject, change: (into: JsonObject) => void): JsonObject | Problem {
  const into = copyJson(from) as JsonObject;
  return attemptSync(() => change(into)) ?? into;
}

function assertSame(ours: unknown, theirs: JsonValue | undefined): void {
  if (theirs !== undefined) assert.deepEqual(ours, theirs);
  else assert.equal((ours as Problem).reason, "InvalidValue");
}

describe("a field at a path", () => {
  before(useOracle);
  const compare = (check: (from: JsonObject, text: string) => Promise<void>, numRuns = 1_500) =>
    fc.assert(fc.asyncProperty(object, path, check), { numRuns });

  it("is found, missing or a mistake as in Crossplane", () =>
    compare(async (from, text) => {
      const ours = attemptSync(() => get(from, text));
      const { result } = await ask("path.get", { object: from, path: text });
      assertSame(ours instanceof Problem ? ours : ours === undefined ? { missing: true } : { value: ours }, result);
    }));

  it("is written, with objects and lists on the way, as in Crossplane", async () => {
    const far = fc.tuple(path, fc.constantFrom("", "[5]", "[1024]", "[1025]", "[3].a[1]")).map((both) => both.join(""));
    const check = async (from: JsonObject, text: string, given: JsonValue) => {
      const ours = changed(from, (into) => setField(into, concrete(text), given));
      const { result } = await ask("path.set", { object: from, path: text, value: given });
      assertSame(ours instanceof Problem ? ours : { object: ours }, result);
    };
    await fc.assert(fc.asyncProperty(object, far, value, check), { numRuns: 1_500 });
  });

  it("is removed as in Crossplane", () =>
    compare(async (from, text) => {
      const ours = changed(from, (into) => removeField(into, concrete(text)));
      const { result } = await ask("path.delete", { object: from, path: text });
      assertSame(ours instanceof Problem ? ours : { object: ours }, result);
    }));

  it("matches a wildcard as in Crossplane, which reports null at a wildcard as missing", async () => {
    const check = async (from: JsonObject, text: string) => {
      const ours = attemptSync(() => expandWildcards(from, parseCompositePath(text).segments));
      const { result } = await ask("path.expand", { object: from, path: text });
      const theirs = result as { missing: true } | { paths: string[] } | undefined;
      if (theirs === undefined || "missing" in theirs) return assert.equal((ours as Problem).reason, "InvalidValue");
      if (ours instanceof Problem) throw ours;
      const canonical = theirs.paths.map((each) => textOf(parseCompositePath(each).segments));
      assert.deepEqual(ours.map(textOf).sort(), canonical.sort());
    };
    await fc.assert(fc.asyncProperty(object, pathWithWildcards, check), { numRuns: 1_500 });
  });

  it("is never an inherited property", () => {
    assert.equal(get({}, "toString"), undefined);
    const made = changed({}, (into) => setField(into, concrete("toString.length"), 1));
    assert.deepEqual(made, { toString: { length: 1 } });
  });

  it("is refused if a wildcard matches a key that paths can't contain", () => {
    const hostile = JSON.parse('{"a": {"__proto__": {"b": 1}}}') as JsonObject;
    assert.throws(() => expandWildcards(hostile, parseCompositePath("a[*].b").segments), { reason: "InvalidValue" });
  });
});

describe("an element that a path names by its fields", () => {
  const from = { list: [{ type: "A", on: 1 }, null, "x", { type: "B" }] };
  const [ready, other] = ["list[type=B].on", "list[type=C].on"];

  it("is found, missing, or a mistake if several match", () => {
    assert.equal(get(from, "list[type=A].on"), 1);
    assert.deepEqual([get(from, ready), get(from, other)], [undefined, undefined]);
    const twice = { list: [{ a: 1 }, { a: 1 }] };
    assert.throws(() => get(twice, "list[a=1]"), { reason: "InvalidValue" });
    assert.throws(() => get({ list: {} }, "list[a=1]"), { reason: "InvalidValue" });
  });

  it("is written and removed, but not created", () => {
    assert.deepEqual(
      changed(from, (into) => setField(into, concrete(ready), 2)),
      { list: [...from.list.slice(0, 3), { type: "B", on: 2 }] },
    );
    assert.deepEqual(
      changed(from, (into) => removeField(into, concrete("list[type=A]"))),
      { list: from.list.slice(1) },
    );
    const bases: [base: JsonObject, text: string][] = [
      [from, other],
      [{}, "a[b=c].d"],
      [{ a: [null] }, "a[0][b=c]"],
    ];
    for (const [base, text] of bases) {
      const into = copyJson(base) as JsonObject;
      assert.throws(() => setField(into, concrete(text), 2), { reason: "InvalidValue" });
      assert.deepEqual(into, base);
    }
    for (const [base, text] of bases.slice(0, 2))
      assert.deepEqual(
        changed(base, (into) => removeField(into, concrete(text))),
        base,
      );
  });

  it("can be in a path with wildcards", () => {
    const lists = { a: [{ b: [{ n: "x" }] }, { b: [{ n: "y" }] }] };
    const found = expandWildcards(lists, parseCompositePath("a[*].b[n=y].n").segments);
    assert.deepEqual(found.map(textOf), ["a[1].b[n=y].n"]);
  });
});

describe("the message about a field", () => {
  it("contains the path in the composition and the rule, and no key that a wildcard matches", () => {
    const from = { spec: { secretkey: { b: "secretvalue" } } };
    for (const text of ["spec[*].b.c", "spec[*].b[0]", "spec[*].b[*]", "spec[*][*][d=e]"]) {
      const { message } = attemptSync(() => expandWildcards(from, parseCompositePath(text).segments)) as Problem;
      assert.match(message, /^spec\[\*\]/);
      assert.doesNotMatch(message, /secret/);
    }
  });
});
