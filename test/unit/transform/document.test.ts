/** Which YAML is accepted, how it is read, and that hostile text is refused in time. */
import assert from "node:assert/strict";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import { parseText } from "../../../src/transform/document.ts";

const yaml = (text: string) => parseText(text, "yaml", "the text");
const refused = (text: string, language: "yaml" | "json" | "either" = "yaml") =>
  assert.throws(() => parseText(text, language, "the text"), { reason: "InvalidValue" }, text.slice(0, 50));

describe("a document", () => {
  const read: [text: string, value: JsonValue][] = [
    ["a: 1\nb: [x, 'y']", { a: 1, b: ["x", "y"] }],
    ["a: yes\nb: on\nc: 2020-01-01\nd: ~", { a: "yes", b: "on", c: "2020-01-01", d: null }],
    ["a: 9223372036854775807\nb: -9223372036854775808", { a: 9223372036854775807n, b: -9223372036854775808n }],
    ["a: 9223372036854776000", { a: 9223372036854776000n }],
    ["a: 0x10\nb: 1e3\nc: 0.5", { a: 16, b: 1000, c: 0.5 }],
    ["1: a\ntrue: b", { "1": "a", true: "b" }],
    ["a: &x [1]\nb: *x", { a: [1], b: [1] }],
    ['"<<": {a: 1}', { "<<": { a: 1 } }],
    ["a: |\n  one\n  two\n", { a: "one\ntwo\n" }],
    ["a: !!str 5", { a: "5" }],
  ];
  for (const [text, value] of read) {
    it(`accepts the YAML ${JSON.stringify(text)}`, () => assert.deepEqual(yaml(text), value));
  }

  for (const text of [
    "a: !foo 1",
    "a: !!binary aGk=",
    "a: 1\na: 2",
    '1: a\n"1": b',
    "? [a]\n: b",
    "a\n---\nb",
    "a: *nowhere",
    "<<: {a: 1}",
    "a: &d {x: 1}\nb: {<<: *d, y: 2}",
    "a: .inf",
    "a: .nan",
    "a: 9223372036854775808",
    "a: [",
    "\ta: 1",
  ]) {
    it(`refuses the YAML ${JSON.stringify(text)}`, () => refused(text));
  }

  it("refuses several documents and tags by name, and may have a tag of text", () => {
    const several = "the text has several YAML documents; keep one";
    const tag =
      "the text has a tag in line 2, which Inlay does not read; remove the tag, or put it in quotes if it is text";
    for (const [text, message] of [
      ["a: 1\n---\nb: 2", several],
      ["a: 1\nb: !!binary aGk=", tag],
      ["a: 1\nb: !custom x", tag],
    ] as const) {
      assert.throws(() => yaml(text), { message: `${message}, or set as: string to write the text as it is` });
      assert.throws(() => parseText(text, "either", "the text"), { message });
    }
    for (const text of ["a: [\n---\nb: 2", "a: !!binary x\nb: ["]) refused(text);
    assert.deepEqual(yaml("--- \na: !!str 1\n...\n"), { a: "1" });
  });

  it("refuses a merge key by name, and may have one in quotes or as a value", () => {
    assert.throws(() => yaml("<<: {a: 1}"), /^Problem: the text has the merge key <<, .*as: string/);
    assert.throws(() => parseText("<<: {a: 1}", "either", "the text"), /has the merge key <</);
    assert.deepEqual(yaml("a: <<"), { a: "<<" });
    assert.deepEqual(parseText('{"<<": {"a": 1}}', "either", "the text"), { "<<": { a: 1 } });
  });

  const differing = [
    "no",
    "Yes",
    "ON",
    "off",
    "y",
    "0755",
    "-0_7",
    "0o17",
    "0b11",
    "1_000",
    "22:22",
    "1:30.5",
    "on: a",
  ];
  for (const text of differing)
    it(`says that YAML 1.1 reads ${text} differently, and where`, () => {
      const lines: number[] = [];
      parseText(`# a comment\n- a\n- ${text}\n- no\n`, "yaml", "the text", (line) => lines.push(line));
      assert.deepEqual(lines, [3]);
    });

  it("says so of no text that both read alike", () => {
    const same = ["'no'", '"0755"', "!!str on", "none", "true", "~", "755", "0", "0x1f", "1.5", "a:b", "1.2.3.4"];
    const note = () => assert.fail("it differs");
    for (const text of same) parseText(`a: ${text}`, "yaml", "the text", note);
    parseText("a: |\n  no\n", "yaml", "the text", note);
  });

  it("may have keys with a meaning in JavaScript, without an effect", () => {
    for (const text of ['{"__proto__": {"x": 1}, "constructor": 2}', "__proto__: {x: 1}\nconstructor: 2"]) {
      const value = parseText(text, "either", "the text") as Record<string, unknown>;
      assert.deepEqual(Object.keys(value), ["__proto__", "constructor"]);
      assert.equal(Object.getPrototypeOf(value), Object.prototype);
      assert.equal(value["x"], undefined);
    }
  });

  it("is refused quickly if it is too large", () => {
    const laughs = ["a0: &a0 [x]"];
    for (let n = 1; n < 20; n += 1) laughs.push(`a${n}: &a${n} [${`*a${n - 1},`.repeat(9)}]`);
    refused(laughs.join("\n"));
    refused("[".repeat(50_000));
    refused("- ".repeat(50_000));
    for (const text of ["0x_", "1_", "0", "1:1"]) assert.ok(yaml(`a: ${text.repeat(20_000)}g`));
    refused("a: ".repeat(50_000));
    refused(`[${"[],".repeat(150_000)}1]`, "json");
    refused(`[${"1,".repeat(200_000)}`, "either");
    refused("{".repeat(1_000_000), "json");
  });
});
