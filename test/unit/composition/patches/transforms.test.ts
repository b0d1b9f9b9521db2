/** The results of chains of transforms, and the intended differences from Crossplane. */

import assert from "node:assert/strict";
import { stringifyJson } from "../../../../src/apimachinery/json.ts";
import type { JsonValue } from "../../../../src/apimachinery/objects.ts";
import { attemptSync, Problem } from "../../../../src/apimachinery/problem.ts";
import { compileTransforms } from "../../../../src/composition/patches/transforms.ts";
import { Work } from "../../../../src/composition/patches/work.ts";

const of = (value: JsonValue, ...transforms: unknown[]) =>
  compileTransforms(transforms, "here").apply(value, new Work());
const math = (options: object) => ({ type: "math", math: options });
const string = (options: object) => ({ type: "string", string: options });
const convert = (toType: string, format?: string) => ({
  type: "convert",
  convert: { toType, ...(format && { format }) },
});
const map = (pairs: object) => ({ type: "map", map: pairs });
const match = (options: object) => ({ type: "match", match: options });

/** Refused as a mistake of the value, by the transform at that place. */
function fails(value: JsonValue, ...transforms: unknown[]): void {
  const problem = attemptSync(() => of(value, ...transforms));
  assert.ok(problem instanceof Problem, `made ${JSON.stringify(problem)}`);
  assert.equal(problem.reason, "InvalidValue");
  assert.ok(problem.message.startsWith(`transforms[${transforms.length - 1}]: `), problem.message);
  if (typeof value === "string" && value.length > 4) assert.ok(!problem.message.includes(value), problem.message);
}

/** Refused as a mistake of the author, at a place below `here.transforms[0]`. */
function isMistake(transform: unknown, place: string): void {
  const problem = attemptSync(() => compileTransforms([transform], "here"));
  assert.ok(problem instanceof Problem, `no mistake: ${stringifyJson(transform)}`);
  assert.equal(problem.reason, "InvalidComposition");
  assert.ok(problem.message.startsWith(`here.transforms[0]${place}: `), problem.message);
}

describe("math", () => {
  it("multiplies whole numbers exactly, and numbers with a fraction as float64", () => {
    assert.equal(of(2 ** 40, math({ type: "Multiply", multiply: 1024 * 1024 })), 2n ** 60n);
    assert.equal(of(1.5, math({ multiply: 2 })), 3);
    assert.equal(of(2n ** 62n, math({ multiply: -2 })), -(2n ** 63n));
  });

  it("clamps by the whole part, and gives the bound as a whole number", () => {
    assert.equal(of(3.9, math({ type: "ClampMax", clampMax: 3 })), 3.9);
    assert.equal(of(4.1, math({ type: "ClampMax", clampMax: 3 })), 3);
    assert.equal(of(-5, math({ type: "ClampMin", clampMin: 0 })), 0);
    assert.equal(of(1e300, math({ type: "ClampMax", clampMax: 3 })), 3);
  });

  it("refuses other values than numbers, and a product of more than 64 bits", () => {
    for (const value of ["12345", true, null, [1], {}]) fails(value, math({ multiply: 1 }));
    fails(2n ** 62n, math({ multiply: 2 }));
  });
});

describe("map and match", () => {
  it("return any JSON, whose whole numbers stay int64", () => {
    const pairs = { eu: { zones: [1, 2n ** 60n] }, us: 5, none: null };
    assert.deepEqual(of("eu", map(pairs)), pairs.eu);
    assert.equal(of("us", map(pairs), string({ fmt: "%d" })), "5");
    assert.equal(of("none", map(pairs)), null);
    assert.equal(of("a", match({ patterns: [{ literal: "a", result: 5 }] }), string({ fmt: "%03d" })), "005");
    assert.deepEqual(of('[1, "a"]', convert("array", "json"), string({ fmt: "%#v" })), '[]interface {}{1, "a"}');
  });

  it("have only the listed keys", () => {
    for (const key of ["constructor", "__proto__", "secret"]) fails(key, map({ eu: 1 }));
    assert.equal(of("__proto__", map(JSON.parse('{"__proto__": "x"}'))), "x");
  });

  it("return the result of the first matching pattern; literal is the default", () => {
    const patterns = [
      { literal: "prod", result: 1 },
      { type: "regexp", regexp: "^pr.d", result: 2 },
      { type: "regexp", regexp: "od", result: 3 },
    ];
    assert.deepEqual(
      ["prod", "pro", "prxd2", "mood"].map((each) => of(each, match({ patterns }))),
      [1, null, 2, 3],
    );
    assert.equal(of("x", match({ patterns, fallbackTo: "Input" })), "x");
    assert.equal(of("x", match({ patterns, fallbackValue: "y" })), "y");
    assert.equal(of("x", match({ patterns, fallbackTo: "Input", fallbackValue: null })), "x");
  });

  it("accept only strings, even if only the fallback is left", () => {
    for (const value of [5, null, ["a"]]) {
      fails(value, map({ 5: 1 }));
      fails(value, match({ fallbackValue: "x" }));
    }
  });
});

describe("string", () => {
  it("formats, trims, joins and replaces", () => {
    assert.equal(of("a", string({ fmt: "%s-primary" })), "a-primary");
    assert.equal(of("pre-a-pre-", string({ type: "TrimPrefix", trim: "pre-" })), "a-pre-");
    assert.equal(of({ a: 1 }, string({ type: "TrimSuffix", trim: "]" })), "map[a:1");
    assert.equal(of([], string({ type: "Join", join: { separator: "," } })), "");
    assert.equal(of(["a", 1, null], string({ type: "Join", join: { separator: "," } })), "a,1,<nil>");
    assert.equal(of("a.b.c", string({ type: "Replace", replace: { search: ".", replace: "$&" } })), "a$&b$&c");
    assert.equal(of("v1.22", string({ type: "Regexp", regexp: { match: "v(\\d+)", group: 1 } })), "1");
  });

  it("removes the whole last separator", () => {
    assert.equal(of(["a", "b"], string({ type: "Join", join: { separator: ", " } })), "a, b");
  });

  it("keeps bytes that are not UTF-8 between transforms, and replaces them at the end", () => {
    const [decode, encode] = [
      string({ type: "Convert", convert: "FromBase64" }),
      string({ type: "Convert", convert: "ToBase64" }),
    ];
    assert.equal(of("/wD+8J+YgA==", decode, encode), "/wD+8J+YgA==");
    assert.equal(of("/wD+", decode), "\ufffd\0\ufffd");
  });

  it("refuses Go's format errors, invalid base64, strings without a match, and values that are not lists", () => {
    fails("hunter2", string({ fmt: "%d" }));
    for (const text of ["YQ", "YQ=", "Y Q=", "-_==", "YQ==YQ=="])
      fails(text, string({ type: "Convert", convert: "FromBase64" }));
    fails("hunter2", string({ type: "Regexp", regexp: { match: "x" } }));
    for (const value of ["hunter2", null, {}]) fails(value, string({ type: "Join", join: { separator: "" } }));
  });
});

describe("a chain of transforms", () => {
  it("distinguishes float64 from int64 until its end", () => {
    assert.equal(of("1e6", convert("float64"), string({ fmt: "%v" })), "1e+06");
    assert.equal(of(1_000_000, convert("float64"), string({ fmt: "%T" })), "float64");
    assert.equal(of(1_000_000, convert("float64"), convert("string")), "1000000");
    assert.equal(of(5, convert("float64")), 5);
    assert.equal(of("1e18", convert("float64")), 10n ** 18n);
    assert.equal(of("1.5Gi", convert("float64", "quantity")), 1610612736);
    assert.deepEqual(compileTransforms(undefined, "here").apply([1.5, "a"], new Work()), [1.5, "a"]);
  });

  it("never returns a number that JSON does not have", () => {
    for (const text of ["inf", "NaN"]) fails(text, convert("float64"), string({ type: "Convert", convert: "ToJson" }));
    assert.throws(() => of("inf", convert("float64")), { reason: "InvalidValue" });
    assert.equal(of("inf", convert("float64"), string({ fmt: "%v" })), "+Inf");
    fails(1e300, convert("int64"));
  });

  it("refuses to convert objects, lists and null, and JSON that is too deep", () => {
    for (const value of [null, [], {}]) fails(value, convert("string"));
    fails("[".repeat(300) + "]".repeat(300), convert("array", "json"));
    fails("hunter2", convert("object", "json"));
    assert.equal(of("null", convert("object", "json")), null);
  });

  it("limits the size of its strings, and the time of patterns", () => {
    const long = "a".repeat(2 ** 20);
    const replace = (by: string) => string({ type: "Replace", replace: { search: "a", replace: by } });
    assert.equal((of(long, replace("b")) as string).length, 2 ** 20);
    for (const grow of [
      replace("bb"),
      replace("é"),
      string({ fmt: "%sx" }),
      string({ type: "Convert", convert: "ToBase64" }),
    ])
      fails(long, grow);
    fails(new Array<string>(2 ** 20).fill("a"), string({ type: "Join", join: { separator: "," } }));
    fails(long, string({ type: "Regexp", regexp: { match: "(a?){50}b" } }));
    fails(long, match({ patterns: [{ type: "regexp", regexp: "(a?){50}b" }] }));
  });

  it("lists all texts in the composition", () => {
    const transforms = [
      map({ a: "one", b: { two: ["three", 4] } }),
      match({ patterns: [{ literal: "no", result: "five" }], fallbackValue: "six" }),
      string({ fmt: "%s-seven" }),
      string({ type: "Replace", replace: { search: "no", replace: "eight" } }),
      string({ type: "Join", join: { separator: "nine" } }),
      string({ type: "TrimPrefix", trim: "no" }),
    ];
    const { constants } = compileTransforms(transforms, "here");
    assert.deepEqual(constants, ["one", "two", "three", "five", "six", "%s-seven", "eight", "nine"]);
  });
});

describe("a mistake of the author", () => {
  it("is found before there is a value, and reported with its place", () => {
    isMistake({ type: "maths" }, ".type");
    isMistake({ string: { fmt: "%s" } }, ".type");
    isMistake("string", "");
    isMistake({ type: "math" }, ".math");
    isMistake({ ...math({ multiply: 1 }), map: { a: 1 } }, ".map");
    isMistake({ ...math({ multiply: 1 }), when: 1 }, ".when");
    isMistake(math({}), ".math.multiply");
    isMistake(math({ multiply: 1.5 }), ".math.multiply");
    isMistake(math({ multiply: 2n ** 63n }), ".math.multiply");
    isMistake(math({ multiply: 1, clampMin: 1 }), ".math.clampMin");
    isMistake(map({}), ".map");
    isMistake(match({ patterns: [{ literal: "a" }, { type: "regexp", regexp: "(" }] }), ".match.patterns[1].regexp");
    isMistake(match({ patterns: [{ type: "regexp", literal: "a" }] }), ".match.patterns[0].literal");
    isMistake(match({ fallbackTo: "Input", fallbackValue: 1 }), ".match.fallbackValue");
    isMistake(string({ fmt: "%s%s" }), ".string.fmt");
    isMistake(string({ fmt: "plain" }), ".string.fmt");
    isMistake(string({ fmt: "%s", trim: "a" }), ".string.trim");
    isMistake(string({ type: "Convert", convert: "ToMd5" }), ".string.convert");
    isMistake(string({ type: "Regexp", regexp: { match: "(a)", group: 2 } }), ".string.regexp.group");
    isMistake(string({ type: "Regexp", regexp: { match: "((a{100}){100}){100}" } }), ".string.regexp.match");
    isMistake(string({ type: "Replace", replace: { search: "", replace: "a" } }), ".string.replace.search");
    isMistake(string({ type: "Join" }), ".string.join");
    isMistake(convert("text"), ".convert.toType");
    isMistake(convert("object"), ".convert.format");
  });

  it("in a name has the nearest one in its message", () => {
    const message = (transform: unknown) =>
      (attemptSync(() => compileTransforms([transform], "here")) as Problem).message;
    assert.match(message(string({ ftm: "%s" })), /mean fmt\?/);
    assert.match(message(convert("flaot64")), /mean float64\?/);
  });
});

describe("forEach", () => {
  const forEach = (...fields: object[]) => ({ type: "forEach", forEach: { fields } });
  const kinds = map({ Deployment: "Deployment", "argo.Rollout": "Rollout" });

  it("converts each element to an object with the fields that the element has", () => {
    const workloads = [
      { kind: "argo.Rollout", name: "web", more: "hush" },
      { kind: "Deployment", name: "db", path: { to: "x" } },
    ];
    const fields = [{ fromFieldPath: "kind", transforms: [kinds] }, { fromFieldPath: "name" }];
    assert.deepEqual(of(workloads, forEach(...fields, { fromFieldPath: "path.to", toFieldPath: "place" })), [
      { kind: "Rollout", name: "web" },
      { kind: "Deployment", name: "db", place: "x" },
    ]);
    assert.deepEqual(of([], forEach(...fields)), []);
  });

  it("refuses other values than lists of objects, and reports the element with a wrong value", () => {
    for (const value of ["hush-hush", 1, {}, ["hush"], [null]]) fails(value, forEach({ fromFieldPath: "name" }));
    fails([{ kind: "Deployment" }, { kind: "hush-hush" }], forEach({ fromFieldPath: "kind", transforms: [kinds] }));
  });

  it("has fields with one path each, and no inner forEach", () => {
    isMistake(forEach(), ".forEach.fields");
    isMistake(forEach({}), ".forEach.fields[0].fromFieldPath");
    isMistake(forEach({ fromFieldPath: "a[*]" }), ".forEach.fields[0].fromFieldPath");
    isMistake(forEach({ fromFieldPath: "a", toFieldPath: "b[2000]" }), ".forEach.fields[0].toFieldPath");
    isMistake(forEach({ fromFieldPath: "a", name: "b" }), ".forEach.fields[0].name");
    const inner = [forEach({ fromFieldPath: "b" })];
    isMistake(forEach({ fromFieldPath: "a", transforms: inner }), ".forEach.fields[0].transforms");
  });
});

describe("Split", () => {
  const split = (separator: string) => string({ type: "Split", split: { separator } });

  it("splits a string to a list, without surrounding blanks and empty elements", () => {
    assert.deepEqual(of(" a, b,,c ,", split(",")), ["a", "b", "c"]);
    assert.deepEqual(of("", split(",")), []);
    assert.equal(of("a,b", split(","), string({ type: "Join", join: { separator: "-" } })), "a-b");
  });

  it("has a separator", () => {
    isMistake(split(""), ".string.split.separator");
    isMistake(string({ type: "Split" }), ".string.split");
  });
});
