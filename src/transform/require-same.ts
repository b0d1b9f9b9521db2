/** Checks whether the sources of a binding belong together. Pure. */
import { Problem } from "../apimachinery/problem.ts";
import type { LiveSource } from "./live-source.ts";

/**
 * Checks that all sources have the annotation with the same value, except missing optional ones. Returns undefined if
 * so, else the Problem of a source that is missing or could not be read, or Problem("SourceAnnotationMismatch").
 */
export function sourcesDiffer(key: string, sources: ReadonlyMap<string, LiveSource | Problem>): Problem | undefined {
  const byValue = new Map<string, string[]>();
  const without: string[] = [];
  for (const source of sources.values()) {
    if (source instanceof Problem) return source;
    if (source.kind === "absent") {
      if (source.policy.optional) continue;
      return source.problem;
    }
    const annotations = source.annotations.reveal();
    const value = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
    if (value === undefined) without.push(source.description);
    else byValue.set(value, [...(byValue.get(value) ?? []), source.description]);
  }
  if (without.length > 0)
    return mismatch(key, `${without.join(" and ")} ${without.length > 1 ? "don't" : "doesn't"} have it`);
  if (byValue.size < 2) return undefined;
  return mismatch(key, `it differs between ${[...byValue.values()].map((same) => same.join(", ")).join(" and ")}`);
}

function mismatch(key: string, how: string): Problem {
  const message = `all sources must have the annotation ${key} with the same value: ${how}; nothing is written until they have`;
  return new Problem("SourceAnnotationMismatch", message);
}
