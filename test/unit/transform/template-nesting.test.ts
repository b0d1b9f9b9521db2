/** Templates that take long to parse are detected before, and no others are. */
import assert from "node:assert/strict";
import fc from "fast-check";
import Handlebars from "handlebars";
import { nestingOf } from "../../../src/transform/template.ts";

/** Handlebars takes a few milliseconds for this depth. */
const FEW = 128;
const calls = (depth: number, around: (inner: string) => string = (inner) => inner) =>
  `{{lower ${"(lower ".repeat(depth)}${around("a.b")}${")".repeat(depth)}}}`;

describe("how deep a template nests", () => {
  const deep: Record<string, string> = {
    calls: calls(2000),
    "calls that hide behind a quoted brace": `{{concat "}}" ${calls(500).slice(2)}`,
    "calls that hide behind a quoted parenthesis": `{{concat ${'(concat ")" '.repeat(500)}a.b${")".repeat(500)}}}`,
    "calls that hide behind brackets": `{{concat a.[)}}] ${calls(500).slice(2)}`,
    "calls after an escaped mustache with a quote": `\\{{"{{concat ${calls(500).slice(2)}`,
    "calls after a quote that is escaped and closes all the same": `{{concat '\\' ${calls(500).slice(2)}`,
    "calls behind a comment": `{{! " }}{{!-- ' --}}${calls(500)}`,
    "calls after text that never closes a quote": `it's {{a.b}} "${calls(500)}`,
    blocks: `${"{{#if a.b}}".repeat(900)}${"{{/if}}".repeat(900)}`,
    "blocks by ^, with blanks kept away": `${"{{~^if a.b~}}".repeat(900)}${"{{/if}}".repeat(900)}`,
    "branches of one block": `{{#if a.b}}${"{{else if a.b}}".repeat(900)}{{/if}}`,
    "branches of one block, with blanks": `{{#if a.b}}${"{{ else if a.b}}".repeat(900)}{{/if}}`,
  };
  for (const [what, text] of Object.entries(deep)) it(`is large: ${what}`, () => assert.ok(nestingOf(text) > FEW));

  const shallow: Record<string, string> = {
    "many calls beside each other": "{{lower (trim a.b)}}".repeat(800),
    "many blocks beside each other": "{{#if a.b}}{{^}}{{/if}}{{#if a.b}}{{else}}{{/if}}{{^if a.b}}{{/if}}".repeat(300),
    "parentheses in the text": `${"(".repeat(4000)}{{a.b}}${"(".repeat(4000)}`,
    "parentheses in quotes": `{{replace a.b "${"(".repeat(4000)}" ""}}`,
    "parentheses in comments": `{{! ${"(".repeat(4000)} }}{{!-- ${"(".repeat(4000)} --}}`,
    "what the language allows": `${"{{#if a.b}}".repeat(32)}${calls(31)}${"{{else}}{{/if}}".repeat(32)}`,
    "no template": "text",
    "half a template": "{{a.b",
  };
  for (const [what, text] of Object.entries(shallow)) it(`is small: ${what}`, () => assert.ok(nestingOf(text) <= FEW));

  it("is never less than the depth that Handlebars finds", () => {
    const piece = fc.constantFrom(
      ..."{{ }} ( ) \" ' \\ [ ] ~ ! -- { }".split(" "),
      ..."{{#if a.b}} {{/if}} {{else}} {{^}} {{a.b}} \\{{ \\\\{{".split(" "),
      ...["{{else if a.b}}", "{{^if a.b}}", "{{lower ", "(lower ", "a.[)] ", "')' ", '"}}" ', " x"],
    );
    let parsed = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        const found = depthIn(text);
        if (found === undefined) return;
        parsed += 1;
        assert.ok(nestingOf(text) >= found);
      }),
      { numRuns: 5_000 },
    );
    assert.ok(parsed > 500, `${parsed}`);
  });
});

/** The depth of calls or blocks according to Handlebars; undefined if it refuses the text. */
function depthIn(text: string): number | undefined {
  let program: unknown;
  try {
    program = Handlebars.parse(text);
  } catch {
    return undefined;
  }
  const depthOf = (node: unknown, type: string): number => {
    if (typeof node !== "object" || node === null) return 0;
    const below = Object.values(node).map((each) => depthOf(each, type));
    return Math.max(0, ...below) + ((node as { type?: string }).type === type ? 1 : 0);
  };
  return Math.max(depthOf(program, "SubExpression"), depthOf(program, "BlockStatement"));
}
