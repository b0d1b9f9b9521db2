/**
 * Composes the bindings of a claim from a compiled composition: complete bindings with the API server's defaults, or the reason why there
 * is none. Pure.
 */
import { DEFAULT_LIMITS } from "../api/limits.ts";
import { elementsOf, FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { at, fieldsAt, listAt } from "../apimachinery/fields.ts";
import { isObject, MAX_VALUE_LEVELS, nestsDeeper, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { attemptSync, Problem, throwFirst } from "../apimachinery/problem.ts";
import { longList, missingFields, withDefaults, wrongChoices } from "../apimachinery/structural-schema.ts";
import { sizeOf } from "../transform/budget.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { isMetadataOnly } from "./allowed-paths.ts";
import { type Claim, claimObject, namespaceOfClaim } from "./claim.ts";
import { BINDING_SCHEMA, type CompiledBinding, type CompiledComposition } from "./compile.ts";
import { assertSupported } from "./not-supported.ts";
import { applyPatch } from "./patches/apply.ts";
import { copyJson } from "./patches/merge.ts";
import { Work } from "./patches/work.ts";
import { assertWithinReach, type WrittenPatch } from "./reach.ts";
import { assertSameExpressions } from "./templates.ts";

/** A composed binding, as it must exist in the cluster. */
export interface ComposedBinding {
  /** The name of its entry in `bindings`. */
  readonly template: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
  /** The fields of written patches, as in toFieldPath. */
  readonly patched: readonly string[];
  readonly missing: readonly MissingField[];
  /** The estimated memory of its metadata and spec. */
  readonly size: number;
}

/** A field of a claim that a patch reads and that is missing. */
export interface MissingField {
  /** The place of the patch, such as `bindings[s3].patches[2]`. */
  readonly place: string;
  /** The path in the claim. */
  readonly path: string;
  /** The path in the binding. */
  readonly toFieldPath: string;
  readonly isRequired: boolean;
  /** Whether the missing field also removes the field of the binding. */
  readonly isRemoved: boolean;
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const MAX_NAME_LENGTH = 253;
/** Inlay reads no larger binding by default. */
const MAX_LENGTH = DEFAULT_LIMITS.bindingBytes;
/** The memory of a value beyond its text. */
const PER_VALUE = 32;
const OWN_KEY = /^inlay\.dev\//;
const SPEC_SCHEMA = BINDING_SCHEMA.properties?.["spec"] ?? {};

/**
 * Throws Problem: NotSupported, InvalidValue, OutOfReach or FieldNotFound, with the place, the path and the rule, never a value. If several
 * patches fail, the first problem has the others.
 */
export function composeBinding(
  { kind, reach, notSupported }: CompiledComposition,
  binding: CompiledBinding,
  claim: Claim,
): ComposedBinding {
  const place = `bindings[${binding.name}]`;
  const home = namespaceOfClaim(claim, kind);
  const { base } = binding;
  const composed = copyJson({ metadata: { ...base.metadata }, spec: base.spec } as JsonObject) as JsonObject;
  const from = claimObject(claim);
  const work = new Work();
  assertSupported(notSupported, from, work);
  const missing: MissingField[] = [];
  const written: WrittenPatch[] = [];
  const problems: Problem[] = [];
  for (const patch of binding.patches) {
    if (patch.direction !== "FromComposite") continue;
    const outcome = attemptSync(() => applyPatch(patch, from, composed, work));
    if (outcome instanceof Problem) {
      problems.push(outcome);
      // All others would need more work than is left, too.
      if (outcome.reason === "TooLarge") break;
    }
    // Elements are recorded by index: later patches may change the fields that identify them in a path.
    else if (outcome.outcome === "written")
      written.push({ patch, paths: outcome.paths.map((path) => placed(path, composed)) });
    else
      missing.push({
        place: patch.place,
        path: outcome.path,
        toFieldPath: patch.writes.text,
        isRequired: patch.isRequired,
        isRemoved: patch.isRemoved,
      });
  }
  const tooLarge = attemptSync(() => assertSmall(composed, place));
  if (reach === "ClaimNamespace" && tooLarge === undefined) {
    const outOfReach = attemptSync(() => assertWithinReach(composed, written, home));
    if (outOfReach !== undefined) problems.push(outOfReach);
  }
  // What else is wrong may only follow from these.
  throwFirst(problems);
  if (tooLarge !== undefined) throw tooLarge;
  assertSameExpressions(base.spec, composed, written, place, work);
  grantNamedSources(composed, written, claim, kind);
  // As the API server stores it, which treats null as missing.
  const spec = withDefaults(SPEC_SCHEMA, fieldsAt(composed, "spec")) as JsonObject;
  assertValid(spec, missing, place);
  const metadata = fieldsAt(composed, "metadata");
  const name = metadata["name"] ?? `${claim.name}-${binding.name}`;
  if (typeof name !== "string" || name.length > MAX_NAME_LENGTH || !NAME.test(name))
    throw invalid(
      place,
      `the name of the binding must be a DNS name of at most ${MAX_NAME_LENGTH} characters; set metadata.name by a patch`,
    );
  return {
    template: binding.name,
    namespace: base.metadata.namespace ?? home ?? "",
    name,
    labels: textsOf(metadata["labels"], base.metadata.labels, place, "metadata.labels"),
    annotations: textsOf(metadata["annotations"], base.metadata.annotations, place, "metadata.annotations"),
    spec,
    patched: [...new Set(written.map(({ patch }) => patch.writes.text))],
    missing,
    size: memoryOf({ ...composed, spec }),
  };
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
    for (const type of ["secret", "configMap"] as const) {
      const named = at(source, type);
      if (!isObject(named)) continue;
      if (isGivenAt(type, "name") && !isClaimItself(type, named, claim, kind)) named["granted"] = true;
    }
    for (const store of Object.keys(isObject(source) ? source : {})) {
      const connection = at(source, store, "connection");
      if (isObject(connection) && ["name", "namespace"].some((each) => isGivenAt(store, "connection", each)))
        connection["granted"] = true;
    }
  }
}

function memoryOf(value: JsonValue): number {
  const { characters, elements } = sizeOf(value);
  return characters + elements * PER_VALUE;
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

function isClaimItself(
  type: "secret" | "configMap",
  { name, namespace }: JsonObject,
  claim: Claim,
  kind: CompiledComposition["kind"],
): boolean {
  if (!isMetadataOnly(kind) || kind.kind !== (type === "secret" ? "Secret" : "ConfigMap")) return false;
  return name === claim.name && (namespace === undefined || namespace === claim.namespace);
}

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

/** Checked here because the API server's error would quote the value. */
function assertValid(spec: JsonObject, missing: readonly MissingField[], place: string): void {
  const wrong = attemptSync(() => checkManifest({ spec }, BINDING_SCHEMA, () => undefined));
  const [required] = missingFields(SPEC_SCHEMA, spec, "spec");
  const [choice] = wrongChoices(SPEC_SCHEMA, spec).map(({ path, rule: of }) => ({ path: `spec.${path}`, of }));
  const lacks = required ?? choice?.path;
  const gone = missing.find(({ toFieldPath: to }) => lacks?.startsWith(to) || (choice && to.startsWith(choice.path)));
  if (wrong instanceof Problem) throw new Problem("InvalidValue", wrong.within(place));
  if (gone !== undefined) {
    const what = `the claim has no ${gone.path}, which the binding requires, so the binding is not created or changed`;
    throw new Problem("FieldNotFound", { at: [gone.place], what });
  }
  const why =
    (required === undefined ? undefined : `${required} is required; set it in base or by a patch`) ??
    (choice === undefined ? undefined : `${choice.path}: ${choice.of}; set it in base or by a patch`);
  if (why !== undefined) throw invalid(place, why);
}

const invalid = (place: string, what: string): Problem => new Problem("InvalidValue", { at: [place], what });

/** Labels or annotations. Those of Inlay can't come from a claim. */
function textsOf(
  value: JsonValue | undefined,
  base: Readonly<Record<string, string>> = {},
  place: string,
  field: string,
): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [key, each] of Object.entries(isObject(value ?? null) ? (value as JsonObject) : {})) {
    if (OWN_KEY.test(key) && base[key] !== each) continue;
    if (typeof each !== "string")
      throw invalid(place, `${field}[${key}] must be a string; change its type by the transform convert`);
    texts[key] = each;
  }
  return texts;
}
