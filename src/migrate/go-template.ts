/** Translates Go templates to Handlebars where both give the same text. Everything else is refused with a reason. Pure. */
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { compileTemplate } from "../transform/template.ts";
import { spell } from "../transform/template-value.ts";
import {
  call,
  type Expression,
  type Key,
  NotTranslated,
  type Reference,
  type Resolve,
  type Token,
  tokensOf,
} from "./go-expression.ts";

interface Action {
  readonly index: number;
  readonly length: number;
  readonly body: string;
  readonly trimsBefore: boolean;
  readonly trimsAfter: boolean;
}

const ACTION = /\{\{(-\s)?((?:"(?:[^"\\]|\\.)*"|`[^`]*`|(?!\}\})[^"`])*)\}\}/y;

/** The actions of a template, up to one whose braces are not closed. A minus at the end of one trims the text after it. */
export function* actionsIn(text: string): Generator<Action> {
  for (let index = text.indexOf("{{"), end = 0; index >= 0; index = text.indexOf("{{", end)) {
    ACTION.lastIndex = index;
    const found = ACTION.exec(text);
    if (found === null) return;
    const [all, before, body = ""] = found;
    end = index + all.length;
    const trimsAfter = /\s-$/.test(body);
    const inner = (trimsAfter ? body.slice(0, -1) : body).trim();
    yield { index, length: all.length, body: inner, trimsBefore: before !== undefined, trimsAfter };
  }
}

type Value = { readonly kind: "path"; readonly keys: readonly Key[] } | Expression;
const TOKEN =
  /\s+|"(?<quoted>(?:[^"\\]|\\.)*)"|`(?<raw>[^`]*)`|(?<number>\d+)(?![\w.])|(?<path>\$?(?:\.[A-Za-z_]\w*)+|\$(?!\w)|\.(?![\w.]))|(?<name>[A-Za-z_]\w*)|(?<mark>[()|])/y;
const KEYWORDS = /^(if|else|end|range|with|define|template|block|include|break|continue)$/;

function textToken({ kind, text }: Token): Token {
  if (kind === "quoted") return { kind: "text", text: unquote(text) };
  return { kind: kind === "raw" ? "text" : kind, text };
}

function unquote(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    throw new NotTranslated("an escape sequence in quotes");
  }
}

const keysIn = (path: string): string[] =>
  path
    .split(".")
    .slice(1)
    .filter((key) => key !== "");

/** Throws NotTranslated. */
function parseAction(body: string, resolve: Resolve): Expression {
  const unknown = "a part of an expression that Handlebars does not have";
  const tokens = Array.from(tokensOf(body, TOKEN, unknown), textToken);
  let at = 0;
  const isMark = (text: string) => tokens[at]?.kind === "mark" && tokens[at]?.text === text;

  function pipeline(): Value {
    let value = command(undefined);
    while (isMark("|")) {
      at++;
      value = command(value);
    }
    return value;
  }

  /** A value, or the call of a function; `piped` is its last argument. */
  function command(piped: Value | undefined): Value {
    const first = tokens[at];
    if (first?.kind === "name") {
      at++;
      if (KEYWORDS.test(first.text))
        throw new NotTranslated(`${first.text}, a block of Go, which Inlay does not translate`);
      const args: Value[] = [];
      while (at < tokens.length && !isMark("|") && !isMark(")")) args.push(operand());
      return applied(first.text, piped === undefined ? args : [...args, piped], resolve);
    }
    const value = operand();
    if (piped !== undefined || (at < tokens.length && !isMark("|") && !isMark(")")))
      throw new NotTranslated("a value that is called as a function");
    return value;
  }

  function operand(): Value {
    const token = tokens[at++];
    if (token?.kind === "text") return { kind: "literal", value: token.text };
    if (token?.kind === "number") return { kind: "literal", value: Number(token.text) };
    if (token?.kind === "path") return { kind: "path", keys: keysIn(token.text) };
    if (token?.kind !== "mark" || token.text !== "(")
      throw new NotTranslated("a function as an argument, or a variable");
    const inner = pipeline();
    if (!isMark(")")) throw new NotTranslated("a missing parenthesis");
    at++;
    const next = tokens[at];
    if (next?.kind !== "path" || !next.text.startsWith(".") || next.text === ".") return inner;
    at++;
    if (inner.kind !== "path") throw new NotTranslated("a field of a result");
    return { kind: "path", keys: [...inner.keys, ...keysIn(next.text)] };
  }

  const value = pipeline();
  if (at < tokens.length) throw new NotTranslated("a parenthesis too many");
  return expressionOf(value, resolve);
}

const expressionOf = (value: Value, resolve: Resolve): Expression =>
  value.kind === "path" ? resolve(value.keys) : value;

/** Functions of Go templates and sprig with one argument, and the helper with the same result. */
const SAME: Readonly<Record<string, string>> = {
  b64enc: "base64",
  b64dec: "base64decode",
  lower: "lower",
  sha256sum: "sha256sum",
  toJson: "json",
  trim: "trim",
  upper: "upper",
};

function applied(name: string, args: readonly Value[], resolve: Resolve): Value {
  const [first, ...rest] = args;
  if (name === "index" || name === "get") {
    if (first?.kind !== "path") throw new NotTranslated(`${name} of a result`);
    const keys = rest.map((key) => {
      if (key.kind !== "literal") throw new NotTranslated(`${name} with a computed key`);
      return key.value;
    });
    return { kind: "path", keys: [...first.keys, ...keys] };
  }
  const expressions = args.map((each) => expressionOf(each, resolve));
  const [one, two, three] = expressions;
  if (name === "lookup" && resolve.lookup !== undefined && args.length === 4) {
    const [apiVersion = "", kind = "", namespace = "", object = ""] = expressions.map((each) => {
      if (each.kind !== "literal") throw new NotTranslated("lookup of a computed name");
      return String(each.value);
    });
    return { kind: "path", keys: [resolve.lookup({ apiVersion, kind, namespace, name: object })] };
  }
  if (args.length === 1 && one !== undefined) {
    if (name === "toString") return one;
    if (Object.hasOwn(SAME, name)) return call(SAME[name] as string, one);
  }
  if (name === "default" && args.length === 2 && one !== undefined && two !== undefined)
    return call("default", two, one);
  if (name === "replace" && args.length === 3 && one !== undefined && two !== undefined && three !== undefined)
    return call("replace", three, one, two);
  if (name === "printf" && one?.kind === "literal") return formatted(String(one.value), expressions.slice(1));
  throw new NotTranslated(`the function ${name}, which no helper of Inlay replaces exactly`);
}

/** `printf` with %s only. */
function formatted(format: string, args: readonly Expression[]): Expression {
  const pieces = format.split("%s");
  if (pieces.some((piece) => piece.includes("%")) || pieces.length !== args.length + 1)
    throw new NotTranslated("printf with another verb than %s");
  const all = pieces.flatMap((value, at): Expression[] => {
    const next = args[at];
    return [...(value === "" ? [] : [{ kind: "literal", value } as const]), ...(next === undefined ? [] : [next])];
  });
  return call("concat", ...all);
}

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
  return { source, fieldPath: String(new FieldPath(path.map(keySegment))) };
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
  const compiled = attemptSync(() => compileTemplate(template));
  if (compiled instanceof Problem) throw new NotTranslated(compiled.message);
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
