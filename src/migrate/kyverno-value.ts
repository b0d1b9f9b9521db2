/** Reads the variables of Kyverno rules, such as `{{ request.object.data.key | base64_decode(@) }}`, as values of Secrets and ConfigMaps. Pure. */
import type { Segment } from "../apimachinery/field-path.ts";
import { call, type Expression, NotTranslated, reference } from "./go-expression.ts";
import { type Part, translateWith } from "./go-template.ts";
import { type JmesPath, parseJmesPath } from "./jmespath.ts";
import { sourceName } from "./parts.ts";
import type { Translate } from "./patch.ts";
import type { Tracked } from "./tracked.ts";

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
