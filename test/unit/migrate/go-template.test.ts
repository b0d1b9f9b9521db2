/** Go templates become Handlebars only where both give the same text. */
import assert from "node:assert/strict";
import { NotTranslated, type Resolve, reference } from "../../../src/migrate/go-expression.ts";
import { fieldValue, translate } from "../../../src/migrate/go-template.ts";

const resolve: Resolve = (path) => {
  if (path.length !== 1) throw new NotTranslated("a value that is no key");
  return reference("db", path.map(String));
};
const converted = (text: string) => fieldValue(translate(text, resolve));

const TRANSLATED: Readonly<Record<string, string>> = {
  "https://{{ .host }}:{{.port}}": "https://{{db.host}}:{{db.port}}",
  'a {{ index . "tls.crt" }}': "a {{db.[tls.crt]}}",
  "{{ .a | b64enc }}": "{{base64 db.a}}",
  "{{ b64dec .a | upper | trim }}": "{{trim (upper (base64decode db.a))}}",
  '{{ printf "%s:%s" .user .password | b64enc }}': '{{base64 (concat db.user ":" db.password)}}',
  '{{ .a | default "x" }}': '{{default db.a "x"}}',
  '{{ .a | replace "x" "y" | toString }}': '{{replace db.a "x" "y"}}',
  '{"a": {"b": {{ .a | toJson }}}}': '{"a": {"b": {{json db.a}}{{!-- --}}}}',
  "x  {{- .a -}}  \n y": "x{{db.a}}y",
  "x {{/* comment */}}{{ .a }}": "x {{db.a}}",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a script
  "echo ${HOME}": "echo {{! literal }}${HOME}",
  '{{ "{{" }} .Values.x {{ "}}" }}': '{{concat "{{"}} .Values.x }}',
  "{{`{{ .x }}`}}/{{ .a }}": '{{concat "{{"}} .x }}/{{db.a}}',
  '{{ "{{" }}}}': '{{concat "{{"}}{{!-- --}}}}',
  '{{ "{" }}{{ .a }}{{ "}" }}': '{{concat "{"}}{{db.a}}{{!-- --}}}',
  '{{ "{" }}{{ "{" }}x': '{{concat "{{"}}x',
  plain: "plain",
};

/** Longer than a template of Inlay may be. */
const TOO_LONG = "a".repeat(16_385);

const REFUSED = [
  TOO_LONG,
  "{{".repeat(8_000),
  '{{ "'.repeat(4_000),
  "{{ if .a }}x{{ end }}",
  "{{ range .list }}{{ . }}{{ end }}",
  "{{ .a | quote }}",
  "{{ .a.b }}",
  '{{ index .list 0 | unknown "x" }}',
  '{{ printf "%d" .a }}',
  "{{ $x := .a }}",
  "{{ .a",
  '{{ "a" }} {{ .a',
  "\\{{ .a }}",
];

describe("a Go template", () => {
  it("becomes Handlebars with the same text", () => {
    for (const [text, template] of Object.entries(TRANSLATED)) assert.deepEqual(converted(text), { template }, text);
  });

  it("of one value alone copies the value, bytes included", () => {
    assert.deepEqual(converted("{{ .a }}"), { from: { source: "db", key: "a" } });
  });

  it("without an equal is refused with the reason", () => {
    for (const text of REFUSED) assert.throws(() => converted(text), NotTranslated, text);
  });
});
