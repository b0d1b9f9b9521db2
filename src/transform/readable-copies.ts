/** Finds fields in which more users can read a value of a Secret than in the Secret, and says what to do. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { SchemaAt } from "./convert.ts";
import type { Recipe } from "./plan.ts";
import type { ReadableCopies } from "./plan-types.ts";
import { secretReferenceFor } from "./secret-reference.ts";

const MAX_PATHS = 3;

/**
 * RBAC permits reads by kind and namespace. So only a Secret in the same namespace protects a value as well as its
 * source does. Undefined if there are no such fields, or if the binding acknowledges them. `secrets`: the namespace of
 * each source with secret data, by its name.
 */
export function readableCopies(
  binding: SecretBinding,
  secrets: ReadonlyMap<string, string>,
  recipes: readonly Pick<Recipe, "path" | "references">[],
  { resource, namespace }: Pick<ObjectRef, "resource" | "namespace">,
  schemaAt: SchemaAt = () => undefined,
): ReadableCopies | undefined {
  if (binding.spec.acknowledge?.includes("ReadableCopies")) return undefined;
  const isSecret = resource.group === "" && resource.plural === "secrets";
  const isReadable = ({ references }: Pick<Recipe, "references">) =>
    references.some(({ source }) => secrets.has(source) && !(isSecret && secrets.get(source) === namespace));
  const paths = recipes.filter(isReadable).map(({ path }) => path);
  if (paths.length === 0) return undefined;
  const reader = isSecret ? "the copy in its namespace" : `the ${resource.kind}`;
  const instead = paths.flatMap((path) => {
    const reference = secretReferenceFor(path, schemaAt);
    return reference === undefined ? [] : [`set ${reference} to a reference to a Secret instead of writing ${path}`];
  });
  const hint = instead.length === 0 ? "" : ` (${firstOf(instead, MAX_PATHS)})`;
  const note = `all users who may read ${reader} can read values of Secrets at ${firstOf(paths.map(String), MAX_PATHS)}${hint}; if you intend this, set spec.acknowledge: [ReadableCopies]`;
  return { paths: paths.map(String), note };
}

/** Throws Problem if the installation requires the acknowledgement that the binding lacks. */
export function assertAcknowledged(
  binding: SecretBinding,
  copies: ReadableCopies | undefined,
  installation: Pick<Installation, "requires">,
): void {
  if (copies === undefined || !installation.requires("ReadableCopies")) return;
  const { namespace, name } = binding.metadata;
  const patch = `kubectl patch secretbinding ${name} -n ${namespace} --type=merge -p '{"spec":{"acknowledge":["ReadableCopies"]}}'`;
  const what = `${copies.note}. The installation requires this acknowledgement before anything is written`;
  throw new Problem("NotAcknowledged", { what, fix: "set it", command: patch });
}
