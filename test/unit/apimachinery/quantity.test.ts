/** Which quantities are equal. */
import assert from "node:assert/strict";
import { isSameQuantity } from "../../../src/apimachinery/quantity.ts";

const equal: [string, string][] = [
  ["0.5", "500m"],
  [".5", "0.50"],
  ["1024Mi", "1Gi"],
  ["1.5Gi", "1536Mi"],
  ["1Ki", "1024"],
  ["1e3", "1k"],
  ["1E", "1000P"],
  ["1E3", "+1000."],
  ["-0.1", "-100m"],
  ["0", "-0"],
  // Rounded up to billionths.
  ["0.0000000001", "1n"],
  ["9007199254740993", "9007199254740993000m"],
];
const different: [string, string][] = [
  ["500m", "501m"],
  ["1", "-1"],
  ["1Gi", "1G"],
  ["9007199254740993", "9007199254740992"],
  // Not quantities, although their texts are equal.
  ["", ""],
  ["half", "half"],
  ["1ki", "1ki"],
  ["1e", "1e"],
  ["1e999", "1e999"],
  ["0x10", "16"],
];

describe("quantities", () => {
  for (const [a, b] of equal)
    it(`${a} and ${b} are equal`, () => assert.deepEqual([isSameQuantity(a, b), isSameQuantity(b, a)], [true, true]));
  for (const [a, b] of different)
    it(`${JSON.stringify(a)} and ${b} are not equal`, () => assert.equal(isSameQuantity(a, b), false));
  it("are limited in length", () => assert.equal(isSameQuantity("1".repeat(65), "1".repeat(65)), false));
});
