/** Text that is parsed in parts has the same value as text that is parsed at once. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJson, sameJson } from "../../../src/apimachinery/json.ts";
import { endOfValue, parseInParts, startOfValue } from "../../../src/apimachinery/json-text.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";

const PART = 32 * 1024;

function inParts(text: string): { value: JsonValue; steps: number } {
  const parsing = parseInParts(text);
  let steps = 0;
  for (let step = parsing.next(); ; step = parsing.next()) {
    if (step.done) return { value: step.value, steps };
    steps++;
  }
}

/** Any JSON, and long integers, in which some strings are so long that the text is parsed in parts. */
const anyValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.string({ unit: "binary" }),
    fc.constantFrom("x".repeat(PART), '\\"{[]},:'.repeat(PART / 8), 9007199254740993n, -1, 1e300, true, null),
    fc.array(tie("value")),
    fc.dictionary(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("__proto__", '\\"', "1")), tie("value")),
  ),
})).value;

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };
const print = (value: unknown, indent?: number) =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawJSON(String(each)) : each), indent);

describe("the text of JSON", () => {
  it("has the same value if it is parsed in parts, with its keys in the same order", () => {
    fc.assert(
      fc.property(anyValue, fc.constantFrom(0, 2), (value, indent) => {
        const text = print(value, indent);
        const parsed = inParts(text).value;
        assert.ok(sameJson(parsed, parseJson(text)));
        assert.equal(print(parsed), print(parseJson(text)));
      }),
    );
  });

  it("is parsed in small steps, whatever the shape of a large value", () => {
    const values = [
      Array.from({ length: 6_000 }, (_, n) => ({ [`k${n}`]: "" })),
      Object.fromEntries(Array.from({ length: 6_000 }, (_, n) => [`k${n}`, ""])),
      { a: { b: [[Array.from({ length: 100_000 }, () => 0)]] } },
    ];
    for (const value of values) {
      const text = JSON.stringify(value);
      const { value: parsed, steps } = inParts(text);
      assert.equal(JSON.stringify(parsed), text);
      assert.ok(steps >= text.length / PART, `${steps} steps`);
    }
  });

  it("that is cut or continues after its end is not JSON", () => {
    const text = JSON.stringify({ a: Array.from({ length: 10_000 }, () => "value") });
    for (const broken of [text.slice(0, -1), text.slice(0, -2), text.slice(0, PART + 9), `${text}}`, `${text} 1`])
      assert.throws(() => inParts(broken), SyntaxError);
  });

  it("contains values from their start to their end, with any spaces", () => {
    fc.assert(
      fc.property(anyValue, fc.constantFrom("", " ", "\n\t"), (value, space) => {
        const text = `${space}${print(value)}`;
        const start = startOfValue(text);
        for (const after of [`${space},`, `${space}]`, `${space}}`, ""])
          assert.equal(endOfValue(`${text}${after}`, start), text.length);
      }),
    );
  });
});
