/** Finds the fields in which more people can read a value of a Secret than in the Secret, and what to do about it. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { SchemaAt } from "./convert.ts";
import type { Recipe } from "./plan.ts";
import type { ReadableCopies } from "./plan-types.ts";
import { secretReferenceFor } from "./secret-reference.ts";

const MAX_PATHS = 3;

/**
 * Who may read an object is said by kind and namespace. So a Secret keeps a value as well as the Secret of the same namespace
 * that it is from; no other object does, nor a Secret elsewhere. Undefined where there is none, or the binding says that it
 * is meant. `secrets`: the namespace of each source that holds secrets, by its name.
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
    return reference === undefined ? [] : [`${reference} takes a reference to a Secret instead of ${path}`];
  });
  const hint = instead.length === 0 ? "" : ` (${firstOf(instead, MAX_PATHS)})`;
  const note = `values of Secrets at ${firstOf(paths.map(String), MAX_PATHS)} can be read by whoever may read ${reader}${hint}; spec.acknowledge: [ReadableCopies] says that it is meant`;
  return { paths: paths.map(String), note };
}

/** Why nothing is written, where an installation wants it said first. */
export function notAcknowledged(binding: SecretBinding, { note }: ReadableCopies): Problem {
  const { namespace, name } = binding.metadata;
  const patch = `kubectl patch secretbinding ${name} -n ${namespace} --type=merge -p '{"spec":{"acknowledge":["ReadableCopies"]}}'`;
  return new Problem("NotAcknowledged", `${note}. The installation lets nothing be written before: ${patch}`);
}
