/** Which paths patches accept, and how they are parsed: like Crossplane, with the elements of a SecretBinding. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { attemptSync, Problem } from "../../../../src/apimachinery/problem.ts";
import {
  type CompositeSegment,
  isConcrete,
  parseCompositePath,
  plainPrefix,
  textOf,
} from "../../../../src/composition/patches/path.ts";
import { ask, useOracle } from "../../../oracle/oracle.ts";
import { path, pathText, pathWithWildcards } from "./arbitraries.ts";

const segmentsOf = (text: string) => parseCompositePath(text).segments;
const key = (name: string): CompositeSegment => ({ kind: "key", key: name });
const element = (conditions: Record<string, string>): CompositeSegment => ({
  kind: "element",
  conditions: Object.entries(conditions).map(([name, value]) => ({ key: name, value })),
});

/** The oracle's text of a segment. */
function spelled(segment: CompositeSegment): { key: string } | { index: number } {
  if (segment.kind === "wildcard") return { key: "*" };
  assert.notEqual(segment.kind, "element");
  return segment.kind === "index" ? { index: segment.index } : { key: (segment as { key: string }).key };
}

describe("a path of a patch", () => {
  before(useOracle);

  it("is parsed or refused as in Crossplane", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(path, pathWithWildcards, pathText), async (text) => {
        const parsed = attemptSync(() => parseCompositePath(text));
        const { result } = await ask("path.parse", { path: text });
        if (result === undefined) return assert.equal((parsed as Problem).reason, "InvalidPath", text);
        if (parsed instanceof Problem) assert.fail(`${text}: ${parsed.message}`);
        assert.deepEqual(parsed.segments.map(spelled), result, text);
      }),
      { numRuns: 2_000 },
    );
  });

  it("reports the column of a mistake", () => {
    const refused: [text: string, column: number][] = [
      ["", 1],
      [".a", 1],
      ["a.", 2],
      ["a..b", 3],
      ["a.[0]", 3],
      ["a[]", 3],
      ["a[b", 2],
      ["a]", 2],
      ["a[b[c]", 4],
      ["a[b = c]", 3],
      ["a[b=c,b=d]", 3],
      ['a[b="\\q"]', 3],
    ];
    for (const [text, column] of refused) {
      const { reason, message } = attemptSync(() => parseCompositePath(text)) as Problem;
      assert.deepEqual([reason, /column (\d+)/.exec(message)?.[1]], ["InvalidPath", String(column)], text);
    }
  });

  it("identifies an element by its fields, as in a SecretBinding", () => {
    assert.deepEqual(segmentsOf("a.b[type=Ready].status"), [
      key("a"),
      key("b"),
      element({ type: "Ready" }),
      key("status"),
    ]);
    assert.deepEqual(segmentsOf('a["port"=80,name="x ]y"]')[1], element({ name: "x ]y", port: "80" }));
    for (const quoted of ["a['b=c']", 'a["b=c"]']) assert.deepEqual(segmentsOf(quoted)[1], key("b=c"));
    for (const wrong of ["a[b=]", "a[=c]", "a[b='c']", "a[example.com/b=c]"])
      assert.throws(() => segmentsOf(wrong), { reason: "InvalidPath" }, wrong);
  });

  it("can't name JavaScript's own properties", () => {
    for (const text of ["a.__proto__", "a['constructor'].b", "prototype[0]", "a[__proto__=1]", "a[*].__proto__"])
      assert.throws(() => segmentsOf(text), { reason: "InvalidPath" }, text);
  });

  it("has wildcards only with brackets, and then every * is one", () => {
    const kinds = (text: string) => segmentsOf(text).map(({ kind }) => kind);
    assert.deepEqual(kinds("a.*['*']"), ["key", "key", "key"]);
    assert.deepEqual(kinds("a.*[*]"), ["key", "wildcard", "wildcard"]);
    assert.equal(isConcrete(parseCompositePath("a.*")), true);
    assert.equal(isConcrete(parseCompositePath("a[*]")), false);
  });

  it("has at most 64 segments", () => {
    assert.equal(segmentsOf(`a${".a".repeat(63)}`).length, 64);
    assert.throws(() => segmentsOf(`a${".a".repeat(64)}`), { reason: "InvalidPath" });
  });

  it("has a canonical text, and a prefix of keys alone", () => {
    const written = parseCompositePath("metadata.annotations['example.com/a'][0].b[*][c=d]");
    assert.equal(textOf(written.segments), 'metadata.annotations["example.com/a"][0].b[*][c=d]');
    assert.equal(plainPrefix(written).toString(), 'metadata.annotations["example.com/a"]');
    assert.equal(plainPrefix(parseCompositePath("a.b")).toString(), "a.b");
  });
});
