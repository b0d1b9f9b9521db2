/** Which values are remembered by a text. */
import assert from "node:assert/strict";
import { Remembered } from "../../../src/apimachinery/maps.ts";

describe("a remembered value", () => {
  const computed: string[] = [];
  const known = new Remembered<number | undefined>();
  const lengthOf = (text: string) =>
    known.get(text, () => {
      computed.push(text);
      return text === "" ? undefined : text.length;
    });

  it("is computed once, also if there is none", () => {
    assert.deepEqual(["a", "a", "", ""].map(lengthOf), [1, 1, undefined, undefined]);
    assert.deepEqual(computed.splice(0), ["a", ""]);
  });

  it("is forgotten when a few hundred others are newer, and is not kept for a long text", () => {
    for (let n = 0; n < 256; n++) lengthOf(`${n}`);
    computed.splice(0);
    for (const text of ["255", "a", "x".repeat(300), "x".repeat(300)]) lengthOf(text);
    assert.deepEqual(computed, ["a", "x".repeat(300), "x".repeat(300)]);
  });
});
