/** Writes the reference page of a kind from its CRD: every field with its type, limits and description. */
import type { JSONSchema } from "json-schema-to-typescript";
import { patternOf, withConstraints } from "./schema-rules.ts";

interface Schema {
  type?: string;
  description?: string;
  format?: string;
  enum?: unknown[];
  default?: unknown;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
  [keyword: string]: unknown;
}

interface PrinterColumn {
  name: string;
  description?: string;
  priority?: number;
}

export interface PagedResource {
  spec: {
    group: string;
    scope: string;
    names: { kind: string; singular: string; shortNames?: string[]; categories?: string[] };
    versions: {
      name: string;
      additionalPrinterColumns?: PrinterColumn[];
      schema: { openAPIV3Schema: Schema };
    }[];
  };
}

/** Paths of the fields that are already on the page, by schema. A repeated field refers to the first one. */
type Described = Map<string, string>;

/** The Markdown text of the page of one CRD. */
export function fieldsPage(crdFile: string, { spec }: PagedResource): string {
  const { names, group, scope, versions } = spec;
  const [version] = versions;
  if (version === undefined) throw new Error(`${crdFile} has no version`);
  const schema = withConstraints(version.schema.openAPIV3Schema as JSONSchema) as Schema;
  const described: Described = new Map();
  const sections = ["spec", "status"].flatMap((name) => {
    const field = schema.properties?.[name];
    return field === undefined ? [] : sectionsOf(name, field, described);
  });
  const text = [
    `<!-- Generated from ${crdFile} by \`npm run generate\`. Do not edit. -->`,
    `# Fields of ${names.kind}`,
    prose(schema.description ?? ""),
    ...rulesOf(schema).map((rule) => `Message of the API server if invalid: ${prose(rule)}.`),
    `- API version: \`${group}/${version.name}\`, ${scope === "Cluster" ? "cluster-scoped" : "namespaced"}`,
    `- Short name: \`${(names.shortNames ?? []).join("`, `")}\`; category: \`${(names.categories ?? []).join("`, `")}\``,
    `- Columns of \`kubectl get\`: ${(version.additionalPrinterColumns ?? []).map(columnText).join("; ")}`,
    `- How it behaves: [${names.kind}](../${names.singular}.md). \`kubectl explain ${names.singular}.spec\` prints the same descriptions.`,
    ...sections,
  ];
  return `${text.join("\n\n").replaceAll(/^(- .*)\n\n(?=- )/gm, "$1\n")}\n`;
}

function columnText({ name, description, priority }: PrinterColumn): string {
  const notes = [
    ...(description === undefined ? [] : [lowerFirst(description)]),
    ...(priority ? ["with `-o wide`"] : []),
  ];
  return notes.length === 0 ? name : `${name} (${notes.join(", ")})`;
}

/** A section for the field, and one for each object and list of objects directly below it. */
function sectionsOf(path: string, field: Schema, described: Described): string[] {
  const isOwnSection = ([, child]: [string, Schema]) => path === "spec" && countFields(child) > 3;
  const children = Object.entries(field.properties ?? {});
  const rows = children.flatMap((child) =>
    isOwnSection(child) ? [sectionRow(path, child, field)] : rowsOf(child[0], child[1], field, described, `${path}.`),
  );
  const below = children.filter(isOwnSection).flatMap(([name, child]) => {
    const at = `${path}.${name}${child.items ? "[]" : ""}`;
    const object = child.items ?? child;
    return [heading(at, child), table(fieldRows(object, "", described, `${at}.`))];
  });
  return [heading(path, field), table(rows), ...below];
}

function sectionRow(path: string, [name, child]: [string, Schema], parent: Schema): string {
  const at = `${path}.${name}${child.items ? "[]" : ""}`;
  return row(
    `[\`${name}\`](#${at.replaceAll(/[^a-z]/gi, "").toLowerCase()})`,
    typeText(child, requiredNote(name, parent)),
    child.description ?? "",
  );
}

/** The title of a section, and the rules for its object. The row above has the description of the field. */
function heading(at: string, field: Schema): string {
  const text = at.includes(".") ? field.items?.description : field.description;
  const rules = [...rulesOf(field), ...(field.items ? rulesOf(field.items) : [])];
  const list = rules.map((rule) => `- ${prose(rule)}`).join("\n");
  return [
    `## ${at}`,
    ...(text ? [prose(text)] : []),
    ...(list === "" ? [] : [`Messages of the API server for invalid objects:\n\n${list}`]),
  ].join("\n\n");
}

function fieldRows(object: Schema, prefix: string, described: Described, base: string): string[] {
  return Object.entries(object.properties ?? {}).flatMap(([name, field]) =>
    rowsOf(`${prefix}${name}`, field, object, described, base),
  );
}

/** The row of a field, and the rows of all fields below it, unless they are on the page already. */
function rowsOf(path: string, field: Schema, parent: Schema, described: Described, base: string): string[] {
  const name = path.slice(path.lastIndexOf(".") + 1);
  const suffix = field.items ? "[]" : "";
  const required = requiredNote(name, parent);
  const key = `${name} ${JSON.stringify(field)}`;
  const known = described.get(key);
  if (known !== undefined) return [row(`\`${path}${suffix}\``, typeText(field, required), `As \`${known}\`.`)];
  if ((field.description ?? "").length > 60) described.set(key, `${base}${path}${suffix}`);
  const object = field.items ?? field;
  const below = JSON.stringify(object.properties ?? {});
  const alike = described.get(below);
  if (alike === undefined && countFields(object) > 2) described.set(below, `${base}${path}${suffix}`);
  const reference = alike === undefined ? [] : [`Has the fields of \`${alike}\`.`];
  const texts = [field.description, field.items?.description, ...reference].filter((each) => each !== undefined);
  const rules = [...rulesOf(field), ...(field.items ? rulesOf(field.items) : [])].map(
    (rule) => `Message if invalid: ${rule}.`,
  );
  return [
    row(`\`${path}${suffix}\``, typeText(field, required), [...texts, ...rules].join(" ")),
    ...(alike === undefined ? fieldRows(object, `${path}${suffix}.`, described, base) : []),
  ];
}

const requiredNote = (name: string, parent: Schema) => (parent.required?.includes(name) ? ["required"] : []);

function countFields({ properties = {}, items }: Schema): number {
  const below = Object.values(properties).reduce((sum, child) => sum + 1 + countFields(child), 0);
  return below + (items === undefined ? 0 : countFields(items));
}

function rulesOf(schema: Schema): string[] {
  const rules = (schema["x-kubernetes-validations"] ?? []) as { rule: string; message?: string }[];
  // The limits of a field describe its pattern.
  return rules.flatMap(({ rule, message }) =>
    message === undefined || patternOf(rule) !== undefined ? [] : [message],
  );
}

const LIMITS: Readonly<Record<string, string>> = {
  minimum: "at least",
  maximum: "at most",
  minLength: "min. length",
  maxLength: "max. length",
  minItems: "min. items",
  maxItems: "max. items",
  minProperties: "min. entries",
  maxProperties: "max. entries",
};

/** Type, default and limits of a field, one below the other. The limits of a list's elements follow those of the list. */
function typeText(field: Schema, notes: string[] = []): string {
  const elements = field.items ?? field.additionalProperties;
  const isPlain = elements !== undefined && elements.properties === undefined;
  const lines = [
    typeName(field),
    ...notes,
    ...(field.default === undefined ? [] : [`default \`${JSON.stringify(field.default)}\``]),
    ...limitsOf(field),
    ...(isPlain ? limitsOf(elements).map((limit) => `each: ${limit}`) : []),
  ];
  return lines.join("<br>");
}

function typeName({ type = "any", format, items, additionalProperties }: Schema): string {
  if (items !== undefined) return `list of ${typeName(items)}`;
  if (additionalProperties !== undefined) return `map of ${typeName(additionalProperties)}`;
  return format === undefined ? type : `${type} (${format})`;
}

/** Descriptions of the patterns of Kubernetes. Each implies a maximum length. */
const NAMES: Readonly<Record<string, string>> = {
  "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "a DNS label",
  "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": "an object name",
  "^[.]*[^./%][^/%]*$": "an object name",
  "^[^/%]+$": "a name pattern",
  "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$": "a label value",
  "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": "a label or annotation key",
  "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*$": "a group and version",
  "^([0-9]+(ms|s|m|h))+$": "a duration, such as `90s` or `1h30m`",
};

/** Descriptions of other patterns, which are long. */
const FORMS: Readonly<Record<string, string>> = {
  "^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$": "letters, digits and `-`",
  "^[a-z]([-a-z0-9]*[a-z0-9])?$": "lower-case letters, digits and `-`",
  "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$": "a host name",
  "^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?/?$": "a URL without a path",
};

function limitsOf(field: Schema): string[] {
  const pattern = field["pattern"] as string | undefined;
  const known = pattern === undefined ? undefined : NAMES[pattern];
  const form = pattern === undefined ? [] : [known ?? FORMS[pattern] ?? `pattern \`${pattern}\``];
  const values = field.enum === undefined ? [] : [`one of ${field.enum.map((value) => `\`${value}\``).join(", ")}`];
  const isImplied = (key: string) => known !== undefined && (key === "minLength" || key === "maxLength");
  const bounds = Object.entries(LIMITS).filter(([key]) => field[key] !== undefined && !isImplied(key));
  return [...values, ...bounds.map(([key, text]) => `${text} ${field[key]}`), ...form];
}

function table(rows: string[]): string {
  return ["| Field | Type | Description |", "| --- | --- | --- |", ...rows].join("\n");
}

const row = (path: string, type: string, text: string) => `| ${path} | ${cell(type)} | ${cell(prose(text))} |`;
const cell = (text: string) => text.replaceAll("|", "\\|");
const prose = (text: string) => text.replaceAll(/[*<]/g, "\\$&");
const lowerFirst = (text: string) => text.slice(0, 1).toLowerCase() + text.slice(1);
