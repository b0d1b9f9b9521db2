/** Computes the fields that a binding would write, from the objects in the files, or the reason why a target is not written. */
import { type Field, fieldsOfTarget, manifestOf, type SecretBinding, sourcesIn, type Target } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { valueAt } from "../apimachinery/fields.ts";
import { sameJson } from "../apimachinery/json.ts";
import {
  type JsonObject,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
  parseApiVersion,
} from "../apimachinery/objects.ts";
import type { KindSchema } from "../apimachinery/openapi.ts";
import { type Advice, attemptSync, Problem, reasonOf } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { withValues } from "../apply/patch.ts";
import { wayOf } from "../explain/targets.ts";
import type { Values } from "../pipeline/compile.ts";
import { describeUse, usesOf } from "../sources/uses.ts";
import { checkEntry, checkTypes, evaluate } from "../targets/evaluate.ts";
import type { References } from "../targets/references.ts";
import type { SelectionResult } from "../targets/select.ts";
import type { FieldPlan } from "../transform/plan.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import { assertAcknowledged, readableCopies } from "../transform/readable-copies.ts";
import { schemaIn } from "../transform/schema-check.ts";
import { shapeOf } from "../transform/target-shape.ts";
import { compileTemplate } from "../transform/template.ts";
import type { BindingToRender } from "./claims.ts";
import { distinctMistakes, type Mistake } from "./documents.ts";
import type { FileCluster } from "./file-cluster.ts";
import { compileFile, fileWorld, valuesInFiles } from "./file-world.ts";
import type { Inputs } from "./inputs.ts";
import type { RenderedField, RenderedTarget } from "./rendering.ts";

/** Reasons that a binding waits for. All others are mistakes, which need a change in the files. */
const WAITS = new Set([
  "KindNotFound",
  "SourceNotFound",
  "KeyNotFound",
  "NotGranted",
  "ElementNotFound",
  "SourceAnnotationMismatch",
  "TargetNotFound",
]);

export interface BindingFields {
  readonly references: References;
  readonly selection: SelectionResult;
  readonly targets: readonly RenderedTarget[];
  readonly notes: readonly string[];
  /** The SecretGrants that it needs, if the files contain no grants at all. */
  readonly grants: readonly Advice[];
  readonly mistakes: readonly Mistake[];
  /** Of what is written otherwise than its author may mean. */
  readonly warnings: readonly Mistake[];
}

/** What the targets of a binding share. */
interface Context {
  readonly binding: SecretBinding;
  readonly values: Values;
  readonly textOf: (field: Field) => string[];
  readonly cluster: FileCluster;
  readonly inputs: Inputs;
  readonly installation: Installation;
  /** Records a mistake at a place of the spec, or at a part of it, and returns it as a reason. */
  readonly problemAt: (place: string, problem: Problem, part?: string) => RenderedTarget["problem"] & object;
  readonly warnAt: (place: string, problem: Problem) => void;
}

export async function fieldsOf(
  { binding, producedBy, mistakeAt }: BindingToRender,
  inputs: Inputs,
  cluster: FileCluster,
  installation: Installation,
): Promise<BindingFields> {
  const world = fileWorld(cluster, inputs, installation, producedBy);
  const compiled = await compileFile(binding, world);
  const { references, selection } = compiled;
  const { values, grants } = await valuesInFiles(compiled, world, inputs);
  const [mistakes, warnings]: [Mistake[], Mistake[]] = [[], []];
  /** The sources whose problems are reported there already. */
  const known = new Set<string | undefined>();
  for (const [position, { name, store }] of references.parsedSources.entries()) {
    const [place, problem] = [`spec.sources[${position}]`, store && references.sources.get(name)];
    if (!(problem instanceof Problem)) continue;
    known.add(name);
    mistakes.push(mistakeAt(problem.reason, problem.within(place), [place]));
  }
  const context: Context = {
    binding,
    values,
    textOf: (field) =>
      usesOf(references.parsedSources, field, (text) => compileTemplate(text).references).map(describeUse),
    cluster,
    inputs,
    installation,
    problemAt(place, problem, part = "") {
      if (!WAITS.has(problem.reason) && !known.has(problem.source))
        mistakes.push(mistakeAt(problem.reason, problem.within(place), [`${place}${part}`]));
      return reasonOf(problem);
    },
    warnAt(place, problem) {
      warnings.push(mistakeAt(problem.reason, problem.within(place), [`${place}${partOf(problem)}`]));
    },
  };
  const closed = installation.closedNamespace(binding.metadata.namespace);
  if (closed !== undefined) mistakes.push(mistakeAt(closed.reason, closed.within("metadata.namespace")));
  const targets = [
    ...selection.objects.map(({ target, ref }) => renderTarget(context, target, ref)),
    ...selection.unresolved.map(({ target, problem }) => renderTarget(context, target, problem)),
  ];
  return {
    references,
    selection,
    targets,
    notes: [...world.notes, ...selection.notes],
    grants,
    mistakes: distinctMistakes(mistakes),
    warnings,
  };
}

function renderTarget(context: Context, target: Target, ref: ObjectRef | Problem): RenderedTarget {
  const { binding, cluster, inputs, values, problemAt, warnAt, textOf } = context;
  const { sources, sourceMismatch: mismatch, secretNamespaces: secrets } = values;
  const { apiVersion, kind, name } = target;
  const place = `spec.targets[${binding.spec.targets.indexOf(target)}]`;
  const how = wayOf(target);
  const { version } = parseApiVersion(apiVersion);
  const { resource } = ref instanceof Problem ? { resource: inputs.kinds.resourceOf(apiVersion, kind) } : ref;
  const schema = inputs.kinds.schemaOf({ ...resource, version });
  const entry = checkEntry(target, sources.keys());
  if (ref instanceof Problem) {
    const fields = checkTypes(entry, schema).recipes.map((each, at): RenderedField => {
      const field = `${place}.fields[${at}]`;
      for (const warning of each.warnings) warnAt(field, warning);
      const problem = "problem" in each && problemAt(field, each.problem, partOf(each.problem));
      return { path: each.field.path, from: textOf(each.field), ...(problem && { problem }) };
    });
    const isReported = entry.recipes.some((each) => "problem" in each && each.problem.isSame(ref));
    const problem = isReported ? reasonOf(ref) : problemAt(place, ref);
    const named = name === undefined ? {} : { name };
    return { apiVersion, kind, ...named, ...how, inFiles: false, written: false, problem, notes: [], fields };
  }
  const live = cluster.find(ref);
  const evaluation = evaluate(entry, sources, schema);
  const results = evaluation.fields.map((each, at) =>
    renderField(context, target, each, { live, schema, place: `${place}.fields[${at}]` }),
  );
  const { inherited } = evaluation;
  const recipes = entry.recipes.flatMap((each) => ("problem" in each ? [] : each));
  const copies =
    recipes.length === results.length
      ? readableCopies(binding, secrets, recipes, ref, schema && schemaIn(schema.root, schema.resolve))
      : undefined;
  const unacknowledged = attemptSync(() => assertAcknowledged(binding, copies, context.installation));
  const wrong = [...evaluation.problems, ...(unacknowledged ? [unacknowledged] : [])].map((each) =>
    problemAt(place, each),
  );
  const waiting = results.find(({ blocks }) => blocks)?.field.problem;
  const differ = waiting === undefined && mismatch !== undefined ? problemAt(place, mismatch) : waiting;
  const problem = wrong[0] ?? differ;
  const from = fieldsOfTarget(target).flatMap((each) =>
    each.path === "data" && each.from ? sourcesIn(each.from) : [],
  );
  return {
    apiVersion,
    kind,
    ...(ref.namespace !== undefined && { namespace: ref.namespace }),
    name: ref.name,
    ...how,
    inFiles: live !== undefined,
    written: problem === undefined,
    ...(problem && { problem }),
    notes: [
      ...[...evaluation.fields, inherited].flatMap(({ warnings = [] }) => warnings.map(({ message }) => message)),
      ...(wrong.length > 0 || copies === undefined ? [] : [copies.note]),
    ],
    fields: [
      ...results.flatMap(({ field, others }) => [field, ...others]),
      ...inherited.fields.map((field) => shown(field, from, live)),
    ],
  };
}

function shown({ path, value }: PlannedField, from: string[], live: KubeObject | undefined): RenderedField {
  const there = live === undefined ? undefined : valueAt(live, path);
  const before = there === undefined ? {} : { before: new SecretValue(there as JsonValue) };
  const changes = live === undefined ? {} : { changes: !sameJson(there, value.reveal()) };
  return { path: String(path), from, ...before, value, ...changes };
}

/** Problems of the path of a field. */
const OF_PATH = new Set(["InvalidPath", "ForbiddenPath", "UnknownField", "TypeMismatch"]);

/** The part of a field's entry that a problem is about. */
function partOf({ reason }: Problem): string {
  if (reason === "InvalidTemplate") return ".template";
  return OF_PATH.has(reason) ? ".path" : "";
}

interface Place {
  readonly live: KubeObject | undefined;
  readonly schema: KindSchema | undefined;
  readonly place: string;
}

/**
 * Renders one field, and what it writes beside its path. `blocks`: because of it, nothing of the target is written.
 */
function renderField(
  { problemAt, warnAt, textOf }: Context,
  target: Target,
  { field, problem, planned, omitted, warnings }: FieldPlan,
  { live, schema, place }: Place,
): { field: RenderedField; others: readonly RenderedField[]; blocks: boolean } {
  const path = attemptSync(() => FieldPath.parse(field.path));
  const there = live === undefined || path instanceof Problem ? undefined : valueAt(live, path);
  const before = there === undefined ? {} : { before: new SecretValue(there as JsonValue) };
  const base = { path: field.path, from: textOf(field), ...before };
  for (const each of warnings) warnAt(place, each);
  const into = target.create === undefined ? live : manifestOf(target);
  const placed = into && attemptSync(() => withValues(into as JsonObject, planned, shapeOf(schema)));
  const wrong = problem ?? (placed instanceof Problem ? placed : undefined);
  if (wrong !== undefined)
    return { field: { ...base, problem: problemAt(place, wrong, partOf(wrong)) }, others: [], blocks: true };
  const [missing] = omitted;
  if (missing !== undefined) {
    const { optional } = missing.why.policy;
    return { field: { ...base, problem: problemAt(place, missing.why) }, others: [], blocks: !optional };
  }
  // A ConfigMap may get only binaryData from a field with path data.
  const [first, ...rest] = planned.map((each) => shown(each, base.from, live));
  const named = first?.path === "binaryData" ? first : { ...first, path: field.path };
  return { field: named as RenderedField, others: rest, blocks: false };
}
