/** Shows that each test in the table of docs/reference/attacks.md ran in this run, and passed. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { readResults } from "./results.ts";

const root = join(import.meta.dirname, "..", "..");

interface Named {
  file: string;
  /** The parts of its full title in the table, in order. */
  parts: string[];
}

/** The tests of a cell: `file: "a part", "another test"; other: "a test"`, where … matches anything. */
function namedIn(cell: string): Named[] {
  return cell.split(/; (?=[a-z-]+: ")/).flatMap((each) => {
    const [file = "", names = ""] = each.split(/: (?=")/);
    return [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => ({
      file,
      parts: name.split("…").map((part) => part.trim()),
    }));
  });
}

describe("the attacks in docs/reference/attacks.md", () => {
  it("each have a test that passed", async () => {
    const results = await readResults();
    const ran = Map.groupBy(results, ({ file }) => basename(file, ".test.ts"));
    const page = await readFile(join(root, "docs", "reference", "attacks.md"), "utf8");
    const rows = page.split("\n").filter((line) => line.startsWith("| ") && !/^\| (attack|-+) \|/.test(line));
    assert.ok(rows.length > 30);
    const missing = rows.flatMap((row) => {
      const [attack = "", , cell = ""] = row.slice(2).split(" | ");
      const named = namedIn(cell);
      if (named.length === 0) return [`${attack}: no test`];
      return named.flatMap(({ file, parts }) => {
        const tests = ran.get(file)?.flatMap((each) => each.tests) ?? [];
        const found = tests.some(
          ({ title, state }) => state === "passed" && parts.every((part) => title.includes(part)),
        );
        return found ? [] : [`${attack}: no test of ${file} that passed is called ${parts.join("…")}`];
      });
    });
    assert.deepEqual(missing, []);
  });
});
