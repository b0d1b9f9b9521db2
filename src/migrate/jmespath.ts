/** Parses the part of JMESPath that Kyverno policies use to read values: fields, pipes, functions and `||`. Pure. */
import { NotTranslated } from "./go-expression.ts";

export type JmesPath =
  | { readonly kind: "current" }
  | { readonly kind: "literal"; readonly value: string | number }
  | { readonly kind: "field"; readonly of: JmesPath; readonly name: string }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly JmesPath[] }
  | { readonly kind: "pipe"; readonly left: JmesPath; readonly right: JmesPath }
  | { readonly kind: "or"; readonly left: JmesPath; readonly right: JmesPath };

interface Token {
  readonly kind: "name" | "quoted" | "literal" | "mark";
  readonly text: string;
}

const TOKEN = /\s+|([A-Za-z_]\w*)|("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`|(\|\||[.|@(),])/y;
const CURRENT: JmesPath = { kind: "current" };

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (found === null) throw new NotTranslated("a part of JMESPath that Inlay does not translate");
    const [, name, quoted, raw, json, mark] = found;
    if (name !== undefined) tokens.push({ kind: "name", text: name });
    else if (quoted !== undefined) tokens.push({ kind: "quoted", text: quoted });
    else if (raw !== undefined) tokens.push({ kind: "literal", text: JSON.stringify(raw.replaceAll("\\'", "'")) });
    else if (json !== undefined) tokens.push({ kind: "literal", text: json });
    else if (mark !== undefined) tokens.push({ kind: "mark", text: mark });
  }
  return tokens;
}

/** Throws NotTranslated. */
export function parseJmesPath(text: string): JmesPath {
  const tokens = tokensOf(text);
  let at = 0;
  const isMark = (mark: string) => tokens[at]?.kind === "mark" && tokens[at]?.text === mark;
  const take = (mark: string) => isMark(mark) && at++ >= 0;

  function pipe(): JmesPath {
    let left = or();
    while (take("|")) left = { kind: "pipe", left, right: or() };
    return left;
  }

  function or(): JmesPath {
    const left = fields();
    return take("||") ? { kind: "or", left, right: or() } : left;
  }

  function fields(): JmesPath {
    let value = first();
    while (take(".")) value = { kind: "field", of: value, name: nameAt(tokens[at++]) };
    return value;
  }

  function first(): JmesPath {
    if (take("(")) return closed(pipe());
    const token = tokens[at++];
    if (token?.kind === "mark" && token.text === "@") return CURRENT;
    if (token?.kind === "literal") return { kind: "literal", value: literalOf(token.text) };
    const name = nameAt(token);
    if (token?.kind !== "name" || !take("(")) return { kind: "field", of: CURRENT, name };
    const args: JmesPath[] = [];
    if (take(")")) return { kind: "call", name, args };
    do args.push(pipe());
    while (take(","));
    return closed({ kind: "call", name, args });
  }

  function closed(value: JmesPath): JmesPath {
    if (!take(")")) throw new NotTranslated("a missing parenthesis");
    return value;
  }

  const value = pipe();
  if (at < tokens.length) throw new NotTranslated("a part of JMESPath that Inlay does not translate");
  return value;
}

function nameAt(token: Token | undefined): string {
  if (token?.kind === "name") return token.text;
  if (token?.kind === "quoted") return String(literalOf(token.text));
  throw new NotTranslated("a part of JMESPath that Inlay does not translate");
}

function literalOf(json: string): string | number {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    value = undefined;
  }
  if (typeof value === "string" || typeof value === "number") return value;
  throw new NotTranslated("a literal of JMESPath that is no text and no number");
}
