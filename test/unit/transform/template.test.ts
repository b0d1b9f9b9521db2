/** What a template may contain, and that values are inserted exactly. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { object, secret } from "./sources.ts";

const SECRET = "hunter2-s3cr3t";
const sources = new Map([
  ["bucket", secret({ key: SECRET, "tls.crt": "PEM", host: "s3", empty: "", bytes: Uint8Array.of(0xff, 0x68) })],
  ["my.secret", secret({ a: "dotted" })],
  [
    "svc",
    object({
      spec: { ip: "10.0.0.1", ports: [{ port: 80 }], ratio: 0.5, on: true, none: null, zero: 0, big: 2n ** 60n },
    }),
  ],
]);

const make = (text: string, from = sources) => compileTemplate(text).render(from).reveal();
const render = (text: string, from = sources) => String(make(text, from));

/** Asserts a Problem of this reason whose message contains the advice, and never a value. */
function fails(act: () => unknown, reason: Problem["reason"], advice = ""): void {
  assert.throws(act, (problem: Problem) => {
    assert.equal(problem.reason, reason);
    assert.ok(problem.message.includes(advice), problem.message);
    assert.ok(!`${problem.stack}${problem.cause}`.includes(SECRET));
    return true;
  });
}

describe("a template", () => {
  it("inserts values into text", () => {
    assert.equal(render("https://{{bucket.host}}:{{svc.spec.ports.[0].port}}/"), "https://s3:80/");
    assert.equal(render("{{svc.spec.ratio}} {{svc.spec.on}} {{svc.spec.zero}}"), "0.5 true 0");
    assert.equal(render("{{svc.spec.big}}"), "1152921504606846976");
    assert.equal(render("no value"), "no value");
  });

  it("accepts a key or a source with dots in brackets", () => {
    assert.equal(render("{{bucket.[tls.crt]}}"), "PEM");
    assert.equal(render("{{[my.secret].a}}"), "dotted");
  });

  it("inserts every value exactly, in every form", () => {
    const hostile = fc.constantFrom("&<>\"'`=", "{{x}}", "\n", "\\", "\\{{", "\ufeff", "$&", "__proto__", "\0");
    const value = fc
      .array(fc.oneof(hostile, fc.string({ unit: "grapheme" })), { minLength: 1 })
      .map((all) => all.join(""));
    fc.assert(
      fc.property(value, (some) => {
        const from = new Map([
          ["s", secret({ k: some })],
          ["o", object({ k: some })],
        ]);
        for (const name of ["s", "o"]) {
          assert.equal(render(`<{{${name}.k}}|{{{${name}.k}}}|{{&${name}.k}}>`, from), `<${some}|${some}|${some}>`);
          assert.equal(render(`a {{~${name}.k~}} b`, from), `a${some}b`);
          assert.equal(render(`{{#if ${name}.k}}{{${name}.k}}{{/if}}`, from), some);
        }
      }),
    );
  });

  it("chooses by if, unless and else; a missing or empty value is false", () => {
    assert.equal(render("{{#if bucket.host}}a{{else}}b{{/if}}"), "a");
    assert.equal(render("{{#if bucket.nothing}}{{bucket.nothing}}{{else if bucket.empty}}b{{else}}c{{/if}}"), "c");
    assert.equal(
      render("{{#unless svc.spec.none}}a{{/unless}}{{#if svc.a.b.c}}b{{/if}}{{^if svc.spec.zero}}c{{/if}}"),
      "ac",
    );
  });

  it("accepts comments and escaped braces", () => assert.equal(render("{{! a }}{{!-- {{b}} --}}\\{{c}}"), "{{c}}"));

  it("lists every value that it uses, including branches that are not taken", () => {
    assert.deepEqual(
      compileTemplate("{{#if a.b}}{{c.[d.e]}}{{else}}{{f.g.h}}{{/if}}").references.map(({ source, path }) => [
        source,
        path,
      ]),
      [
        ["a", ["b"]],
        ["c", ["d.e"]],
        ["f", ["g", "h"]],
      ],
    );
  });

  const refused: [text: string, what: string][] = [
    ["{{> partial}}", "1:1: partials"],
    ["{{#> partial}}{{/partial}}", "1:1: partials"],
    ['{{#*inline "a"}}{{/inline}}', "1:1: decorators"],
    ["{{* decorator}}", "1:1: decorators"],
    ["{{bucket.key bucket.key}}", "1:1: bucket.key is not a helper"],
    ["{{lookup bucket key}}", "1:1: lookup is not a helper"],
    ["{{bucket.key a=1}}", "1:1: name=value"],
    ["{{#if bucket.key includeZero=true}}{{/if}}", "1:1: name=value"],
    ["{{#if (lookup bucket.key)}}{{/if}}", "1:7: lookup is not a helper"],
    ["{{#if 1}}{{/if}}", "1:7: only the path"],
    ["{{#if}}{{/if}}", "1:1: this block"],
    ["{{#if a.b c.d}}{{/if}}", "1:1: this block"],
    ["{{#if a.b as |c|}}{{/if}}", "block parameters"],
    ["\n {{#each svc.spec}}{{/each}}", "2:2: this block"],
    ["{{#with bucket}}{{/with}}", "1:1: this block"],
    ["{{#bucket}}{{/bucket}}", "1:1: this block"],
    ["{{^bucket}}{{/bucket}}", "1:1: this block"],
    ["{{{{raw}}}}{{{{/raw}}}}", "1:1: this block"],
    ["{{@root.bucket.key}}", "1:3: @root.bucket.key"],
    ["{{../bucket.key}}", "1:3: ../bucket.key"],
    ["{{this.bucket.key}}", "1:3: this.bucket.key"],
    ["{{./bucket.key}}", "1:3: ./bucket.key"],
    ["{{bucket/key}}", "1:3: bucket/key"],
    ["{{this}}", "1:3: this"],
    ["{{'bucket'}}", "1:3: only the path"],
    ["{{12}}", "1:3: only the path"],
    ["{{bucket}}", "1:3: {{bucket}} has no key; write {{bucket.key}}"],
    ["{{bucket.this}}", "1:3: "],
    ["a\n{{bucket.0}}", "template 2, near"],
    ["{{#if bucket.key}}", "template 1, near"],
    ["{{#if bucket.key}}{{/unless}}", "1:4: "],
    ["{{#if a.b}}".repeat(40) + "{{/if}}".repeat(40), "deep"],
    ["{{#if a.b}}".repeat(900) + "{{/if}}".repeat(900), "deep"],
  ];
  for (const [text, what] of refused) {
    it(`refuses ${text.slice(0, 50).replace("\n", "\\n")}, with the position and what is allowed`, () => {
      fails(() => compileTemplate(text), "InvalidTemplate", what);
      fails(() => compileTemplate(text), "InvalidTemplate", "{{#if source.key}}");
    });
  }

  it("refuses a {{ without }}, with the position", () => {
    fails(
      () => compileTemplate("{{bucket.key"),
      "InvalidTemplate",
      "template 1, near {{bucket.key: not well-formed, because",
    );
  });

  it("refuses a source with the name of a reserved word", () => {
    for (const name of [
      "if",
      "unless",
      "each",
      "with",
      "lookup",
      "log",
      "[this]",
      "[else]",
      "[true]",
      "helperMissing",
    ]) {
      fails(() => compileTemplate(`{{${name}.key}}`), "InvalidBinding", "rename the source");
    }
  });

  it("refuses a key with dots, and says how to write it", () => {
    fails(() => render("{{bucket.tls.crt}}"), "InvalidTemplate", "{{bucket.[tls.crt]}}");
    fails(() => render("{{#if bucket.tls.crt}}{{/if}}"), "InvalidTemplate", "{{bucket.[tls.crt]}}");
    fails(() => render("{{my.secret.a}}"), "InvalidBinding", "{{[my.secret].a}}");
  });

  it("needs every source and key that it inserts", () => {
    fails(() => render("{{other.key}}"), "InvalidBinding", "no source other");
    fails(() => render("{{#if bucket.empty}}{{other.key}}{{/if}}"), "InvalidBinding", "other");
    fails(() => render("{{bucket.nothing}}"), "KeyNotFound", "Secret registry/bucket has no key nothing");
    for (const field of [
      "spec.nothing",
      "spec.none",
      "spec.ip.length",
      "spec.ports.length",
      "spec.toString",
      "constructor",
    ]) {
      fails(() => render(`{{svc.${field}}}`), "KeyNotFound", `Service registry/web has no field ${field}`);
    }
    fails(() => render("{{bucket.__proto__}}{{bucket.constructor}}"), "KeyNotFound");
  });

  it("refuses bytes, objects and lists", () => {
    fails(() => render("{{bucket.bytes}}"), "NotUtf8", "key bytes of Secret registry/bucket");
    fails(() => render("a{{svc.spec}}"), "TypeMismatch", "an object");
    fails(() => render("{{svc.spec.ports}}b"), "TypeMismatch", "a list");
  });

  it("keeps the type of its value if it is only one expression", () => {
    assert.deepEqual(make("{{svc.spec.ports}}"), [{ port: 80 }]);
    assert.equal(make("{{svc.spec.on}}"), true);
    assert.equal(make("{{svc.spec.big}}"), 2n ** 60n);
    assert.deepEqual(make('{{split bucket.host "3"}}'), ["s", ""]);
    assert.deepEqual(make('{{parse "[1]"}}'), [1]);
    assert.equal(make("{{bucket.host}}"), "s3");
    assert.equal(make(" {{~svc.spec.on~}} "), "true");
    assert.equal(make("{{#if bucket.host}}{{svc.spec.on}}{{/if}}"), "true");
    fails(() => make('{{parse "null"}}'), "InvalidValue", "the value is null");
    const from = new Map([["s", secret({ k: JSON.stringify([SECRET.repeat(80_000)]) })]]);
    fails(() => make("{{parse s.k}}", from), "InvalidTemplate", "1 MiB");
  });

  it("has a result of at most 1 MiB", () => {
    const from = new Map([["s", secret({ k: SECRET.repeat(40_000) })]]);
    assert.equal(render("{{s.k}}", from).length, SECRET.length * 40_000);
    fails(() => render("{{s.k}}{{s.k}}", from), "InvalidTemplate", "1 MiB");
  });

  it("is compiled once", () => {
    const first = compileTemplate("{{a.b}}");
    assert.equal(compileTemplate("{{a.b}}"), first);
    for (let n = 0; n < 2000; n += 1) compileTemplate(`${n}`);
    assert.equal(compileTemplate("{{a.b}}"), first);
    for (let n = 0; n < 40; n += 1) compileTemplate(`${n}`.repeat(16_000));
    assert.notEqual(compileTemplate("{{a.b}}"), first);
  });

  it("throws only Problems without the value, for any text", () => {
    const piece = fc.constantFrom(
      "{{",
      "}}",
      "#if ",
      "/if",
      "bucket",
      ".",
      "key",
      "[",
      "]",
      "~",
      "^",
      "else",
      "@",
      "..",
      "this",
      "(",
      ")",
      "|",
      " ",
      "=",
      "'",
      "!",
      "--",
      "&",
      ">",
      "*",
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        try {
          render(pieces.join(""));
        } catch (error) {
          assert.equal((error as Problem).name, "Problem", String(error));
          assert.ok(!(error as Problem).message.includes(SECRET));
        }
      }),
      { numRuns: 2000 },
    );
  });
});
