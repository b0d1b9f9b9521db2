/** Conversions, hashes, base64, JSON and regular expressions of transforms give the results of Go's own packages. */

import assert from "node:assert/strict";
import fc from "fast-check";
import type { JsonObject } from "../../../../src/apimachinery/objects.ts";
import { attemptSync, Problem } from "../../../../src/apimachinery/problem.ts";
import type { GoValue } from "../../../../src/composition/patches/go/value.ts";
import { Options } from "../../../../src/composition/patches/options.ts";
import { compileString, type Step } from "../../../../src/composition/patches/string-transforms.ts";
import { compileConvert } from "../../../../src/composition/patches/transforms.ts";
import { Work } from "../../../../src/composition/patches/work.ts";
import { useOracle } from "../../../oracle/oracle.ts";
import { askGo, jsonValue, key, NEW_CASES, plainText, scalar, tag, text, value } from "./go-values.ts";

interface Case {
  op: string;
  /** The request to the oracle, besides the value. */
  asked: JsonObject;
  step: Step;
  value: GoValue;
}

/** Whether both convert a value to the same, or both refuse it. */
async function assertSame({ op, asked, step, value }: Case): Promise<void> {
  const [theirs, ours] = [await askGo(op, asked), attemptSync(() => step.apply(value, new Work()))];
  const said = `${op} ${JSON.stringify(asked)} of ${JSON.stringify(tag(value))}`;
  assert.deepEqual(
    ours instanceof Problem ? "refused" : tag(ours),
    theirs === undefined ? "refused" : tag(theirs),
    said,
  );
}

const check = (one: fc.Arbitrary<Case>) =>
  fc.assert(
    fc.asyncProperty(fc.array(one, { minLength: 30, maxLength: 30 }), async (cases) => {
      await Promise.all(cases.map(assertSame));
    }),
    { includeErrorInReport: true },
  );

const converted = (of: fc.Arbitrary<GoValue>, toTypes: string[], formats: string[]) =>
  fc.record({ toType: fc.constantFrom(...toTypes), format: fc.constantFrom(...formats), value: of }).map(
    ({ toType, format, value }): Case => ({
      op: "convert",
      asked: { toType, format, value: tag(value) },
      step: compileConvert(new Options({ toType, format }, "convert")),
      value,
    }),
  );

const written = (of: fc.Arbitrary<GoValue>, convert: string): fc.Arbitrary<Case> =>
  of.map((value) => ({
    op: "text",
    asked: { convert, value: tag(value) },
    step: compileString(new Options({ type: "Convert", convert }, "string")),
    value,
  }));

const join = (...parts: fc.Arbitrary<string>[]) => fc.tuple(...parts).map((each) => each.join(""));
const sign = fc.constantFrom("", "", "+", "-");
const digits = fc.oneof(
  fc.nat({ max: 2000 }).map(String),
  fc.bigInt({ min: 0n, max: 10n ** 22n }).map(String),
  fc.constantFrom("", "0", "00", "007"),
);
const fraction = fc.oneof(
  fc.constant(""),
  digits.map((each) => `.${each}`),
);
const exponent = fc.constantFrom("", "", "e3", "E-7", "e+20", "e400", "e-400", "e", "p3", "p-1080", "P+1000", "_1");
const numeral = fc.oneof(
  join(sign, fc.constantFrom("", "", "0x", "0X", "0x_", "1_"), digits, fraction, exponent),
  fc.string({ unit: fc.constantFrom(..."0123456789abcdefx_.pPeE+-"), maxLength: 10 }),
  fc.constantFrom(
    "inf",
    "-Infinity",
    "+INF",
    "infi",
    "nan",
    "NaN",
    "+nan",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
  ),
  fc.constantFrom(
    "0x1.fffffffffffff8p0",
    "0x1.fffffffffffff7p1023",
    "0x1.fffffffffffff8p1023",
    "0x1p-1074",
    "0x1p-1075",
    "0x1.8p-1074",
    "0x3p-1075",
  ),
  fc.double().map((each) => each.toExponential(20)),
  fc.constantFrom("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False", "tRUE", " 1", "yes"),
);
const suffix = fc.oneof(
  fc.constantFrom(
    "",
    "n",
    "u",
    "m",
    "k",
    "K",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "i",
    "mi",
    "kk",
  ),
  fc.constantFrom(
    "e3",
    "E3",
    "e-3",
    "E+18",
    "e-12",
    "e-30",
    "e30",
    "e300",
    "e308",
    "e309",
    "e",
    "e3.",
    "e4294967296",
    "E-4294967299",
  ),
);
const quantity = fc.oneof(
  join(sign, digits, fraction, suffix),
  fc
    .string({ unit: fc.constantFrom(..."0123456789.+-eEinumkKMGTP"), maxLength: 6 })
    .filter((each) => !/e-?\d{4}/i.test(each)),
);

describe("a conversion", () => {
  before(useOracle);

  it("of a scalar to another type is Go's", async () => {
    // In Go, the result for a number that an int64 can't hold depends on the processor.
    const fits = (each: GoValue) => typeof each !== "number" || Math.abs(each) < 2 ** 63;
    await check(
      converted(scalar.filter(fits), ["string", "int", "int64", "bool", "float64"], ["none", "quantity", "json"]),
    );
  });

  it("of a text to a number or boolean is Go's", async () => {
    await check(converted(numeral, ["int64", "bool", "float64"], ["none"]));
  });

  it("of a quantity is that of apimachinery", async () => {
    await check(converted(quantity, ["float64"], ["quantity"]));
  });

  it("of JSON is Go's, except for whole numbers, which stay int64", async () => {
    // Crossplane converts every number to float64.
    const withoutNumbers = fc.letrec<{ any: unknown }>((tie) => ({
      any: fc.oneof(
        { depthSize: "small" },
        plainText,
        fc.boolean(),
        fc.constant(null),
        fc.double({ noInteger: true, noNaN: true, noDefaultInfinity: true }),
        fc.array(tie("any")),
        fc.dictionary(key, tie("any")),
      ),
    })).any;
    const json = fc
      .tuple(withoutNumbers, fc.constantFrom("", " ", ",", "}", "1"))
      .map(([each, more]) => JSON.stringify(each) + more);
    await check(converted(json, ["object", "array"], ["json"]));
  });
});

describe("a text of a value", () => {
  before(useOracle);

  it("in upper or lower case is Go's", async () => {
    await check(fc.oneof(written(plainText, "ToUpper"), written(plainText, "ToLower"), written(jsonValue, "ToUpper")));
  });

  it("has for each character Go's upper and lower case, except for cases that newer Unicode versions added", async () => {
    // Characters above these have no case.
    const all = Array.from({ length: 0x20000 }, (_, code) => code)
      .filter((code) => code < 0xd800 || code > 0xdfff)
      .map((code) => String.fromCodePoint(code))
      .join("")
      .replace(NEW_CASES, "x");
    for (const convert of ["ToUpper", "ToLower"]) {
      const step = compileString(new Options({ type: "Convert", convert }, "string"));
      const theirs = Array.from(String(await askGo("text", { convert, value: tag(all) })));
      const different = Array.from(String(step.apply(all, new Work()))).filter((ours, at) => ours !== theirs[at]);
      assert.deepEqual(different, []);
    }
  });

  it("as JSON is Go's", async () => {
    await check(written(value, "ToJson"));
  });

  it("as a hash is Go's, for strings and for the JSON of other values", async () => {
    const hashes = ["ToSha1", "ToSha256", "ToSha512", "ToAdler32"].map((each) => written(fc.oneof(text, value), each));
    await check(fc.oneof(...hashes));
  });

  it("as base64 and from base64 is Go's, for any bytes", async () => {
    const encoded = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString("base64"));
    const broken = fc.string({ unit: fc.constantFrom(..."AQgw=+/-_\n\r x"), maxLength: 9 });
    const inLines = fc
      .tuple(encoded, fc.nat({ max: 16 }))
      .map(([each, at]) => `${each.slice(0, at)}\r\n${each.slice(at)}`);
    await check(
      fc.oneof(written(fc.oneof(text, value), "ToBase64"), written(fc.oneof(encoded, broken, inLines), "FromBase64")),
    );
  });

  it("matched by a regular expression is Go's first match and its groups", async () => {
    const without = ["a*", "^b|c$", "(?i)[A-C]+", "(?:a|b)*?c", "\\bb", "(?s).+"].map((match) => ({ match, group: 0 }));
    const withTwo = ["(a|ab)(c|bcd)?", "(a)|(b)", "([^a]*)a([^a]*)"];
    const groups = withTwo.flatMap((match) => [0, 1, 2].map((group) => ({ match, group })));
    const given = fc.string({ unit: fc.constantFrom(..."abcdABC \né"), maxLength: 8 });
    const regexp = fc.tuple(fc.constantFrom(...without, ...groups), given).map(
      ([regexp, value]): Case => ({
        op: "regexp",
        asked: { ...regexp, text: value },
        step: compileString(new Options({ type: "Regexp", regexp }, "string")),
        value,
      }),
    );
    await check(regexp);
  });
});
