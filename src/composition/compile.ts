/**
 * Compiles the spec of a BindingComposition: its patches, the fields that they may touch, and the fields of a claim that they need. Finds
 * mistakes before any claim is read. Pure.
 */
import type { BindingTemplate, CompositionSpec } from "../api/composition.ts";
import bindingSchema from "../api/secret-binding-schema.json" with { type: "json" };
import type { FieldPath } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { assertReadsClaim, assertWritesBinding, assertWritesClaim, type ClaimKind, invalid } from "./allowed-paths.ts";
import { compileNotSupported, type NotSupportedRule } from "./not-supported.ts";
import { claimPaths } from "./patches/claim-paths.ts";
import { type CompiledPatch, checkPatchSets, compilePatches } from "./patches/compile.ts";
import { isConcrete, textOf } from "./patches/path.ts";

/** The schema of a SecretBinding. A CRD's schema has no references. */
export const BINDING_SCHEMA = bindingSchema as unknown as OpenApiSchema;

const UNKNOWN_FIELDS = "x-kubernetes-preserve-unknown-fields";

export interface CompiledBinding {
  readonly name: string;
  readonly base: { readonly metadata: BaseMetadata; readonly spec: JsonObject };
  /** All patches, in order. */
  readonly patches: readonly CompiledPatch[];
}

export interface BaseMetadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

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
 * instead.
 */
export function compileComposition(spec: CompositionSpec, kind: ClaimKind): CompiledComposition {
  if (kind.group === "inlay.dev")
    throw invalid("for.kind", `a ${kind.kind} is one of Inlay's own kinds and can't be a claim; set another kind`);
  assertUnique(spec.bindings, "bindings");
  checkPatchSets(spec.patchSets);
  if (!kind.namespaced && spec.for.namespaceSelector !== undefined)
    throw invalid("for.namespaceSelector", `a ${kind.kind} is cluster-scoped; remove this`);
  const bindings = spec.bindings.map((each) => compileBinding(each, spec, kind));
  const notSupported = compileNotSupported(spec.notSupported, kind);
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
  assertKnown(template, ENTRY, place);
  const base = compileBase(template.base as JsonObject, kind, `${place}.base`);
  const patches = compilePatches(template.patches ?? [], patchSets, place);
  assertOwnNames(base, patches, kind, claims, `${place}.base.metadata.namespace`);
  for (const patch of patches) {
    if (patch.direction === "ToComposite") {
      assertWritesClaim(patch.writes, kind, patch.place);
      continue;
    }
    assertWritesBinding(patch);
    for (const each of patch.reads) assertReadsClaim(each, kind, patch.place);
  }
  const limited = patches.map((patch) =>
    patch.direction === "ToComposite" ? patch : { ...patch, maxItems: schemaAt(patch)?.maxItems },
  );
  return { name: template.name, base, patches: limited };
}

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
  throw invalid(
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
    if (next === undefined) throw invalid(`${place}.toFieldPath`, `a SecretBinding has no ${path}; correct the path`);
    schema = next;
  }
  return schema;
}

function compileBase(base: JsonObject, kind: ClaimKind, place: string): CompiledBinding["base"] {
  assertKnown(base, BASE, place);
  const { apiVersion = "inlay.dev/v1alpha1", kind: baseKind = "SecretBinding", metadata = {}, spec = {} } = base;
  if (apiVersion !== "inlay.dev/v1alpha1" || baseKind !== "SecretBinding")
    throw invalid(
      place,
      "must be a SecretBinding of inlay.dev/v1alpha1; remove apiVersion and kind, or set them to that",
    );
  if (!isObject(metadata)) throw invalid(`${place}.metadata`, "must be an object");
  if (!isObject(spec)) throw invalid(`${place}.spec`, "must be an object");
  assertKnown(metadata, METADATA, `${place}.metadata`);
  for (const each of ["name", "namespace"])
    if (metadata[each] !== undefined && typeof metadata[each] !== "string")
      throw invalid(`${place}.metadata.${each}`, "must be a string");
  for (const map of ["labels", "annotations"]) assertTexts(metadata[map] ?? {}, `${place}.metadata.${map}`);
  const needsNamespace = !kind.namespaced && kind.kind !== "Namespace";
  if (needsNamespace && metadata["namespace"] === undefined)
    throw invalid(`${place}.metadata.namespace`, `a ${kind.kind} is cluster-scoped; set the namespace of its bindings`);
  const wrong = attemptSync(() => checkManifest({ spec }, BINDING_SCHEMA, () => undefined));
  if (wrong instanceof Problem) throw invalid(place, wrong.message);
  return { metadata: metadata as BaseMetadata, spec };
}

function assertTexts(map: unknown, place: string): void {
  if (!isObject(map)) throw invalid(place, "must be an object of strings");
  for (const [key, value] of Object.entries(map)) {
    if (typeof value !== "string") throw invalid(`${place}[${key}]`, "must be a string; put it in quotes");
    if (OWN_KEYS.test(key)) throw invalid(`${place}[${key}]`, "keys of inlay.dev are reserved for Inlay; remove it");
  }
}

function assertKnown(object: object, known: readonly string[], place: string): void {
  const unknown = Object.keys(object).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const advice = Object.hasOwn(ELSEWHERE, unknown) ? ELSEWHERE[unknown] : suggestNames(place, unknown, known);
  throw invalid(`${place}.${unknown}`, `unknown field; ${advice}`);
}

function assertUnique(list: readonly { name: string }[], place: string): void {
  const names = list.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw invalid(`${place}[${twice}]`, "two entries have this name; rename one of them");
}
