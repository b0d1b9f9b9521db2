/** That docs/troubleshooting.md has an entry for each reason that Inlay can report, and for no other. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { catalogue, type FixedBy } from "../../src/apimachinery/problem.ts";
import { EVENT_REASONS, fixedBy, STATE_REASONS } from "../../src/apimachinery/reasons.ts";

const PAGE = join(import.meta.dirname, "..", "..", "docs", "troubleshooting.md");
const REASONS = [...Object.keys(catalogue), ...STATE_REASONS, ...EVENT_REASONS];

describe("docs/troubleshooting.md", () => {
  it("has an entry for each reason, and no other entries", async () => {
    const headings = [...(await readFile(PAGE, "utf8")).matchAll(/^### (\w+)$/gm)].map(([, name]) => name);
    assert.deepEqual(headings.toSorted(), REASONS.toSorted());
  });

  it("lists the reasons that are Stalled at once, and the problems that never are", async () => {
    const [, section = ""] = (await readFile(PAGE, "utf8")).split("## Stalled objects");
    const listed = (start: string) => {
      const [, list = ""] = section.split(start);
      return (list.split("\n")[0]?.match(/\b[A-Z]\w+/g) ?? []).toSorted();
    };
    const problems = Object.keys(catalogue);
    const fixed = (by: FixedBy) => REASONS.filter((each) => fixedBy(each) === by).toSorted();
    assert.deepEqual(listed("**stalled at once**"), fixed("Edit"));
    assert.deepEqual(
      listed("**never stalled**"),
      fixed("Itself").filter((each) => problems.includes(each)),
    );
  });

  it("says for each reason what it means, how to check and how to fix it", async () => {
    const [, ...entries] = (await readFile(PAGE, "utf8")).split(/^### /m);
    const incomplete = entries.filter((entry) => !/\*\*Meaning\.\*\*.*\*\*Check\.\*\*.*\*\*Fix\.\*\*/s.test(entry));
    assert.deepEqual(
      incomplete.map((entry) => entry.split("\n")[0]),
      [],
    );
  });
});
