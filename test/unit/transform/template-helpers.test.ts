/** The results and arguments of the helpers of templates, and the limit of a template's cost. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import type { MissingPolicy, Problem } from "../../../src/apimachinery/problem.ts";
import type { LiveSource } from "../../../src/transform/live-source.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { helpers } from "../../../src/transform/template-helpers.ts";
import { absent, object, secret } from "./sources.ts";

const SECRET = "hunter2-s3cr3t";
const bucket = secret({
  user: "ann",
  key: SECRET,
  empty: "",
  lines: "a\n\nb\n",
  list: "a:1,b:2",
  info: '{"spec":{"name":"harbor","id":9223372036854775807,"ports":[80,443],"on":true,"__proto__":{"x":1}}}',
  base64: "aGk=",
  bytes: Uint8Array.of(0xff, 0xfe, 0xfd),
  broken: `{"a": ${SECRET}`,
});
const web = object({ spec: { ports: [80, "http"], nested: { a: [{ b: null }] }, on: true, big: 2n ** 62n } });
const optional: MissingPolicy = { onMissing: "Wait", optional: true };
const sources = new Map<string, LiveSource>([
  ["s", bucket],
  ["o", web],
  ["gone", absent()],
  ["may", absent(optional)],
]);

const render = (text: string, from = sources) => String(compileTemplate(text).render(from).reveal());

function fails(text: string, reason: Problem["reason"], advice = "", from = sources): void {
  assert.throws(
    () => render(text, from),
    (problem: Problem) => {
      assert.equal(problem.reason, reason, `${text}: ${problem.message}`);
      assert.ok(problem.message.includes(advice), problem.message);
      assert.ok(!`${problem.stack}${problem.cause}`.includes(SECRET));
      return true;
    },
  );
}

describe("a helper", () => {
  const made: [text: string, result: string][] = [
    ["{{base64 s.user}}", "YW5u"],
    ["{{base64 s.bytes}}", "//79"],
    ["{{base64url s.bytes}}", "__79"],
    ['{{base64 "a"}}', "YQ=="],
    ["{{base64 o.spec.on}}", "dHJ1ZQ=="],
    ["{{base64decode s.base64}}", "hi"],
    ['{{base64 (concat s.user ":" o.spec.on)}}', "YW5uOnRydWU="],
    ['{{base64decode "YW5u\r\n"}}{{base64decode "YQ"}}{{base64decode ""}}', "anna"],
    ['{{urlencode "a b&c=é/\'()*!~"}}', "a%20b%26c%3D%C3%A9%2F%27%28%29%2A%21~"],
    ['{{lower "ÀB"}}{{upper "àb"}}', "àbÀB"],
    ['<{{trim " \n a b\t"}}>', "<a b>"],
    ['{{replace s.user "n" "$&"}}', "a$&$&"],
    ['{{replace "a.c" "." ""}}', "ac"],
    ['{{replace "aaa" "aa" "b"}}', "ba"],
    ['{{join (split s.list ",") " "}}', "a:1 b:2"],
    ['{{join o.spec.ports "-"}}', "80-http"],
    ['{{json (split "a" ",")}}', '["a"]'],
    ["{{indent s.lines 2}}", "  a\n\n  b\n"],
    ['<a b="{{xml "<\'&"}}"/>', '<a b="&lt;&apos;&amp;"/>'],
    ['{"a": "{{jsontext s.lines}}"}', '{"a": "a\\n\\nb\\n"}'],
    ['{{shell "it\'s"}}', "'it'\\''s'"],
    [`{{ini s.user "'"}} {{ini "a#b" "'"}} {{ini "a#b" '"""'}}`, `ann 'a#b' """a#b"""`],
    ["{{sha256sum 'a'}}", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"],
    ["{{sha256sum (json o.spec.ports)}}", "ae4b56c085104542ded4fb9eade43e23973b46405edf98bfd1f39b20ad9fed4b"],
    ["{{json s.key}}", `"${SECRET}"`],
    ["{{json o.spec.nested}}", '{"a":[{"b":null}]}'],
    ["{{json o.spec.big}}", "4611686018427387904"],
    ['{{yaml "a: b\n"}}', '"a: b\\n"'],
    ["{{yaml o.spec.nested}}", "a:\n  - b: null"],
    ["{{yaml (pointer s.info '/spec/ports')}}", "- 80\n- 443"],
    ["{{json (parse 'a: [1, x]')}}", '{"a":[1,"x"]}'],
    ["{{pointer s.info '/spec/name'}}", "harbor"],
    ["{{pointer s.info '/spec/id'}}", "9223372036854775807"],
    ["{{pointer (parse s.info) '/spec/ports/1'}}", "443"],
    ["{{pointer o.spec.nested '/a'}}".replace("{{pointer", "{{json (pointer").replace("}}", ")}}"), '[{"b":null}]'],
    ["{{default s.nothing 'x'}}{{default s.empty 'y'}}{{default s.user 'z'}}", "xyann"],
    ["{{default s.nothing s.user}}{{default (pointer s.info '/nothing') 5}}{{default may.a 'm'}}", "ann5m"],
    ["{{#if (default s.nothing '')}}a{{else}}b{{/if}}{{#unless (split s.list ',')}}c{{/unless}}", "b"],
    ["{{#if may.a}}a{{else}}b{{/if}}", "b"],
    ["Basic {{base64 (join (split (replace 'u:p' ':' ',') ',') ':')}}", "Basic dTpw"],
  ];
  for (const [text, result] of made) {
    it(`returns ${JSON.stringify(result.replace(SECRET, "…"))} for ${JSON.stringify(text)}`, () =>
      assert.equal(render(text), result));
  }

  it("reverses its inverse, for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const from = new Map([["s", secret({ k: text })]]);
        assert.equal(render("{{base64decode (base64 s.k)}}|{{base64decode (base64url s.k)}}", from), `${text}|${text}`);
        assert.equal(decodeURIComponent(render("{{urlencode s.k}}", from)), text);
        assert.equal(JSON.parse(render("{{json s.k}}", from)), text);
        assert.equal(render("{{parse (json s.k)}}|{{parse (yaml s.k)}}", from), `${text}|${text}`);
        assert.equal(render('{{join (split s.k ",") ","}}', from), text);
      }),
    );
  });

  it("writes YAML equal to the JSON, for any value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme" }), (value) => {
        const from = new Map([["s", secret({ k: JSON.stringify([value]) })]]);
        assert.equal(render("{{json (parse (yaml (parse s.k)))}}", from), render("{{json (parse s.k)}}", from));
      }),
    );
  });

  const refused: [text: string, what: string][] = [
    ["{{base64}}", "base64 takes 1 argument, but has 0; write {{base64 source.key}}"],
    ["{{base64 s.user s.user}}", "base64 takes 1 argument, but has 2"],
    ["{{replace s.user 'a'}}", 'write {{replace source.key "from" "to"}}'],
    ["{{replace s.user '' 'a'}}", "1:18: expected a string in quotes, not empty"],
    ["{{replace s.user s.key 'a'}}", "a string in quotes"],
    ["{{split s.user ''}}", "not empty"],
    ["{{indent s.user '4'}}", "a whole number from 0 to 64"],
    ["{{indent s.user 65}}", "a whole number from 0 to 64"],
    ["{{indent s.user -1}}", "a whole number from 0 to 64"],
    ["{{indent s.user 1.5}}", "a whole number from 0 to 64"],
    ["{{pointer s.info 'spec'}}", "is not a JSON pointer"],
    ["{{pointer s.info s.user}}", "a JSON pointer in quotes"],
    ["{{ini s.user}}", "ini takes 2 arguments, but has 1"],
    ["{{ini s.user '*'}}", "expected one of"],
    ["{{concat}}", "concat takes 1 or more arguments"],
    ["{{pembundle}}", "pembundle takes 1 or more arguments"],
    ["{{base64 true}}", "only the path of a value"],
    ["{{base64 null}}", "only the path of a value"],
    ["{{base64 @root.s.user}}", "is not a path of a value"],
    ["{{base64 s.user a=1}}", "name=value is not allowed"],
    ["{{base64 (trim s.user a=1)}}", "name=value is not allowed"],
    ["{{base64 (constructor s.user)}}", "constructor is not a helper"],
    ["{{base64 (toString s.user)}}", "toString is not a helper"],
    ["{{[base64] (s.user)}}", "is not a helper"],
    [`{{${"trim (".repeat(40)}trim s.user${")".repeat(40)}}}`, "more than 32 levels deep"],
  ];
  for (const [text, what] of refused) {
    it(`refuses ${text.slice(0, 60)}, and says what is allowed`, () => {
      fails(text, "InvalidTemplate", what);
      fails(text, "InvalidTemplate", "{{base64 source.key}}");
    });
  }

  it("can't have the name of a source", () => {
    for (const name of helpers.keys()) fails(`{{${name}.key}}`, "InvalidBinding", "rename the source");
  });

  it("hashes no value of a Secret, by any path", () => {
    const map = secret({ a: "b" }, { isSecret: false });
    const from = new Map([...sources, ["c", map]]);
    const hash = createHash("sha256").update("b").digest("hex");
    assert.equal(render("{{sha256sum c.a}}", from), hash);
    assert.equal(render("{{#if s.key}}{{sha256sum c.a}}{{/if}}{{s.user}}", from), `${hash}ann`);
    for (const text of [
      "{{sha256sum s.key}}",
      "a{{sha256sum (trim s.key)}}",
      "{{sha256sum (default c.a s.key)}}",
      "{{base64 (sha256sum (pointer s.info '/spec/name'))}}",
      "{{#if (sha256sum s.key)}}{{/if}}",
    ]) {
      fails(text, "InvalidTemplate", "sha256sum does not accept values of Secrets", from);
    }
  });

  it("reports input that it can't read, and quotes nothing of it", () => {
    fails("{{base64decode s.broken}}", "InvalidValue", "the string is not base64");
    fails("{{base64decode 'a'}}", "InvalidValue");
    fails("{{base64decode '//79'}}", "NotUtf8", "template 1:1");
    fails("{{parse s.broken}}", "InvalidValue", "key broken of Secret registry/bucket is not valid JSON or YAML");
    fails("{{pointer (trim s.broken) '/a'}}", "InvalidValue", "template 1:11: the string is not valid");
    fails("{{trim s.bytes}}", "NotUtf8", "key bytes");
    fails("{{trim o.spec.nested}}", "TypeMismatch", "an object");
    fails("{{trim (split s.list ',')}}", "TypeMismatch", "a list");
    fails("{{join s.list ','}}", "TypeMismatch", "not a list");
    fails("{{join (parse '[[1]]') ','}}", "TypeMismatch", "only strings");
    fails("{{urlencode (parse '\"\\ud800\"')}}", "InvalidValue", "half a character");
  });

  it("waits for missing values, except in default and if", () => {
    fails("{{trim s.nothing}}", "KeyNotFound", "no key nothing");
    fails(
      "{{pointer s.info '/spec/nothing'}}",
      "KeyNotFound",
      "info of Secret registry/bucket has nothing at /spec/nothing",
    );
    fails("{{pointer s.info '/spec/__proto__/y'}}", "KeyNotFound");
    fails("{{pointer s.info '/spec/constructor'}}", "KeyNotFound");
    fails("{{default gone.a 'x'}}", "SourceNotFound");
    fails("{{#if gone.a}}{{/if}}", "SourceNotFound");
    fails("{{default s.nothing may.a}}", "SourceNotFound");
    fails("{{default s.bytes 'x'}}", "NotUtf8");
  });
});

describe("a template's cost", () => {
  const large = new Map([["s", secret({ k: "a".repeat(900_000), lines: "a\n".repeat(400_000) })]]);
  const tooMuch = (text: string, reason: Problem["reason"] = "InvalidTemplate", advice = "MiB") => {
    fails(text, reason, advice, large);
  };

  it("is limited for a helper's result before it is computed", () => {
    tooMuch(`{{replace s.k "a" "${"b".repeat(1000)}"}}`);
    tooMuch("{{indent s.lines 64}}");
    tooMuch("{{xml (xml (xml (xml (xml s.lines))))}}");
    tooMuch("{{pembundle s.k s.k s.k}}");
    tooMuch(`{{trim (concat${" s.k".repeat(10)})}}`);
    tooMuch('{{json (split s.k "a")}}');
    tooMuch(`{{join (split s.k "a") "${"b".repeat(1000)}"}}`);
    let nested = "s.k";
    for (let n = 0; n < 30; n += 1) nested = `(replace ${nested} "a" "aa")`;
    tooMuch(`{{trim ${nested}}}`);
  });

  it("is limited for all helpers together, and for the result", () => {
    tooMuch("{{#if (trim s.k)}}{{/if}}".repeat(600));
    tooMuch("{{s.k}}{{s.k}}", "InvalidTemplate", "more than 1 MiB");
    tooMuch("{{#if s.k}}{{/if}}".repeat(10_001), "InvalidTemplate", "too many parts");
  });

  it("throws only Problems without the value, for any helpers and arguments", () => {
    const path = fc.constantFrom(
      "s.key",
      "s.info",
      "s.lines",
      "s.bytes",
      "s.nothing",
      "o.spec",
      "o.spec.ports",
      "may.a",
    );
    const literal = fc.constantFrom('"a"', '""', '","', "'/spec/ports'", "'/'", "3", "65", "null", "true");
    const { expression } = fc.letrec((tie) => ({
      expression: fc.oneof({ depthSize: "medium" }, path, literal, tie("call")),
      call: fc
        .tuple(fc.constantFrom(...helpers.keys()), fc.array(tie("expression"), { minLength: 1, maxLength: 3 }))
        .map(([name, args]) => `(${name} ${args.join(" ")})`),
    }));
    fc.assert(
      fc.property(fc.array(expression as fc.Arbitrary<string>, { minLength: 1, maxLength: 3 }), (all) => {
        try {
          render(all.map((each) => `{{${each.replace(/^\((.*)\)$/, "$1")}}}`).join(""));
        } catch (error) {
          assert.equal((error as Problem).name, "Problem", String(error));
          assert.ok(!(error as Problem).message.includes(SECRET));
        }
      }),
      { numRuns: 3000 },
    );
  });
});
