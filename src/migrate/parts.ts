/** The parts of bindings that several converters write: names, paths, durations and templates. Pure. */
import { parseDuration } from "../apimachinery/duration.ts";
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import { isGlob } from "../apimachinery/glob.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { helpers } from "../transform/template-helpers.ts";
import { type Resolve, translated } from "./go-expression.ts";
import { fieldValue, translate } from "./go-template.ts";
import type { DataObject, ObjectName } from "./known-objects.ts";
import type { Tracked } from "./tracked.ts";

/** Where a Secret gets its values: the keys of an object are paths, such as `data["tls.crt"]`. */
export const keyPath = (...keys: readonly string[]): string => String(new FieldPath(keys.map(keySegment)));

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
  const ms = attemptSync(() => parseDuration(text));
  if (ms instanceof Problem) {
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
export const orLost = <T>(place: Tracked, path: string, make: () => T, below = 0): T | undefined =>
  translated(make, (why) =>
    place.lose(`the template has ${why}; write a field with the path ${path} and a template in Handlebars`, below),
  );

/** The fields of a label selector. Undefined if it is missing or empty. */
export function labelSelectorOf(selector: Tracked): JsonObject | undefined {
  const expressions = selector
    .field("matchExpressions")
    .list()
    .flatMap((each) => (each.entries().length > 0 ? (each.take() as JsonObject) : []));
  return filled({ matchLabels: selector.field("matchLabels").map(), matchExpressions: nonEmpty(expressions) });
}

/** Whether the kind is Secret or ConfigMap. */
export const isData = (apiVersion: unknown, kind: unknown): kind is DataObject["kind"] =>
  apiVersion === "v1" && (kind === "Secret" || kind === "ConfigMap");

/** The source of a binding that reads a Secret or ConfigMap, as a field. */
export const sourceField = (kind: string): "secret" | "configMap" => (kind === "Secret" ? "secret" : "configMap");

/** The source with which a binding in the namespace `home` reads a Secret or ConfigMap. */
export const dataSource = ({ kind, namespace, name }: ObjectName, home: string, source = "source"): JsonObject => ({
  name: source,
  [sourceField(kind)]: compact({ name, namespace: elsewhere(namespace, home) }),
});

/** The namespace, as a reference from the namespace `home` needs it. */
export const elsewhere = (namespace: string | undefined, home: string): string | undefined =>
  namespace === home ? undefined : namespace;

/** Without names to except, if the selector has only exact names: it then needs no permission to list namespaces. */
export function exceptNames(selector: JsonObject, except: readonly string[]): JsonObject {
  const names = selector["names"] as string[] | undefined;
  if (names === undefined || [...names, ...except].some(isGlob))
    return except.length > 0 ? { ...selector, exceptNames: [...except] } : selector;
  const left = names.filter((name) => !except.includes(name));
  return { ...selector, names: left.length > 0 ? left : names, ...(left.length === 0 && { exceptNames: [...except] }) };
}

/** The fields that have a value. */
export const compact = (fields: Record<string, JsonObject[string] | undefined>): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, JsonObject[string]] => entry[1] !== undefined),
  );

/** The fields that have a value. Undefined if none has. */
export function filled(fields: Parameters<typeof compact>[0]): JsonObject | undefined {
  const all = compact(fields);
  return Object.keys(all).length > 0 ? all : undefined;
}

/** The list, unless it is empty. */
export const nonEmpty = <T>(list: readonly T[]): T[] | undefined => (list.length > 0 ? [...list] : undefined);

/** The note of a binding that reads and writes as this account. */
export const accountNotes = (account: string | undefined): string[] =>
  account === undefined || account === "inlay"
    ? []
    : [`Allow Inlay to impersonate ${account}: docs/tasks/allow-a-namespace.md.`];
