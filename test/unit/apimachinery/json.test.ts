/** JSON keeps every integer, and equal values compare as equal. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  integerOf,
  isInt64,
  isTooDeep,
  MAX_LEVELS,
  nestsDeeper,
  parseJson,
  sameJson,
  stringifyJson,
} from "../../../src/apimachinery/json.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

describe("JSON", () => {
  it("keeps any int64, at any position", () => {
    fc.assert(
      fc.property(int64, (value) => {
        for (const text of [`${value}`, `[${value}]`, `{"a":${value}}`, `{"a": ${value}, "b": [1,${value}]}`]) {
          const parsed = parseJson(text);
          assert.equal(stringifyJson(parsed), text.replaceAll(" ", ""));
          assert.ok(sameJson(parsed, parseJson(text)));
        }
        assert.equal(parseJson(`${value}`), integerOf(value));
      }),
    );
  });

  it("equals the result of JSON.parse and JSON.stringify otherwise", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        const exact = parseJson(text);
        assert.ok(sameJson(exact, JSON.parse(text)), text);
        assert.equal(stringifyJson(exact), JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it("loses values with too many levels, and nothing else", () => {
    const nested = (levels: number, inside: string) =>
      `${'{"a":['.repeat(levels / 2)}${inside}${"]}".repeat(levels / 2)}`;
    const beside = String.raw`"[{\":[[":["\\"],"n":9007199254740993`;
    for (const inside of ["1", '"]}"', "9007199254740993"]) {
      const text = (levels: number) => `{${beside},"deep":${nested(levels, inside)},"after":[{}]}`;
      const most = parseJson(text(MAX_LEVELS - 2));
      assert.ok(!isTooDeep(text(MAX_LEVELS - 2)) && isTooDeep(text(MAX_LEVELS)));
      assert.equal(stringifyJson(most), text(MAX_LEVELS - 2));
      for (const levels of [MAX_LEVELS, 9_000]) {
        const { deep, ...rest } = parseJson(text(levels)) as Record<string, JsonValue>;
        assert.equal(stringifyJson(rest), `{${beside},"after":[{}]}`);
        assert.ok(nestsDeeper(deep, MAX_LEVELS - 2) && !nestsDeeper(deep, MAX_LEVELS - 1));
      }
    }
    for (const text of ["[".repeat(1_000), '{"a":"'.repeat(500), `"${"\\".repeat(999)}`])
      assert.throws(() => parseJson(text), SyntaxError);
  });

  it("treats digits in a string as a string", () => {
    assert.deepEqual(parseJson('{"a":" 12345678901234567890","b":": 12345678901234567890"}'), {
      a: " 12345678901234567890",
      b: ": 12345678901234567890",
    });
  });

  it("is equal for equal text, in any order of keys", () => {
    const same: [JsonValue, JsonValue][] = [
      [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ],
      [0, -0],
      [2 ** 60, 1152921504606847000n],
      [1e20, parseJson("100000000000000000000")],
      [null, null],
    ];
    for (const [a, b] of same) assert.ok(sameJson(a, b), stringifyJson([a, b]));
    const other: [unknown, unknown][] = [
      [9007199254740993n, 9007199254740992],
      [9223372036854775807n, 9223372036854775806n],
      [1, "1"],
      [1n, "1"],
      [null, {}],
      [[], {}],
      [{ a: 1 }, { b: 1 }],
      [{ a: 1 }, { a: 1, b: 1 }],
      [undefined, null],
      [{ toString: 1 }, {}],
    ];
    for (const [a, b] of other) assert.ok(!sameJson(a, b) && !sameJson(b, a));
  });

  it("has integers of 64 bits", () => {
    for (const value of [2n ** 63n - 1n, -(2n ** 63n), 0n]) assert.ok(isInt64(value));
    for (const value of [2n ** 63n, -(2n ** 63n) - 1n]) assert.ok(!isInt64(value));
  });
});
