/**
 * Reads the CRDs in this folder, and writes the types in src/api/, the schemas as JSON, and the pages in docs/reference/fields/.
 * `npm run generate` runs it. A test fails when a generated file is not up to date.
 */
import { readFile, writeFile } from "node:fs/promises";
import type { JSONSchema } from "json-schema-to-typescript";
import { parse } from "yaml";
import { fieldsPage, type PagedResource } from "./fields-page.ts";
import { rulesIn, withConstraints } from "./schema-rules.ts";
import { typeModules } from "./type-modules.ts";

interface CustomResourceDefinition {
  spec: { names: { kind: string }; versions: { schema: { openAPIV3Schema: JSONSchema } }[] };
}

export const generated = [
  { crd: "apis/secretbindings.yaml", module: "src/api/secret-binding.ts" },
  { crd: "apis/secretgrants.yaml", module: "src/api/secret-grant.ts" },
  { crd: "apis/bindingcompositions.yaml", module: "src/api/binding-composition.ts" },
  { crd: "apis/vaultconnections.yaml", module: "src/api/vault-connection.ts" },
];

/** The files with the schemas as JSON, without descriptions and CEL rules. */
export const schemas = generated.map(({ crd, module }) => ({ crd, file: module.replace(/\.ts$/, "-schema.json") }));

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

/** The texts of the modules with the types of all kinds, by their names. */
export async function generateTypes(): Promise<Map<string, string>> {
  return typeModules(await Promise.all(generated.map(async (each) => ({ ...each, ...(await readCrd(each.crd)) }))));
}

if (import.meta.main) {
  for (const [module, text] of await generateTypes()) await writeFile(module, text);
  for (const { crd, file } of schemas) await writeFile(file, await generateSchema(crd));
  await writeFile(rulesFile, await generateRules());
  for (const { crd, file } of pages) await writeFile(file, await generatePage(crd));
}
