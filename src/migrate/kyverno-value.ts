/**
 * Reads the variables of Kyverno rules, such as `{{ request.object.data.key | base64_decode(@) }}`, as values of Secrets and
 * ConfigMaps, with a parser for the part of JMESPath that they use: fields, pipes, functions and `||`. Pure.
 */
import type { Segment } from "../apimachinery/field-path.ts";
import { call, type Expression, NotTranslated, reference } from "./go-expression.ts";
import { type Part, translateWith } from "./go-template.ts";
import { sourceName } from "./parts.ts";
import type { Translate } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

type JmesPath =
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
function parseJmesPath(text: string): JmesPath {
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

export interface DataObject {
  readonly kind: "Secret" | "ConfigMap";
  readonly namespace: string;
  readonly name: string;
}

/** An object, or a field below it; or a value that is computed from fields. */
type Value = { readonly of: DataObject; readonly path: readonly string[] } | Expression;

/** The values that the expressions of one rule can use, for a Secret or an object in one namespace. */
export class Scope {
  readonly #variables = new Map<string, Value>();
  readonly #sources = new Map<string, DataObject>();
  readonly #namespace: string | undefined;
  readonly #trigger: DataObject | undefined;

  /** `namespace` is that of the request. `trigger` is the Secret that changes; without it, the request is about the target. */
  constructor(namespace: string | undefined, trigger?: DataObject) {
    this.#namespace = namespace;
    this.#trigger = trigger;
  }

  /** The objects that the read values come from, by the names of the sources. */
  get sources(): ReadonlyMap<string, DataObject> {
    return this.#sources;
  }

  /** Handles the variables of a rule. Those that are no values of Secrets or ConfigMaps are reported. */
  addContext(context: Tracked): void {
    for (const each of context.list()) {
      const name = each.field("name").text() ?? "";
      try {
        const value = this.#variableOf(each);
        if (value === undefined)
          each.refuse("Inlay reads Secrets and ConfigMaps of the cluster; keep Kyverno for this rule");
        else this.#variables.set(name, value);
      } catch (error) {
        if (!(error instanceof NotTranslated)) throw error;
        each.refuse(`the variable has ${error.message}; keep Kyverno for this rule`);
      }
    }
  }

  /** `data` of a Secret holds what Kyverno writes there, so the values are encoded. */
  translator(isSecret: boolean): Translate {
    return (text: string, at: readonly Segment[]): Part[] => {
      const parts = translateWith(text, (body) => this.#expressionOf(parseJmesPath(body), undefined));
      if (!isSecret) return parts;
      const [only, ...more] = parts;
      if (at[0]?.kind !== "key" || at[0].key !== "data") return parts;
      if (more.length > 0 || typeof only !== "object" || only.kind !== "call" || only.helper !== "base64")
        throw new NotTranslated("a value that is not one encoded key of a Secret");
      return [only.args[0] as Expression];
    };
  }

  #variableOf(each: Tracked): Value | undefined {
    const [configMap, apiCall, variable] = ["configMap", "apiCall", "variable"].map((field) => each.field(field)) as [
      Tracked,
      Tracked,
      Tracked,
    ];
    if (configMap.exists) {
      const [name, namespace] = ["name", "namespace"].map((field) => this.#textOf(configMap.field(field).text() ?? ""));
      return this.#whole("ConfigMap", namespace ?? "", name ?? "");
    }
    if (apiCall.exists) {
      const url = this.#textOf(apiCall.field("urlPath").text() ?? "");
      const [, namespace, plural, name] =
        /^\/?api\/v1\/namespaces\/([a-z0-9.-]+)\/(secrets|configmaps)\/([a-z0-9.-]+)$/.exec(url) ?? [];
      if (namespace === undefined || name === undefined) return undefined;
      if ((apiCall.field("method").text() ?? "GET") !== "GET") return undefined;
      const whole = this.#whole(plural === "secrets" ? "Secret" : "ConfigMap", namespace, name);
      const path = apiCall.field("jmesPath").text();
      return path === undefined ? whole : this.#evaluate(parseJmesPath(path), whole);
    }
    const path = variable.field("jmesPath").text();
    if (path !== undefined) return this.#evaluate(parseJmesPath(path), undefined);
    const value = variable.field("value");
    return typeof value.peek() === "string" ? this.#evaluateText(value.text() ?? "") : undefined;
  }

  #evaluateText(text: string): Value {
    const [only, ...more] = translateWith(text, (body) => this.#expressionOf(parseJmesPath(body), undefined));
    if (more.length > 0) throw new NotTranslated("a text around an expression");
    return typeof only === "object" ? only : { kind: "literal", value: only ?? "" };
  }

  #whole(kind: DataObject["kind"], namespace: string, name: string): Value {
    return { of: { kind, namespace, name }, path: [] };
  }

  /** A text whose only variable is the namespace of the request. */
  #textOf(text: string): string {
    return text.replaceAll(/\{\{([^{}]*)\}\}/g, (_, body: string) => {
      if (!/^\s*request\.(?:namespace|object\.metadata\.namespace)\s*$/.test(body) || this.#namespace === undefined)
        throw new NotTranslated("a name with a variable");
      return this.#namespace;
    });
  }

  #expressionOf(path: JmesPath, current: Value | undefined): Expression {
    const value = this.#evaluate(path, current);
    if (!("of" in value)) return value;
    const { of, path: keys } = value;
    const [data, key, ...more] = keys;
    if (data !== "data" || key === undefined || more.length > 0)
      throw new NotTranslated(`a field of a ${of.kind} that is no key of its data`);
    const read = reference(this.#sourceOf(of), [key]);
    // In the API, the values of a Secret are encoded.
    return of.kind === "Secret" ? call("base64", read) : read;
  }

  #sourceOf(of: DataObject): string {
    const isSame = (other: DataObject) =>
      other.kind === of.kind && other.namespace === of.namespace && other.name === of.name;
    for (const [name, other] of this.#sources) if (isSame(other)) return name;
    const name = sourceName(of.name, [...this.#sources.keys()]);
    this.#sources.set(name, of);
    return name;
  }

  #evaluate(path: JmesPath, current: Value | undefined): Value {
    if (path.kind === "literal") return { kind: "literal", value: path.value };
    if (path.kind === "pipe") return this.#evaluate(path.right, this.#evaluate(path.left, current));
    if (path.kind === "or")
      return call("default", this.#expressionOf(path.left, current), this.#expressionOf(path.right, current));
    if (path.kind === "call") return this.#call(path.name, path.args, current);
    if (path.kind === "current") {
      if (current === undefined) throw new NotTranslated("all variables of the rule");
      return current;
    }
    const of = path.of.kind === "current" && current === undefined ? this.#root(path.name) : undefined;
    if (of !== undefined) return of;
    return this.#fieldOf(path.of, path.name, current);
  }

  #fieldOf(of: JmesPath, name: string, current: Value | undefined): Value {
    if (of.kind === "field" && of.of.kind === "current" && current === undefined && of.name === "request") {
      if (name !== "object" || this.#trigger === undefined)
        throw new NotTranslated(`request.${name}, which is no value of a Secret or ConfigMap`);
      return { of: this.#trigger, path: [] };
    }
    const value = this.#evaluate(of, current);
    if (!("of" in value)) throw new NotTranslated("a field of a computed value");
    return { ...value, path: [...value.path, name] };
  }

  #root(name: string): Value {
    const value = this.#variables.get(name);
    if (value === undefined)
      throw new NotTranslated(`the variable ${name}, which is no value of a Secret or ConfigMap`);
    return value;
  }

  #call(name: string, args: readonly JmesPath[], current: Value | undefined): Value {
    const [one, ...more] = args.map((each) => this.#expressionOf(each, current));
    if (one !== undefined && more.length === 0) {
      if (name === "to_string") return one;
      if (Object.hasOwn(SAME, name)) return call(SAME[name] as string, one);
    }
    if (name === "replace_all" && one !== undefined && more.length === 2) return call("replace", one, ...more);
    throw new NotTranslated(`the function ${name}, which no helper of Inlay replaces exactly`);
  }
}

/** Functions of Kyverno with one argument, and the helper with the same result. */
const SAME: Readonly<Record<string, string>> = {
  base64_decode: "base64decode",
  base64_encode: "base64",
  sha256: "sha256sum",
  to_lower: "lower",
  to_upper: "upper",
};
