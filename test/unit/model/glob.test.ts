/** Which names globs match. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { nameMatcher } from "../../../src/model/glob.ts";

describe("a glob", () => {
  it("matches as a regular expression with its wildcards would", () => {
    const piece = fc.constantFrom("a", "b", ".", "*", "?", "ab");
    const glob = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
    const name = fc.array(fc.constantFrom("a", "b", "."), { maxLength: 8 }).map((letters) => letters.join(""));
    fc.assert(
      fc.property(fc.array(glob, { maxLength: 3 }), name, (globs, text) => {
        const expected = globs.some((each) =>
          new RegExp(`^${each.replaceAll(".", "\\.").replaceAll("*", ".*").replaceAll("?", ".")}$`).test(text),
        );
        assert.equal(nameMatcher(globs)(text), expected);
      }),
      { numRuns: 2_000 },
    );
  });

  it("that is not there matches every name", () => {
    assert.ok(nameMatcher(undefined)("anything"));
  });

  it("takes no longer for being made to", () => {
    assert.equal(nameMatcher([`${"*a".repeat(120)}*b`])("a".repeat(253)), false);
  });
});
