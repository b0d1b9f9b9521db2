/** The sources of a binding for the remote references of an ExternalSecret. Pure. */
import type { JsonObject } from "../apimachinery/objects.ts";
import type { Store } from "./external-stores.ts";
import { call, type Expression, reference } from "./go-expression.ts";
import type { Granted, Input, Output } from "./migration.ts";
import { compact, elsewhere, sourceName } from "./parts.ts";
import type { Tracked } from "./tracked.ts";

export class Sources {
  readonly list: JsonObject[] = [];
  readonly #names = new Map<string, string>();
  readonly #namespace: string;
  readonly #granted: Granted[] = [];
  readonly #refresh: string | undefined;

  /** `namespace` is that of the binding. */
  constructor(namespace: string, refresh: string | undefined) {
    this.#namespace = namespace;
    this.#refresh = refresh;
  }

  /** The name of the source for a reference, which is added if necessary. Undefined if the store has none in Inlay. */
  add(ref: Tracked, store: Store): string | undefined {
    const [key = "", version] = [ref.field("key").text(), ref.field("version")];
    ref
      .field("metadataPolicy")
      .oneOf(["None"], "Inlay reads values here; for metadata of Vault, add a source with vault.metadata");
    ref.field("conversionStrategy").oneOf(["Default"], "Inlay does not rename keys; write a field for each key");
    const made = this.#make(key, version, store);
    if (made === undefined) return undefined;
    const id = JSON.stringify(made);
    const name = this.#names.get(id) ?? sourceName(key, [...this.#names.values()]);
    if (!this.#names.has(id)) this.list.push({ name, ...made });
    this.#names.set(id, name);
    return name;
  }

  /** Adds the grants that the binding needs. */
  grantTo(input: Input, output: Output): void {
    for (const each of this.#granted) output.grant(each, { namespace: this.#namespace }, input);
  }

  #make(key: string, version: Tracked, store: Store): JsonObject | undefined {
    if (store.provider === "other") {
      version.ignore();
      return undefined;
    }
    if (store.provider === "kubernetes") {
      version.refuse("a Secret has no versions; remove it");
      if (!store.isRestricted) this.#granted.push({ kind: "Secret", namespace: store.namespace, name: key });
      return { secret: compact({ name: key, namespace: elsewhere(store.namespace, this.#namespace) }) };
    }
    const text = version.text();
    const isNumber = /^[1-9]\d*$/.test(text ?? "");
    if (text !== undefined && !isNumber) version.lose("a version in Vault is a number; correct it");
    const [mount, path] = pathOf(key, store);
    store.paths.add(mount, path);
    if (store.from === undefined)
      this.#granted.push({ kind: "VaultConnection", namespace: store.namespace, name: store.input.name });
    const number = isNumber && store.kv === 2 ? Number(text) : undefined;
    return {
      vault: compact({
        connection: compact({ name: store.input.name, namespace: elsewhere(store.namespace, this.#namespace) }),
        refresh: this.#refresh,
        data: compact({ mount, path, kv: store.kv === 1 ? 1 : undefined, version: number }),
      }),
    };
  }
}

/** The mount and the path. A key may begin with the mount, and have `data` of the API of version 2 after it. */
function pathOf(key: string, { mount, kv }: { mount: string | undefined; kv: 1 | 2 }): [string, string] {
  const trimmed = key.replaceAll(/^\/+|\/+$/g, "");
  const [first = "", ...rest] = trimmed.split("/");
  const below =
    mount === undefined ? rest.join("/") : trimmed.startsWith(`${mount}/`) ? trimmed.slice(mount.length + 1) : trimmed;
  return [(mount ?? first).replace(kv === 2 ? /\/data$/ : /$^/, ""), kv === 2 ? below.replace(/^data\//, "") : below];
}

/** The value of a reference to one property, decoded as it says. Undefined if it can't be expressed. */
export function propertyOf(ref: Tracked, source: string, { provider }: Store): Expression | undefined {
  const property = ref.field("property");
  const name = property.text();
  if (name === undefined || name === "") {
    ref.lose("without property, the value is all data as JSON, which a field can't be; name a property");
    return undefined;
  }
  const value = valueAt(source, name, provider === "kubernetes");
  if (value === undefined) {
    property.lose("Inlay reads keys, and paths of names and numbers in them; write a field with key and pointer");
    return undefined;
  }
  const decoding = ref.field("decodingStrategy");
  const strategy = decoding.text() ?? "None";
  if (strategy === "Base64" || strategy === "Base64URL") return call("base64decode", value);
  if (strategy !== "None")
    decoding.lose("Inlay decodes only what is known to be base64; write a template with base64decode if it is");
  return value;
}

/**
 * A property is the name of a key if there is such a key. Otherwise it is a path of gjson, with backslashes before the dots of names.
 * Undefined for what else gjson has. The keys of a Secret hold texts, so that a path has one name.
 */
function valueAt(source: string, property: string, isSecret: boolean): Expression | undefined {
  const names = namesIn(property);
  const [key, ...below] = names ?? [];
  const isPath = below.length > 0 && names?.every((name) => name !== "");
  const isEscaped = property.includes("\\");
  if (key === undefined || (isEscaped && below.length > 0 && (isSecret || !isPath))) return undefined;
  if (isEscaped && below.length === 0) return reference(source, [key]);
  const whole = reference(source, [property]);
  if (isSecret || !isPath) return whole;
  if (!below.every((name) => IN_POINTER.test(name))) return undefined;
  const text = below.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  const nested = call("pointer", reference(source, [key]), { kind: "literal", value: text });
  return isEscaped ? nested : call("default", whole, nested);
}

/** What a text in a template can have. */
const IN_POINTER = /^[^"'\\{}]+$/;

/** The names of a path of gjson. Undefined for its queries, wildcards, modifiers and the like. */
function namesIn(path: string): string[] | undefined {
  const names = path.match(/(?:\\.|[^\\.])+|(?<=^|\.)(?=\.|$)/gs) ?? [];
  const plain = names.map((name) => name.replaceAll(/\\./gs, ""));
  if (plain.some((name) => /[#*?|\\]|^[@!{[]/.test(name))) return undefined;
  return names.map((name) => name.replaceAll(/\\(.)/gs, "$1"));
}
