/** The first third of the samples, and the list of all. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { folders, testSamples } from "./samples.ts";

testSamples(1, 3);

describe("the list of samples", () => {
  it("links to every folder", async () => {
    const list = await readFile(join(import.meta.dirname, "..", "..", "samples", "README.md"), "utf8");
    const linked = [...list.matchAll(/\]\(([a-z-]+)\/README\.md\)/g)].map(([, folder]) => folder);
    assert.deepEqual(linked.toSorted(), folders.toSorted());
  });
});
