/** What patterns may cost. That they match as Go's do is RE2's own promise. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { compilePattern, Pattern } from "../../../src/apimachinery/pattern.ts";

const PLENTY = 1e12;

describe("a pattern", () => {
  const atom = fc.constantFrom(
    "a",
    ".",
    "[^a]",
    "[)]",
    "[](]",
    "[[:alpha:])]",
    "\\(",
    "\\pL",
    "[\\pL\\d]",
    "\\Qa(\\E",
    "^",
    "|",
  );
  const repeat = fc.constantFrom("", "*", "?", "+?", "{3}", "{0,9}", "{2,}", "{100}", "{0,1000}");
  const { group } = fc.letrec<{ group: string }>((tie) => ({
    group: fc
      .array(fc.tuple(fc.oneof({ maxDepth: 4 }, atom, tie("group")), repeat), { minLength: 1, maxLength: 4 })
      .chain((parts) =>
        fc.constantFrom("(", "(?:", "(?i:").map((open) => `${open}${parts.map((part) => part.join("")).join("")})`),
      ),
  }));

  it("compiles to no more instructions than it is counted for", () => {
    const isCounted = (text: string) => {
      const pattern = compilePattern(text, { left: PLENTY });
      if (!(pattern instanceof Pattern)) return;
      assert.ok(RE2JS.compile(text).programSize() <= pattern.size, `${text}: counted for ${pattern.size}`);
    };
    isCounted("(^*){0,20}");
    isCounted("((?:)*){300}");
    fc.assert(fc.property(group, isCounted), { numRuns: 300 });
  });

  it("that would take long to compile is not compiled", () => {
    for (const text of ["(.{0,1000})".repeat(40), "((a{10}){10}){10}".repeat(9), "\\pL".repeat(200), "a".repeat(5_000)])
      assert.equal(compilePattern(text, { left: PLENTY }), "TooLarge", text.slice(0, 40));
    assert.equal(compilePattern("(", { left: PLENTY }), "Invalid");
  });

  it("is paid for each time, by its size and the text's", () => {
    const cost = (text: string, size = 1) => {
      const effort = { left: PLENTY };
      const pattern = compilePattern(`a{${size}}`, effort);
      assert.ok(pattern instanceof Pattern);
      assert.equal(pattern.isFoundIn(text, effort), text.length >= size);
      return PLENTY - effort.left;
    };
    assert.equal(cost("a"), cost("a"));
    assert.ok(cost("a".repeat(1_000)) > (500 * cost("a")) / 100);
    assert.ok(cost("a", 1_000) > 50 * cost("a"));
  });

  it("says nothing where that would take more effort than is left", () => {
    assert.equal(compilePattern("a", { left: 0 }), undefined);
    const pattern = compilePattern("a", { left: PLENTY });
    assert.ok(pattern instanceof Pattern);
    assert.equal(pattern.isFoundIn("a".repeat(1_000), { left: 100 }), undefined);
  });
});
