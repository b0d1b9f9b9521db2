/** Compiles the expressions in a template's braces. It allows only paths of values and calls of helpers. */
import { parsePointer } from "../apimachinery/json-pointer.ts";
import { type JsonValue, plainPath, plainWord } from "../apimachinery/objects.ts";
import { attemptSync, MissingValue, Problem } from "../apimachinery/problem.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import type { Budget } from "./budget.ts";
import { costOf, parseText } from "./document.ts";
import { type ArgumentKind, type Helper, helpers, literals } from "./template-helpers.ts";
import {
  bytesOf,
  documentOf,
  isOfSecret,
  isTrue,
  isTruthy,
  mayUseDefault,
  readSlot,
  type Slot,
  type Sources,
  sourceOf,
  spell,
} from "./template-value.ts";

/** The input of one rendering. */
interface Frame {
  sources: Sources;
  budget: Budget;
}

export type Evaluate<T = JsonValue> = (frame: Frame) => T;

/** A value in a template. `slot` is set if it is only a path. */
interface Expression {
  evaluate: Evaluate;
  slot?: Slot;
}

export const MAX_DEPTH = 32;
export const ALLOWED =
  "a template may contain {{source.key}}, {{#if source.key}}, {{#unless source.key}}, {{else}}, comments, and the helpers " +
  `${[...helpers.keys()].join(", ")}, as in {{base64 source.key}} or {{replace (trim source.key) "a" "b"}}; ` +
  "write a key with other characters in brackets, as in {{source.[tls.crt]}}, and the text {{ as \\{{";
/** Words with a meaning in Handlebars that can't be names of sources. */
const WORDS = "if unless each with lookup log else this helperMissing blockHelperMissing true false null undefined as";
const RESERVED = new Set([...WORDS.split(" "), ...helpers.keys()]);

export class Expressions {
  /** All paths in order. */
  readonly slots: Slot[] = [];
  readonly #root: readonly string[];

  constructor(root?: string) {
    this.#root = root === undefined ? [] : [root];
  }

  /** Evaluates `{{…}}`. */
  mustache(node: hbs.AST.MustacheStatement): Evaluate {
    if (node.hash !== undefined) throw refuse(node, "name=value is not allowed");
    const isCall = node.params.length > 0 || (isPath(node.path) && helpers.has(node.path.original));
    return (isCall ? this.#call(node, 0) : this.#value(node.path, 0)).evaluate;
  }

  /** Evaluates the condition of an `if`. */
  condition(node: hbs.AST.Expression): Evaluate<boolean> {
    if (node.type === "PathExpression") {
      const slot = this.#slot(node as hbs.AST.PathExpression);
      return ({ sources, budget }) => {
        budget.step();
        return isTrue(slot, sources);
      };
    }
    if (node.type !== "SubExpression") throw refuse(node, "only the path of a value or a helper is allowed here");
    const { evaluate } = this.#call(node as hbs.AST.SubExpression, 0);
    return (frame) => isTruthy(evaluate(frame));
  }

  #value(node: hbs.AST.Expression, depth: number): Expression {
    if (node.type === "SubExpression") return this.#call(node as hbs.AST.SubExpression, depth);
    if (node.type === "PathExpression") {
      const slot = this.#slot(node as hbs.AST.PathExpression);
      const evaluate: Evaluate = ({ sources, budget }) => {
        budget.step();
        return readSlot(slot, sources);
      };
      return { evaluate, slot };
    }
    if (depth === 0 || !isConstant(node)) throw refuse(node, "only the path of a value is allowed here");
    const { value } = node as hbs.AST.StringLiteral;
    return { evaluate: () => value };
  }

  #call(node: hbs.AST.MustacheStatement | hbs.AST.SubExpression, depth: number): Expression {
    const { path, params, hash } = node;
    if (hash !== undefined) throw refuse(node, "name=value is not allowed");
    if (depth === MAX_DEPTH) throw refuse(node, `helpers are nested more than ${MAX_DEPTH} levels deep`);
    const name = isPath(path) ? path.original : "this";
    const helper = isPath(path) && path.parts.length === 1 && path.parts[0] === name ? helpers.get(name) : undefined;
    if (helper === undefined) throw refuse(node, `${plainWord(name)} is not a helper${similarHelper(name)}`);
    const first = this.slots.length;
    const { length } = helper.takes;
    if (params.length < length || (params.length > length && !helper.repeats)) {
      const count = helper.repeats ? `${length} or more` : length;
      const takes = `${name} takes ${count === 1 ? "1 argument" : `${count} arguments`}`;
      throw refuse(node, `${takes}, but has ${params.length}; write {{${helper.usage}}}`);
    }
    const kinds = params.map((_, n) => helper.takes[Math.min(n, length - 1)] as ArgumentKind);
    const args = kinds.map((kind, n) => this.#argument(kind, params[n] as hbs.AST.Expression, helper, depth + 1));
    const subject = `template ${positionOf(node)}`;
    const used = this.slots.slice(first);
    const [slot] = used;
    return {
      evaluate: (frame) => {
        frame.budget.step();
        if (name === "default") return withDefault(frame, args as Evaluate[]);
        const missing = (what: string) => missingIn(slot, frame.sources, what, subject);
        return helper.make(
          args.map((evaluate) => evaluate(frame)),
          { budget: frame.budget, subject, missing, fromSecret: used.some((each) => isOfSecret(each, frame.sources)) },
        );
      },
    };
  }

  /** One argument, converted to the kind that the helper takes. */
  #argument(kind: ArgumentKind, node: hbs.AST.Expression, { usage }: Helper, depth: number): Evaluate<unknown> {
    const at = positionOf(node);
    const literal = literals.get(kind);
    if (literal !== undefined) {
      const { value } = node as hbs.AST.StringLiteral;
      const fits = isConstant(node) && literal.fits(value);
      if (!fits) throw refuse(node, `expected ${literal.rule}, as in {{${usage}}}`);
      const wrong = kind === "pointer" ? attemptSync(() => parsePointer(value)) : undefined;
      if (wrong instanceof Problem) throw refuse(node, wrong.what);
      return () => value;
    }
    const { evaluate, slot } = this.#value(node, depth);
    const text = asText(evaluate, at);
    switch (kind) {
      case "text":
        return text;
      case "bytes":
        return (frame) => (slot && bytesOf(slot, frame.sources)) ?? Buffer.from(text(frame));
      case "document":
        return (frame) => (slot && documentOf(slot, frame.sources, frame.budget)) ?? parsed(evaluate(frame), frame, at);
      case "list":
        return (frame) => {
          const list = evaluate(frame);
          if (Array.isArray(list)) return list;
          throw new Problem("TypeMismatch", `template ${at}: this is not a list; create one, as in {{${usage}}}`);
        };
      default:
        return evaluate;
    }
  }

  #slot(node: hbs.AST.PathExpression): Slot {
    const { parts, original } = node;
    const [source, ...path] = [...this.#root, ...parts];
    // Differs if the path begins with @, ../ or this, or has slashes in place of dots.
    if (source === undefined || parts.length === 0 || original !== parts.join("."))
      throw refuse(node, `${plainPath(original)} is not a path of a value`);
    const at = positionOf(node);
    if (RESERVED.has(source)) {
      const message = `template ${at}: ${source} is a reserved word in templates; rename the source`;
      throw new Problem("InvalidBinding", message);
    }
    if (path.length === 0) throw new WithoutKey(node, source);
    const slot = { source, path, at };
    this.slots.push(slot);
    return slot;
  }
}

/** Asks whether a helper with a similar name is meant. */
function similarHelper(name: string): string {
  const names = [...helpers.keys()];
  const similar = similarName(name, names) ?? names.find((each) => name.startsWith(each) || each.startsWith(name));
  return similar === undefined ? "" : ` (did you mean ${similar}?)`;
}

export function positionOf(node: hbs.AST.Node): string {
  return `${node.loc.start.line}:${node.loc.start.column + 1}`;
}

export function refuse(node: hbs.AST.Node, what: string): Problem {
  return new Problem("InvalidTemplate", `template ${positionOf(node)}: ${what}; ${ALLOWED}`);
}

/** An expression names something without a key. */
export class WithoutKey extends Problem {
  readonly named: string;
  constructor(node: hbs.AST.Node, named: string) {
    const what = `${plainPath(`{{${named}}}`)} has no key; write ${plainPath(`{{${spell([named, "key"])}}}`)}`;
    super("InvalidTemplate", refuse(node, what));
    this.named = named;
  }
}

const isConstant = (node: hbs.AST.Node) => node.type === "StringLiteral" || node.type === "NumberLiteral";

const isPath = (node: hbs.AST.Node): node is hbs.AST.PathExpression => node.type === "PathExpression";

/** The value as text, if it is a text, number or boolean. */
export function asText(evaluate: Evaluate, at: string): Evaluate<string> {
  return (frame) => {
    const value = evaluate(frame);
    if (value !== null && typeof value !== "object") return String(value);
    const what = value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
    const message = `template ${at}: the value is ${what}; name a string or number in it, or convert it with json, yaml or join`;
    throw new Problem("TypeMismatch", message);
  };
}

function parsed(value: JsonValue, { budget }: Frame, at: string): JsonValue {
  if (typeof value !== "string") return value;
  budget.work(costOf(value));
  return parseText(value, "either", `template ${at}: the string`);
}

/** Evaluates `default`: the second argument if the first is missing or an empty text. */
function withDefault(frame: Frame, [first, second]: Evaluate[]): JsonValue {
  try {
    const value = (first as Evaluate)(frame);
    if (value !== "") return value;
  } catch (error) {
    if (!mayUseDefault(error)) throw error;
  }
  return (second as Evaluate)(frame);
}

function missingIn(slot: Slot | undefined, sources: Sources, what: string, subject: string): Problem {
  if (slot === undefined) return new Problem("InvalidTemplate", `${subject}: there is ${what}`);
  const { description, policy } = sourceOf(slot, sources);
  const message = `${subject}: ${plainPath(spell(slot.path))} of ${description} has ${what}`;
  return new MissingValue("KeyNotFound", message, policy);
}
