/** Says what is wrong with a path that the schema of a kind does not have, and how to write it. Pure. */
import { FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { plainWord, quoted } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { listNames, similarName } from "../apimachinery/suggest-names.ts";

/** The schema one step further, if the schema names it. */
export type Known = (schema: OpenApiSchema, segment: Segment) => OpenApiSchema | undefined;

/** How many levels a path may leave out, and how many fields are searched for them. */
const MAX_LEVELS = 4;
const MAX_FIELDS = 500;

/** The segments that exist below `schema` in place of those given, of which the first does not exist; undefined if none are similar. */
function similarSegments(schema: OpenApiSchema, wrong: readonly Segment[], known: Known): Segment[] | undefined {
  const [first, ...rest] = wrong;
  if (first?.kind !== "key") return undefined;
  const name = similarName(first.key, Object.keys(schema.properties ?? {}));
  if (name === undefined) return withLevels(schema, wrong, known);
  const segment = keySegment(name);
  const below = known(schema, segment);
  return below !== undefined && exists(below, rest, known) ? [segment, ...rest] : [segment];
}

/** The same segments some levels below, the highest first. */
function withLevels(schema: OpenApiSchema, wrong: readonly Segment[], known: Known): Segment[] | undefined {
  let level: { schema: OpenApiSchema; above: Segment[] }[] = [{ schema, above: [] }];
  let left = MAX_FIELDS;
  for (let depth = 0; depth < MAX_LEVELS; depth++) {
    const next: typeof level = [];
    for (const { schema: parent, above } of level) {
      for (const key of Object.keys(parent.properties ?? {})) {
        if (left-- === 0) return undefined;
        const segment = keySegment(key);
        const below = known(parent, segment);
        if (below !== undefined) next.push({ schema: below, above: [...above, segment] });
      }
    }
    const found = next.find((each) => exists(each.schema, wrong, known));
    if (found !== undefined) return [...found.above, ...wrong];
    level = next;
  }
  return undefined;
}

function exists(schema: OpenApiSchema, segments: readonly Segment[], known: Known): boolean {
  let at: OpenApiSchema | undefined = schema;
  for (const segment of segments) at = at && known(at, segment);
  return at !== undefined;
}

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
