/** A text keeps its meaning within XML, JSON, a shell command and an ini file, or is refused without a quote of it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { INI_QUOTES, toIni, toJsonText, toShell, toXml } from "../../../src/transform/template-helpers.ts";

const anyText = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary" }),
  fc.string({ unit: "binary-ascii" }),
);

function refused(act: () => unknown, advice: string): void {
  assert.throws(act, (problem: Problem) => {
    assert.equal(problem.reason, "InvalidValue");
    assert.ok(problem.message.startsWith("here: ") && problem.message.includes(advice), problem.message);
    assert.ok(!problem.message.includes("hunter2"), problem.message);
    return true;
  });
}

describe("a text for XML", () => {
  const xml = (text: string) => toXml(text, "here");
  const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
  /** The text as an XML reader returns it: line breaks are normalized, and become blanks in attributes. */
  const read = (text: string) =>
    text
      .replace(/\r\n?|[\n\t]/g, " ")
      .replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) =>
        code ? String.fromCharCode(Number(code)) : (entities[name] ?? "?"),
      );

  it("is read unchanged, as text and as an attribute", () => {
    assert.equal(xml(`<a b="c">&'d'\r\n\t</a>`), "&lt;a b=&quot;c&quot;&gt;&amp;&apos;d&apos;&#13;&#10;&#9;&lt;/a&gt;");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        assert.equal(read(xml(text)), text);
        assert.ok(!/[<>"']/.test(xml(text)));
      }),
    );
  });

  it("is refused if it has characters that XML does not allow", () => {
    for (const bad of ["\0", "\x0b", "\x1f", "\ufffe", "\uffff", "\ud800", "\udc00a"])
      refused(() => xml(`hunter2${bad}`), "XML does not allow");
    for (const good of ["\x7f", "\ufffd", "\ud7ff", "\ue000", "\u{10ffff}", "𝄞"]) assert.equal(xml(good), good);
  });
});

describe("a text for JSON", () => {
  it("is read unchanged between quotes, within other text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        assert.equal(JSON.parse(`"<${toJsonText(text)}>"`), `<${text}>`);
      }),
    );
  });
});

describe("a word for a shell", () => {
  it("is passed on unchanged by the shell", () => {
    const texts = fc.sample(anyText, 200).map((text) => text.replaceAll("\0", "").toWellFormed());
    const words = ["it's", "'", "''", "$(id) `id` \\", "a\nb", "", "-n", "*", ...texts];
    const out = execFileSync("sh", ["-c", `printf '%s\\0' ${words.map((word) => toShell(word, "here")).join(" ")}`]);
    assert.deepEqual(out.toString().split("\0").slice(0, -1), words);
  });

  it("is refused with a NUL", () => refused(() => toShell("hunter2\0", "here"), "NUL"));
});

describe("a value for an ini file", () => {
  const ini = (text: string, quote = "'") => toIni(text, quote, "here");

  it("is unchanged if every reader understands it, and else in the given quotes", () => {
    for (const plain of ["a", "a b", "p@ss=w0rd!", "100%", "[x]", "é:/$"]) assert.equal(ini(plain), plain);
    for (const special of ["", " a", "a ", "a#b", "a;b", '"a"', "a`b", "a\\", "\ta"])
      assert.equal(ini(special), `'${special}'`);
    assert.equal(ini("it's#1", "`"), "`it's#1`");
    assert.equal(ini("it's#1", '"'), `"it's#1"`);
    assert.equal(ini('a"b#', '"""'), '"""a"b#"""');
  });

  it("is refused if the quotes can't contain it, and with line breaks", () => {
    refused(() => ini("hunter2's#"), "can't be quoted with '");
    refused(() => ini('hunter2"#', '"'), "these quotes");
    refused(() => ini("hunter2\\", '"'), "a backslash");
    refused(() => ini('#hunter2"', '"""'), "these quotes");
    for (const bad of ["\n", "\r", "\0", "\x7f", "\u0085"])
      refused(() => ini(`hunter2${bad}a`), "line break or control character");
  });

  it("ends at its end, for any text", () => {
    fc.assert(
      fc.property(anyText, fc.constantFrom(...INI_QUOTES), (text, quote) => {
        try {
          const made = ini(text, quote);
          assert.ok(!/[\r\n]/.test(made));
          if (made !== text) assert.equal(made.indexOf(quote, quote.length), made.length - quote.length);
          else assert.ok(!/[#;]|^\s|\s$/.test(made));
        } catch (error) {
          assert.equal((error as Problem).reason, "InvalidValue", String(error));
        }
      }),
    );
  });
});
