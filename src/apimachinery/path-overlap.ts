/** Two paths come in; whether writing the one can touch what stands at the other goes out. Pure. */
import { FieldPath, type Segment } from "./field-path.ts";
import { attemptSync } from "./problem.ts";

/** Whether one is the other, or contains it, or may: elements of a list are told apart only by what both paths say. */
export function mayOverlap(a: FieldPath, b: FieldPath): boolean {
  const depth = Math.min(a.segments.length, b.segments.length);
  return a.segments.slice(0, depth).every((segment, position) => mayBeSame(segment, b.segments[position] as Segment));
}

function mayBeSame(a: Segment, b: Segment): boolean {
  if (a.kind === "key" || b.kind === "key") return a.kind === "key" && b.kind === "key" && a.key === b.key;
  if (a.kind === "index" && b.kind === "index") return a.index === b.index;
  if (a.kind === "index" || b.kind === "index") return true;
  return a.conditions.every(({ key, value }) =>
    b.conditions.every((other) => other.key !== key || other.value === value),
  );
}

/** Those of the texts that are paths: what is none is written by nobody. */
export function parsePaths(texts: Iterable<string>): FieldPath[] {
  return [...texts].map((text) => attemptSync(() => FieldPath.parse(text))).filter((path) => path instanceof FieldPath);
}
