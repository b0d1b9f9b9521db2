/** Explains refused writes to immutable fields. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { Problem } from "../apimachinery/problem.ts";
import { ApiError } from "../kube/api-error.ts";

export function immutableProblem(error: unknown, paths: readonly FieldPath[]): Problem | undefined {
  const refused = immutablePaths(error, paths);
  if (refused === undefined) return undefined;
  const message = `${refused.join(", ")} can't be changed on an existing object, by the rules of its kind; set mode: Once on the target to keep the first value, or delete the object so that it is created again with the new value (by this binding if its target has create)`;
  return new Problem("Immutable", message);
}

/** The refused paths among `paths`. The server's own texts are dropped, because they contain keys of the object. */
export function immutablePaths(error: unknown, paths: readonly FieldPath[]): readonly FieldPath[] | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const refused = error.immutable.reveal().map((field) => keysOf(field));
  if (refused.length === 0) return undefined;
  const meant = paths.filter((path) => {
    const ours = leadingKeys(path);
    return refused.some((theirs) => isPrefix(theirs, ours) || isPrefix(ours, theirs));
  });
  return meant.length > 0 ? meant : paths;
}

/** `spec.ports[0].name` begins with the keys spec and ports. */
const keysOf = (field: string): string[] => (/^[^[]*/.exec(field) as RegExpExecArray)[0].split(".");

function leadingKeys({ segments }: FieldPath): string[] {
  const end = segments.findIndex(({ kind }) => kind !== "key");
  return segments
    .slice(0, end < 0 ? segments.length : end)
    .map((segment) => (segment.kind === "key" ? segment.key : ""));
}

const isPrefix = (some: readonly string[], all: readonly string[]) => some.every((key, place) => all[place] === key);
