/** The parts of bindings that several converters write: names, paths, durations and templates. Pure. */
import { parseDuration } from "../apimachinery/duration.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { helpers } from "../transform/template-helpers.ts";
import { NotTranslated, type Resolve } from "./go-expression.ts";
import { fieldValue, translate } from "./go-template.ts";
import type { Tracked } from "./tracked.ts";

/** Where a Secret gets its values: the keys of an object are paths, such as `data["tls.crt"]`. */
export const keyPath = (...keys: readonly string[]): string =>
  String(new FieldPath(keys.map((key) => ({ kind: "key", key }))));

export const withoutSlashes = (path: string): string => withoutLastSlashes(path.replace(/^\/+/, ""));

/** A pattern that ends with `$` would begin at each slash. */
export function withoutLastSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end--;
  return path.slice(0, end);
}

/** The name of an object as the name of a source, which has letters, digits and dashes. `taken` are the names of the other sources. */
export function sourceName(text: string, taken: readonly string[] = []): string {
  const plain = text.replaceAll(/[^A-Za-z0-9]+/g, "-").replaceAll(/^[^A-Za-z]+|-+$/g, "");
  const short = plain.slice(0, 58).replace(/-+$/, "");
  const base = short === "" || helpers.has(short) ? "source" : short;
  let name = base;
  for (let n = 2; taken.includes(name); n++) name = `${base}-${n}`;
  return name;
}

/** A name of an object from a text, for example of a rule of a policy. */
export const objectName = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, "-")
    .replaceAll(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, 253) || "unnamed";

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];

/** The interval within the limits of Inlay, from 1s to 24h. Undefined for 0, or if there is none. */
export function refreshOf(field: Tracked): string | undefined {
  const text = field.text();
  if (text === undefined) return undefined;
  let ms: number;
  try {
    ms = parseDuration(text);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    field.lose("not a duration; write, for example, 1m");
    return undefined;
  }
  if (ms === 0) return undefined;
  const within = Math.min(Math.max(ms, SECOND), 24 * HOUR);
  if (within % HOUR === 0) return `${within / HOUR}h`;
  return within % MINUTE === 0 ? `${within / MINUTE}m` : `${Math.ceil(within / SECOND)}s`;
}

/** The field of a binding for a Go template. Reports a template that has no equal. */
export function templateField(path: string, value: Tracked, resolve: Resolve): JsonObject[] {
  const text = value.text();
  if (text === undefined) return [];
  return orLost(value, path, () => [{ path, ...fieldValue(translate(text, resolve)) }]) ?? [];
}

/** Reports on `place` why `make` can't translate a template. */
export function orLost<T>(place: Tracked, path: string, make: () => T, below = 0): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof NotTranslated)) throw error;
    place.lose(
      `the template has ${error.message}; write a field with the path ${path} and a template in Handlebars`,
      below,
    );
    return undefined;
  }
}

/** The fields of a label selector. Undefined if it is missing or empty. */
export function labelSelectorOf(selector: Tracked): JsonObject | undefined {
  const expressions = selector
    .field("matchExpressions")
    .list()
    .flatMap((each) => (each.entries().length > 0 ? (each.take() as JsonObject) : []));
  const all = compact({
    matchLabels: selector.field("matchLabels").map(),
    matchExpressions: expressions.length > 0 ? expressions : undefined,
  });
  return Object.keys(all).length > 0 ? all : undefined;
}

/** The source of a binding that reads a Secret or ConfigMap, as a field. */
export const sourceField = (kind: string): "secret" | "configMap" => (kind === "Secret" ? "secret" : "configMap");

/** Without names to except, if the selector has only exact names: it then needs no permission to list namespaces. */
export function exceptNames(selector: JsonObject, except: readonly string[]): JsonObject {
  const names = selector["names"] as string[] | undefined;
  const isPattern = (name: string) => /[*?]/.test(name);
  if (names === undefined || [...names, ...except].some(isPattern))
    return except.length > 0 ? { ...selector, exceptNames: [...except] } : selector;
  const left = names.filter((name) => !except.includes(name));
  return { ...selector, names: left.length > 0 ? left : names, ...(left.length === 0 && { exceptNames: [...except] }) };
}

/** The fields that have a value. */
export const compact = (fields: Record<string, JsonObject[string] | undefined>): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, JsonObject[string]] => entry[1] !== undefined),
  );
