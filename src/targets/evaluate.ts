/**
 * Evaluates a target: checks its entry in the binding, which depends on no value, and computes what it would write from the values of the
 * sources. The controller writes the result, `inlay diff` sends it as a dry run, and `inlay render` shows it. Pure.
 */
import { type Field, fieldsOfTarget, manifestOf, type Target } from "../api/binding.ts";
import { assertManifest } from "../api/manifest.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { type JsonValue, parseApiVersion } from "../apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema, ResolveRef } from "../apimachinery/openapi.ts";
import { allIn, attemptSync, Problem, throwFirst } from "../apimachinery/problem.ts";
import { type As, inferAs } from "../transform/convert.ts";
import { assertNoReference } from "../transform/foreign-templates.ts";
import type { LiveSource } from "../transform/live-source.ts";
import {
  type FieldPlan,
  type InvalidField,
  planFields,
  planOf,
  problemsOf,
  type Recipe,
  recipesOf,
} from "../transform/plan.ts";
import type { Plan, PlannedField } from "../transform/plan-types.ts";
import { checkManifest, checkPath, schemaChecker, schemaIn } from "../transform/schema-check.ts";
import { withInherited } from "../transform/whole-copy.ts";

/** A value of each type that is known from `as` alone. */
const SAMPLES: Readonly<Record<As, JsonValue | undefined>> = {
  string: "",
  integer: 0,
  number: 0,
  boolean: true,
  bytes: "",
  json: undefined,
  yaml: undefined,
};

/** Throws Problem: InvalidPath, UnknownField or TypeMismatch. */
function checkFieldType(field: Field, root: OpenApiSchema, resolve: ResolveRef): void {
  const path = FieldPath.parse(field.path);
  checkPath(path, sampleOf(field, schemaIn(root, resolve)(path)), root, resolve);
}

function sampleOf({ from, as }: Field, schema: OpenApiSchema | undefined): { value?: JsonValue; isBytes?: boolean } {
  // All keys of a source: an object.
  if (from !== undefined && from.key === undefined && from.fieldPath === undefined) return { value: {} };
  const isText = from?.key !== undefined && from.pointer === undefined;
  const type = as ?? (isText ? (inferAs(schema, "") ?? "string") : undefined);
  const value = type && SAMPLES[type];
  return value === undefined ? {} : { value, isBytes: type === "bytes" };
}

/** An entry of spec.targets after the checks that need neither a value nor a schema. */
export interface CheckedEntry {
  readonly target: Target;
  /** In the order of the fields. */
  readonly recipes: readonly (Recipe | InvalidField)[];
  /** What is wrong beside the fields, in the manifest of an object to create. */
  readonly problems: readonly Problem[];
}

export function checkEntry(target: Target, sourceNames: Iterable<string>): CheckedEntry {
  const names = [...sourceNames];
  const recipes = recipesOf(fieldsOfTarget(target), names);
  if (target.create === undefined) return { target, recipes, problems: [] };
  const manifest = manifestOf(target);
  const checks = [
    () => assertManifest(parseApiVersion(target.apiVersion).group, target.kind, manifest),
    () => assertNoReference(manifest, names),
  ];
  const problems = checks.flatMap((check) => {
    const problem = attemptSync(check);
    return problem === undefined ? [] : allIn(problem);
  });
  return { target, recipes, problems };
}

/** The problems of an entry without its values. */
export const problemsOfEntry = ({ recipes, problems }: CheckedEntry): Problem[] => [
  ...recipes.flatMap((each) => ("problem" in each ? each.problem : [])),
  ...problems,
];

/** The entry with the mistakes in paths and types that the schema of its kind shows without values. */
export function checkTypes(entry: CheckedEntry, schema: KindSchema | undefined): CheckedEntry {
  if (schema === undefined) return entry;
  const { root, resolve } = schema;
  const recipes = entry.recipes.map((each) => {
    if ("problem" in each) return each;
    const { field, warnings } = each;
    const problem = attemptSync(() => checkFieldType(field, root, resolve));
    return problem === undefined ? each : { field, problem, warnings };
  });
  const { target } = entry;
  const manifest = target.create && attemptSync(() => checkManifest(manifestOf(target), root, resolve));
  return { target, recipes, problems: [...entry.problems, ...(manifest ? allIn(manifest) : [])] };
}

/** What a target would write, and all that is wrong with it. */
export interface Evaluation {
  /** In the order of the fields. */
  readonly fields: readonly FieldPlan[];
  /** What an object to create takes from its source beside the data. */
  readonly inherited: Plan;
  /** What is wrong beside the fields. */
  readonly problems: readonly Problem[];
}

const NOTHING: Plan = { fields: [], omitted: [] };

/** `isDue` says which fields count. */
export function evaluate(
  entry: CheckedEntry,
  sources: ReadonlyMap<string, LiveSource | Problem>,
  schema: KindSchema | undefined,
  isDue: (field: Field) => boolean = () => true,
): Evaluation {
  const { target, recipes, problems } = checkTypes(entry, schema);
  const schemaAt = schema && schemaIn(schema.root, schema.resolve);
  const check = schema && schemaChecker(schema.root, schema.resolve);
  const misfit = (fields: readonly PlannedField[]): Problem | undefined => {
    const problem = check && attemptSync(() => fields.forEach(check));
    return problem instanceof Problem ? problem : undefined;
  };
  const due = recipes.filter(({ field }) => isDue(field));
  const planned = planFields(due, sources, schemaAt);
  const fields = planned.map((each) => ({ ...each, problem: each.problem ?? misfit(each.planned) }));
  const taken = attemptSync(() => withInherited(NOTHING, target, sources));
  const wrong = taken instanceof Problem ? taken : misfit(taken.fields);
  return {
    fields,
    inherited: taken instanceof Problem ? NOTHING : taken,
    problems: wrong === undefined ? problems : [...problems, wrong],
  };
}

/** The plan of a target. Throws the first Problem, which has all others. */
export function planIn({ fields, inherited, problems }: Evaluation): Plan {
  throwFirst([...problemsOf(fields), ...problems]);
  const plan = planOf(fields);
  const warnings = [...(plan.warnings ?? []), ...(inherited.warnings ?? [])];
  return { ...plan, fields: [...plan.fields, ...inherited.fields], ...(warnings.length > 0 && { warnings }) };
}
