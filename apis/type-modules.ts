/** Writes the TypeScript types of our kinds from their schemas. Parts that are equal share one type, also between kinds. */
import { compile, type JSONSchema } from "json-schema-to-typescript";

export interface TypedKind {
  readonly kind: string;
  readonly crd: string;
  readonly module: string;
  readonly schema: JSONSchema;
}

/** The names of generated types that differ from the kind: see src/api/binding.ts. */
const TYPE_NAMES: Readonly<Record<string, string>> = { SecretBinding: "StoredBinding" };

/** The types of parts that occur more than once, by the path of one of them. The module of its kind has the type. */
const SHARED_TYPES: Readonly<Record<string, string>> = {
  "SecretBinding.spec.sources.secret": "SourceReference",
  "SecretBinding.spec.targets.selector": "Selector",
  "SecretBinding.spec.targets.selector.matchExpressions": "MatchExpression",
  "SecretBinding.spec.rollout.targets": "WorkloadTarget",
  "SecretBinding.status.conditions": "Condition",
  "VaultConnection.spec.tls.ca": "KeyReference",
  "VaultConnection.spec.tls.ca.secret": "ObjectKey",
};

const IMPORTED = [
  { name: "ObjectMeta", module: "src/apimachinery/objects.ts" },
  { name: "OneOf", module: "src/apimachinery/objects.ts" },
];

interface SharedType {
  readonly name: string;
  readonly module: string;
  /** All parts of the type. They differ at most in their descriptions. */
  readonly parts: JSONSchema[];
}
type SharedTypes = ReadonlyMap<string, SharedType>;

/** The texts of the modules, by their names. */
export async function typeModules(kinds: readonly TypedKind[]): Promise<Map<string, string>> {
  const read = kinds.map((each) => ({ ...each, schema: asRead(each.schema) }));
  const parts = read.flatMap(({ kind, module, schema }) => partsOf(schema, kind).map((each) => ({ ...each, module })));
  const shared = new Map<string, SharedType>();
  for (const { path, part, module } of parts) {
    const name = SHARED_TYPES[path];
    if (name !== undefined) shared.set(idOf(part), { name, module, parts: [] });
  }
  for (const { part } of parts) shared.get(idOf(part))?.parts.push(part);
  const texts = read.map(async (each) => [each.module, await moduleText(each, shared)] as const);
  return new Map(await Promise.all(texts));
}

async function moduleText({ kind, crd, module, schema }: TypedKind, shared: SharedTypes): Promise<string> {
  const metadata = { tsType: "ObjectMeta" };
  const properties = { ...schema.properties, metadata };
  const root = { ...schema, properties, required: ["apiVersion", "kind", "metadata", "spec"] };
  const own = [...shared.values()].filter((each) => each.module === module);
  const types = [
    { name: TYPE_NAMES[kind] ?? kind, part: root },
    ...own.map(({ name, parts }) => ({ name, part: joined(parts) })),
  ];
  const texts = await Promise.all(types.map(async ({ name, part }) => declaration(await named(part, shared), name)));
  const text = texts.join("\n");
  const others = [...IMPORTED, ...shared.values()].filter((each) => each.module !== module);
  const imports = Map.groupBy(
    others.filter(({ name }) => new RegExp(`\\b${name}\\b`).test(text)),
    (each) => each.module.replace("src/api/", "./").replace("src/", "../"),
  );
  const lines = [...imports].map(
    ([from, each]) => `import type { ${each.map(({ name }) => name).join(", ")} } from "${from}";`,
  );
  const header = `/** Generated from ${crd} by \`npm run generate\`. Do not edit. */`;
  return [header, ...lines, "", text].join("\n").replaceAll(COMMENT_OF_ONE_LINE, "/** $1 */");
}

/** The compiler writes even a comment of one line on three lines. */
const COMMENT_OF_ONE_LINE = /\/\*\*\n *\* (.*)\n *\*\//g;

const declaration = (schema: JSONSchema, name: string): Promise<string> =>
  compile(schema, name, { additionalProperties: false, bannerComment: "", style: { printWidth: 120 } });

/** A schema for the compiler: with the names of shared types in place of parts, and of `oneOf`, the type. */
async function named(schema: JSONSchema, shared: SharedTypes): Promise<JSONSchema> {
  const typeOf = async (part: JSONSchema) => {
    const type = shared.get(idOf(part));
    return type === undefined ? named(part, shared) : { ...descriptionOf(part), tsType: type.name };
  };
  const { properties, items, oneOf, required, ...rest } = schema;
  if (items) return { ...rest, items: await typeOf(items as JSONSchema) };
  if (!properties) return rest;
  const entries = Object.entries(properties).map(async ([key, part]) => [key, await typeOf(part)] as const);
  const all = await Promise.all(entries);
  const choices = (oneOf ?? []).flatMap((each) => each.required as string[]);
  const others = Object.fromEntries(all.filter(([key]) => !choices.includes(key)));
  const common: JSONSchema = { type: "object", required: required ?? [], properties: others };
  if (choices.length === 0) return { ...rest, ...common };
  const chosen = Object.fromEntries(all.filter(([key]) => choices.includes(key)));
  const text = await declaration({ type: "object", required: choices, properties: chosen }, "T");
  const choice = { tsType: `OneOf<${text.slice(text.indexOf("{")).trim()}>` };
  if (Object.keys(others).length === 0) return { ...rest, ...choice };
  return { ...descriptionOf(schema), allOf: [common, choice] };
}

const descriptionOf = ({ description }: JSONSchema) => (description === undefined ? {} : { description });

const KEPT = ["description", "type", "enum", "nullable", "oneOf"];

/** The part of a schema that a type can hold, for an object as the API server returns it: a field with a default is always set. */
function asRead(schema: JSONSchema): JSONSchema {
  const { type, properties, additionalProperties, items } = schema;
  const out: JSONSchema = Object.fromEntries(Object.entries(schema).filter(([key]) => KEPT.includes(key)));
  // The API server requires nothing of it, so code has to check what it contains.
  if (schema["x-kubernetes-preserve-unknown-fields"] === true && schema.required === undefined)
    return { ...descriptionOf(schema), tsType: type === "object" ? "Record<string, unknown>" : "unknown" };
  if (typeof additionalProperties === "object") out.tsType = `Record<string, ${additionalProperties.type}>`;
  if (items) out.items = asRead(items as JSONSchema);
  if (properties === undefined) return out;
  const entries = Object.entries(properties);
  const defaulted = entries.flatMap(([key, { default: value }]) => (value === undefined ? [] : [key]));
  out.required = [...((schema.required as string[] | undefined) ?? []), ...defaulted].sort();
  out.properties = Object.fromEntries(entries.map(([key, part]) => [key, asRead(part)]));
  return out;
}

/** All objects in a schema. The path of an element is that of its list. */
function partsOf(part: JSONSchema, path: string): { path: string; part: JSONSchema }[] {
  const { properties, items } = part;
  if (items) return partsOf(items as JSONSchema, path);
  if (!properties) return [];
  const below = Object.entries(properties).flatMap(([key, each]) => partsOf(each, `${path}.${key}`));
  return [{ path, part }, ...below];
}

const isDescription = (key: string, value: unknown) => key === "description" && typeof value === "string";

/** Equal for parts that differ only in descriptions. */
const idOf = (part: JSONSchema): string =>
  JSON.stringify(part, (key, value) => (isDescription(key, value) ? undefined : value));

/** One part in place of equal ones. Their own descriptions are where they are used. */
function joined(parts: readonly JSONSchema[]): JSONSchema {
  const { description: _, ...part } = withAllDescriptions(parts) as JSONSchema;
  return part;
}

/** One of the equal values, with the descriptions of all of them. */
function withAllDescriptions(parts: readonly unknown[]): unknown {
  const [first] = parts;
  if (Array.isArray(first))
    return first.map((_, at) => withAllDescriptions(parts.map((each) => (each as unknown[])[at])));
  if (typeof first !== "object" || first === null) return first;
  return Object.fromEntries(
    Object.entries(first).map(([key, value]) => {
      const all = parts.map((each) => (each as Record<string, unknown>)[key]);
      return [key, isDescription(key, value) ? [...new Set(all)].join(" Or: ") : withAllDescriptions(all)];
    }),
  );
}
