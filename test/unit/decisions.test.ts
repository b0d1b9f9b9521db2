/** Checks the form of the decision records: each has a number, a status, a date and the four sections, and the index lists it. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "docs", "decisions");
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const SECTIONS = ["Context", "Decision", "Alternatives", "Consequences"];
const HEAD =
  /^# (\d{4}) (\S.*\S)\n\nStatus: (accepted|superseded by \[\d{4}\])[^\n]*\.\n\nDate: 20\d\d-\d\d-\d\d\.\n\n## /;

describe("the decision records", () => {
  const names = readdirSync(folder).filter((name) => name !== "README.md");
  const records = names.map((name) => ({ name, text: read(name) }));

  it("begin with their number, status and date", () => {
    assert.ok(records.length > 60, `${records.length} records`);
    for (const { name, text } of records) assert.equal(HEAD.exec(text)?.[1], name.slice(0, 4), name);
  });

  it("have the four sections in order, each with a text", () => {
    for (const { name, text } of records) {
      const [, ...sections] = text.split(/^## /m);
      const titles = sections.map((section) => section.split("\n")[0]);
      assert.deepEqual(titles, SECTIONS, name);
      for (const section of sections) assert.match(section, /^\w+\n\n\S/, name);
    }
  });

  it("are numbered without a gap", () => {
    const numbers = names.map((name) => Number(name.slice(0, 4))).sort((a, b) => a - b);
    assert.deepEqual(
      numbers,
      numbers.map((_, at) => at + 1),
    );
  });

  it("are in the index with their titles, in order", () => {
    const rows = [...read("README.md").matchAll(/^\| (\d{4}) \| \[(.*)\]\((.*)\) \|$/gm)].map(([, ...row]) => row);
    const expected = [...records]
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, text }) => [name.slice(0, 4), HEAD.exec(text)?.[2], name]);
    assert.deepEqual(rows, expected);
  });
});
