/** Finds the parts of a claim that the patches of a composition need. */
import { FieldPath } from "../../apimachinery/field-path.ts";
import type { CompiledPatch } from "./compile.ts";
import { type CompositePath, plainPrefix } from "./path.ts";

/** Each path ends before its first list or wildcard. None is below another one. */
export interface ClaimPaths {
  readonly reads: readonly FieldPath[];
  readonly writes: readonly FieldPath[];
}

/** Conditions of a binding that could not be created use this time. */
const CREATED = FieldPath.parse("metadata.creationTimestamp");

/** `others` are read in addition to the patches. */
export function claimPaths(
  patches: readonly CompiledPatch[],
  others: readonly { readonly reads: CompositePath }[] = [],
): ClaimPaths {
  const reads = patches.filter(({ direction }) => direction === "FromComposite").flatMap((patch) => patch.reads);
  const writes = patches.filter(({ direction }) => direction === "ToComposite").map((patch) => patch.writes);
  const all = [...reads, ...others.map((each) => each.reads)].map(plainPrefix);
  return { reads: topmost(writes.length > 0 ? [...all, CREATED] : all), writes: topmost(writes.map(plainPrefix)) };
}

/** In the order of their texts. */
function topmost(paths: readonly FieldPath[]): FieldPath[] {
  const byText = new Map(paths.map((path) => [path.toString(), path]));
  const isBelow = (path: FieldPath) =>
    path.segments.some((_, length) => length > 0 && byText.has(path.upTo(length).toString()));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, path]) => (isBelow(path) ? [] : [path]));
}
