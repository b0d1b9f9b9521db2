/** What a backslash before an expression writes, and when a warning says so. */
import assert from "node:assert/strict";
import type { Field } from "../../../src/api/binding.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { checkFields, planTarget } from "../../../src/transform/plan.ts";
import { absent, secret } from "./sources.ts";

const sources = new Map([
  ["smb", secret({ user: "ann", host: "files", "tls.key": "k" })],
  ["gone", absent()],
]);
const planned = (template: string) => {
  const field: Field = { path: "spec.a", template };
  const { fields, warnings = [] } = planTarget([field], sources);
  return { value: fields[0]?.value.reveal(), warnings: warnings.map(({ message }) => message) };
};

describe("a backslash before an expression", () => {
  const cases: [what: string, template: string, value: string, advice?: RegExp][] = [
    [
      "writes the text, with a warning if it names a source",
      "CORP\\{{smb.user}}",
      "CORP{{smb.user}}",
      /1:5: \\\{\{smb/,
    ],
    ["warns for a call, a block and a key in brackets", "\\{{base64 smb.user}}", "{{base64 smb.user}}", /as the text/],
    ["warns of an if", "\\{{#if smb.user}}", "{{#if smb.user}}", /as the text/],
    ["warns of a key in brackets", "a\n \\{{ smb.[tls.key] }}", "a\n {{ smb.[tls.key] }}", /template 2:2: /],
    ["writes Go's, Helm's and Lua's braces without a warning", "\\{{ .Values.a }}{{smb.user}}", "{{ .Values.a }}ann"],
    ["writes braces that nothing closes", "\\{{ 1, 2 } {{smb.user}}", "{{ 1, 2 } ann"],
    ["is itself written once before a second one", "CORP\\\\{{smb.user}}", "CORP\\ann"],
    ["warns of a share, whose server needs two", "\\\\{{smb.host}}\\a", "\\files\\a", /write \\\\\\\{\{smb\.host\}\}/],
    ["writes a share by three", "\\\\\\{{smb.host}}\\a", "\\\\files\\a"],
    ["warns of one in JSON, where it escapes", '{"a": "C\\\\{{smb.user}}"}', '{"a": "C\\ann"}', /1:9: 2 backslashes/],
    ["writes two in JSON by three", '{"a": "C\\\\\\{{smb.user}}"}', '{"a": "C\\\\ann"}'],
  ];
  for (const [what, template, value, advice] of cases)
    it(what, () => {
      const result = planned(template);
      assert.equal(result.value, value);
      assert.equal(result.warnings.length, advice === undefined ? 0 : 1);
      if (advice !== undefined) assert.match(result.warnings.join(), advice);
    });

  it("warns although the value is missing", () =>
    assert.match(planned("\\{{gone.a}}{{gone.b}}").warnings.join(), /^spec\.a: template 1:1: /));

  it("is not taken for an expression of another language by the message about another mistake", () =>
    assert.throws(
      () => checkFields([{ path: "spec.a", template: "\\{{ .Values.a }} {{smb.}}" }], ["smb"]),
      (error) => error instanceof Problem && !error.message.includes("syntax of Go"),
    ));

  for (const template of ["a {{smb.user", "{{ {1, 2}, {3, 4} }}", "{{ .Values.a }}"])
    it(`is named by the message about ${template}`, () =>
      assert.throws(() => planned(template), { reason: "InvalidTemplate", message: /\\\{\{/ }));

  it("is found in one pass", () => {
    const backslashes = "\\".repeat(32_000);
    for (const template of [backslashes, `${backslashes}{{`, "\\{{".repeat(10_000), `\\{{${"a ".repeat(16_000)}}}`])
      try {
        planned(template);
      } catch (error) {
        assert.ok(error instanceof Problem);
      }
  });
});
