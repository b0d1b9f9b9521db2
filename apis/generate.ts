/**
 * Reads the CRDs in this folder, and writes the types in src/api/, the schemas as JSON, and the pages in docs/reference/fields/.
 * `npm run generate` runs it. A test fails when a generated file is not up to date.
 */
import { readFile, writeFile } from "node:fs/promises";
import { compile, type JSONSchema } from "json-schema-to-typescript";
import { parse } from "yaml";
import { fieldsPage, type PagedResource } from "./fields-page.ts";
import { rulesIn, withConstraints } from "./schema-rules.ts";

interface CustomResourceDefinition {
  spec: { names: { kind: string }; versions: { schema: { openAPIV3Schema: JSONSchema } }[] };
}

/** The names of generated types that differ from the kind: see src/api/binding.ts. */
const TYPE_NAMES: Readonly<Record<string, string>> = { SecretBinding: "StoredBinding" };

export const generated = [
  { crd: "apis/secretbindings.yaml", module: "src/api/secret-binding.ts" },
  { crd: "apis/secretgrants.yaml", module: "src/api/secret-grant.ts" },
  { crd: "apis/bindingcompositions.yaml", module: "src/api/binding-composition.ts" },
  { crd: "apis/vaultconnections.yaml", module: "src/api/vault-connection.ts" },
];

/** The files with the schemas as JSON, without descriptions and CEL rules. */
export const schemas = [
  { crd: "apis/secretbindings.yaml", file: "src/api/secret-binding-schema.json" },
  { crd: "apis/secretgrants.yaml", file: "src/api/secret-grant-schema.json" },
  { crd: "apis/bindingcompositions.yaml", file: "src/api/binding-composition-schema.json" },
  { crd: "apis/vaultconnections.yaml", file: "src/api/vault-connection-schema.json" },
];

/** The file with the CEL rules of all kinds. */
export const rulesFile = "src/api/own-rules.json";

/** The pages with every field of a kind. */
export const pages = generated.map(({ crd }) => ({
  crd,
  file: `docs/reference/fields/${crd.slice("apis/".length, -"s.yaml".length)}.md`,
}));

async function readCrd(crdFile: string): Promise<{ kind: string; schema: JSONSchema }> {
  const { spec } = parse(await readFile(crdFile, "utf8")) as CustomResourceDefinition;
  const version = spec.versions[0];
  if (version === undefined) throw new Error(`${crdFile} has no version`);
  // Only the API server sets it: no code relies on a status, and files have none.
  delete version.schema.openAPIV3Schema.properties?.["status"]?.default;
  return { kind: spec.names.kind, schema: withConstraints(version.schema.openAPIV3Schema) };
}

/** The text of the JSON file with the schema of one CRD. */
export async function generateSchema(crdFile: string): Promise<string> {
  const { schema } = await readCrd(crdFile);
  const isProse = (key: string, value: unknown) =>
    key === "x-kubernetes-validations" || (key === "description" && typeof value === "string");
  const text = JSON.stringify(schema, (key, value) => (isProse(key, value) ? undefined : value), 1);
  return `${text}\n`;
}

/** The text of the JSON file with the CEL rules of all kinds. */
export async function generateRules(): Promise<string> {
  const trees = generated.map(async ({ crd }) => {
    const { spec } = parse(await readFile(crd, "utf8")) as CustomResourceDefinition;
    return [spec.names.kind, rulesIn(spec.versions[0]?.schema.openAPIV3Schema ?? {}) ?? {}] as const;
  });
  return `${JSON.stringify(Object.fromEntries(await Promise.all(trees)), null, 1)}\n`;
}

/** The text of the page with every field of one CRD. */
export async function generatePage(crdFile: string): Promise<string> {
  return fieldsPage(crdFile, parse(await readFile(crdFile, "utf8")) as PagedResource);
}

/** The text of the module of one CRD. Parts of the schema that are equal share one type. */
export async function generate(crdFile: string): Promise<string> {
  const { kind, schema: stored } = await readCrd(crdFile);
  const shared = new SharedTypes(asRead(stored));
  const schema = shared.schema;
  schema.required = ["apiVersion", "kind", "metadata", "spec"];
  if (schema.properties) schema.properties["metadata"] = { tsType: 'import("../apimachinery/objects.ts").ObjectMeta' };
  const banner = `/** Generated from ${crdFile} by \`npm run generate\`. Do not edit. */`;
  const parts = [
    [TYPE_NAMES[kind] ?? kind, schema, banner] as const,
    ...shared.types.map((each) => [...each, ""] as const),
  ];
  const modules = parts.map(([name, part, bannerComment]) =>
    compile(part, name, {
      additionalProperties: false,
      ignoreMinAndMaxItems: true,
      bannerComment,
      style: { printWidth: 120 },
    }),
  );
  const module = (await Promise.all(modules)).map((text) => text.trim()).join("\n\n");
  return `${module.replaceAll(COMMENT_OF_ONE_LINE, "/** $1 */")}\n`;
}

/** A shorter part is written where it is used, in characters of its JSON. */
const SHARED_LENGTH = 400;

/** Gives each part of a schema that is there more than once a type of its own. */
class SharedTypes {
  readonly schema: JSONSchema;
  readonly types: [name: string, schema: JSONSchema][] = [];
  readonly #counts = new Map<string, number>();
  readonly #names = new Map<string, string>();

  constructor(schema: JSONSchema) {
    this.#count(schema);
    this.schema = this.#below(schema);
  }

  #count(schema: JSONSchema): void {
    const id = idOf(schema);
    const count = (this.#counts.get(id) ?? 0) + 1;
    this.#counts.set(id, count);
    // The parts of a shared type are written once.
    if (count === 1 || !mayBeShared(schema)) for (const part of partsOf(schema)) this.#count(part);
  }

  /** `key` is the name of the field that has the schema. */
  #shared(schema: JSONSchema, key: string): JSONSchema {
    const id = idOf(schema);
    if (!mayBeShared(schema) || (this.#counts.get(id) ?? 0) < 2) return this.#below(schema, key);
    const { description, ...rest } = schema;
    const name = this.#names.get(id) ?? this.#add(id, key, rest);
    return { ...(description === undefined ? {} : { description }), tsType: name };
  }

  #add(id: string, key: string, schema: JSONSchema): string {
    const word = `${key.charAt(0).toUpperCase()}${key.slice(1)}`;
    const taken = new Set(this.#names.values());
    let name = word;
    for (let count = 2; taken.has(name); count++) name = `${word}${count}`;
    this.#names.set(id, name);
    this.types.push([name, this.#below(schema)]);
    return name;
  }

  #below(schema: JSONSchema, key = ""): JSONSchema {
    const out = { ...schema };
    if (out.properties)
      out.properties = Object.fromEntries(
        Object.entries(out.properties).map(([key, part]) => [key, this.#shared(part, key)]),
      );
    if (out.items && !Array.isArray(out.items))
      out.items = this.#shared(out.items as JSONSchema, key.replace(/(?<=ch)es$|s$/, ""));
    for (const each of ["oneOf", "allOf"] as const)
      if (out[each]) out[each] = out[each]?.map((one) => this.#below(one));
    return out;
  }
}

/** The same for parts that differ only in their own description. */
const idOf = ({ description: _, ...schema }: JSONSchema): string => JSON.stringify(schema);

const mayBeShared = (schema: JSONSchema): boolean => schema.type === "object" && idOf(schema).length > SHARED_LENGTH;

const partsOf = ({ properties = {}, items, oneOf = [], allOf = [] }: JSONSchema): JSONSchema[] => [
  ...Object.values(properties),
  ...(items && !Array.isArray(items) ? [items as JSONSchema] : []),
  ...oneOf,
  ...allOf,
];

/** The compiler writes even a comment of one line on three lines. */
const COMMENT_OF_ONE_LINE = /\/\*\*\n *\* (.*)\n *\*\//g;

/**
 * The schema of an object as the API server returns it: a field with a default is always set. And
 * `oneOf: [{required: [a]}, {required: [b]}]` becomes an intersection with a union of objects, each with one of the fields required and
 * the others absent.
 */
function asRead(schema: JSONSchema): JSONSchema {
  // A type can't limit the length of a list. The CRD and the pages have the limits.
  const { minItems: _min, maxItems: _max, ...out }: JSONSchema = schema;
  const isFreeForm = out["x-kubernetes-preserve-unknown-fields"] === true && out.properties === undefined;
  if (isFreeForm && out.type === undefined) out.tsType = "unknown";
  else if (isFreeForm && out.type === "object") out.tsType = "Record<string, unknown>";
  if (out.properties) {
    const entries = Object.entries(out.properties);
    const defaulted = entries.filter(([, value]) => value.default !== undefined).map(([key]) => key);
    out.required = [...((out.required as string[] | undefined) ?? []), ...defaulted];
    out.properties = Object.fromEntries(entries.map(([key, value]) => [key, asRead(value)]));
  }
  if (out.items && !Array.isArray(out.items)) out.items = asRead(out.items as JSONSchema);
  if (!out.oneOf) return out;
  const choices = out.oneOf.map((choice) => (choice.required as string[])[0] as string);
  const { oneOf: _, description, properties = {}, required = [], ...rest } = out;
  const all = Object.entries(properties);
  return {
    ...(description === undefined ? {} : { description }),
    allOf: [
      {
        ...rest,
        required: (required as string[]).filter((key) => !choices.includes(key)),
        properties: Object.fromEntries(all.filter(([key]) => !choices.includes(key))),
      },
      {
        oneOf: choices.map((chosen) => ({
          type: "object" as const,
          required: [chosen],
          properties: Object.fromEntries(
            all.flatMap(([key, value]) =>
              choices.includes(key) ? [[key, key === chosen ? value : { tsType: "never" }]] : [],
            ),
          ),
        })),
      },
    ],
  };
}

if (import.meta.main) {
  for (const { crd, module } of generated) await writeFile(module, await generate(crd));
  for (const { crd, file } of schemas) await writeFile(file, await generateSchema(crd));
  await writeFile(rulesFile, await generateRules());
  for (const { crd, file } of pages) await writeFile(file, await generatePage(crd));
}
