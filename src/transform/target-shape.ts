/** A target's published schema comes in; what it says of lists and required fields goes out, for writes and releases. */
import type { Condition, FieldPath } from "../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema, ResolveRef } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { ListType, TargetShape } from "../model/target-shape.ts";
import { convert } from "./convert.ts";
import { schemaIn, typesOf } from "./schema-check.ts";

/** A kind that publishes no schema has no required fields, and its lists are atomic: so the API server takes them too. */
export function shapeOf(schema: { root: OpenApiSchema; resolve: ResolveRef } | undefined): TargetShape {
  const find = schema && schemaIn(schema.root, schema.resolve);
  /** What the schema does not know is as if there were none. */
  const at = (path: FieldPath, key?: string): OpenApiSchema => find?.(path, key) ?? {};
  const field = (list: FieldPath, key: string) => at(list.with({ kind: "index", index: 0 }), key);
  return {
    listAt: (list) => listTypeOf(at(list)),
    isAtomic: (object) => at(object)["x-kubernetes-map-type"] === "atomic",
    isRequired(path) {
      const leaf = path.segments.at(-1);
      return leaf?.kind === "key" && at(path.upTo(path.segments.length - 1)).required?.includes(leaf.key) === true;
    },
    defaultAt: (path) => at(path).default,
    elementOf(list, conditions) {
      const element: JsonObject = {};
      for (const condition of conditions) {
        const named = list.with({ kind: "element", conditions });
        element[condition.key] = typed(condition, field(list, condition.key), named);
      }
      const type = listTypeOf(at(list));
      for (const key of type.kind === "map" ? type.keys : []) {
        const value = element[key] ?? field(list, key).default;
        if (value === undefined)
          throw new Problem("InvalidPath", incomplete(list, type.kind === "map" ? type.keys : []));
        element[key] = value;
      }
      return element;
    },
  };
}

function listTypeOf(schema: OpenApiSchema): ListType {
  const kind = schema["x-kubernetes-list-type"] ?? "atomic";
  return kind === "map" ? { kind, keys: schema["x-kubernetes-list-map-keys"] ?? [] } : { kind };
}

const ALLOWED = ["integer", "number", "boolean"] as const;

function typed({ key, value }: Condition, schema: OpenApiSchema, path: FieldPath): JsonValue {
  const types = typesOf(schema);
  const type = types.length === 1 ? ALLOWED.find((each) => each === types[0]) : undefined;
  if (type === undefined) return types.includes("integer") && /^-?(0|[1-9]\d*)$/.test(value) ? Number(value) : value;
  try {
    return convert(value, type, key);
  } catch (error) {
    if (error instanceof Problem) throw new Problem("InvalidPath", `${path}: ${error.message}`);
    throw error;
  }
}

function incomplete(list: FieldPath, keys: readonly string[]): string {
  return `${list}: an element is told by ${keys.join(" and ")}; name all, as in ${list}[${keys.map((key) => `${key}=...`).join(",")}]`;
}
