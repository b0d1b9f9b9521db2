/** Compares paths: can a write to one change the value at the other? Pure. */
import { FieldPath, type Segment } from "./field-path.ts";
import { attemptSync } from "./problem.ts";

/**
 * Whether the paths are equal, or one contains the other, or that is possible. Elements of lists differ only where
 * conditions of both paths do.
 */
export function mayOverlap(a: Steps, b: Steps): boolean {
  const depth = Math.min(a.segments.length, b.segments.length);
  for (let at = 0; at < depth; at++) if (!mayBeSame(a.segments[at] as Step, b.segments[at] as Step)) return false;
  return true;
}

/** A wildcard of a patch is any key or element. */
type Step = Segment | { readonly kind: "wildcard" };
interface Steps {
  readonly segments: readonly Step[];
}

function mayBeSame(a: Step, b: Step): boolean {
  if (a.kind === "wildcard" || b.kind === "wildcard") return true;
  if (a.kind === "key" || b.kind === "key") return a.kind === "key" && b.kind === "key" && a.key === b.key;
  if (a.kind === "index" && b.kind === "index") return a.index === b.index;
  if (a.kind === "index" || b.kind === "index") return true;
  return a.conditions.every(({ key, value }) =>
    b.conditions.every((other) => other.key !== key || other.value === value),
  );
}

/** The valid paths among the texts. No field has an invalid path. */
export function parsePaths(texts: Iterable<string>): FieldPath[] {
  return [...texts].map((text) => attemptSync(() => FieldPath.parse(text))).filter((path) => path instanceof FieldPath);
}
