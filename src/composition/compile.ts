/**
 * Reads the spec of a BindingComposition once: its patches, what they may touch, and which fields of a claim they need. What is
 * wrong with it is found here, before any claim is looked at. Pure.
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

/** The schema of a SecretBinding. A CRD's schema has no references. */
export const BINDING_SCHEMA = bindingSchema as unknown as OpenApiSchema;

export interface CompiledBinding {
  readonly name: string;
  readonly base: { readonly metadata: BaseMetadata; readonly spec: JsonObject };
  /** All of them, in order. */
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
  /** What no claim may ask for. */
  readonly notSupported: readonly NotSupportedRule[];
  /** The fields of a claim that patches read, and those that they write, as paths of keys alone. */
  readonly reads: readonly FieldPath[];
  readonly writes: readonly FieldPath[];
}

/** What users of Crossplane may look for in an entry of `bindings`, and where it is here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  connectionDetails: "a target with create makes a Secret of values; use that",
  writeConnectionSecretToRef: "a target with create makes a Secret of values; use that",
  readinessChecks: "the condition Ready of the binding says whether it is ready; leave this out",
  environment: "a ConfigMap as a source of the binding holds shared values; use that",
};
const ENTRY = ["name", "base", "patches"];
const BASE = ["apiVersion", "kind", "metadata", "spec"];
const METADATA = ["name", "namespace", "labels", "annotations"];
/** Of Inlay's own labels and annotations, one is for authors. */
const OWN_KEYS = /^inlay\.dev\/(?!protects$)/;

/** Throws Problem("InvalidComposition") with the place of the first mistake, such as `bindings[s3].patches[2].type`, and what to write instead. */
export function compileComposition(spec: CompositionSpec, kind: ClaimKind): CompiledComposition {
  if (kind.group === "inlay.dev")
    throw invalid("for.kind", `a ${kind.kind} is made by Inlay or for it, and is no claim; name another kind`);
  assertUnique(spec.bindings, "bindings");
  checkPatchSets(spec.patchSets);
  if (!kind.namespaced && spec.for.namespaceSelector !== undefined)
    throw invalid(
      "for.namespaceSelector",
      `a ${kind.kind} belongs to the cluster and is in no namespace; leave this out`,
    );
  const bindings = spec.bindings.map((each) => compileBinding(each, spec, kind));
  const notSupported = compileNotSupported(spec.notSupported, kind);
  const patches = bindings.flatMap((each) => each.patches);
  const paths = claimPaths(patches, notSupported);
  return { kind, reach: spec.reach, bindings, notSupported, ...paths };
}

function compileBinding(
  template: BindingTemplate,
  { patchSets = [] }: CompositionSpec,
  kind: ClaimKind,
): CompiledBinding {
  const place = `bindings[${template.name}]`;
  assertKnown(template, ENTRY, place);
  const base = compileBase(template.base as JsonObject, kind, `${place}.base`);
  const patches = compilePatches(template.patches ?? [], patchSets, place);
  for (const patch of patches) {
    if (patch.direction === "ToComposite") {
      assertWritesClaim(patch.writes, kind, patch.place);
      continue;
    }
    assertWritesBinding(patch);
    for (const each of patch.reads) assertReadsClaim(each, kind, patch.place);
  }
  return { name: template.name, base, patches };
}

function compileBase(base: JsonObject, kind: ClaimKind, place: string): CompiledBinding["base"] {
  assertKnown(base, BASE, place);
  const { apiVersion = "inlay.dev/v1alpha1", kind: made = "SecretBinding", metadata = {}, spec = {} } = base;
  if (apiVersion !== "inlay.dev/v1alpha1" || made !== "SecretBinding")
    throw invalid(
      place,
      "a base is a SecretBinding of inlay.dev/v1alpha1; leave apiVersion and kind out, or set them to that",
    );
  if (!isObject(metadata)) throw invalid(`${place}.metadata`, "metadata is an object");
  if (!isObject(spec)) throw invalid(`${place}.spec`, "spec is an object");
  assertKnown(metadata, METADATA, `${place}.metadata`);
  for (const each of ["name", "namespace"])
    if (metadata[each] !== undefined && typeof metadata[each] !== "string")
      throw invalid(`${place}.metadata.${each}`, `${each} is a text`);
  for (const map of ["labels", "annotations"]) assertTexts(metadata[map] ?? {}, `${place}.metadata.${map}`);
  const needsNamespace = !kind.namespaced && kind.kind !== "Namespace";
  if (needsNamespace && metadata["namespace"] === undefined)
    throw invalid(
      `${place}.metadata.namespace`,
      `a ${kind.kind} belongs to the cluster; say in which namespace its bindings are made`,
    );
  const wrong = attemptSync(() => checkManifest({ spec }, BINDING_SCHEMA, () => undefined));
  if (wrong instanceof Problem) throw invalid(place, wrong.message);
  return { metadata: metadata as BaseMetadata, spec };
}

function assertTexts(map: unknown, place: string): void {
  if (!isObject(map)) throw invalid(place, "this is an object of texts");
  for (const [key, value] of Object.entries(map)) {
    if (typeof value !== "string") throw invalid(`${place}[${key}]`, "the value is a text; put it in quotes");
    if (OWN_KEYS.test(key)) throw invalid(`${place}[${key}]`, "keys of inlay.dev are set by Inlay; leave it out");
  }
}

function assertKnown(object: object, known: readonly string[], place: string): void {
  const unknown = Object.keys(object).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const advice = Object.hasOwn(ELSEWHERE, unknown) ? ELSEWHERE[unknown] : suggestNames(place, unknown, known);
  throw invalid(`${place}.${unknown}`, `there is no such field here; ${advice}`);
}

function assertUnique(list: readonly { name: string }[], place: string): void {
  const names = list.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw invalid(`${place}[${twice}]`, "two entries have this name; give one of them another");
}
