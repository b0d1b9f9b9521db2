/** Evaluates the CEL rules of a CRD on an object, as the API server does when it stores the object. Pure. */
import { Environment } from "@marcbachmann/cel-js";
import { isObject } from "./json.ts";
import { getOrInsert } from "./maps.ts";
import type { JsonObject, JsonValue } from "./objects.ts";
import { type SchemaTree, valuesIn } from "./structural-schema.ts";

/** A schema with only its rules, and what leads to them. */
export interface RuleTree extends SchemaTree<RuleTree> {
  readonly rules?: readonly CelRule[];
  /** Set for a map, whose keys are no names of fields. */
  readonly additionalProperties?: RuleTree;
}

export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** The field below the object that the rule is about, such as `.name`. */
  readonly fieldPath?: string;
}

interface BrokenRule {
  readonly path: string;
  readonly message: string;
}

/** CEL reserves these words, so the API server escapes fields of these names. */
const RESERVED = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

/** The list functions of Kubernetes that the rules use, and the library lacks. */
const environment = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false })
  .registerFunction("list.indexOf(dyn): int", (list: unknown[], value: unknown) => BigInt(list.indexOf(value)))
  .registerFunction("list.lastIndexOf(dyn): int", (list: unknown[], value: unknown) => BigInt(list.lastIndexOf(value)));
const programs = new Map<string, ReturnType<typeof environment.parse>>();

/** The broken rules, from the outermost. A rule that needs a missing field is skipped: the schema reports the field. */
export function* brokenRules(tree: RuleTree, object: JsonValue): Generator<BrokenRule> {
  for (const { schema, value, path } of valuesIn(tree, object)) {
    const { rules = [] } = schema;
    if (value === null || rules.length === 0) continue;
    const self = escaped(schema, value);
    for (const { rule, message, fieldPath } of rules) {
      if (evaluate(rule, self) !== false) continue;
      const places = fieldPath === undefined ? culprits((part) => evaluate(rule, part) === false, self) : [fieldPath];
      for (const place of places.length > 0 ? places : [""])
        yield { path: `${path}${place}`.replace(/^\./, ""), message };
    }
  }
}

/**
 * The elements of lists because of which a value breaks a rule, such as `.targets[0].fields[2]`: without them, it does not. Empty if no
 * element is the cause, or several together are.
 */
function culprits(isBroken: (value: JsonValue) => boolean, value: JsonValue): string[] {
  const lists: [string, JsonValue[], (list: JsonValue[]) => JsonValue][] = Array.isArray(value)
    ? [["", value, (list) => list]]
    : Object.entries(isObject(value) ? value : {}).flatMap(([key, each]) =>
        Array.isArray(each) ? [[`.${key}`, each, (list) => ({ ...(value as JsonObject), [key]: list })] as const] : [],
      );
  for (const [name, list, within] of lists) {
    if (isBroken(within([]))) continue;
    const found: string[] = [];
    const kept: JsonValue[] = [];
    for (const [at, each] of list.entries()) {
      if (isBroken(within([...kept, each]))) {
        const inner = culprits((part) => isBroken(within([...kept, part])), each);
        found.push(...(inner.length > 0 ? inner : [""]).map((place) => `${name}[${at}]${place}`));
      } else kept.push(each);
    }
    return found;
  }
  return [];
}

/** Undefined if the rule can't be evaluated on this value. */
function evaluate(rule: string, self: JsonValue): unknown {
  try {
    return getOrInsert(programs, rule, () => environment.parse(rule))({ self });
  } catch {
    return undefined;
  }
}

/** The value with the names of fields as CEL knows them. Keys of maps stay. */
function escaped(tree: RuleTree | undefined, value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((each) => escaped(tree?.items, each));
  if (!isObject(value)) return value;
  const isMap = tree?.additionalProperties !== undefined;
  const { properties = {} } = tree ?? {};
  const fields = Object.entries(value).map(([key, each]): [string, JsonValue] => [
    !isMap && RESERVED.has(key) ? `__${key}__` : key,
    escaped(isMap ? tree?.additionalProperties : Object.hasOwn(properties, key) ? properties[key] : undefined, each),
  ]);
  return Object.fromEntries(fields) as JsonObject;
}
