/** Reads expressions of CEL as trees, with message literals such as `Object{spec: 1}` and with the variables of a policy. Pure. */
import { type ASTNode, Environment } from "@marcbachmann/cel-js";
import { NotTranslated } from "./go-expression.ts";

export type Cel =
  | { readonly kind: "value"; readonly value: string | number | boolean | null }
  | { readonly kind: "name"; readonly name: string }
  /** A field or a key: `of.name` and `of["name"]`. */
  | { readonly kind: "field"; readonly of: Cel; readonly name: string }
  /** A function, or a method of `of`. */
  | { readonly kind: "call"; readonly name: string; readonly of?: Cel; readonly args: readonly Cel[] }
  | { readonly kind: "list"; readonly items: readonly Cel[] }
  /** A map, or a message. */
  | { readonly kind: "map"; readonly entries: readonly (readonly [Cel, Cel])[] }
  | { readonly kind: "operation"; readonly operator: string; readonly args: readonly Cel[] };

/** The variables of a policy by their names. */
export type Variables = ReadonlyMap<string, Cel>;

/** Variables can refer to each other, so that a short policy can have a long value. */
const MAX_NODES = 5_000;
const sizes = new WeakMap<Cel, number>();
const environment = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true });
const UNKNOWN = "a part of CEL that Inlay does not read";

/** Throws NotTranslated. */
export function parseCel(text: string, variables: Variables = new Map()): Cel {
  let node: ASTNode;
  try {
    node = environment.parse(withoutMessages(text)).ast;
  } catch {
    throw new NotTranslated(UNKNOWN);
  }
  return treeOf(node, variables);
}

function treeOf(node: ASTNode, variables: Variables): Cel {
  let size = 1;
  const sub = (each: ASTNode): Cel => {
    const tree = treeOf(each, variables);
    size += sizes.get(tree) ?? 1;
    return tree;
  };
  const tree = shapeOf(node, sub, variables);
  // The value of a variable has its size already.
  if (sizes.has(tree)) return tree;
  if (size > MAX_NODES) throw new NotTranslated("a value that is too long");
  sizes.set(tree, size);
  return tree;
}

/** The tree, with the trees that `sub` makes of its parts. */
function shapeOf(node: ASTNode, sub: (part: ASTNode) => Cel, variables: Variables): Cel {
  switch (node.op) {
    case "value":
      return { kind: "value", value: literalOf(node.args) };
    case "id":
      return { kind: "name", name: node.args };
    case ".":
    case ".?": {
      const [of, name] = node.args;
      if (of.op !== "id" || of.args !== "variables") return { kind: "field", of: sub(of), name };
      const value = variables.get(name);
      if (value === undefined) throw new NotTranslated(`the variable ${name}, which Inlay does not read`);
      return value;
    }
    case "[]":
    case "[?]": {
      const of = sub(node.args[0]);
      const key = treeOf(node.args[1], variables);
      if (key.kind !== "value" || typeof key.value !== "string") throw new NotTranslated(UNKNOWN);
      return { kind: "field", of, name: key.value };
    }
    case "call":
      return { kind: "call", name: node.args[0], args: node.args[1].map(sub) };
    case "rcall":
      return { kind: "call", name: node.args[0], of: sub(node.args[1]), args: node.args[2].map(sub) };
    case "list":
      return { kind: "list", items: node.args.map(sub) };
    case "map":
      return { kind: "map", entries: node.args.map(([key, value]) => [sub(key), sub(value)] as const) };
    case "!_":
    case "-_":
      return { kind: "operation", operator: node.op, args: [sub(node.args)] };
    default:
      return { kind: "operation", operator: node.op, args: (node.args as readonly ASTNode[]).map(sub) };
  }
}

function literalOf(value: unknown): string | number | boolean | null {
  if (typeof value === "bigint") return Number(value);
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return value as string;
  throw new NotTranslated(UNKNOWN);
}

const TOKEN =
  /\s+|\/\/[^\n]*|[rR]?("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|([A-Za-z_]\w*)|\d[\w.]*|[=!<>]=|&&|\|\||\.\?|\[\?|[\s\S]/g;

/** The parser has no messages: `Object.spec{replicas: 1}` becomes the map `{"replicas": 1}`. */
function withoutMessages(text: string): string {
  const tokens: { readonly text: string; readonly isName: boolean }[] = [];
  /** For each open brace, whether it is that of a message. */
  const braces: boolean[] = [];
  for (const { text: token, isName } of tokensOf(text)) {
    if (token === "{") {
      const isMessage = tokens.at(-1)?.isName === true;
      braces.push(isMessage);
      if (isMessage) dropType(tokens);
    } else if (token === "}") braces.pop();
    else if (
      token === ":" &&
      braces.at(-1) === true &&
      tokens.at(-1)?.isName &&
      ["{", ","].includes(tokens.at(-2)?.text ?? "")
    ) {
      const key = tokens.pop();
      tokens.push({ text: JSON.stringify(key?.text), isName: false });
    }
    tokens.push({ text: token, isName });
  }
  return tokens.map((token) => token.text).join(" ");
}

/** The tokens without white space and comments. */
function* tokensOf(text: string): Generator<{ text: string; isName: boolean }> {
  for (const [token, quoted, name] of text.matchAll(TOKEN))
    if (quoted !== undefined || !/^(?:\s+|\/\/.*)$/.test(token))
      yield { text: token, isName: name !== undefined && name !== "in" };
}

/** Removes the name of a type, such as `Object.spec`, from the end. */
function dropType(tokens: { readonly text: string; readonly isName: boolean }[]): void {
  while (tokens.at(-1)?.isName) {
    tokens.pop();
    if (tokens.at(-1)?.text === ".") tokens.pop();
    else return;
  }
}

/** The keys of `object.metadata.name` and `object.metadata["name"]`. Undefined for anything else. */
export function pathOf(tree: Cel): readonly string[] | undefined {
  if (tree.kind === "name") return [tree.name];
  if (tree.kind !== "field") return undefined;
  const above = pathOf(tree.of);
  return above === undefined ? undefined : [...above, tree.name];
}

/** The argument, if the tree is the call of a function that only converts it to a text. */
export function textCallIn(tree: Cel, names: readonly string[] = ["dyn", "string"]): Cel | undefined {
  if (tree.kind !== "call" || tree.of !== undefined || !names.includes(tree.name)) return undefined;
  return tree.args.length === 1 ? tree.args[0] : undefined;
}

/** The text that the expression always has. */
export function textOf(tree: Cel): string | undefined {
  if (tree.kind === "value") return typeof tree.value === "string" ? tree.value : undefined;
  const converted = textCallIn(tree);
  if (converted !== undefined) return textOf(converted);
  if (tree.kind !== "operation" || tree.operator !== "+") return undefined;
  const texts = tree.args.map(textOf);
  return texts.includes(undefined) ? undefined : texts.join("");
}

export function textsOf(tree: Cel | undefined): readonly string[] | undefined {
  if (tree?.kind !== "list") return undefined;
  const texts = tree.items.map(textOf);
  return texts.includes(undefined) ? undefined : (texts as string[]);
}

/** The operands, if the tree is that operation. */
export const operandsOf = (tree: Cel | undefined, operator: string): readonly Cel[] | undefined =>
  tree?.kind === "operation" && tree.operator === operator ? tree.args : undefined;

/** The parts of `a && b && c`. */
export const partsOf = (tree: Cel, operator: "&&" | "||"): readonly Cel[] =>
  operandsOf(tree, operator)?.flatMap((each) => partsOf(each, operator)) ?? [tree];

/** The arguments, if the tree is the call of that method, such as `resource.Get`. */
export const argumentsOf = (tree: Cel, of: string, name: string): readonly Cel[] | undefined =>
  tree.kind === "call" && tree.name === name && tree.of?.kind === "name" && tree.of.name === of ? tree.args : undefined;

/** The text of a JSON pointer, with `jsonpatch.escapeKey`. */
export function pointerOf(tree: Cel): string | undefined {
  const [key] = argumentsOf(tree, "jsonpatch", "escapeKey") ?? [];
  if (key !== undefined) return textOf(key)?.replaceAll("~", "~0").replaceAll("/", "~1");
  const texts = operandsOf(tree, "+")?.map(pointerOf);
  return texts === undefined ? textOf(tree) : texts.includes(undefined) ? undefined : texts.join("");
}
