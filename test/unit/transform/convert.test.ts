/** Conversions of values with `as`, and that errors quote no value. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJson, sameJson, stringifyJson } from "../../../src/apimachinery/json.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { type As, convert } from "../../../src/transform/convert.ts";

const of = (value: Uint8Array | JsonValue, as?: As) => convert(value, as, "the value");
const bytes = (text: string) => Buffer.from(text);

function fails(value: Uint8Array | JsonValue, as: As, reason: Problem["reason"] = "InvalidValue"): void {
  assert.throws(
    () => of(value, as),
    (problem: Problem) => {
      assert.equal(problem.reason, reason, String(value));
      assert.ok(problem.message.startsWith("the value "), problem.message);
      if (String(value).length > 8) assert.ok(!problem.message.includes(String(value)), problem.message);
      return true;
    },
  );
}

describe("a value", () => {
  it("of a key is exact text unless `as` converts it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        assert.equal(of(bytes(text)), text);
        assert.equal(of(bytes(text), "string"), text);
      }),
    );
    fails(Uint8Array.of(0xff), "string", "NotUtf8");
  });

  it("of an object or a pointer keeps its type, and becomes text with as: string", () => {
    for (const value of [1, 2n ** 62n, true, "a", { a: [1] }]) assert.deepEqual(of(value), value);
    assert.equal(of(2n ** 62n, "string"), "4611686018427387904");
    assert.equal(of(0.5, "string"), "0.5");
    for (const value of [{ a: 1 }, [1], null]) fails(value, "string");
  });

  it("becomes any int64 exactly", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        for (const as of ["integer", "number"] as const) {
          const made = convert(bytes(`${value}`), as, "the value");
          assert.equal(stringifyJson(made), `${value}`);
          assert.ok(sameJson(convert(made, as, "the value"), made));
        }
      }),
    );
    assert.ok(Object.is(of(bytes("-0"), "integer"), 0));
  });

  it("is no integer in any other form", () => {
    const past = ["9223372036854775808", "-9223372036854775809", "1".repeat(500)];
    for (const text of ["", " 1", "1\n", "+1", "01", "1.0", "1e3", "0x10", "١", "NaN", "true", ...past]) {
      fails(bytes(text), "integer");
    }
    for (const value of [0.5, 1e300, true, null, [1], 2n ** 64n]) fails(value, "integer");
  });

  it("becomes any number that a double can represent", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const made = of(bytes(JSON.stringify(value)), "number");
        assert.equal(Number(made), value === 0 ? 0 : value);
        assert.ok(sameJson(parseJson(stringifyJson(made)), made));
      }),
    );
    for (const text of ["1e400", "-1e400", "NaN", "Infinity", "1.", ".5", "0x1", "1_000", " 1", ""]) {
      fails(bytes(text), "number");
    }
  });

  it("becomes true or false only from these words", () => {
    assert.equal(of(bytes("true"), "boolean"), true);
    assert.equal(of(bytes("false"), "boolean"), false);
    for (const text of ["True", "yes", "1", "", "true\n"]) fails(bytes(text), "boolean");
    fails(1, "boolean");
  });

  it("becomes base64, from bytes or text", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (some) => {
        assert.deepEqual(Uint8Array.from(Buffer.from(of(some, "bytes") as string, "base64")), some);
      }),
    );
    assert.equal(of("héllo", "bytes"), Buffer.from("héllo").toString("base64"));
    fails({ a: 1 }, "bytes");
  });

  it("becomes any JSON, from JSON and from YAML", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        if (value === null) return;
        const text = JSON.stringify(value);
        for (const as of ["json", "yaml"] as const) {
          assert.ok(sameJson(convert(bytes(text), as, "the value"), JSON.parse(text)), `${as} ${text}`);
        }
      }),
    );
  });

  it("is no JSON if it is broken, null or half a character", () => {
    for (const text of ["", "{", "null", '{"a":1e400}', '"\\ud800"', "9223372036854775808", "[".repeat(100_000)]) {
      fails(bytes(text), "json");
    }
    fails(bytes(`${"[".repeat(200)}${"]".repeat(200)}`), "json");
  });
});
