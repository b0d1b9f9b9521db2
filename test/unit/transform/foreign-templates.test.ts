/** Expressions of other template languages are refused with the same expression in Handlebars, and other texts are not. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the texts of other languages
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { assertNoReference } from "../../../src/transform/foreign-templates.ts";
import { checkFields } from "../../../src/transform/plan.ts";

const check = (template: string, sources = ["bucket"]) => checkFields([{ path: "spec.a", template }], sources);

describe("a template in another syntax", () => {
  const refused: [template: string, advice: string, sources?: string[]][] = [
    [
      "{{ .bucket.key }}",
      "template 1:1: {{ .bucket.key }} is in the syntax of Go, but templates have that of Handlebars; write {{bucket.key}}",
    ],
    [
      "a\nb {{- $.bucket.key -}}",
      "template 2:3: {{- $.bucket.key -}} is in the syntax of Go, but templates have that of Handlebars; write {{bucket.key}}",
    ],
    ["{{ .password }}", "; write {{bucket.password}}"],
    ["{{ .password }}", "; write {{source.password}}, where source is one of bucket, db", ["bucket", "db"]],
    ["{{ .bukcet.key }}", "; write {{bucket.key}}", ["bucket", "db"]],
    ["{{ .bucket.key | b64enc | upper }}", "; write {{upper (base64 bucket.key)}}"],
    ["{{bucket.key | trim}}", "; write {{trim bucket.key}}"],
    ["{{ b64enc .bucket.key }}", "; write {{base64 bucket.key}}"],
    ['{{ printf "%s" .bucket.key }}', "; write {{bucket.key}}, and the other functions as helpers"],
    ["{{ if .bucket.key }}a{{ end }}", "; write {{#if bucket.key}}"],
    [
      "{{#if bucket.key}}a{{end}}",
      "{{end}} is in the syntax of Go, but templates have that of Handlebars; write {{/if}}",
    ],
    ["{{ range .bucket.list }}a{{ end }}", "because templates have no loops"],
    ["{{password}}", "{{password}} names a key without its source; write {{bucket.password}}"],
    ["{{bucket['tls.crt']}}", "; write {{bucket.[tls.crt]}}"],
    ["https://${bucket.host}", "template 1:9: ${bucket.host} would be written as it is"],
    [
      "https://${host}:$(port)",
      "; write {{bucket.host}}. If you mean ${host} itself, add a comment to the template: {{! literal }}",
    ],
    ["$(bucket.host)", "; write {{bucket.host}}"],
  ];
  for (const [template, advice, sources] of refused)
    it(`is refused with advice: ${JSON.stringify(template)}${sources ? ` with ${sources.length} sources` : ""}`, () =>
      assert.throws(
        () => check(template, sources),
        (error) => error instanceof Problem && error.reason === "InvalidTemplate" && error.message.includes(advice),
      ));

  const accepted = [
    "https://{{bucket.host}}",
    "export HOME=${HOME} KEY={{bucket.key}}",
    "{{! a shell script }}echo ${HOME} $(hostname)",
    "echo $(date -u) $HOME $1 $$ ${1} ${HOME:-/root}",
    '{{replace bucket.key "|" " .x"}}',
    "{{! .x | y }}",
    "a $.b .c",
  ];
  for (const template of accepted) it(`is not ${JSON.stringify(template)}`, () => void check(template));

  it("is found in a text of any form in one pass", () => {
    const spaces = " ".repeat(16_000);
    for (const [template, says] of [
      [`{{${spaces}`, /template/],
      [`{{-${spaces}x`, /template/],
      [`{{a[${spaces}x}}`, /template/],
      [`{{bucket[${spaces}key${spaces}]}}`, /write \{\{bucket\.key\}\}$/],
      [`{{bucket[${spaces}"tls.crt"${spaces}]}}`, /write \{\{bucket\.\[tls\.crt\]\}\}$/],
      [`{{-${spaces}.bucket.key${spaces}-}}`, /write \{\{bucket\.key\}\}, or/],
      [`{{${"a.".repeat(8_000)}`, /template/],
      [`{{a[${'"'.repeat(16_000)}}}`, /template/],
      [`\${${spaces}bucket.key${spaces}}`, /write \{\{bucket\.key\}\}/],
    ] as const)
      assert.throws(
        () => check(template),
        (error) => error instanceof Problem && says.test(error.message) && error.message.length < 1_000,
      );
    for (const text of [`{{${spaces}`, `{{a${spaces}`, `\${${spaces}`, "{{".repeat(8_000), `{{${"a".repeat(16_000)}`])
      assertNoReference({ data: { a: text } }, ["bucket"]);
    check(`\${${spaces}bucket.key${spaces}`);
    check("${a".repeat(5_000));
  });

  it("keeps the message of any other mistake", () =>
    assert.throws(() => check("{{unknown bucket.key}}"), /unknown is not a helper/));
});

describe("a reference to a source that does not exist", () => {
  const refused: [template: string, advice: RegExp][] = [
    ["{{bukcet.key}}", /no source bukcet\. Did you mean bucket\? The sources of the binding are bucket, db;/],
    ["{{secret.bucket.key}}", /no source secret\. Write \{\{bucket\.key\}\}\./],
    ["{{other.key}}", /no source other\. The sources of the binding are bucket, db; correct the name/],
  ];
  for (const [template, advice] of refused)
    it(`names the sources: ${template}`, () => assert.throws(() => check(template, ["bucket", "db"]), advice));

  it("in from is reported alike", () =>
    assert.throws(
      () => checkFields([{ path: "spec.a", from: { source: "Bucket", key: "key" } }], ["bucket"]),
      /no source Bucket\. Did you mean bucket\?/,
    ));
});

describe("a manifest", () => {
  it("may not refer to a source, because nothing replaces the text", () => {
    for (const text of [
      "{{bucket.key}}",
      "a {{ .bucket.key }}",
      "{{base64 bucket.key}}",
      "${bucket.key}",
      "$(bucket.key)",
    ])
      assert.throws(
        () => assertNoReference({ data: { "a.b": [text] } }, ["bucket"]),
        /^Problem: data\["a\.b"\]\[0\] of the manifest: /,
      );
  });

  it("may have the expressions of other programs", () =>
    assertNoReference({ a: "{{ .Labels.alertname }} {{other.key}} ${HOME} {{bucket}}", b: 1, c: null }, ["bucket"]));
});
