/** Translates Go templates to Handlebars where both give the same text. Everything else is refused with a reason. Pure. */
import { FieldPath } from "../apimachinery/field-path.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { compileTemplate } from "../transform/template.ts";
import { spell } from "../transform/template-value.ts";
import { actionsIn, parseAction } from "./go-action.ts";
import { call, type Expression, NotTranslated, type Reference, type Resolve } from "./go-expression.ts";

/** A part of a template: text, or an expression. */
export type Part = string | Expression;

/** Throws NotTranslated. */
export const translate = (text: string, resolve: Resolve): Part[] =>
  translateWith(text, (body) => parseAction(body, resolve));

/** The most characters of a template of Inlay. */
const MAX_LENGTH = 16_384;

/** Translates a text with expressions in double braces, which `parse` reads. Throws NotTranslated. */
export function translateWith(text: string, parse: (body: string) => Expression): Part[] {
  if (text.length > MAX_LENGTH)
    throw new NotTranslated(`${text.length} characters, and Inlay allows ${MAX_LENGTH}; split it`);
  const parts: Part[] = [];
  let rest = 0;
  let trims = false;
  const literal = (end: number, trimsEnd: boolean) => {
    let piece = text.slice(rest, end);
    if (trims) piece = piece.trimStart();
    if (trimsEnd) piece = piece.trimEnd();
    if (piece.includes("{{")) throw new NotTranslated("the braces of an expression are not closed");
    if (piece !== "") parts.push(piece);
  };
  for (const { index, length, body, trimsBefore, trimsAfter } of actionsIn(text)) {
    literal(index, trimsBefore);
    [rest, trims] = [index + length, trimsAfter];
    if (body.startsWith("/*")) continue;
    const expression = parse(body);
    parts.push(expression.kind === "literal" ? String(expression.value) : expression);
  }
  literal(text.length, false);
  return parts;
}

/** The value of a field: `from` for a reference alone, which also copies bytes; otherwise a template. Throws NotTranslated. */
export function fieldValue(parts: readonly Part[]): JsonObject {
  const [only, ...more] = parts;
  if (more.length === 0 && typeof only === "object" && only.kind === "reference")
    return { from: fromOf(only.reference) };
  return { template: templateOf(parts) };
}

function fromOf({ source, path, isField }: Reference): JsonObject {
  if (!isField) return { source, key: path.join(".") };
  return { source, fieldPath: String(new FieldPath(path.map((key) => ({ kind: "key", key })))) };
}

/** `${name}` and `$(name)`, which Inlay refuses in a template without an expression or comment. */
const PLACEHOLDER = /\$(?=[{(])/;

/** The template in Handlebars. Throws NotTranslated. */
export function templateOf(parts: readonly Part[]): string {
  let template = "";
  for (const part of withoutBraces(parts)) {
    if (typeof part !== "string") {
      if (template.endsWith("\\")) throw new NotTranslated("a backslash before an expression");
      template += `{{${argument(part, false)}}}`;
      // A comment separates the braces of an expression from a brace of the text.
    } else template += template.endsWith("}}") && part.startsWith("}") ? `{{!-- --}}${part}` : part;
  }
  if (!template.includes("{{")) template = template.replace(PLACEHOLDER, "{{! literal }}$");
  try {
    compileTemplate(template);
  } catch (error) {
    if (error instanceof Problem) throw new NotTranslated(error.message);
    throw error;
  }
  return template;
}

/** Braces that begin an expression of Handlebars, which a text of Go can have, become an expression with their text. */
function withoutBraces(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (typeof part === "string" && typeof last === "string") joined[joined.length - 1] = last + part;
    else joined.push(part);
  }
  return joined.flatMap((part, at): Part[] => {
    if (typeof part !== "string") return [part];
    const isLast = at === joined.length - 1;
    const pieces = part.split(isLast ? /(\{{2,})/ : /(\{{2,}|\{$)/).filter((piece) => piece !== "");
    return pieces.map((piece, index) =>
      /^\{{2,}$/.test(piece) || (piece === "{" && !isLast && index === pieces.length - 1)
        ? call("concat", { kind: "literal", value: piece })
        : piece,
    );
  });
}

function argument(expression: Expression, isNested = true): string {
  if (expression.kind === "literal") return literalText(expression.value);
  if (expression.kind === "reference") return spell([expression.reference.source, ...expression.reference.path]);
  const text = [expression.helper, ...expression.args.map((each) => argument(each))].join(" ");
  return isNested ? `(${text})` : text;
}

function literalText(value: string | number): string {
  if (typeof value === "number") return String(value);
  const quote = ['"', "'"].find((each) => !value.includes(each));
  if (quote === undefined || value.includes("\\")) throw new NotTranslated("a text with both quotes, or a backslash");
  return `${quote}${value}${quote}`;
}
