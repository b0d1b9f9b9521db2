/**
 * Text with values in it: a template's text comes in, a compiled template goes out, which makes literal text of the
 * sources' values. Handlebars parses and renders; of its language only values, comments, if and unless are let through.
 */
import Handlebars from "handlebars";
import { step } from "../model/field-path.ts";
import { Problem } from "../model/problem.ts";
import { SecretValue } from "../model/secret-value.ts";
import type { LiveSource } from "../model/source-value.ts";
import { exact, type ObjectSource, readText } from "./read.ts";

/** A value that a template names: `{{bucket.[tls.crt]}}` is `{ source: "bucket", path: ["tls.crt"] }`. */
export interface Reference {
  readonly source: string;
  readonly path: readonly string[];
}

/** A reference and where it stands, as `line:column`, both from 1. */
interface Slot extends Reference {
  readonly at: string;
}

const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_DEPTH = 32;
const MAX_CACHED = 1024;
const ALLOWED =
  "a template may hold {{source.key}}, {{#if source.key}}, {{#unless source.key}}, {{else}} and comments; " +
  "a key that is no plain word stands in brackets, as in {{source.[tls.crt]}}";
/** Words that mean something to Handlebars where a source's name stands. */
const RESERVED = new Set(
  "if unless each with lookup log else this helperMissing blockHelperMissing true false null undefined as".split(" "),
);

const handlebars = Handlebars.create();
const cache = new Map<string, Template>();

/**
 * Compiles a template, or finds it compiled. Throws Problem("InvalidTemplate") for what is not allowed in one, with line
 * and column, and Problem("InvalidBinding") for a source named like a word of the language.
 */
export function compileTemplate(text: string): Template {
  const template = cache.get(text) ?? new Template(text);
  cache.delete(text);
  cache.set(text, template);
  for (const oldest of cache.keys()) {
    if (cache.size <= MAX_CACHED) break;
    cache.delete(oldest);
  }
  return template;
}

export class Template {
  readonly #bytes: number;
  readonly #slots: Slot[] = [];
  readonly #render: (context: { values: object; tests: object }) => string;

  constructor(text: string) {
    this.#bytes = Buffer.byteLength(text);
    const program = parse(text);
    this.#admit(program, 0);
    this.#render = handlebars.compile(program, { strict: true, noEscape: true, knownHelpersOnly: true });
  }

  /** Every value that the template names, in order, those of branches not taken too. */
  get references(): readonly Reference[] {
    return this.#slots;
  }

  /**
   * The text, every value as it is. In `if` and `unless` an absent key is false; anywhere else it throws
   * Problem("KeyNotFound"). Also throws InvalidBinding (no such source), InvalidTemplate (a path that can't be in its
   * source, or text over 1 MiB), NotUtf8 and TypeMismatch (a value that is no string, number or boolean).
   */
  render(sources: ReadonlyMap<string, LiveSource>): SecretValue<string> {
    const found = this.#slots.map((slot) => find(slot, sources));
    let bytes = this.#bytes;
    const value = (slot: Slot, source: LiveSource) => {
      const text = read(slot, source);
      bytes += Buffer.byteLength(text);
      if (bytes > MAX_OUTPUT_BYTES) throw new Problem("InvalidTemplate", "the template's text would be over 1 MiB");
      return text;
    };
    const lookup = (get: (slot: Slot, source: LiveSource) => unknown) => {
      const getters = this.#slots.map((slot, n) => [n, { get: () => get(slot, found[n] as LiveSource) }] as const);
      return Object.defineProperties({}, Object.fromEntries(getters));
    };
    try {
      return new SecretValue(this.#render({ values: lookup(value), tests: lookup(test) }));
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem("InvalidTemplate", `the template can't be rendered; ${ALLOWED}`);
    }
  }

  /**
   * Lets the allowed nodes pass, and replaces every path by a number in `values` or `tests`: no name that a user chose
   * reaches Handlebars' own lookup.
   */
  #admit(program: hbs.AST.Program, depth: number): void {
    for (const node of program.body) {
      if (node.type === "ContentStatement" || node.type === "CommentStatement") continue;
      const { path, params = [], hash } = node as hbs.AST.MustacheStatement;
      if (hash !== undefined) throw refuse(node, "name=value is not allowed");
      if (node.type === "MustacheStatement") {
        if (params.length > 0) throw refuse(node, "a helper is not allowed");
        this.#number(path, "values");
      } else if (node.type === "BlockStatement") {
        const block = node as hbs.AST.BlockStatement;
        const [condition, ...more] = params;
        const { original } = block.path;
        if ((original !== "if" && original !== "unless") || condition === undefined || more.length > 0) {
          throw refuse(node, "this block is not allowed");
        }
        if (depth === MAX_DEPTH) throw refuse(node, `blocks stand more than ${MAX_DEPTH} deep`);
        this.#number(condition, "tests");
        for (const branch of [block.program, block.inverse]) {
          if (branch?.blockParams?.length) throw refuse(node, "block parameters are not allowed");
          if (branch) this.#admit(branch, depth + 1);
        }
      } else {
        throw refuse(node, `${node.type.replace(/(Statement|Block)+$/, "").toLowerCase()}s are not allowed`);
      }
    }
  }

  #number(node: hbs.AST.Expression, list: "values" | "tests"): void {
    const expression = node as hbs.AST.PathExpression;
    const { parts, original } = expression;
    if (expression.type !== "PathExpression") throw refuse(node, "only the path of a value is allowed here");
    const [source, ...path] = parts;
    // Equal unless the path begins with @, ../ or this, or has slashes for dots.
    if (source === undefined || original !== parts.join(".")) throw refuse(node, `${original} is no path of a value`);
    const at = position(node);
    if (RESERVED.has(source)) {
      throw new Problem(
        "InvalidBinding",
        `template ${at}: ${source} is a word of templates; give the source another name by its field name`,
      );
    }
    if (path.length === 0) throw refuse(node, `{{${source}}} names no key; write {{${write([source, "key"])}}}`);
    expression.parts = [list, String(this.#slots.length)];
    expression.original = expression.parts.join(".");
    this.#slots.push({ source, path, at });
  }
}

function parse(text: string): hbs.AST.Program {
  try {
    return handlebars.parse(text);
  } catch (error) {
    const { message, lineNumber, column } = error as Error & { lineNumber?: number; column?: number };
    if (lineNumber !== undefined && column !== undefined) {
      throw new Problem(
        "InvalidTemplate",
        `template ${lineNumber}:${column + 1}: ${message.split(" - ")[0]}; ${ALLOWED}`,
      );
    }
    const [, line, near] = /^Parse error on line (\d+):\n(.*)\n/.exec(message) ?? [];
    throw new Problem(
      "InvalidTemplate",
      `template ${line ?? 1}, near ${near ?? "the start"}: not well-formed; ${ALLOWED}`,
    );
  }
}

function position(node: hbs.AST.Node): string {
  return `${node.loc.start.line}:${node.loc.start.column + 1}`;
}

function refuse(node: hbs.AST.Node, what: string): Problem {
  return new Problem("InvalidTemplate", `template ${position(node)}: ${what}; ${ALLOWED}`);
}

/** A path as a template writes it, brackets where they are needed. */
function write(parts: readonly string[]): string {
  return parts.map((part) => (/^[A-Za-z_][\w-]*$/.test(part) ? part : `[${part}]`)).join(".");
}

function find(slot: Slot, sources: ReadonlyMap<string, LiveSource>): LiveSource {
  const source = sources.get(slot.source);
  if (source === undefined) throw new Problem("InvalidBinding", unknownSource(slot, sources.keys()));
  if (source.kind === "data" && slot.path.length > 1) {
    throw new Problem(
      "InvalidTemplate",
      `template ${slot.at}: ${source.description} has keys, and nothing below them; a key with dots stands in ` +
        `brackets: {{${write([slot.source, slot.path.join(".")])}}}`,
    );
  }
  return source;
}

/** The message for a reference to a source that the binding doesn't have; with a hint if its name has dots. */
export function unknownSource(reference: Reference, names: Iterable<string>): string {
  const known = [...names];
  const text = [reference.source, ...reference.path].join(".");
  const dotted = known.find((name) => text.startsWith(`${name}.`));
  const hint = dotted === undefined ? "" : `; write {{${write([dotted, text.slice(dotted.length + 1)])}}}`;
  return `no source is called ${reference.source}; there is ${known.join(", ")}${hint}`;
}

/** The text of a scalar. */
function read(slot: Slot, source: LiveSource): string {
  if (source.kind === "data") return readText(source, slot.path[0] as string).reveal();
  const where = slot.path.join(".");
  const value = walk(slot, source);
  if (typeof value === "object" && value !== null) {
    const what = Array.isArray(value) ? "a list" : "an object";
    throw new Problem(
      "TypeMismatch",
      `field ${where} of ${source.description} is ${what}; name a text or number in it`,
    );
  }
  return String(exact(value, source, where));
}

/** What `if` asks: whether the value is there and not empty, 0 or false. */
function test(slot: Slot, source: LiveSource): unknown {
  if (source.kind === "object") return walk(slot, source);
  return (source.data.get(slot.path[0] as string)?.reveal().length ?? 0) > 0;
}

function walk(slot: Slot, source: ObjectSource): unknown {
  return slot.path.reduce<unknown>((from, part) => {
    const index = Array.isArray(from) && /^\d+$/.test(part);
    return step(from, index ? { kind: "index", index: Number(part) } : { kind: "key", key: part });
  }, source.object.reveal());
}
