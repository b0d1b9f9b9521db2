/**
 * Composes the binding of an entry of a composition for a claim: complete, with the API server's defaults, or all reasons why there is none.
 * Pure.
 */
import { DEFAULT_LIMITS } from "../api/limits.ts";
import { elementsOf, FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { at, fieldsAt, listAt } from "../apimachinery/fields.ts";
import { isObject, MAX_VALUE_LEVELS, nestsDeeper, stringifyJson } from "../apimachinery/json.ts";
import { isObjectName, type JsonObject, type JsonValue, MAX_NAME_LENGTH } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { allIn, allOf, attemptSync, Problem, throwFirst } from "../apimachinery/problem.ts";
import { longList, missingFields, valuesIn, withDefaults, wrongChoices } from "../apimachinery/structural-schema.ts";
import { sizeOf } from "../transform/budget.ts";
import { isMetadataOnly } from "./allowed-paths.ts";
import { type Claim, claimObject, namespaceOfClaim } from "./claim.ts";
import { assertSupported, type CompiledBinding, type CompiledComposition, mistakesIn, SPEC_SCHEMA } from "./compile.ts";
import { applyPatch } from "./patches/apply.ts";
import type { CompiledPatch } from "./patches/compile.ts";
import { copyJson } from "./patches/merge.ts";
import { Work } from "./patches/work.ts";

/** An applied patch, and the fields that it wrote. */
interface WrittenPatch {
  readonly patch: CompiledPatch;
  readonly paths: readonly FieldPath[];
}

/** Throws Problem("OutOfReach") if a patch wrote another namespace than `home`, the claim's. */
function assertWithinReach(composed: JsonObject, written: readonly WrittenPatch[], home: string | undefined): void {
  const fields = [...namespaceFields(composed, new FieldPath([]))];
  throwFirst(
    written.flatMap(({ patch, paths }) =>
      fields
        .filter(({ path, value }) => value !== home && paths.some((each) => mayOverlap(each, path)))
        .map(({ path }) => {
          const what = `${path} must be the namespace of the claim, because the composition has reach: ClaimNamespace`;
          return new Problem("OutOfReach", { at: [patch.place], what });
        }),
    ),
  );
}

/**
 * All fields that name namespaces, with their values: those with the name `namespace` or `namespaceSelector`, and the selectors of targets of the
 * kind Namespace.
 */
function* namespaceFields(value: JsonValue, at: FieldPath): Generator<{ path: FieldPath; value: JsonValue }> {
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) yield* namespaceFields(each, at.with({ kind: "index", index }));
    return;
  }
  if (!isObject(value)) return;
  for (const [key, each] of Object.entries(value)) {
    const path = at.with({ kind: "key", key });
    const isOfNamespace = value["kind"] === "Namespace" && value["apiVersion"] === "v1";
    const isChoice = isOfNamespace && (key === "name" || key === "selector");
    if (key === "namespace" || key === "namespaceSelector" || isChoice) yield { path, value: each };
    // Labels and manifests have arbitrary keys.
    else if (key !== "manifest" && key !== "metadata") yield* namespaceFields(each, path);
  }
}

const EXPRESSION = /\{\{[\s\S]*?\}\}+/g;

/**
 * Throws Problem("InvalidValue") if a template of the binding has an expression that is neither in the same template of the base, nor in a
 * constant of a patch that writes it. Otherwise the author of a claim could read other keys of a source, or have them written elsewhere,
 * than the composition does.
 */
function assertSameExpressions(
  base: JsonObject,
  composed: JsonObject,
  written: readonly WrittenPatch[],
  place: string,
  work: Work,
): void {
  const before = templatesIn(base);
  const problems: Problem[] = [];
  const fields = written.reduce((sum, { paths }) => sum + paths.length, 0);
  for (const [path, template] of templatesIn(composed["spec"] as JsonObject)) {
    if (!template.includes("{{")) continue;
    work.compare(fields);
    const field = FieldPath.parse(`spec.${path}`);
    const writing = written.filter(({ paths }) => paths.some((each) => mayOverlap(each, field)));
    const known = [before.get(path) ?? "", ...writing.flatMap(({ patch }) => patch.constants)];
    const isKnown = (expression: string) => known.some((each) => each.includes(expression));
    const rest = template.replace(EXPRESSION, (expression) => (isKnown(expression) ? " " : expression));
    if (!rest.includes("{{")) continue;
    const what = `spec.${path} has an expression in {{ }} from a claim, which only the composition may contain; escape or refuse braces by a transform`;
    problems.push(new Problem("InvalidValue", { at: [place], what }));
  }
  throwFirst(problems);
}

/** The templates in a binding's spec, by path. */
function templatesIn(spec: JsonObject): Map<string, string> {
  const found = new Map<string, string>();
  for (const [target, each] of listAt(spec, "targets").entries())
    for (const [field, one] of listAt(each, "fields").entries()) {
      const template = at(one, "template");
      if (typeof template === "string") found.set(`targets[${target}].fields[${field}].template`, template);
    }
  return found;
}

/** What an entry of a composition makes of a claim. */
export interface ComposedEntry {
  readonly entry: CompiledBinding;
  /** The namespace of its binding. */
  readonly namespace: string;
  /** Absent if there are problems. */
  readonly composed?: ComposedBinding;
  readonly missing: readonly MissingField[];
  /** NotSupported, InvalidValue, OutOfReach, FieldNotFound or TooLarge: with the place, the path and the rule, never a value. */
  readonly problems: readonly Problem[];
}

/** A composed binding, as it must exist in the cluster. */
export interface ComposedBinding {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
  /** The fields of written patches, as in toFieldPath. */
  readonly patched: readonly string[];
  /** The estimated memory of its metadata and spec. */
  readonly size: number;
}

/** A field of a claim that a patch reads and that is missing. */
interface MissingField {
  /** The place of the patch, such as `bindings[s3].patches[2]`. */
  readonly place: string;
  /** The path in the claim. */
  readonly path: string;
  /** The path in the binding. */
  readonly toFieldPath: string;
  /** Whether the missing field also removes the field of the binding. */
  readonly isRemoved: boolean;
}

/** Inlay reads no larger binding by default. */
const MAX_LENGTH = DEFAULT_LIMITS.bindingBytes;
/** The memory of a value beyond its text. */
const PER_VALUE = 32;
const OWN_KEY = /^inlay\.dev\//;

export function composeBinding(composition: CompiledComposition, entry: CompiledBinding, claim: Claim): ComposedEntry {
  const missing: MissingField[] = [];
  const composed = attemptSync(() => compose(composition, entry, claim, missing));
  const namespace = entry.base.metadata.namespace ?? namespaceOfClaim(claim, composition.kind) ?? "";
  const found = { entry, namespace, missing };
  return composed instanceof Problem ? { ...found, problems: allIn(composed) } : { ...found, problems: [], composed };
}

/** The problem of a binding that needs a field which the claim lacks. */
export const fieldNotFound = ({ place, path }: MissingField): Problem =>
  new Problem("FieldNotFound", {
    at: [place],
    what: `the claim has no ${path}, so the binding is not created or changed`,
    fix: "add the field to the claim",
  });

/** Adds the missing fields to `missing`. Throws the first problem, which has the others. */
function compose(
  { kind, reach, notSupported }: CompiledComposition,
  { name: entry, base, patches }: CompiledBinding,
  claim: Claim,
  missing: MissingField[],
): ComposedBinding {
  const place = `bindings[${entry}]`;
  const composed = copyJson({ metadata: { ...base.metadata }, spec: base.spec } as JsonObject) as JsonObject;
  const from = claimObject(claim);
  const work = new Work();
  // What else is wrong may only follow from what is not supported.
  assertSupported(notSupported, from, work);
  const written: WrittenPatch[] = [];
  const problems: Problem[] = [];
  const failed: string[] = [];
  for (const patch of patches) {
    if (patch.direction !== "FromComposite") continue;
    const toFieldPath = patch.writes.text;
    const outcome = attemptSync(() => applyPatch(patch, from, composed, work));
    if (outcome instanceof Problem) {
      problems.push(outcome);
      failed.push(toFieldPath);
      // All others would need more work than is left, too.
      if (outcome.reason === "TooLarge") throwFirst(problems);
    }
    // Elements are recorded by index: later patches may change the fields that identify them in a path.
    else if (outcome.outcome === "written")
      written.push({ patch, paths: outcome.paths.map((path) => placed(path, composed)) });
    else {
      const field = { place: patch.place, path: outcome.path, toFieldPath, isRemoved: patch.isRemoved };
      missing.push(field);
      if (patch.isRequired) problems.push(fieldNotFound(field));
    }
  }
  const tooLarge = attemptSync(() => assertSmall(composed, place));
  if (tooLarge !== undefined) throwFirst([...problems, tooLarge]);
  grantNamedSources(composed, written, claim, kind);
  // As the API server stores it, which treats null as missing.
  const spec = withDefaults(SPEC_SCHEMA, fieldsAt(composed, "spec")) as JsonObject;
  const metadata = fieldsAt(composed, "metadata");
  const [, , , , name, labels, annotations] = allOf(
    () => throwFirst(problems),
    () => reach === "ClaimNamespace" && assertWithinReach(composed, written, namespaceOfClaim(claim, kind)),
    () => assertSameExpressions(base.spec, composed, written, place, work),
    () => assertValid(spec, missing, failed, place),
    () => nameOf(metadata["name"] ?? `${claim.name}-${entry}`, place),
    () => textsOf("labels", metadata, base.metadata, place),
    () => textsOf("annotations", metadata, base.metadata, place),
  );
  const patched = [...new Set(written.map(({ patch }) => patch.writes.text))];
  const { characters, elements } = sizeOf({ ...composed, spec });
  return { name, labels, annotations, spec, patched, size: characters + elements * PER_VALUE };
}

/**
 * A source whose name comes from a claim needs a SecretGrant: the author of the claim may have no permission to read the source, and no
 * admission policy checks that. The same applies to connections to stores. The claim itself needs no grant.
 */
function grantNamedSources(
  composed: JsonObject,
  written: readonly WrittenPatch[],
  claim: Claim,
  kind: CompiledComposition["kind"],
): void {
  for (const [index, source] of listAt(composed, "spec", "sources").entries()) {
    const isGivenAt = (...keys: readonly string[]): boolean => {
      const place = FieldPath.parse("spec.sources").with({ kind: "index", index }, ...keys.map(keySegment));
      return written.some(({ paths }) => paths.some((path) => mayOverlap(path, place)));
    };
    for (const [type, ofKind] of Object.entries({ secret: "Secret", configMap: "ConfigMap" })) {
      const named = at(source, type);
      const isClaim = isMetadataOnly(kind) && kind.kind === ofKind && isObject(named) && refersTo(named, claim);
      if (isObject(named) && isGivenAt(type, "name") && !isClaim) named["granted"] = true;
    }
    for (const store of Object.keys(isObject(source) ? source : {})) {
      const connection = at(source, store, "connection");
      if (isObject(connection) && ["name", "namespace"].some((each) => isGivenAt(store, "connection", each)))
        connection["granted"] = true;
    }
  }
}

/** The path with elements by index, as far as they exist. */
function placed({ segments }: FieldPath, object: JsonObject): FieldPath {
  const found: Segment[] = [];
  for (const segment of segments) {
    const list = segment.kind === "element" ? new FieldPath(found).get(object) : undefined;
    const [index] = segment.kind === "element" && Array.isArray(list) ? elementsOf(list, segment.conditions) : [];
    found.push(index === undefined ? segment : { kind: "index", index });
  }
  return new FieldPath(found);
}

const refersTo = ({ name, namespace }: JsonObject, claim: Claim): boolean =>
  name === claim.name && (namespace === undefined || namespace === claim.namespace);

/** Checked before everything else, because the fields of the claim may be large. */
function assertSmall(composed: JsonObject, place: string): void {
  const problem = nestsDeeper(composed, MAX_VALUE_LEVELS)
    ? `the binding would have more than ${MAX_VALUE_LEVELS} levels`
    : stringifyJson(composed).length > MAX_LENGTH
      ? `the binding would have more than ${MAX_LENGTH} characters`
      : undefined;
  if (problem !== undefined)
    throw new Problem("TooLarge", { at: [place], what: `${problem}; copy smaller fields of the claim` });
  const long = longList(SPEC_SCHEMA, fieldsAt(composed, "spec"), "spec");
  if (long !== undefined) throw new Problem("InvalidValue", { at: [place, long.path], what: `the value ${long.rule}` });
}

/**
 * Checked here because the API server's error would quote the value. What is wrong where patches have `failed` may only follow from that.
 */
function assertValid(
  spec: JsonObject,
  missing: readonly MissingField[],
  failed: readonly string[],
  place: string,
): void {
  const values = valuesIn(SPEC_SCHEMA, spec, "spec");
  const lacking = [
    ...missingFields(values).map((path) => ({ path, what: `${path} is required` })),
    ...wrongChoices(values).map(({ path, rule }) => ({ path, what: `${path}: ${rule}` })),
  ];
  const isIndependent = (path = "") => !failed.some((to) => isAround(path, to));
  throwFirst([
    ...mistakesIn(spec)
      .filter(({ at: [path] }) => isIndependent(path))
      .map((each) => new Problem("InvalidValue", each.within(place))),
    ...lacking
      .filter(({ path }) => isIndependent(path))
      .map(({ path, what }) => {
        const gone = missing.find(({ toFieldPath }) => isAround(path, toFieldPath));
        return gone === undefined ? invalid(place, `${what}; set it in base or by a patch`) : fieldNotFound(gone);
      }),
  ]);
}

/** Whether one of the fields contains the other. */
const isAround = (a: string, b: string): boolean => a.startsWith(b) || b.startsWith(a);

function nameOf(name: JsonValue, place: string): string {
  if (typeof name === "string" && isObjectName(name)) return name;
  throw invalid(
    place,
    `the name of the binding must be a DNS name of at most ${MAX_NAME_LENGTH} characters; set metadata.name by a patch`,
  );
}

const invalid = (place: string, what: string): Problem => new Problem("InvalidValue", { at: [place], what });

/** Labels or annotations. Those of Inlay can't come from a claim. */
function textsOf(
  map: "labels" | "annotations",
  composed: JsonObject,
  { [map]: base = {} }: CompiledBinding["base"]["metadata"],
  place: string,
): Record<string, string> {
  const all = Object.entries(fieldsAt(composed, map));
  const texts = all.filter(([key, each]) => !OWN_KEY.test(key) || base[key] === each);
  throwFirst(
    texts
      .filter(([, each]) => typeof each !== "string")
      .map(([key]) =>
        invalid(place, `metadata.${map}[${key}] must be a string; change its type by the transform convert`),
      ),
  );
  return Object.fromEntries(texts) as Record<string, string>;
}
