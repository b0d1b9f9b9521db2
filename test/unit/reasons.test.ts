/** That docs/troubleshooting.md has an entry for each reason that Inlay can report, and for no other. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { retryPolicies } from "../../src/apimachinery/problem.ts";
import { EVENT_REASONS, STATE_REASONS } from "../../src/apimachinery/reasons.ts";

const PAGE = join(import.meta.dirname, "..", "..", "docs", "troubleshooting.md");
const REASONS = [...Object.keys(retryPolicies), ...STATE_REASONS, ...EVENT_REASONS];

describe("docs/troubleshooting.md", () => {
  it("has an entry for each reason, and no other entries", async () => {
    const headings = [...(await readFile(PAGE, "utf8")).matchAll(/^### (\w+)$/gm)].map(([, name]) => name);
    assert.deepEqual(headings.toSorted(), REASONS.toSorted());
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
