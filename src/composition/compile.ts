/**
 * Compiles the spec of a BindingComposition: its patches, the fields that they may touch, and the fields of a claim that they need. Finds
 * mistakes before any claim is read. Pure.
 */

import type { BindingTemplate, CompositionSpec } from "../api/composition.ts";
import bindingSchema from "../api/secret-binding-schema.json" with { type: "json" };
import { FieldPath } from "../apimachinery/field-path.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, ObjectMeta } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { allIn, allOf, attemptSync, eachOf, Problem, throwFirst } from "../apimachinery/problem.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { assertReadsClaim, assertWritesBinding, assertWritesClaim, type ClaimKind } from "./allowed-paths.ts";
import { type CompiledPatch, checkPatchSets, compilePatches, type PatchRules } from "./patches/compile.ts";
import { getField } from "./patches/fields.ts";
import { isEmpty } from "./patches/merge.ts";
import { mistake, Options } from "./patches/options.ts";
import { type CompositePath, type ConcretePath, isConcrete, plainPrefix, textOf } from "./patches/path.ts";
import { checkPattern, isFoundIn } from "./patches/string-transforms.ts";
import { concrete, pathIn } from "./patches/transforms.ts";
import type { Work } from "./patches/work.ts";

interface NotSupportedRule {
  /** Its place in the composition, such as `notSupported[2]`. */
  readonly place: string;
  readonly reads: ConcretePath;
  readonly message: string;
  /** Regular expressions: the rule applies if the text of the field matches `matches`, or does not match `doesNotMatch`. */
  readonly matches: string | undefined;
  readonly unless: string | undefined;
}

const NAME = "fromFieldPath";
const EXAMPLE = "the path of a field of the claim, such as spec.host";
const ADVICE = "which can't be read here; name one element, or the whole list";

type Rules = NonNullable<CompositionSpec["notSupported"]>;

/** Throws Problem("InvalidComposition") with the place of the first mistake. */
function compileNotSupported(rules: Rules | undefined, kind: ClaimKind): NotSupportedRule[] {
  const compile = (rule: Rules[number], index: number): NotSupportedRule => {
    const { matches, unless, message } = rule;
    const place = `notSupported[${index}]`;
    const options = new Options(rule, place);
    const [reads] = allOf(
      () => {
        const path = concrete(options, NAME, pathIn(options, NAME, EXAMPLE), ADVICE);
        assertReadsClaim(path, kind, place);
        return path;
      },
      () => matches !== undefined && checkPattern(matches, `${place}.matches`),
      () => unless !== undefined && checkPattern(unless, `${place}.unless`),
    );
    return { place, reads, message, matches, unless };
  };
  return eachOf(rules ?? [], compile);
}

/** Throws Problem("NotSupported") for the first rule that applies to the claim, which has the others. */
export function assertSupported(rules: readonly NotSupportedRule[], claim: JsonObject, work: Work): void {
  allOf(
    ...rules.map(({ place, reads, message: what, matches, unless }) => () => {
      const value = attemptSync(() => getField(claim, reads.segments));
      if (value instanceof Problem || value === undefined || isEmpty(value)) return;
      if (matches !== undefined || unless !== undefined) work.value(value);
      const text = typeof value === "string" ? value : stringifyJson(value);
      const isFound = (pattern: string) => isFoundIn(pattern, text, work);
      if ((matches === undefined || isFound(matches)) && (unless === undefined || !isFound(unless)))
        throw new Problem("NotSupported", { at: [place, reads.text], what });
    }),
  );
}

/** Conditions of a binding that could not be created use this time. */
const CREATED = FieldPath.parse("metadata.creationTimestamp");

/**
 * The fields of a claim that patches read and write. Each path ends before its first list or wildcard. None is below another one. `others` are
 * read in addition to the patches.
 */
export function claimPaths(
  patches: readonly CompiledPatch[],
  others: readonly { readonly reads: CompositePath }[] = [],
): Pick<CompiledComposition, "reads" | "writes"> {
  const reads = patches.filter(({ direction }) => direction === "FromComposite").flatMap((patch) => patch.reads);
  const writes = patches.filter(({ direction }) => direction === "ToComposite").map((patch) => patch.writes);
  const all = [...reads, ...others.map((each) => each.reads)].map(plainPrefix);
  return { reads: topmost(writes.length > 0 ? [...all, CREATED] : all), writes: topmost(writes.map(plainPrefix)) };
}

/** In the order of their texts. */
function topmost(paths: readonly FieldPath[]): FieldPath[] {
  const byText = new Map(paths.map((path) => [path.toString(), path]));
  const isBelow = (path: FieldPath) =>
    path.segments.some((_, length) => length > 0 && byText.has(path.upTo(length).toString()));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, path]) => (isBelow(path) ? [] : [path]));
}

/** The schema of a SecretBinding. A CRD's schema has no references. */
export const BINDING_SCHEMA = bindingSchema as unknown as OpenApiSchema;
export const SPEC_SCHEMA = BINDING_SCHEMA.properties?.["spec"] ?? {};

const UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields";

export interface CompiledBinding {
  readonly name: string;
  readonly base: { readonly metadata: BaseMetadata; readonly spec: JsonObject };
  /** All patches, in order. */
  readonly patches: readonly CompiledPatch[];
}

type BaseMetadata = Readonly<Partial<Pick<ObjectMeta, "name" | "namespace" | "labels" | "annotations">>>;

export interface CompiledComposition {
  readonly kind: ClaimKind;
  readonly reach: CompositionSpec["reach"];
  readonly bindings: readonly CompiledBinding[];
  /** The requests of claims that the composition does not support. */
  readonly notSupported: readonly NotSupportedRule[];
  /** The fields of a claim that patches read, and those that they write, as paths of keys alone. */
  readonly reads: readonly FieldPath[];
  readonly writes: readonly FieldPath[];
}

/** Fields of Crossplane in an entry of `bindings`, and their replacement here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  connectionDetails: "use a target with create instead, which creates a Secret with values",
  writeConnectionSecretToRef: "use a target with create instead, which creates a Secret with values",
  readinessChecks: "remove this; the condition Ready of the binding shows whether it is ready",
  environment: "use a ConfigMap with the shared values as a source of the binding instead",
};
const ENTRY = ["name", "base", "patches"];
const BASE = ["apiVersion", "kind", "metadata", "spec"];
const METADATA = ["name", "namespace", "labels", "annotations"];
/** The only key of Inlay's own labels and annotations that authors may set. */
const OWN_KEYS = /^inlay\.dev\/(?!protects$)/;

/**
 * Throws Problem("InvalidComposition") with the place of the first mistake, such as `bindings[s3].patches[2].type`, and what to write
 * instead; all others are its `others`.
 */
export function compileComposition(spec: CompositionSpec, kind: ClaimKind): CompiledComposition {
  if (kind.group === "inlay.dev")
    throw mistake("for.kind", `a ${kind.kind} is one of Inlay's own kinds and can't be a claim; set another kind`);
  const [, , , bindings, notSupported] = allOf(
    () => assertUnique(spec.bindings, "bindings"),
    () => checkPatchSets(spec.patchSets),
    () => {
      if (!kind.namespaced && spec.for.namespaceSelector !== undefined)
        throw mistake("for.namespaceSelector", `a ${kind.kind} is cluster-scoped; remove this`);
    },
    () => eachOf(spec.bindings, (each) => compileBinding(each, spec, kind)),
    () => compileNotSupported(spec.notSupported, kind),
  );
  const patches = bindings.flatMap((each) => each.patches);
  const paths = claimPaths(patches, notSupported);
  return { kind, reach: spec.reach, bindings, notSupported, ...paths };
}

function compileBinding(
  template: BindingTemplate,
  { patchSets = [], for: claims }: CompositionSpec,
  kind: ClaimKind,
): CompiledBinding {
  const place = `bindings[${template.name}]`;
  const [, base, patches] = allOf(
    () => assertKnown(template, ENTRY, place),
    () => compileBase(template.base as JsonObject, kind, `${place}.base`),
    () => compilePatches(template.patches ?? [], patchSets, place, rulesFor(kind)),
  );
  const [, limited] = allOf(
    () => assertOwnNames(base, patches, kind, claims, `${place}.base.metadata.namespace`),
    () => eachOf(patches, limitedPatch),
  );
  return { name: template.name, base, patches: limited };
}

/** What a patch may read and write. */
const rulesFor = (kind: ClaimKind): PatchRules => ({
  reads({ direction, place }, path) {
    if (direction === "FromComposite") assertReadsClaim(path, kind, place);
  },
  writes(patch) {
    if (patch.direction === "ToComposite") assertWritesClaim(patch.writes, kind, patch.place);
    else assertWritesBinding(patch);
  },
});

/** The patch with the limit of the list that it writes. */
const limitedPatch = (patch: CompiledPatch): CompiledPatch =>
  patch.direction === "ToComposite" ? patch : { ...patch, maxItems: schemaAt(patch)?.maxItems };

/** Claims of several namespaces may have the same name, and so would their bindings in one namespace: one claim would block the other. */
function assertOwnNames(
  { metadata }: CompiledBinding["base"],
  patches: readonly CompiledPatch[],
  { kind, namespaced }: ClaimKind,
  { namespaceSelector: { names, matchLabels, matchExpressions } = {} }: CompositionSpec["for"],
  place: string,
): void {
  const [only = "*", ...others] = names ?? [];
  const isOneNamespace = others.length === 0 && !/[*?]/.test(only) && !(matchLabels ?? matchExpressions);
  if (!namespaced || metadata.namespace === undefined || isOneNamespace) return;
  const isNamed = patches.some(
    ({ direction, writes, reads }) =>
      direction === "FromComposite" &&
      writes.text === "metadata.name" &&
      reads.some((each) => each.text !== writes.text),
  );
  if (isNamed) return;
  const what = `the bindings of every ${kind} would be in one namespace, and those of two claims with one name in different namespaces would have the same name`;
  throw mistake(
    place,
    `${what}; write metadata.name by a patch of the type CombineFromComposite from metadata.namespace and metadata.name`,
  );
}

/**
 * The schema of a field of a binding, from which follows the most elements of a list; undefined for a field that the schema does not
 * describe. Throws Problem("InvalidComposition") for a path with wildcards that no binding can have: it would match nothing, which is no error.
 */
function schemaAt({ writes, place }: CompiledPatch): OpenApiSchema | undefined {
  let schema = BINDING_SCHEMA;
  for (const [depth, segment] of writes.segments.entries()) {
    const { type = "object", properties, items, [UNKNOWN_FIELDS]: isOpen = properties === undefined } = schema;
    const next = segment.kind === "key" ? properties?.[segment.key] : items;
    if (next === undefined && (isConcrete(writes) || (type === "object" && isOpen))) return undefined;
    const path = textOf(writes.segments.slice(0, depth + 1));
    if (next === undefined) throw mistake(`${place}.toFieldPath`, `a SecretBinding has no ${path}; correct the path`);
    schema = next;
  }
  return schema;
}

function compileBase(base: JsonObject, kind: ClaimKind, place: string): CompiledBinding["base"] {
  const { apiVersion = "inlay.dev/v1alpha1", kind: baseKind = "SecretBinding", metadata = {}, spec = {} } = base;
  if (apiVersion !== "inlay.dev/v1alpha1" || baseKind !== "SecretBinding")
    throw mistake(
      place,
      "must be a SecretBinding of inlay.dev/v1alpha1; remove apiVersion and kind, or set them to that",
    );
  if (!isObject(metadata)) throw mistake(`${place}.metadata`, "must be an object");
  if (!isObject(spec)) throw mistake(`${place}.spec`, "must be an object");
  const needsNamespace = !kind.namespaced && kind.kind !== "Namespace";
  allOf(
    () => assertKnown(base, BASE, place),
    () => assertKnown(metadata, METADATA, `${place}.metadata`),
    ...["name", "namespace"].map((each) => () => {
      if (metadata[each] !== undefined && typeof metadata[each] !== "string")
        throw mistake(`${place}.metadata.${each}`, "must be a string");
    }),
    ...["labels", "annotations"].map((map) => () => assertTexts(metadata[map] ?? {}, `${place}.metadata.${map}`)),
    () => {
      if (needsNamespace && metadata["namespace"] === undefined)
        throw mistake(
          `${place}.metadata.namespace`,
          `a ${kind.kind} is cluster-scoped; set the namespace of its bindings`,
        );
    },
    () => throwFirst(mistakesIn(spec).map((each) => new Problem("InvalidComposition", each.within(place)))),
  );
  return { metadata: metadata as BaseMetadata, spec };
}

/** What the schema of a SecretBinding refuses in a spec. Missing fields are no mistake. */
export function mistakesIn(spec: JsonObject): readonly Problem[] {
  const wrong = attemptSync(() => checkManifest({ spec }, BINDING_SCHEMA, () => undefined));
  return wrong === undefined ? [] : allIn(wrong);
}

function assertTexts(map: unknown, place: string): void {
  if (!isObject(map)) throw mistake(place, "must be an object of strings");
  eachOf(Object.entries(map), ([key, value]) => {
    if (typeof value !== "string") throw mistake(`${place}[${key}]`, "must be a string; put it in quotes");
    if (OWN_KEYS.test(key)) throw mistake(`${place}[${key}]`, "keys of inlay.dev are reserved for Inlay; remove it");
  });
}

function assertKnown(object: object, known: readonly string[], place: string): void {
  eachOf(Object.keys(object), (key) => {
    if (known.includes(key)) return;
    const advice = Object.hasOwn(ELSEWHERE, key) ? ELSEWHERE[key] : suggestNames(place, key, known);
    throw mistake(`${place}.${key}`, `unknown field; ${advice}`);
  });
}

function assertUnique(list: readonly { name: string }[], place: string): void {
  const names = list.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw mistake(`${place}[${twice}]`, "two entries have this name; rename one of them");
}
