/** Says what is wrong with a path that the schema of a kind does not have, and how to write it. Pure. */

import { FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { plainWord, quoted } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { listNames, similarName } from "../apimachinery/suggest-names.ts";
import { type Known, similarSegments } from "./similar-path.ts";

/** Where a step from a schema to a field or element is taken. */
export interface Place {
  /** The path of the field or element, and of the schema that it is in. */
  readonly at: string;
  readonly parent: string;
  /** If a binding names the path: the whole path, the position of the step in it, and the schema above the parent's. */
  readonly path?: FieldPath;
  readonly position?: number;
  readonly above?: OpenApiSchema;
}

/** Says which field does not exist, which one is meant, and how to list all of them. */
export function unknownField(
  { path, at, parent, position = 0 }: Place,
  { kind, version }: { kind: string; version: string | undefined },
  schema: OpenApiSchema,
  key: string,
  known: Known,
): string {
  const names = Object.keys(schema.properties ?? {});
  const guess = path === undefined ? similarField(at, key, names) : similarPath(path, position, schema, known);
  return [
    `${kind} has no ${path === undefined || String(path) === at ? "such field" : `field ${at}`}.`,
    ...(guess === undefined ? [] : [`Did you mean ${guess}?`]),
    `${listNames(parent, key, names)}.`,
    ...(path === undefined ? ["Correct the name"] : [correction(path.upTo(position), kind, version)]),
  ].join(" ");
}

/** In a manifest, only the last name of the path is wrong. */
function similarField(at: string, key: string, names: readonly string[]): string | undefined {
  const nearest = similarName(key, names);
  return nearest === undefined ? undefined : below(at.slice(0, -key.length).replace(/\.$/, ""), keySegment(nearest));
}

function similarPath(path: FieldPath, position: number, schema: OpenApiSchema, known: Known): FieldPath | undefined {
  const similar = similarSegments(schema, path.segments.slice(position), known);
  return similar && path.upTo(position).with(...similar);
}

function correction(parent: FieldPath, kind: string, version: string | undefined): string {
  const fix = "Correct the path, or install a version of the kind that has the field";
  if (version === undefined) return fix;
  const keys = [kind.toLowerCase(), ...parent.segments.flatMap((each) => (each.kind === "key" ? [each.key] : []))];
  return `${fix}; kubectl explain ${keys.join(".")} --api-version=${version} lists the fields`;
}

/** An element of a list whose index is not known here. Any number would be one of another element. */
export const elementAt = (list: FieldPath | string, rest = ""): string =>
  `${list}[INDEX]${rest}, where INDEX is its position in the list, from 0`;

/** How the path can name an element of a list: by the keys of a map list, by its name, or by its index. */
export function elementHint(
  { parent, path, position = 0 }: Place,
  key: string,
  items: OpenApiSchema | undefined,
  keys: readonly string[] | undefined,
): string {
  const isIndex = /^\d{1,9}$/.test(key);
  const rest = path?.segments.slice(isIndex ? position + 1 : position) ?? [];
  const after = rest.length === 0 ? "" : String(new FieldPath([keySegment("x"), ...rest])).slice(1);
  const hasName = items?.properties === undefined || Object.hasOwn(items.properties, "name");
  const conditions = (keys ?? (hasName ? ["name"] : [])).map((each) => `${each}=...`);
  // A path can't change the field by which it finds its element.
  const isCondition = rest.length === 1 && (keys ?? ["name"]).includes(key);
  if (isIndex) return `; name the element, as in ${parent}[${key}]${after}`;
  const isByIndex = conditions.length === 0 || isCondition;
  const element = isByIndex ? elementAt(parent, after) : `${parent}[${conditions.join(",")}]${after}`;
  return `; name the element, as in ${element}`;
}

/** The hint for a key with dots in a map, which is written like several fields. */
export function dottedKeyHint({ path, position = 0, above }: Place): string {
  const keys = path?.segments.slice(position - 1) ?? [];
  if (path === undefined || typeof above?.additionalProperties !== "object") return "";
  if (!keys.every((each) => each.kind === "key")) return "";
  const key = keys.map((each) => each.key).join(".");
  return `; if the key is ${plainWord(key)}, write ${path.upTo(position - 1).with(keySegment(key))}`;
}

/** The path of a key or index below a path. A manifest may have keys that no path can name. */
export function below(at: string, segment: Segment): string {
  if (segment.kind !== "key") return `${at}[${segment.kind === "index" ? segment.index : ""}]`;
  if (!/^[\w-]+$/.test(segment.key)) return `${at}[${quoted(segment.key)}]`;
  return at === "" ? segment.key : `${at}.${segment.key}`;
}
