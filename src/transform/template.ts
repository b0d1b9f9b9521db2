/** Compiles and renders templates. Handlebars only parses. This code evaluates, and supports nothing else. */
import Handlebars from "handlebars";
import { stringifyJson } from "../apimachinery/json.ts";
import { BoundedMap } from "../apimachinery/maps.ts";
import { type JsonValue, plainPath } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { Budget } from "./budget.ts";
import { ALLOWED, asText, type Evaluate, Expressions, MAX_DEPTH, positionOf, refuse } from "./template-expression.ts";
import { type Slot, type Sources, sourceOf } from "./template-value.ts";

/** The beginning of a mustache. */
const TAG = /\{+[~&]*(!--|!|\s*else\b|[#^/])?/y;
/** `{{^}}` is an else, but `{{^if a.b}}` a block. */
const CLOSES = /\s*~?\}\}/y;
/** Quoted parts, in which braces and parentheses don't count, as in Handlebars' lexer. */
const QUOTED = /"(?:\\"|[^"])*"|'(?:\\'|[^'])*'|\[(?:\\\]|[^\]])*\]/y;

/**
 * The depth of nested calls or blocks; each `else` adds one. Reads braces, quotes and comments as Handlebars' lexer
 * does.
 */
export function nestingOf(text: string): number {
  let deepest = 0;
  /** The number of branches of each open block. */
  const blocks: number[] = [];
  for (let at = text.indexOf("{{"); at >= 0; at = text.indexOf("{{", at)) {
    const isEscaped = text[at - 1] === "\\" && text[at - 2] !== "\\";
    if (isEscaped) {
      at += 2;
      continue;
    }
    TAG.lastIndex = at;
    const [head = "", tag = ""] = TAG.exec(text) ?? [];
    if (tag.startsWith("!")) {
      const end = text.indexOf(tag === "!--" ? "--" : "}}", at + head.length);
      at = end < 0 ? text.length : end;
      continue;
    }
    CLOSES.lastIndex = at + head.length;
    if (tag.endsWith("else") || (tag === "^" && CLOSES.test(text))) blocks.push((blocks.pop() ?? 0) + 1);
    else if (tag === "#" || tag === "^") blocks.push(1);
    else if (tag === "/") blocks.pop();
    const { end, calls } = expressions(text, at + head.length);
    deepest = Math.max(deepest, calls, sum(blocks));
    at = end;
  }
  return deepest;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/** The position after the closing braces, and the depth of calls in them. */
function expressions(text: string, from: number): { end: number; calls: number } {
  let [depth, calls] = [0, 0];
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (character === "}" && text[at + 1] === "}") return { end: at + 2, calls };
    QUOTED.lastIndex = at;
    const quoted = QUOTED.exec(text)?.[0];
    if (quoted !== undefined) at += quoted.length - 1;
    else if (character === "(") calls = Math.max(calls, ++depth);
    else if (character === ")") depth--;
  }
  return { end: text.length, calls };
}

/** Far above the allowed depth: a check after parsing gives the better message. */
const MAX_NESTING = 128;
const START = "the start";
/** In characters of templates. Compiled templates take up to sixty times as much. */
const MAX_CACHED_CHARACTERS = 512 * 1024;

const handlebars = Handlebars.create();
/** Also caches failures, which take as long to compile. The most recently used are at the end. */
const cache = new BoundedMap<string, Template | Problem>(
  Number.POSITIVE_INFINITY,
  MAX_CACHED_CHARACTERS,
  (_, text) => text.length,
);

/**
 * Compiles a template, or returns the cached one. Throws Problem("InvalidTemplate") with line and column for content
 * that is not allowed, and Problem("InvalidBinding") for a source with the name of a reserved word.
 */
export function compileTemplate(text: string): Template {
  const template = cache.get(text) ?? attemptSync(() => new Template(text));
  cache.set(text, template);
  if (template instanceof Problem) throw template;
  return template;
}

export class Template {
  readonly #expressions: Expressions;
  readonly #render: Evaluate;

  /** With a `root`, every path belongs to the source of that name: `{{a.b}}` means `{{root.a.b}}`. */
  constructor(text: string, root?: string) {
    this.#expressions = new Expressions(root);
    const program = parse(text);
    const [only, ...others] = program.body;
    const isAlone = only?.type === "MustacheStatement" && others.length === 0;
    this.#render = isAlone ? this.#alone(only as hbs.AST.MustacheStatement) : this.#program(program, 0);
  }

  /** Every value that the template names, in order, including branches that are not taken. */
  get references(): readonly Slot[] {
    return this.#expressions.slots;
  }

  /**
   * The text with all values inserted. A template of only one expression keeps the type of its value. In `if` and
   * `unless`, a missing key is false; elsewhere it throws MissingValue. Also throws InvalidBinding (unknown source),
   * InvalidTemplate (impossible path, or too much text), NotUtf8, TypeMismatch (a value that is not a string, number or
   * boolean) and InvalidValue (a value that a helper can't read).
   */
  render(sources: Sources, budget = new Budget()): SecretValue<JsonValue> {
    for (const slot of this.#expressions.slots) sourceOf(slot, sources);
    try {
      budget.begin();
      return new SecretValue(this.#render({ sources, budget }));
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem("InvalidTemplate", `the template can't be rendered; ${ALLOWED}`);
    }
  }

  #program(program: hbs.AST.Program, depth: number): Evaluate<string> {
    const parts = program.body.map((node) => this.#statement(node, depth));
    return (frame) => parts.map((part) => part(frame)).join("");
  }

  #alone(node: hbs.AST.MustacheStatement): Evaluate {
    const evaluate = this.#expressions.mustache(node);
    return put((frame) => {
      const value = evaluate(frame);
      if (value !== null) return value;
      throw new Problem("InvalidValue", `template ${positionOf(node)}: the value is null`);
    });
  }

  #statement(node: hbs.AST.Statement, depth: number): Evaluate<string> {
    if (node.type === "CommentStatement") return () => "";
    if (node.type === "ContentStatement") return put(() => (node as hbs.AST.ContentStatement).value);
    if (node.type === "MustacheStatement")
      return put(asText(this.#expressions.mustache(node as hbs.AST.MustacheStatement), positionOf(node)));
    if (node.type === "BlockStatement") return this.#block(node as hbs.AST.BlockStatement, depth);
    throw refuse(node, `${node.type.replace(/(Statement|Block)+$/, "").toLowerCase()}s are not allowed`);
  }

  #block(node: hbs.AST.BlockStatement, depth: number): Evaluate<string> {
    if (node.hash !== undefined) throw refuse(node, "name=value is not allowed");
    const [condition, ...more] = node.params;
    const { original } = node.path;
    if ((original !== "if" && original !== "unless") || condition === undefined || more.length > 0) {
      const why = original === "each" ? ", because templates have no loops; name each key" : "";
      throw refuse(node, `this block is not allowed${why}`);
    }
    if (depth === MAX_DEPTH) throw refuse(node, `blocks are nested more than ${MAX_DEPTH} levels deep`);
    const test = this.#expressions.condition(condition);
    const [yes, no] = [node.program, node.inverse].map((branch) => {
      if (branch?.blockParams?.length) throw refuse(node, "block parameters are not allowed");
      return branch ? this.#program(branch, depth + 1) : () => "";
    }) as [Evaluate<string>, Evaluate<string>];
    return (frame) => (test(frame) === (original === "if") ? yes(frame) : no(frame));
  }
}

/** Charges each part of the result. */
function put<T extends JsonValue>(part: Evaluate<T>): Evaluate<T> {
  return (frame) => {
    const result = part(frame);
    frame.budget.step();
    frame.budget.output(typeof result === "string" ? result : stringifyJson(result));
    return result;
  };
}

const OPEN = "not well-formed, because a {{ has no }}; close it, as in {{source.key}}, or write \\{{ for the text {{";

function parse(text: string): hbs.AST.Program {
  if (nestingOf(text) > MAX_NESTING)
    throw new Problem("InvalidTemplate", `calls or blocks of the template are nested too deep; ${ALLOWED}`);
  try {
    return handlebars.parse(text);
  } catch (error) {
    const { message, lineNumber, column } = error as Error & { lineNumber?: number; column?: number };
    if (lineNumber !== undefined && column !== undefined) {
      const what = message.split(" - ")[0];
      throw new Problem("InvalidTemplate", `template ${lineNumber}:${column + 1}: ${what}; ${ALLOWED}`);
    }
    const isOpen = text.split("{{").length > text.split("}}").length;
    const [, line = 1, near = START] = /^Parse error on line (\d+):\n(.*)\n/.exec(message) ?? [];
    const where = `template ${line}, near ${near === START ? near : plainPath(near)}`;
    throw new Problem("InvalidTemplate", `${where}: ${isOpen ? OPEN : `not well-formed; ${ALLOWED}`}`);
  }
}
