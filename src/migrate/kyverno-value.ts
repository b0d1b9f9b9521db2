/**
 * Reads the variables of Kyverno rules, such as `{{ request.object.data.key | base64_decode(@) }}`, as values of Secrets and
 * ConfigMaps, with a parser for the part of JMESPath that they use: fields, pipes, functions and `||`. Pure.
 */
import type { Segment } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import {
  apiValue,
  call,
  dataKeyOf,
  type Expression,
  NotTranslated,
  type Token,
  tokensOf,
  translated,
} from "./go-expression.ts";
import { type Part, translateWith } from "./go-template.ts";
import type { DataObject } from "./known-objects.ts";
import type { Input, Output } from "./migration.ts";
import { dataSource, sourceName } from "./parts.ts";
import type { Translate } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

type JmesPath =
  | { readonly kind: "current" }
  | { readonly kind: "literal"; readonly value: string | number }
  | { readonly kind: "field"; readonly of: JmesPath; readonly name: string }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly JmesPath[] }
  | { readonly kind: "pipe"; readonly left: JmesPath; readonly right: JmesPath }
  | { readonly kind: "or"; readonly left: JmesPath; readonly right: JmesPath };

const TOKEN =
  /\s+|(?<name>[A-Za-z_]\w*)|(?<quoted>"(?:[^"\\]|\\.)*")|'(?<raw>(?:[^'\\]|\\.)*)'|`(?<json>(?:[^`\\]|\\.)*)`|(?<mark>\|\||[.|@(),])/y;
const UNKNOWN = "a part of JMESPath that Inlay does not translate";
const CURRENT: JmesPath = { kind: "current" };

/** Throws NotTranslated. */
function parseJmesPath(text: string): JmesPath {
  const tokens = [...tokensOf(text, TOKEN, UNKNOWN)];
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
    if (token?.kind === "raw") return { kind: "literal", value: token.text.replaceAll("\\'", "'") };
    if (token?.kind === "json") return { kind: "literal", value: literalOf(token.text) };
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
  if (at < tokens.length) throw new NotTranslated(UNKNOWN);
  return value;
}

function nameAt(token: Token | undefined): string {
  if (token?.kind === "name") return token.text;
  if (token?.kind === "quoted") return String(literalOf(token.text));
  throw new NotTranslated(UNKNOWN);
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

/** The Secrets and ConfigMaps that the fields of a binding read. */
export class DataSources {
  readonly #sources = new Map<string, DataObject>();

  get first(): DataObject | undefined {
    return this.#sources.values().next().value;
  }

  /** The value of a key in the API. Adds its object to the sources. */
  valueOf(of: DataObject, key: string): Expression {
    const known = [...this.#sources].find(([, other]) => sameJson(other, of));
    const name = known?.[0] ?? sourceName(of.name, [...this.#sources.keys()]);
    this.#sources.set(name, of);
    return apiValue(of.kind, name, key);
  }

  /** The sources of a binding in the namespace, with the grants that it needs. */
  inBinding(namespace: string, input: Input, output: Output): JsonObject[] {
    return [...this.#sources].map(([name, of]) => {
      output.grant(of, { namespace }, input);
      return dataSource(of, namespace, name);
    });
  }
}

/** An object, or a field below it; or a value that is computed from fields. */
type Value = { readonly of: DataObject; readonly path: readonly string[] } | Expression;

/** The values that the expressions of one rule can use, for a Secret or an object in one namespace. */
export class Scope {
  /** The objects that the read values come from. */
  readonly sources = new DataSources();
  readonly #variables = new Map<string, Value>();
  readonly #namespace: string | undefined;
  readonly #trigger: DataObject | undefined;

  /** `namespace` is that of the request. `trigger` is the Secret that changes; without it, the request is about the target. */
  constructor(namespace: string | undefined, trigger?: DataObject) {
    this.#namespace = namespace;
    this.#trigger = trigger;
  }

  /** Handles the variables of a rule. Those that are no values of Secrets or ConfigMaps are reported. */
  addContext(context: Tracked): void {
    for (const each of context.list()) {
      const name = each.field("name").text() ?? "";
      const add = () => {
        const value = this.#variableOf(each);
        if (value !== undefined) this.#variables.set(name, value);
        else each.refuse("Inlay reads Secrets and ConfigMaps of the cluster; keep Kyverno for this rule");
      };
      translated(add, (why) => each.refuse(`the variable has ${why}; keep Kyverno for this rule`));
    }
  }

  /** `data` of a Secret holds what Kyverno writes there, so the values are encoded. */
  translator(isSecret: boolean): Translate {
    return (text: string, at: readonly Segment[]): Part[] => {
      const parts = this.#partsOf(text);
      if (!isSecret) return parts;
      const [only, ...more] = parts;
      if (at[0]?.kind !== "key" || at[0].key !== "data") return parts;
      if (more.length > 0 || typeof only !== "object" || only.kind !== "call" || only.helper !== "base64")
        throw new NotTranslated("a value that is not one encoded key of a Secret");
      return [only.args[0] as Expression];
    };
  }

  #variableOf(each: Tracked): Value | undefined {
    const [configMap, apiCall, variable] = each.fields("configMap", "apiCall", "variable");
    if (configMap.exists) {
      const [name = "", namespace = ""] = configMap.textsOf("name", "namespace").map((text = "") => this.#textOf(text));
      return { of: { kind: "ConfigMap", namespace, name }, path: [] };
    }
    if (apiCall.exists) {
      const url = this.#textOf(apiCall.field("urlPath").text() ?? "");
      const [, namespace, plural, name] =
        /^\/?api\/v1\/namespaces\/([a-z0-9.-]+)\/(secrets|configmaps)\/([a-z0-9.-]+)$/.exec(url) ?? [];
      if (namespace === undefined || name === undefined) return undefined;
      if ((apiCall.field("method").text() ?? "GET") !== "GET") return undefined;
      const whole = { of: { kind: plural === "secrets" ? "Secret" : "ConfigMap", namespace, name }, path: [] } as const;
      const path = apiCall.field("jmesPath").text();
      return path === undefined ? whole : this.#evaluate(parseJmesPath(path), whole);
    }
    const path = variable.field("jmesPath").text();
    if (path !== undefined) return this.#evaluate(parseJmesPath(path), undefined);
    const value = variable.field("value");
    return typeof value.peek() === "string" ? this.#evaluateText(value.text() ?? "") : undefined;
  }

  #partsOf(text: string): Part[] {
    return translateWith(text, (body) => this.#expressionOf(parseJmesPath(body), undefined));
  }

  #evaluateText(text: string): Value {
    const [only, ...more] = this.#partsOf(text);
    if (more.length > 0) throw new NotTranslated("a text around an expression");
    return typeof only === "object" ? only : { kind: "literal", value: only ?? "" };
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
    return this.sources.valueOf(value.of, dataKeyOf(value.of.kind, value.path));
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
    const isRoot = path.of.kind === "current" && current === undefined;
    return isRoot ? this.#root(path.name) : this.#fieldOf(path.of, path.name, current);
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
