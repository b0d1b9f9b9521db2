/** The first third of the samples, and the list of all. */
import assert from "node:assert/strict";
import { foldersLinkedFrom } from "./pages.ts";
import { folders, testSamples } from "./samples.ts";

testSamples(1, 3);

describe("the list of samples", () => {
  it("links to every folder", async () => {
    assert.deepEqual((await foldersLinkedFrom("samples/README.md")).toSorted(), folders.toSorted());
  });
});
