/** Templates, documents and values that would delay the controller are refused, with the exceeded limit. */
import assert from "node:assert/strict";
import type { Field } from "../../../src/api/binding.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { planTarget } from "../../../src/transform/plan.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { secretText } from "../../controller/leak-detector.ts";
import { secret } from "./sources.ts";

const MIB = 1024 * 1024;
const value = secretText("hostile");
const nested = (helper: (inner: string) => string, depth: number): string =>
  depth === 0 ? "s.a" : helper(nested(helper, depth - 1));
const yamlOf = (part: string) => part.repeat(Math.floor((128 * 1024) / part.length));

const keys = {
  a: "x".repeat(MIB - 1),
  commas: ",".repeat(MIB - 1),
  fewer: ",".repeat(100_000),
  quotes: "'".repeat(MIB - 1),
  lines: "\n".repeat(MIB - 1),
  flow: `[${yamlOf("a,")}]`.slice(0, 128 * 1024),
  dashes: yamlOf("-\n"),
  questions: yamlOf("? "),
  comments: yamlOf("#\n"),
  aliases: `a: &a [1]\n${"b: *a\n".repeat(200)}`,
  laughs: [..."bcdefghi"].reduce(
    (text, key, n) => `${text}${key}: &${key} [${Array(9).fill(`*${"abcdefgh"[n]}`).join(", ")}]\n`,
    `a: &a [${value}]\n`,
  ),
  deep: `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  wide: `[${"1,".repeat(200_000)}1]`,
  digits: `${"9".repeat(MIB - 1)}`,
  list: JSON.stringify(Array.from({ length: 50_000 }, (_, n) => n)),
};
const sources = new Map([["s", secret({ ...keys, value })]]);

function refused(act: () => unknown, reason: Problem["reason"], says: string | RegExp): void {
  assert.throws(act, (error) => {
    assert.ok(error instanceof Problem);
    assert.equal(error.reason, reason);
    assert.match(error.message, typeof says === "string" ? new RegExp(says) : says);
    assert.ok(error.message.length < 2_000);
    assert.ok(!error.message.includes(value) && !error.message.includes("xxxxxx"));
    return true;
  });
}

const WORK = "more than 8 MiB";
const templates: Record<string, [template: string, reason: Problem["reason"], says: string]> = {
  "a text that doubles at each step": [
    `{{lower ${nested((inner) => `(concat ${inner} ${inner})`, 8)}}}`,
    "InvalidTemplate",
    WORK,
  ],
  "a text that grows at each step": [
    `{{lower ${nested((inner) => `(replace ${inner} "x" "xx")`, 20)}}}`,
    "InvalidTemplate",
    WORK,
  ],
  "a million replacements": ['{{replace s.a "x" "y"}}', "InvalidTemplate", WORK],
  "a large text as four thousand arguments": [`{{concat ${"s.a ".repeat(4000)}}}`, "InvalidTemplate", WORK],
  "a list of a million texts": ['{{split s.commas ","}}', "InvalidTemplate", WORK],
  "a long list joined by a long text": [`{{join (split s.fewer ",") "${"x".repeat(1000)}"}}`, "InvalidTemplate", WORK],
  "a long list in YAML": ['{{yaml (split s.fewer ",")}}', "InvalidTemplate", WORK],
  "a list in YAML many times": [`${"{{#if (yaml (parse s.list))}}{{/if}}".repeat(50)}`, "InvalidTemplate", WORK],
  "a million lines that are indented": ["{{indent s.lines 64}}", "InvalidTemplate", WORK],
  "a document that is parsed again and again": [
    "{{#if (parse (concat s.list))}}{{/if}}".repeat(100),
    "InvalidTemplate",
    WORK,
  ],
  "ten megabytes of output": ["{{s.a}}".repeat(10), "InvalidTemplate", "more than 1 MiB"],
  "quotes that grow": ["{{shell s.quotes}}", "InvalidTemplate", "more than 1 MiB"],
  "calls that nest": [`{{lower ${"(lower ".repeat(2_000)}s.a${")".repeat(2_000)}}}`, "InvalidTemplate", "too deep"],
  "blocks that nest": ["{{#if s.a}}".repeat(900) + "{{/if}}".repeat(900), "InvalidTemplate", "too deep"],
  "YAML of many entries": ["{{parse s.flow}}", "InvalidValue", "YAML of more than 25000 lines and parts; use JSON"],
  "YAML of many dashes": ["{{parse s.dashes}}", "InvalidValue", "YAML of more than 25000"],
  "YAML of many question marks": ["{{parse s.questions}}", "InvalidValue", "YAML of more than 25000"],
  "YAML of many comments": ["{{parse s.comments}}", "InvalidValue", "YAML of more than 25000"],
  "a billion laughs": ["{{parse s.laughs}}", "InvalidValue", "is not valid JSON or YAML"],
  "many aliases": ["{{parse s.aliases}}", "InvalidValue", "is not valid JSON or YAML"],
  "JSON that nests 100,000 deep": ["{{parse s.deep}}", "InvalidValue", "more than 64 levels"],
  "JSON of 200,000 values": ["{{parse s.wide}}", "InvalidValue", "more than 100000 values"],
  "a number of a million digits": ["{{parse s.digits}}", "InvalidValue", "has a number that JSON can't represent"],
  "a certificate of a megabyte": ["{{pembundle s.a}}", "InvalidTemplate", WORK],
};

describe("a hostile template", () => {
  for (const [what, [template, reason, says]] of Object.entries(templates)) {
    it(`is refused: ${what}`, () => refused(() => compileTemplate(template).render(sources), reason, says));
  }

  it("reaches only the content of the sources", () => {
    const unreachable = [
      "{{s.constructor}}",
      "{{s.__proto__}}",
      "{{s.[__proto__]}}",
      "{{s.toString}}",
      "{{s.hasOwnProperty}}",
      '{{pointer s.list "/constructor"}}',
      '{{pointer s.list "/length"}}',
      '{{pointer s.list "/__proto__/constructor"}}',
      '{{pointer "{}" "/__proto__"}}',
    ];
    for (const text of unreachable) {
      assert.throws(() => compileTemplate(text).render(sources), {
        name: "Problem",
        reason: /KeyNotFound|InvalidTemplate/,
      });
    }
    for (const text of [
      "{{constructor.s}}",
      "{{__proto__.s}}",
      "{{lookup s 'a'}}",
      "{{s.a.constructor}}",
      "{{@root.s}}",
    ])
      assert.throws(() => compileTemplate(text).render(sources), {
        name: "Problem",
        reason: /InvalidBinding|InvalidTemplate/,
      });
  });

  it("is compiled only once if it is invalid", () => {
    const text = `{{#if ${"a".repeat(1000)}}}`;
    const why = (): unknown => {
      try {
        return compileTemplate(text);
      } catch (error) {
        return error;
      }
    };
    assert.ok(why() instanceof Problem);
    assert.equal(why(), why());
  });
});

describe("hostile fields of one target", () => {
  const fields = (count: number, more: (n: number) => object): Field[] =>
    Array.from({ length: count }, (_, n) => ({ path: `spec.f${n}`, ...more(n) }) as Field);
  const plan = (...all: Field[]) => planTarget(all, sources);

  it("share one budget", () => {
    const template = '{{#if (replace s.list "," ";")}}x{{/if}}';
    assert.equal(plan(...fields(2, (n) => ({ template: `${n}${template}` }))).fields.length, 2);
    refused(() => plan(...fields(64, (n) => ({ template: `${n}${template}` }))), "InvalidTemplate", WORK);
  });

  it("have no more values together than the API server accepts", () => {
    const whole = (count: number) => fields(count, () => ({ from: { source: "s", key: "a" } }));
    assert.equal(plan(...whole(3)).fields.length, 3);
    refused(() => plan(...whole(4)), "InvalidValue", /^spec\.f3: .* more than 3 MiB together/);
    refused(() => plan(...fields(64, () => ({ from: { source: "s" } }))), "InvalidValue", "more than 3 MiB together");
    const fromList = fields(64, () => ({ from: { source: "s", key: "list" }, as: "json" }));
    assert.equal(plan(...fromList).fields.length, 64);
  });

  it("parse a shared document once, at the cost of once", () => {
    const pointing = (n: number) => ({ from: { source: "s", key: "list", pointer: `/${n}` } });
    assert.deepEqual(
      plan(...fields(64, pointing)).fields.map((field) => field.value.reveal()),
      Array.from({ length: 64 }, (_, n) => n),
    );
  });

  it("charge each text that becomes a document", () => {
    const made = fields(64, (n) => ({ template: `{{s.list}}${" ".repeat(n)}`, as: "json" }));
    refused(() => plan(...made), "InvalidTemplate", WORK);
  });

  it("detect once that a key is not a document", () => {
    const problems = fields(2, () => ({ from: { source: "s", key: "laughs", pointer: "/a" } })).map((field) => {
      try {
        return plan(field);
      } catch (error) {
        return (error as Problem).message.replace(/^spec\.f\d: /, "");
      }
    });
    assert.equal(problems[0], problems[1]);
    assert.match(String(problems[0]), /key laughs of Secret registry\/bucket is not valid JSON or YAML$/);
  });

  it("may have paths of any depth", () => {
    const deep = fields(64, () => ({ from: { source: "s", key: "value" } })).map((field, n) => ({
      ...field,
      path: `spec.f${n}${"[0]".repeat(160)}`,
    }));
    assert.equal(plan(...deep).fields.length, 64);
  });
});
