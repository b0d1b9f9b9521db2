/**
 * A compiled composition and a claim come in; the bindings that the claim gets go out, complete, with the defaults that the API
 * server would add, or why there is none. Pure.
 */
import { elementsOf, FieldPath, type Segment } from "../apimachinery/field-path.ts";
import { at, fieldsAt, listAt } from "../apimachinery/fields.ts";
import { isObject, MAX_VALUE_LEVELS, nestsDeeper, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { missingFields, withDefaults, wrongChoices } from "../apimachinery/structural-schema.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { isMetadataOnly } from "./allowed-paths.ts";
import { type Claim, claimObject, namespaceOfClaim } from "./claim.ts";
import { BINDING_SCHEMA, type CompiledBinding, type CompiledComposition } from "./compile.ts";
import { assertSupported } from "./not-supported.ts";
import { applyPatch } from "./patches/apply.ts";
import { assertWithinReach, type WrittenPatch } from "./reach.ts";
import { assertSameExpressions } from "./templates.ts";

/** A binding as it has to be. */
export interface ComposedBinding {
  /** The name of its entry in `bindings`. */
  readonly template: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: JsonObject;
  /** What patches write that found their fields, as toFieldPath has it. */
  readonly patched: readonly string[];
  readonly missing: readonly MissingField[];
}

/** A field of a claim that a patch reads and that is not there. */
export interface MissingField {
  /** Of the patch, such as `bindings[s3].patches[2]`. */
  readonly place: string;
  /** Of the claim. */
  readonly path: string;
  /** Of the binding. */
  readonly toFieldPath: string;
  readonly isRequired: boolean;
  /** Whether the field of the binding goes with it. */
  readonly isRemoved: boolean;
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const MAX_NAME_LENGTH = 253;
/** The API server takes some 1.5 MB of an object, with its managedFields. */
const MAX_LENGTH = 1_000_000;
/** The size is found by writing all of it, so not after each patch. */
const PATCHES_PER_CHECK = 16;
const OWN_KEY = /^inlay\.dev\//;
const SPEC_SCHEMA = BINDING_SCHEMA.properties?.["spec"] ?? {};

/** Throws Problem: NotSupported, InvalidValue, OutOfReach or FieldNotFound, with the place, the path and the rule, never a value. */
export function composeBinding(
  { kind, reach, notSupported }: CompiledComposition,
  binding: CompiledBinding,
  claim: Claim,
): ComposedBinding {
  const place = `bindings[${binding.name}]`;
  const home = namespaceOfClaim(claim, kind);
  const { base } = binding;
  const made: JsonObject = structuredClone({ metadata: { ...base.metadata }, spec: base.spec }) as JsonObject;
  const from = claimObject(claim);
  assertSupported(notSupported, from);
  const missing: MissingField[] = [];
  const written: WrittenPatch[] = [];
  let applied = 0;
  for (const patch of binding.patches) {
    if (patch.direction !== "FromComposite") continue;
    const outcome = applyPatch(patch, from, made);
    if (++applied % PATCHES_PER_CHECK === 0) assertSmall(made, place);
    // By the place of each element: later patches may change the fields that a path names it by.
    if (outcome.outcome === "written") written.push({ patch, paths: outcome.paths.map((path) => placed(path, made)) });
    else
      missing.push({
        place: patch.place,
        path: outcome.path,
        toFieldPath: patch.writes.text,
        isRequired: patch.isRequired,
        isRemoved: patch.isRemoved,
      });
  }
  if (reach === "ClaimNamespace") assertWithinReach(made, written, home);
  assertSameExpressions(base.spec, made, written, place);
  grantNamedSources(made, written, claim, kind);
  assertSmall(made, place);
  // As the API server has it, which takes null for what is not there.
  const spec = withDefaults(SPEC_SCHEMA, fieldsAt(made, "spec")) as JsonObject;
  assertValid(spec, missing, place);
  const metadata = fieldsAt(made, "metadata");
  const name = metadata["name"] ?? `${claim.name}-${binding.name}`;
  if (typeof name !== "string" || name.length > MAX_NAME_LENGTH || !NAME.test(name))
    throw new Problem(
      "InvalidValue",
      `${place}: the name of the binding is not a DNS name of at most ${MAX_NAME_LENGTH} characters; set metadata.name by a patch`,
    );
  return {
    template: binding.name,
    namespace: base.metadata.namespace ?? home ?? "",
    name,
    labels: textsOf(metadata["labels"], base.metadata.labels, `${place}: metadata.labels`),
    annotations: textsOf(metadata["annotations"], base.metadata.annotations, `${place}: metadata.annotations`),
    spec,
    patched: [...new Set(written.map(({ patch }) => patch.writes.text))],
    missing,
  };
}

/**
 * A source whose name a claim gives is read with a SecretGrant only: the author of the claim may not be allowed to read it, and no
 * policy asks. The same goes for a VaultConnection, which that author may not be allowed to use. The claim itself needs none.
 */
function grantNamedSources(
  made: JsonObject,
  written: readonly WrittenPatch[],
  claim: Claim,
  kind: CompiledComposition["kind"],
): void {
  for (const [index, source] of listAt(made, "spec", "sources").entries()) {
    const isGivenAt = (...keys: readonly string[]): boolean => {
      const place = new FieldPath([key("spec"), key("sources"), { kind: "index", index }, ...keys.map(key)]);
      return written.some(({ paths }) => paths.some((path) => mayOverlap(path, place)));
    };
    for (const type of ["secret", "configMap"] as const) {
      const named = at(source, type);
      if (!isObject(named)) continue;
      if (isGivenAt(type, "name") && !isClaimItself(type, named, claim, kind)) named["granted"] = true;
    }
    const connection = at(source, "vault", "connection");
    if (isObject(connection) && ["name", "namespace"].some((each) => isGivenAt("vault", "connection", each)))
      connection["granted"] = true;
  }
}

const key = (name: string): Segment => ({ kind: "key", key: name });

/** The path with the place of each element in place of what names it, as far as that is there. */
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

/** Many patches may copy the same large field. */
function assertSmall(made: JsonObject, place: string): void {
  const problem = nestsDeeper(made, MAX_VALUE_LEVELS)
    ? `the binding would nest more than ${MAX_VALUE_LEVELS} levels deep`
    : stringifyJson(made).length > MAX_LENGTH
      ? `the binding would have more than ${MAX_LENGTH} characters`
      : undefined;
  if (problem !== undefined)
    throw new Problem("InvalidValue", `${place}: ${problem}; copy smaller fields of the claim`);
}

/** The API server would refuse the binding for any of these, and quote the value. */
function assertValid(spec: JsonObject, missing: readonly MissingField[], place: string): void {
  const wrong = attemptSync(() => checkManifest({ spec }, BINDING_SCHEMA, () => undefined));
  // How a target's value gets another type does not help where a patch gives one.
  const rule =
    wrong instanceof Problem
      ? wrong.message.replace(/; (?:say|set) as: .*/s, "; change its type by the transform convert")
      : undefined;
  const [required] = missingFields(SPEC_SCHEMA, spec, "spec");
  const [choice] = wrongChoices(SPEC_SCHEMA, spec).map(({ path, rule: of }) => ({ path: `spec.${path}`, of }));
  const lacks = required ?? choice?.path;
  const gone = missing.find(({ toFieldPath: to }) => lacks?.startsWith(to) || (choice && to.startsWith(choice.path)));
  if (rule === undefined && gone !== undefined) {
    const message = `${gone.place}: the claim has no ${gone.path}, and the binding can't be without it, so it stays as it is or is not made`;
    throw new Problem("FieldNotFound", message);
  }
  const why =
    rule ??
    (required === undefined ? undefined : `${required} is required; set it in base or by a patch`) ??
    (choice === undefined ? undefined : `${choice.path}: ${choice.of}; set it in base or by a patch`);
  if (why !== undefined) throw new Problem("InvalidValue", `${place}: ${why}`);
}

/** Labels or annotations. Those of Inlay itself can't come from a claim. */
function textsOf(
  value: JsonValue | undefined,
  base: Readonly<Record<string, string>> = {},
  place: string,
): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [key, each] of Object.entries(isObject(value ?? null) ? (value as JsonObject) : {})) {
    if (OWN_KEY.test(key) && base[key] !== each) continue;
    if (typeof each !== "string")
      throw new Problem("InvalidValue", `${place}[${key}] is not a text; change its type by the transform convert`);
    texts[key] = each;
  }
  return texts;
}
