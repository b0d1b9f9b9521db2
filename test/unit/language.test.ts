import assert from "node:assert/strict";
import { refusedWords } from "../../lint/language.ts";

describe("the check of words", () => {
  it("reports each refused word with its line and a replacement", () => {
    assert.deepEqual(refusedWords("docs/a.md", "Good.\nWhoever reads it fixes it.\n"), [
      'docs/a.md:2: "Whoever". Write a user who, or you.',
    ]);
  });

  it("accepts these letters inside of other words", () => {
    assert.deepEqual(refusedWords("src/a.ts", "const toldAt = history; // standby, stand-in, this, the whole"), []);
  });
});
