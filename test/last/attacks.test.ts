/** The table of attacks in docs/security.md comes in; each test that it names was there, and passed. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Suite, Test } from "mocha";

const root = join(import.meta.dirname, "..", "..");

interface Named {
  file: string;
  /** The parts of its full title that the table gives, in order. */
  parts: string[];
}

/** The tests of a cell: `file: "a part", "another test"; other: "a test"`, where … stands for anything. */
function namedIn(cell: string): Named[] {
  return cell.split(/; (?=[a-z-]+: ")/).flatMap((each) => {
    const [file = "", names = ""] = each.split(/: (?=")/);
    return [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => ({
      file,
      parts: name.split("…").map((part) => part.trim()),
    }));
  });
}

const testsIn = (suite: Suite): Test[] => [...suite.tests, ...suite.suites.flatMap(testsIn)];

describe("the attacks in docs/security.md", () => {
  it("are each tried by a test that passed", async function () {
    let suite = this.test?.parent as Suite;
    while (suite.parent !== undefined) suite = suite.parent;
    const ran = Map.groupBy(testsIn(suite), ({ file = "" }) => basename(file, ".test.ts"));
    const page = await readFile(join(root, "docs", "security.md"), "utf8");
    const [, table = ""] = page.split("## Attacks\n");
    const rows =
      table
        .split("\n## ")[0]
        ?.split("\n")
        .filter((line) => line.startsWith("| "))
        .slice(2) ?? [];
    assert.ok(rows.length > 30);
    const missing = rows.flatMap((row) => {
      const [attack = "", , cell = ""] = row.slice(2).split(" | ");
      const named = namedIn(cell);
      if (named.length === 0) return [`${attack}: no test`];
      return named.flatMap(({ file, parts }) => {
        const where = ["integration", "last"].map((folder) => join(root, "test", folder, `${file}.test.ts`));
        if (!where.some(existsSync)) return [`${attack}: no file ${file}`];
        // A part of the tests alone says nothing of the others.
        const tests = ran.get(file);
        if (tests === undefined) return [];
        const found = tests.some(
          (test) => test.state !== "failed" && parts.every((part) => test.fullTitle().includes(part)),
        );
        return found ? [] : [`${attack}: no test of ${file} is called ${parts.join("…")}`];
      });
    });
    assert.deepEqual(missing, []);
  });
});
