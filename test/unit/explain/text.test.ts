/** Text output fits the terminal, and can't control it. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { plain } from "../../../src/apimachinery/plain.ts";
import { ageOf, fold, layOut, type Part, paragraph, section, table } from "../../../src/explain/text.ts";

const WIDTH = 120;
const wide = (parts: Part[]) => layOut(parts, WIDTH);

describe("the text for people", () => {
  it("aligns columns with their heads, and omits empty columns", () => {
    assert.deepEqual(
      wide(
        table(
          ["NAME", "STEP", "STATE"],
          [
            ["a", "", "Done"],
            ["longer", "", "Waiting"],
          ],
        ),
      ),
      ["NAME    STATE", "a       Done", "longer  Waiting"],
    );
  });

  it("wraps the widest column without losing text", () => {
    const message = Array.from({ length: 60 }, (_, n) => `word${n}`).join(" ");
    const lines = wide(table(["NAME", "MESSAGE"], [["x", message]]));
    assert.ok(lines.length > 3, lines.join("\n"));
    assert.deepEqual(
      lines
        .slice(1)
        .map((line) => line.slice(6))
        .join(" "),
      message,
    );
  });

  it("is never wider than the terminal, for any content, and wraps nothing without a terminal", () => {
    const cell = fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 300 });
    const rows = fc.array(fc.tuple(cell, cell, cell, cell, cell, cell), { minLength: 1, maxLength: 5 });
    const head = ["A", "B", "C", "MANAGERS", "E", "F"];
    fc.assert(
      fc.property(rows, fc.integer({ min: 40, max: 200 }), (cells, width) => {
        const parts = section("HEAD", [...table(head, cells), paragraph(cells.join(" "))]);
        const lines = layOut(parts, width);
        assert.ok(lines.every((line) => line.length <= width));
        assert.ok(lines.every((line) => plain(line) === line));
        // An empty line, the heading, the head, the rows, and the paragraph.
        assert.equal(layOut(parts, Number.POSITIVE_INFINITY).length, 3 + cells.length + 1);
      }),
    );
  });

  it("wraps between words, and within a word that is too long", () => {
    assert.deepEqual(fold("one two three", 8), ["one two", "three"]);
    assert.deepEqual(fold("onetwothree", 8), ["onetwoth", "ree"]);
    assert.deepEqual(fold("short", 8), ["short"]);
  });

  it("wraps a path or name after a separator", () => {
    assert.deepEqual(fold("spec.storage.accesskey", 16), ["spec.storage.", "accesskey"]);
    assert.deepEqual(fold("inlay/registry/harbor-s3", 16), ["inlay/registry/", "harbor-s3"]);
    assert.deepEqual(fold("a.verylongsegment", 12), ["a.verylongse", "gment"]);
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
