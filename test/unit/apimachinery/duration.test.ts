/** Which texts are durations, and how long they are. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseDuration } from "../../../src/apimachinery/duration.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";

/**
 * A duration as Go prints it: whole hours and minutes, seconds with a fraction; below a second, in the greatest unit
 * that fits.
 */
function printed(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 1_000) return `${ms}ms`;
  const seconds = `${(ms % 60_000) / 1_000}s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

describe("a duration", () => {
  const durations: [text: string, ms: number][] = [
    ["0", 0],
    ["0s", 0],
    ["5s", 5_000],
    ["500ms", 500],
    ["10m", 600_000],
    ["1m500ms", 60_500],
    ["1h30m", 5_400_000],
    ["30m1h", 5_400_000],
    ["1.5h", 5_400_000],
    [".5s", 500],
    ["1.s", 1_000],
    ["1500us", 2],
    ["1500µs", 2],
    ["2000000ns", 2],
    ["0.1s", 100],
    ["8760h", 31_536_000_000],
  ];
  for (const [text, ms] of durations) it(`may be ${text}`, () => assert.equal(parseDuration(text), ms));

  const none = [
    "",
    " ",
    "5",
    "s",
    "5 s",
    "5s ",
    "-5s",
    "+5s",
    "5S",
    "1d",
    "1w",
    "1h30",
    "PT5M",
    "1e3s",
    "0x5s",
    "5,5s",
    ".s",
    "1..5s",
  ];
  for (const text of [...none, "constructor", "1h\n", "3000000h", `${"9".repeat(400)}h`]) {
    it(`may not be ${JSON.stringify(text.slice(0, 20))}`, () => {
      assert.throws(
        () => parseDuration(text, "rollout.timeout"),
        (error) => {
          assert.ok(error instanceof Problem && error.reason === "InvalidBinding");
          assert.equal(
            error.message,
            `rollout.timeout: ${JSON.stringify(text)} is not a duration; write, for example, 45s, 10m or 1h30m`,
          );
          return true;
        },
      );
    });
  }

  it("reads what Go prints", () => {
    fc.assert(
      fc.property(fc.oneof(fc.nat(100_000), fc.nat(2 ** 40)), (ms) => assert.equal(parseDuration(printed(ms)), ms)),
    );
  });

  it("takes time in proportion to its length, for any text", () => {
    const began = performance.now();
    assert.throws(() => parseDuration(`${"1".repeat(100_000)}x`));
    assert.throws(() => parseDuration(`${"1s".repeat(50_000)}x`));
    assert.ok(performance.now() - began < 500, `${performance.now() - began} ms`);
  });
});
