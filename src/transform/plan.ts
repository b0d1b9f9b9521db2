/** Plans one target: computes the values to write from its fields and the sources. */
import { copiesAll, type Field, sourcesIn } from "../api/binding.ts";
import { assertWritablePath } from "../api/writable.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { parsePointer, pointAt } from "../apimachinery/json-pointer.ts";
import { type JsonObject, type JsonValue, plainWord } from "../apimachinery/objects.ts";
import { attemptSync, catalogue, MissingValue, Problem, throwFirst } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { Budget } from "./budget.ts";
import { convert, inferAs, notNull } from "./convert.ts";
import { costOf, type OnDifference, readDocument } from "./document.ts";
import { assertNoPlaceholder, backslashWarnings, foreignExpression } from "./foreign-templates.ts";
import { keyFilter, newFilterEffort } from "./key-filter.ts";
import type { LiveSource } from "./live-source.ts";
import { elementAt } from "./path-advice.ts";
import type { OmittedField, Plan, PlannedField, ReadableCopies } from "./plan-types.ts";
import {
  type DataSource,
  keyOf,
  missingIn,
  type PresentSource,
  present,
  readBytes,
  readField,
  textOf,
} from "./read.ts";
import type { SchemaAt } from "./schema-check.ts";
import { compileTemplate } from "./template.ts";
import { type Reference, type Sources, spell, unknownSource } from "./template-value.ts";

type From = NonNullable<Field["from"]>;
type Made = Pick<PlannedField, "value" | "isBytes"> & {
  warning?: Problem;
  /** The keys for the `binaryData` of a ConfigMap, in base64. */
  binary?: SecretValue<JsonObject>;
};

/** The part of a ConfigMap for what is not text. */
export const BINARY_DATA = FieldPath.parse("binaryData");

/** Computes one field's value from the sources that it names and the schema of its path. */
export interface Recipe {
  readonly field: Field;
  readonly path: FieldPath;
  readonly append: boolean;
  readonly references: readonly Reference[];
  /** About the field, whatever its value is. */
  readonly warnings: readonly Problem[];
  /** Whether it writes the `binaryData` of a ConfigMap beside its path. */
  isSplit(schemaAt: SchemaAt): boolean;
  make(sources: Sources, schemaAt: SchemaAt, budget: Budget): Made;
}

/** The part of a recipe that depends on where its values come from. */
type Reading = Pick<Recipe, "references" | "warnings" | "make">;

/** A field that has no recipe. */
export interface InvalidField {
  readonly field: Field;
  readonly problem: Problem;
  readonly warnings: readonly Problem[];
}

/** What a field of a target would write, or why it writes nothing. */
export interface FieldPlan {
  readonly field: Field;
  /** What the binding or the value has wrong. */
  readonly problem?: Problem | undefined;
  readonly planned: readonly PlannedField[];
  readonly omitted: readonly OmittedField[];
  readonly emptied: readonly FieldPath[];
  readonly granted: readonly string[];
  readonly warnings: readonly Problem[];
}

/**
 * Plans each field of a target by its recipe. `schemaAt` gives the type of a field without `as`. A field whose source or key is missing is
 * omitted. A source that could not be read is a Problem in `sources`, and that of each field that needs it. Other problems are those of the
 * recipes, NotUtf8, InvalidValue, TypeMismatch and InvalidBinding (a key of an object, a fieldPath of a Secret). The fields share one
 * budget.
 */
export function planFields(
  recipes: readonly (Recipe | InvalidField)[],
  sources: ReadonlyMap<string, LiveSource | Problem>,
  schemaAt: SchemaAt = () => undefined,
): FieldPlan[] {
  const budget = new Budget();
  return recipes.map((recipe) => planField(recipe, sources, schemaAt, budget));
}

function planField(
  recipe: Recipe | InvalidField,
  sources: ReadonlyMap<string, LiveSource | Problem>,
  schemaAt: SchemaAt,
  budget: Budget,
): FieldPlan {
  const { field, warnings } = recipe;
  const nothing: FieldPlan = { field, planned: [], omitted: [], emptied: [], granted: [], warnings };
  if ("problem" in recipe) return { ...nothing, problem: recipe.problem };
  const { path, append, references, make } = recipe;
  const made = attemptSync(() =>
    about(path, () => {
      const live = readable(references, sources);
      const { warning, binary, ...one } = make(live, schemaAt, budget);
      const fromSecret = [...live.values()].some((source) => source.kind === "data" && source.isSecret);
      const parts: PlannedField[] = [{ path, append, fromSecret, ...one }];
      if (binary !== undefined) parts.push({ path: BINARY_DATA, append, fromSecret, value: binary, isBytes: true });
      for (const { value } of parts) budget.value(value.reveal());
      const isEmpty = ({ value }: PlannedField) =>
        binary !== undefined && Object.keys(value.reveal() as JsonObject).length === 0;
      return {
        planned: parts.filter((part) => !isEmpty(part)),
        emptied: parts.filter(isEmpty).map((part) => part.path),
        granted: [...live.values()].flatMap((source) =>
          source.kind !== "absent" && source.isGranted ? [source.description] : [],
        ),
        warnings: warning === undefined ? warnings : [...warnings, warning.within(String(path))],
      };
    }),
  );
  if (!(made instanceof Problem)) return { ...nothing, ...made };
  if (!(made instanceof MissingValue)) return { ...nothing, problem: made };
  const [only, ...others] = new Set(references.map(({ source }) => source));
  const why = others.length === 0 ? made.with({ source: made.source ?? only }) : made;
  const paths = recipe.isSplit(schemaAt) ? [path, BINARY_DATA] : [path];
  return { ...nothing, omitted: paths.map((each) => ({ path: each, why })) };
}

/** The problems of the fields. What is wrong with a source is one problem, although several fields need it. */
export function problemsOf(fields: readonly FieldPlan[]): Problem[] {
  const all = fields.flatMap(({ problem }) => problem ?? []);
  return all.filter(({ source }, at) => source === undefined || all.findIndex((each) => each.source === source) === at);
}

/** The plan of a target whose fields have no problem. */
export function planOf(fields: readonly FieldPlan[]): Plan {
  const emptied = fields.flatMap((each) => each.emptied);
  const warnings = fields.flatMap((each) => each.warnings);
  const granted = new Set(fields.flatMap((each) => each.granted));
  return {
    fields: fields.flatMap(({ planned }) => planned),
    omitted: fields.flatMap(({ omitted }) => omitted),
    ...(emptied.length > 0 && { emptied }),
    ...(warnings.length > 0 && { warnings }),
    ...(granted.size > 0 && { granted: [...granted] }),
  };
}

/** Plans a target whose fields are checked first, before any source is used. Throws the first Problem, which has the others. */
export function planTarget(
  fields: readonly Field[],
  sources: ReadonlyMap<string, LiveSource | Problem>,
  schemaAt?: SchemaAt,
): Plan {
  const planned = planFields(checkFields(fields, sources.keys()), sources, schemaAt);
  throwFirst(problemsOf(planned));
  return planOf(planned);
}

/** The missing value that prevents the write of the whole target, if any: one that is not optional. */
export function missingOf({ omitted }: Plan): MissingValue | undefined {
  const missing = omitted.flatMap(({ why }) => (why.policy.optional ? [] : [why]));
  return missing.find(({ reason }) => reason === "GrantWithdrawn") ?? missing[0];
}

/** Notes on a target that is written without problems, and its readable copies. */
export function noteOf({ fields, omitted, warnings = [], kept, readable }: Plan): {
  note?: string;
  readable?: ReadableCopies;
} {
  const isWritten = fields.length + (kept?.length ?? 0) > 0;
  const notes = [
    ...(omitted.length > 0 ? [`omitted: ${[...new Set(omitted.map(({ why }) => why.message))].join("; ")}`] : []),
    ...warnings.map(({ message }) => message),
    ...(kept && isWritten ? ["written once, and not changed again (mode: Once)"] : []),
  ];
  return { ...(notes.length > 0 && { note: notes.join("; ") }), ...(readable && { readable }) };
}

/**
 * Checks each of a target's fields without its value. The problems: InvalidPath, ForbiddenPath, InvalidTemplate, or InvalidBinding
 * (overlapping paths, an unknown source, an invalid regular expression).
 */
export function recipesOf(fields: readonly Field[], sourceNames: Iterable<string>): (Recipe | InvalidField)[] {
  const names = [...sourceNames];
  const isSplittable = !fields.some(({ path }) => /^binaryData\b/.test(path));
  const effort = newFilterEffort();
  const paths: FieldPath[] = [];
  return fields.map((field) => {
    const recipe = attemptSync(() => {
      const path = FieldPath.parse(field.path);
      assertWritablePath(path);
      assertFoundAfter(path);
      const made = about(path, () => {
        keyFilter(field.from ?? {}, "from", effort);
        return recipeOf(field, path, names, isSplittable);
      });
      const other = paths.find((each) => path.startsWith(each) || each.startsWith(path));
      paths.push(path);
      if (other === undefined) return made;
      const what = `${other} and ${path} overlap, so both would write the same field; remove one of them`;
      throw new Problem("InvalidBinding", what);
    });
    return recipe instanceof Problem ? { field, problem: recipe, warnings: [] } : recipe;
  });
}

/** The recipes of fields that are all right. Throws the first Problem, which has the others. */
export function checkFields(fields: readonly Field[], sourceNames: Iterable<string>): readonly Recipe[] {
  const recipes = recipesOf(fields, sourceNames);
  throwFirst(recipes.flatMap((each) => ("problem" in each ? each.problem : [])));
  return recipes as readonly Recipe[];
}

/** Overwriting the key by which a path finds its element would make the path find another element later. */
function assertFoundAfter(path: FieldPath): void {
  const [element, leaf] = path.segments.slice(-2);
  if (element?.kind !== "element" || leaf?.kind !== "key") return;
  if (!element.conditions.some(({ key }) => key === leaf.key)) return;
  const list = path.upTo(path.segments.length - 2);
  const what = `the path finds its element by ${leaf.key}, so it can't change ${leaf.key}; name the element by another field, or as ${elementAt(list, `.${leaf.key}`)}`;
  throw new Problem("InvalidPath", { at: [String(path)], what });
}

function recipeOf(field: Field, path: FieldPath, names: readonly string[], isSplittable: boolean): Recipe {
  const { from, as } = field;
  const isWhole = copiesAll(field);
  const mayBeSplit = isWhole && isSplittable && String(path) === "data" && (as === undefined || as === "string");
  const isSplit = (schemaAt: SchemaAt) => mayBeSplit && isConfigMap(schemaAt);
  const recipe =
    from === undefined ? fromTemplate(field.template, path, as, names) : fromSource(from, path, as, isSplit);
  for (const reference of recipe.references) {
    if (!names.includes(reference.source)) throw new Problem("InvalidBinding", unknownSource(reference, names));
  }
  const warnings = recipe.warnings.map((each) => each.within(String(path)));
  return { field, path, append: field.onMissingElement === "Append", ...recipe, isSplit, warnings };
}

const isConfigMap = (schemaAt: SchemaAt): boolean => schemaAt(BINARY_DATA, "key")?.format === "byte";

function readable(references: Recipe["references"], sources: ReadonlyMap<string, LiveSource | Problem>): Sources {
  const read = new Map<string, LiveSource>();
  for (const { source: name } of references) {
    const source = sources.get(name);
    if (source instanceof Problem) throw source;
    if (source !== undefined) read.set(name, source);
  }
  return read;
}

function fromTemplate(text: string, path: FieldPath, as: Field["as"], names: readonly string[]): Reading {
  assertNoPlaceholder(text, names);
  const template = attemptSync(() => compileTemplate(text));
  if (template instanceof Problem) throw foreignExpression(text, names, template) ?? template;
  // Handlebars takes .x after a name, and the $ of Go, as parts of a name.
  if (template.references.some(({ source }) => !names.includes(source))) {
    const foreign = foreignExpression(text, names);
    if (foreign !== undefined) throw foreign;
  }
  return {
    references: template.references,
    warnings: backslashWarnings(text, names),
    make: (sources, schemaAt, budget) =>
      inferred(template.render(sources, budget), as, schemaAt(path), "the result of the template", budget),
  };
}

function fromSource(from: From, path: FieldPath, as: Field["as"], isSplit: Recipe["isSplit"]): Reading {
  const fieldPath = from.fieldPath === undefined ? undefined : FieldPath.parse(from.fieldPath);
  const pointer = from.pointer === undefined ? undefined : parsePointer(from.pointer);
  const make: Recipe["make"] = (sources, schemaAt, budget) => {
    if (from.source === undefined) {
      const found = severalOf(from.sources, sources);
      return allOf(found, from, { path, as, schemaAt, isSplit: isSplit(schemaAt) }, budget);
    }
    const source = present(sources.get(from.source) as LiveSource);
    if (source.kind === "object") {
      if (fieldPath === undefined) {
        const instead = from.key === undefined ? "" : " instead of key";
        throw new Problem("InvalidBinding", `${source.description} has fields, not keys; set fieldPath${instead}`);
      }
      return converted(readField(source, fieldPath), as, `field ${fieldPath} of ${source.description}`, budget);
    }
    if (fieldPath !== undefined) {
      const message = `${source.description} has keys, not fields; set key instead of fieldPath, or neither for all of its data`;
      throw new Problem("InvalidBinding", message);
    }
    const { key } = from;
    if (key === undefined)
      return allOf([[from.source, source]], from, { path, as, schemaAt, isSplit: isSplit(schemaAt) }, budget);
    const subject = keyOf(source, key);
    if (pointer !== undefined) {
      const found = readDocument(source, key, budget).map((document) => pointAt(document, pointer) ?? null);
      const there = plainWord(from.pointer ?? "");
      if (found.reveal() === null) throw missingIn(source, `nothing at ${there} in its key ${plainWord(key)}`);
      return converted(found, as, `${there} in ${subject}`, budget);
    }
    if (as === "json" || as === "yaml") {
      return withDifference(subject, (differs) => ({
        value: readDocument(source, key, budget, as, differs).map((document) => notNull(document, as, subject)),
      }));
    }
    return inferred(readBytes(source, key), as, schemaAt(path), subject, budget);
  };
  return { references: sourcesIn(from).map((source) => ({ source, path: [] })), warnings: [], make };
}

type Named = readonly [name: string, source: DataSource];

/** The present ones of several sources. An optional one may be missing, but not all of them. */
function severalOf(names: readonly string[], sources: Sources): Named[] {
  const found: Named[] = [];
  let missing: MissingValue | undefined;
  for (const name of names) {
    const source = attemptSync(() => hasData(present(sources.get(name) as LiveSource)));
    if (source instanceof MissingValue && source.policy.optional) missing ??= source;
    else if (source instanceof Problem) throw source;
    else found.push([name, source]);
  }
  if (found.length === 0 && missing !== undefined) throw missing;
  return found;
}

function hasData(source: PresentSource): DataSource {
  if (source.kind === "object") {
    const message = `${source.description} has fields, not keys, so it can't be one of several sources; write a field with fieldPath for it`;
    throw new Problem("InvalidBinding", message);
  }
  if (source.data.size === 0) throw missingIn(source, "no data");
  return source;
}

interface Into {
  path: FieldPath;
  as: Field["as"];
  schemaAt: SchemaAt;
  isSplit: boolean;
}

/**
 * All data of the sources that passes the filter, as an object. Each key is converted like a field of its own. In a
 * ConfigMap, what is not text goes to `binaryData`. Throws if nothing passes, because an empty object would be an
 * accident.
 */
function allOf(sources: readonly Named[], from: From, into: Into, budget: Budget): Made {
  const { path, as, schemaAt, isSplit } = into;
  const [[, first]] = sources as [Named];
  const passes = keyFilter(from, "from", budget.filters);
  const chosen = new Map<string, Named>();
  for (const [name, source] of sources) {
    for (const key of hasData(source).data.keys()) {
      if (!passes(key)) continue;
      const other = chosen.get(key);
      if (other !== undefined && from.onCollision !== "LaterWins") throw collision(key, other[1], source);
      chosen.set(key, [name, source]);
    }
  }
  if (chosen.size === 0) throw missingIn(first, "no key that passes include and exclude");
  let warning: Problem | undefined;
  const texts: [string, JsonValue][] = [];
  const binary: [string, JsonValue][] = [];
  for (const [key, [, source]] of chosen) {
    const bytes = readBytes(source, key);
    const make = () => inferred(bytes, as, schemaAt(path, key), keyOf(source, key), budget);
    const made = isSplit && source.binary?.has(key) ? undefined : attemptSync(make);
    const isText = made !== undefined && !(made instanceof Problem && made.reason === "NotUtf8");
    if (made instanceof Problem && isText) throw made;
    if (isText && !(made instanceof Problem)) {
      warning ??= made.warning;
      texts.push([key, made.value.reveal()]);
    } else binary.push([key, converted(bytes, "bytes", keyOf(source, key), budget).value.reveal()]);
  }
  if (binary.length > 0 && !isSplit) {
    const keys = binary.map(([key]) => key);
    throw notText(chosen.get(keys[0] as string) as Named, keys, into);
  }
  return {
    value: new SecretValue(Object.fromEntries(texts)),
    ...(isSplit && { binary: new SecretValue(Object.fromEntries(binary)) }),
    ...(warning && { warning }),
  };
}

function collision(key: string, one: DataSource, other: DataSource): Problem {
  const message = `${one.description} and ${other.description} both have a key ${plainWord(key)}; set onCollision: LaterWins to write the value of the later one, or leave the key out with exclude`;
  return new Problem("InvalidValue", message);
}

/** How many keys a message lists. */
const MAX_NAMED = 10;

/** For keys that can't be copied with the others. A second field below the path of the copy would overlap with it. */
function notText([name, source]: Named, keys: readonly string[], { path, schemaAt }: Into): Problem {
  const [first = "", ...others] = keys;
  const [named, more] = [keys.slice(0, MAX_NAMED), keys.length - MAX_NAMED];
  const rest = more > 0 ? ` and ${more} more` : "";
  const what =
    others.length === 0
      ? `${keyOf(source, first)} is not UTF-8 text`
      : `keys ${named.map(plainWord).join(", ")}${rest} of ${source.description} are not UTF-8 text`;
  const [it, them] = others.length === 0 ? ["it", "this key"] : ["they", "these keys"];
  const patterns = `[${named.map((key) => JSON.stringify(`^${key.replaceAll(/[^\w-]/g, "[$&]")}$`)).join(", ")}]${rest}`;
  const instead =
    String(path) === "data" && isConfigMap(schemaAt)
      ? `to copy ${them} too, remove the field with path: binaryData: without it, this field writes both`
      : `or copy each key by a field of its own instead of all keys by one field, and ${them} with a template such as {{base64 ${spell([name, first])}}}`;
  const message = `${what}, so ${it} can't be copied with the other keys; leave ${them} out with exclude: ${patterns}; ${instead}`;
  return new Problem("NotUtf8", message);
}

/** A value with a type of its own keeps it, unless the field sets `as`. */
function converted(value: SecretValue<Uint8Array | JsonValue>, as: Field["as"], subject: string, budget: Budget): Made {
  return withDifference(subject, (differs) => {
    const make = (each: Uint8Array | JsonValue) => {
      const text = as === "json" || as === "yaml" ? documentIn(each, subject) : undefined;
      if (text !== undefined) budget.work(costOf(text));
      return convert(text ?? each, as, subject, differs);
    };
    return { value: value.map(make), isBytes: as === "bytes" };
  });
}

/** Adds a warning if the value is made of YAML that YAML 1.1 reads otherwise. It quotes nothing. */
function withDifference(subject: string, make: (differs: OnDifference) => Made): Made {
  let line: number | undefined;
  const made = make((first) => {
    line ??= first;
  });
  if (line === undefined) return made;
  const message = `${subject} is YAML with a word or number in line ${line} that YAML 1.1 reads as something else, such as no, on, 0755 or 1:30; Inlay reads YAML 1.2. Put it in quotes if it is text, or set as: string if the field takes the text itself`;
  return { ...made, warning: new Problem("InvalidValue", message) };
}

const documentIn = (value: Uint8Array | JsonValue, subject: string): string | undefined =>
  value instanceof Uint8Array ? textOf(value, subject) : typeof value === "string" ? value : undefined;

/** A text gets the type of its path in the schema, unless the field sets `as`. */
function inferred(
  value: SecretValue<Uint8Array | JsonValue>,
  as: Field["as"],
  schema: ReturnType<SchemaAt>,
  subject: string,
  budget: Budget,
): Made {
  return converted(value, as ?? inferAs(schema, value.reveal()), subject, budget);
}

/** Prepends the path of the field to a Problem. */
function about<T>(path: FieldPath, act: () => T): T {
  const result = attemptSync(act);
  if (result instanceof Problem)
    throw result.within(String(path)).with({ retryPolicy: catalogue[result.reason].retry });
  return result;
}
