/** Text output fits the terminal, and can't control it. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ageOf, fold, plain, section, table, WIDTH } from "../../../src/explain/text.ts";

describe("the text for people", () => {
  it("aligns columns with their heads, and omits empty columns", () => {
    assert.deepEqual(
      table(
        ["NAME", "STEP", "STATE"],
        [
          ["a", "", "Done"],
          ["longer", "", "Waiting"],
        ],
      ),
      ["NAME    STATE", "a       Done", "longer  Waiting"],
    );
  });

  it("wraps the widest column without losing text", () => {
    const message = Array.from({ length: 60 }, (_, n) => `word${n}`).join(" ");
    const lines = table(["NAME", "MESSAGE"], [["x", message]]);
    assert.ok(lines.length > 3, lines.join("\n"));
    assert.deepEqual(
      lines
        .slice(1)
        .map((line) => line.slice(6))
        .join(" "),
      message,
    );
  });

  it("is never wider than the terminal, whatever it contains", () => {
    const cell = fc.string({ unit: "binary-ascii", maxLength: 300 });
    const rows = fc.array(fc.tuple(cell, cell, cell, cell), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(rows, (cells) => {
        const lines = section("HEAD", table(["A", "B", "C", "D"], cells));
        assert.ok(lines.every((line) => line.length <= WIDTH));
        assert.ok(lines.every((line) => plain(line) === line));
      }),
    );
  });

  it("wraps between words, and within a word that is too long", () => {
    assert.deepEqual(fold("one two three", 8), ["one two", "three"]);
    assert.deepEqual(fold("onetwothree", 8), ["onetwoth", "ree"]);
    assert.deepEqual(fold("short"), ["short"]);
  });

  it("has no control character of a terminal", () => {
    assert.equal(plain("a\u001b[2Jb\u202ec\nd\u009be"), "a [2Jb c d e");
  });

  it("prints an age in one unit, and nothing for an invalid time", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    const ages = { "2026-01-01T23:59:15Z": "45s", "2026-01-01T23:50:00Z": "10m", "2026-01-01T12:00:00Z": "12h" };
    for (const [time, age] of Object.entries(ages)) assert.equal(ageOf(time, now), age);
    assert.equal(ageOf("2025-12-01T00:00:00Z", now), "32d");
    assert.equal(ageOf("2026-01-03T00:00:00Z", now), "0s");
    assert.equal(ageOf(undefined, now), "");
  });
});
