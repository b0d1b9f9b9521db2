/** Which names globs match. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { nameMatcher } from "../../../src/apimachinery/glob.ts";

describe("a glob", () => {
  it("matches like a regular expression with its wildcards", () => {
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

  it("matches every name if it is not given", () => {
    assert.ok(nameMatcher(undefined)("anything"));
  });

  it("in exceptNames excludes exactly the names that it matches, with their case", () => {
    const matches = nameMatcher(undefined, ["kube-*", "?", "prod"]);
    for (const name of ["kube-system", "kube-", `kube-${"a".repeat(58)}`, "kube-a.b/c\nd", "x", "prod"])
      assert.equal(matches(name), false, name);
    for (const name of ["kube", "kubex", "xkube-a", "Kube-a", "kube_a", "ab", "prod-1", "a-prod", ""])
      assert.equal(matches(name), true, name);
  });

  it("in exceptNames restricts names, at the effort of both", () => {
    const effort = { left: 0 };
    const matches = nameMatcher(["team-*", "all"], ["*-old", "all"]);
    assert.deepEqual(
      ["team-a", "team-old", "all", "other-old", "other"].map((name) => matches(name, effort)),
      [true, false, false, false, false],
    );
    assert.equal(effort.left, -6);
  });

  it("matches if it is long and needs more bits than a number has", () => {
    for (const length of [31, 32, 33, 63, 64, 65, 200]) {
      const name = `${"ab".repeat(length)}c`.slice(-length);
      const glob = `*${"?".repeat(length - 2)}c`;
      assert.equal(nameMatcher([glob])(name), true, glob);
      assert.equal(nameMatcher([`${glob}?`])(name), false, glob);
      assert.equal(nameMatcher([`?${name.slice(1, -1)}?*`])(name), true);
      assert.equal(nameMatcher([`?${name.slice(1, -1)}d*`])(name), false);
    }
  });

  it("costs at most one step for each position and character, for any glob", () => {
    const name = "a".repeat(253);
    for (const glob of [`${"*a".repeat(120)}*b*`, `*${"a".repeat(120)}b*`, `*${"?".repeat(120)}b*`]) {
      const effort = { left: 0 };
      assert.equal(nameMatcher([glob])(name, effort), false);
      assert.ok(effort.left >= -1 - 253 * Math.ceil(253 / 32), `${effort.left}`);
    }
  });

  it("is decided by its prefix and suffix if it has nothing else", () => {
    const effort = { left: 0 };
    const matches = nameMatcher(["team-*", "*-prod", "a*z"]);
    for (const [name, expected] of [
      ["team-a", true],
      ["a-prod", true],
      ["az", true],
      ["a", false],
      ["prod", false],
    ] as const)
      assert.equal(matches(name, effort), expected, name);
    assert.ok(effort.left >= -15, `${effort.left}`);
  });
});
