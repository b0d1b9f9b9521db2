/** The cost of patterns. RE2 ensures that they match like Go's. */
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

  it("compiles to no more instructions than its size", () => {
    const isCounted = (text: string) => {
      const pattern = compilePattern(text, { left: PLENTY });
      if (!(pattern instanceof Pattern)) return;
      assert.ok(RE2JS.compile(text).programSize() <= pattern.size, `${text}: counted for ${pattern.size}`);
    };
    isCounted("(^*){0,20}");
    isCounted("((?:)*){300}");
    fc.assert(fc.property(group, isCounted), { numRuns: 300 });
  });

  it("is not compiled if that would take long", () => {
    for (const text of ["(.{0,1000})".repeat(40), "((a{10}){10}){10}".repeat(9), "\\pL".repeat(200), "a".repeat(5_000)])
      assert.equal(compilePattern(text, { left: PLENTY }), "TooLarge", text.slice(0, 40));
    assert.equal(compilePattern("(", { left: PLENTY }), "Invalid");
  });

  describe("with classes that ignore case", () => {
    const wide = ["B-\u{1e942}", "\\x{42}-\\x{1e942}", "\\x42-\\x{01e942}", "\\101-\u{1e942}", "+--\u{1e942}"];
    const many = (range: string) => range.repeat(Math.floor(950 / range.length));

    it("is refused if compiling reads many characters, even if it is invalid", () => {
      const start = performance.now();
      for (const range of wide) {
        const ranges = many(range);
        for (const text of [`(?i)[${ranges}]`, `(?s-i)(?si:[^${ranges}])`, `(?i)[${ranges}`])
          assert.equal(compilePattern(text, { left: PLENTY }), "TooLarge", text.slice(0, 40));
        assert.ok(compilePattern(`[${ranges}]`, { left: PLENTY }) instanceof Pattern);
      }
      const took = performance.now() - start;
      assert.ok(took < 500, `it took ${took} ms`);
    });

    it("costs effort for the characters in its ranges", () => {
      const effort = { left: 1_000_000 };
      const made = Array.from({ length: 40 }, (_, n) => compilePattern(`(?i)[B-\u{1e942}]${n}`, effort));
      assert.ok(made.filter((pattern) => pattern !== undefined).length < 5);
    });
  });

  it("with an unclosed class is found to be invalid at once", () => {
    for (const text of ["\\x", "\\]", "[:a:]", "[:a", "[", "\\Q", "a-"].map((part) => `[${part.repeat(300)}`))
      assert.notEqual(compilePattern(text, { left: PLENTY }), undefined);
  });

  it("counts the content of its classes once", () => {
    const sizeOf = (text: string) => {
      const pattern = compilePattern(text, { left: PLENTY });
      assert.ok(pattern instanceof Pattern, text);
      return pattern.size;
    };
    const letters = Array.from({ length: 400 }, (_, n) => String.fromCodePoint(0x3400 + 2 * n)).join("");
    assert.ok(sizeOf(`[${letters}]`) > 100);
    assert.ok(sizeOf(`[${letters}]{9}`) < 200);
  });

  it("matches at little cost if it is ordinary", () => {
    for (const [text, found, other] of [
      ["(?i)^[a-z0-9]+$", "AbC9", "a-b"],
      ["(?i)^[а-яё]+$", "Привет", "hello"],
      ["(?i)^[\\x{e0}-\\x{ff}]+$", "ÀÿŸ", "a"],
      ["^[a-zA-Z0-9._-]+$", "a.B-1_", "a b"],
      ["^[一-龥]{1,60}$", "中文", "a"],
      ["^\\p{L}+$", "Straße", "1"],
      ["(?i)^\\p{Lu}+$", "straSSe", "1"],
      ["^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$", "a.example", "-a"],
    ] as const) {
      const effort = { left: 200_000 };
      const pattern = compilePattern(text, effort);
      assert.ok(pattern instanceof Pattern, text);
      assert.deepEqual([pattern.isFoundIn(found, effort), pattern.isFoundIn(other, effort)], [true, false], text);
    }
  });

  it("costs effort for each match, by its size and the text's", () => {
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

  it("gives no result if too little effort is left", () => {
    assert.equal(compilePattern("a", { left: 0 }), undefined);
    const pattern = compilePattern("a", { left: PLENTY });
    assert.ok(pattern instanceof Pattern);
    assert.equal(pattern.isFoundIn("a".repeat(1_000), { left: 100 }), undefined);
  });
});
