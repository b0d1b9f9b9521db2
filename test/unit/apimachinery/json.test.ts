/** That JSON keeps every integer, and that equal values are told from others. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { integerOf, isInt64, parseJson, sameJson, stringifyJson } from "../../../src/apimachinery/json.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

describe("JSON", () => {
  it("keeps any int64, wherever it stands", () => {
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

  it("is what JSON.parse and JSON.stringify make of it in all else", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        const exact = parseJson(text);
        assert.ok(sameJson(exact, JSON.parse(text)), text);
        assert.equal(stringifyJson(exact), JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it("takes digits in a text for no number", () => {
    assert.deepEqual(parseJson('{"a":" 12345678901234567890","b":": 12345678901234567890"}'), {
      a: " 12345678901234567890",
      b: ": 12345678901234567890",
    });
  });

  it("is the same when it is written the same, whatever the order of keys", () => {
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
