/** Checks `reach: ClaimNamespace`: a claim may write no other namespace than its own into a binding. Pure. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { Problem, throwFirst } from "../apimachinery/problem.ts";
import type { CompiledPatch } from "./patches/compile.ts";

/** An applied patch, and the fields that it wrote. */
export interface WrittenPatch {
  readonly patch: CompiledPatch;
  readonly paths: readonly FieldPath[];
}

/** A field of a binding that names namespaces, and its value. */
interface NamespaceField {
  path: FieldPath;
  value: JsonValue;
}

/** Throws Problem("OutOfReach") if a patch wrote another namespace than `home`, the claim's. */
export function assertWithinReach(
  composed: JsonObject,
  written: readonly WrittenPatch[],
  home: string | undefined,
): void {
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

/** All fields with the name `namespace` or `namespaceSelector`, and the selectors of targets of the kind Namespace. */
function* namespaceFields(value: JsonValue, at: FieldPath): Generator<NamespaceField> {
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
