/** Which rules of a schema are checked before a write, and the message about a broken one. */
import assert from "node:assert/strict";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { brokenRule as brokenWithin } from "../../../src/transform/schema-rules.ts";

const brokenRule = (schema: OpenApiSchema, value: JsonValue, left = 1_000_000) => brokenWithin(schema, value, { left });
const text = (rule: OpenApiSchema): OpenApiSchema => ({ type: "string", ...rule });
const integer = (rule: OpenApiSchema): OpenApiSchema => ({ type: "integer", ...rule });

describe("a rule of a schema", () => {
  const rules: [schema: OpenApiSchema, held: JsonValue[], broken: JsonValue[], says: string][] = [
    [{ enum: ["a", 1, null] }, ["a", 1, null], ["b", "1", 2], 'must be one of "a", 1, null'],
    [text({ pattern: "^a+$" }), ["a", "aa"], ["b", "ab", "a\n"], "must match the pattern ^a+$"],
    [text({ pattern: "b" }), ["abc"], ["ac"], "must match the pattern b"],
    [text({ pattern: "^[[:alpha:]]\\z" }), ["a"], ["1"], "must match"],
    [text({ pattern: "(?i)^é$" }), ["é", "É"], ["e"], "must match"],
    [text({ minLength: 2 }), ["ab", "😀😀"], ["a", "😀"], "must have at least 2 characters"],
    [text({ maxLength: 2 }), ["ab", "😀😀"], ["abc"], "must have at most 2 characters"],
    [integer({ minimum: 1 }), [1, 2n ** 62n], [0, -(2n ** 62n)], "must be at least 1"],
    [integer({ minimum: 1, exclusiveMinimum: true }), [2], [1], "must be more than 1"],
    [integer({ maximum: 9 }), [9], [10, 2n ** 62n], "must be at most 9"],
    [integer({ maximum: 9, exclusiveMaximum: true }), [8], [9], "must be less than 9"],
    [integer({ multipleOf: 5 }), [10, 5n * 2n ** 60n], [11, 5n * 2n ** 60n + 1n], "must be a multiple of 5"],
    [integer({ format: "int32" }), [2 ** 31 - 1, -(2 ** 31)], [2 ** 31, 2n ** 62n], "must be an integer of 32 bits"],
    [integer({ format: "int64" }), [2n ** 63n - 1n], [1e20], "must be an integer of 64 bits"],
    [{ type: "array", minItems: 1, maxItems: 2 }, [[1]], [[]], "must have at least 1 elements"],
    [{ type: "array", maxItems: 1, "x-kubernetes-list-type": "set" }, [[1, 2]], [], ""],
    [{ allOf: [{ minLength: 2 }, { maxLength: 3 }] }, ["ab"], ["a", "abcd"], "must have at"],
  ];
  for (const [schema, held, broken, says] of rules) {
    it(`${JSON.stringify(schema)} accepts some values and refuses others`, () => {
      for (const value of held) assert.equal(brokenRule(schema, value), undefined, String(value));
      for (const value of broken) assert.ok(brokenRule(schema, value)?.includes(says), String(value));
    });
  }

  it("takes little time for patterns and texts that are slow with backtracking", () => {
    const almost = `${"x".repeat(8 * 1024 - 2)}z`;
    for (const pattern of ["^(x+x+)+y$", "^(x|xx)+$", "^(x*)*y$", "^(.*)(.*)(.*)(.*)(.*)[yw]$"])
      assert.ok(brokenRule(text({ pattern }), almost)?.includes("must match"), pattern);
  });

  it("is left to the API server if it can't be checked here", () => {
    for (const pattern of ["(?=a)", "a{1001}", "("]) assert.equal(brokenRule(text({ pattern }), "b"), undefined);
    assert.equal(brokenRule(text({ pattern: "^a$" }), "b".repeat(200_000)), undefined);
    for (const pattern of ["(.{0,1000})".repeat(40), "a".repeat(2_000), "a?".repeat(2_000), "((a{10}){10}){10}{10}"])
      assert.equal(brokenRule(text({ pattern: `^${pattern}y$` }), "z"), undefined, pattern.slice(0, 30));
    assert.equal(brokenRule(text({ format: "email" }), "b"), undefined);
    assert.equal(brokenRule(text({ format: "made-up" }), "b"), undefined);
    for (const format of ["ipv4", "ipv6", "cidr"])
      assert.equal(brokenRule(text({ format }), `.:${"0".repeat(30_000)}x/8`), undefined);
  });

  it("is left to the API server when the effort of the target is used up", () => {
    const effort = { left: 3_000 };
    const broken = () => brokenWithin(text({ pattern: "^a$" }), "b", effort) !== undefined;
    assert.deepEqual([broken(), broken(), broken(), broken(), broken()], [true, true, true, false, false]);
  });

  const formats: [format: string, held: string[], broken: string[]][] = [
    ["byte", ["", "aGk=", "aGkh"], ["a", "aGk", "a b=", "aG-_"]],
    ["date", ["2024-02-29", "0001-01-01"], ["2023-02-29", "2024-2-9", "2024-13-01", "20240101"]],
    [
      "date-time",
      ["2024-02-29T00:00:00Z", "2024-02-29t23:59:59.123+02:00"],
      ["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29T00:00:00", "2024-02-29 00:00:00Z"],
    ],
    ["ipv4", ["10.0.0.1", "010.0.0.1", "::ffff:10.0.0.1"], ["10.0.0", "10.0.0.256", "::1", "a.b.c.d"]],
    ["ipv6", ["::1", "fe80::1", "::ffff:10.0.0.1"], ["10.0.0.1", "fe80::1%eth0", ":::"]],
    ["cidr", ["10.0.0.0/8", "fd00::/8"], ["10.0.0.0", "10.0.0.0/33", "fd00::/129", "x/8"]],
    ["mac", ["00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301"], ["00:00", "00:00:5e:00:53:0g"].slice(1)],
    ["hexcolor", ["#fff", "A0B1C2"], ["#ff", "red"]],
    ["uri", ["https://a/b?c", "/a", "urn:x:y"], ["a", "a/b", "https://a\n", ""]],
    ["uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["123e4567"]],
    ["uuid4", ["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]],
    ["password", ["anything"], []],
  ];
  for (const [format, held, broken] of formats) {
    it(`checks the format ${format}`, () => {
      for (const value of held) assert.equal(brokenRule(text({ format }), value), undefined, value);
      for (const value of broken) {
        assert.equal(brokenRule(text({ format }), value), `must be of the format ${format}`, value);
      }
    });
  }
});
