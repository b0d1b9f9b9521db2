/** Converts Go's values for the oracle, with the types that JSON does not have; and generates random values. */
import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../../../src/apimachinery/objects.ts";
import { bytesOf, type GoValue, textOf } from "../../../../src/composition/patches/go/value.ts";
import { ask } from "../../../oracle/oracle.ts";

/** Go's result; undefined if it refuses. */
export async function askGo(op: string, input: JsonObject): Promise<GoValue | undefined> {
  const { result } = await ask(`value.${op}`, input);
  return result === undefined ? undefined : untag(result as JsonObject);
}

export function tag(value: GoValue): JsonValue {
  if (value === null) return { null: true };
  if (typeof value === "string") return { string: bytesOf(value).toString("base64") };
  if (typeof value === "bigint") return { int64: String(value) };
  if (typeof value === "number") return { float64: Object.is(value, -0) ? "-0" : String(value) };
  if (typeof value === "boolean") return { bool: value };
  if (Array.isArray(value)) return { list: value.map(tag) };
  return { object: Object.fromEntries(Object.entries(value).map(([key, each]) => [key, tag(each)])) };
}

function untag(tagged: JsonObject): GoValue {
  const [[type, value] = []] = Object.entries(tagged);
  switch (type) {
    case "null":
      return null;
    case "string":
      return textOf(Buffer.from(value as string, "base64"));
    case "int64":
      return BigInt(value as string);
    case "float64":
      return Number((value as string).replace("Inf", "Infinity"));
    case "bool":
      return value as boolean;
    case "list":
      return (value as JsonObject[]).map(untag);
    default:
      return Object.fromEntries(
        Object.entries(value as JsonObject).map(([key, each]) => [key, untag(each as JsonObject)]),
      );
  }
}

/** Characters whose other case came with Unicode 16 and 17. Node knows it, and Go 1.26 has the tables of Unicode 15. */
export const NEW_CASES =
  /[\u019b\u0264\u1c89\u1c8a\ua7cb-\ua7cf\ua7d2-\ua7d5\ua7da-\ua7dc\u{10d50}-\u{10d65}\u{10d70}-\u{10d85}\u{16ea0}-\u{16eb8}\u{16ebb}-\u{16ed3}]/gu;

/** Without `!` and parentheses, which mark errors in Go's output, and without those characters. */
const comparable = (text: string): string => text.replace(/[!()]/g, "x").replace(NEW_CASES, "x");

const character = fc.oneof(
  fc.constantFrom(..."abzAZ019 \"'`\\<>&%\t\n\r\0\u001f\u007f\u0085é\u00a0ßÅŉǰΣσᾳᾼİı€\u2028\ufeff\ufffd日😀\ue000"),
  fc.integer({ min: 0x20, max: 0x24f }).map((code) => String.fromCodePoint(code)),
);
export const plainText = fc.string({ unit: character, maxLength: 12 }).map(comparable);

/**
 * The key of an object, but never a single backslash: after an object with that key, Node's JSON.parse now and then returns
 * it instead of a key that is another single escaped character, such as `"\u003c"`
 * (https://github.com/nodejs/node/issues/63785).
 */
export const key = plainText.filter((each) => each !== "\\");

/** Bytes that may not be UTF-8. */
const rawText = fc.uint8Array({ maxLength: 8 }).map((bytes) => comparable(textOf(bytes)));
export const text = fc.oneof({ weight: 3, arbitrary: plainText }, { weight: 1, arbitrary: rawText });

export const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -300n, max: 300n }),
  fc.integer({ min: 0x20, max: 0x24f }).map(BigInt),
  fc.constantFrom(0n, 1n, 0xd800n, 0x10ffffn, 0x110000n, -1n),
);
export const float64 = fc.oneof(
  fc.double(),
  fc.integer({ min: -1_000_000, max: 1_000_000 }).map((whole) => whole / 8),
  fc.constantFrom(
    0,
    -0,
    1,
    0.5,
    1.5,
    2.5,
    1e6,
    1e20,
    1e21,
    1e22,
    123456789,
    1e-4,
    1e-5,
    5e-324,
    Number.MAX_VALUE,
    NaN,
    Infinity,
    -Infinity,
  ),
  fc.constantFrom(9.995, 99.95, 0.05, 0.25, 999999.5, 9.5),
);
export const scalar: fc.Arbitrary<GoValue> = fc.oneof(text, int64, float64, fc.boolean(), fc.constant(null));

const { any } = fc.letrec<{ any: GoValue }>((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.array(tie("any"), { maxLength: 3 }),
    fc.dictionary(key, tie("any"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
export const value = any;

/** A finite number, as in JSON. */
export const jsonValue = value.filter(isJson);

function isJson(each: GoValue): boolean {
  if (typeof each === "number") return Number.isFinite(each);
  return typeof each !== "object" || each === null || Object.values(each).every(isJson);
}
