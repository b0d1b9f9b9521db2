/** Finds the path that a wrong path probably means: with a name of another spelling, or without the levels that it leaves out. Pure. */
import { keySegment, type Segment } from "../apimachinery/field-path.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { similarName } from "../apimachinery/suggest-names.ts";

/** The schema one step further, if the schema names it. */
export type Known = (schema: OpenApiSchema, segment: Segment) => OpenApiSchema | undefined;

/** How many levels a path may leave out, and how many fields are searched for them. */
const MAX_LEVELS = 4;
const MAX_FIELDS = 500;

/** The segments that exist below `schema` in place of those given, of which the first does not exist; undefined if none are similar. */
export function similarSegments(schema: OpenApiSchema, wrong: readonly Segment[], known: Known): Segment[] | undefined {
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
