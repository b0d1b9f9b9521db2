/**
 * Decides which fields of the claim and of the composed binding patches may read and write. Checked when a composition is compiled. Pure.
 */
import type { Resource } from "../apimachinery/objects.ts";
import type { CompiledPatch, PatchRules } from "./patches/compile.ts";
import { mistake } from "./patches/options.ts";
import type { CompositePath } from "./patches/path.ts";

/** Keys of a path; `*` means an element of a list, and `**` means anything below. */
type Pattern = readonly string[];

/** The facts about the kind of the claims that decide which fields it has. */
export type ClaimKind = Readonly<Pick<Resource, "group" | "kind" | "namespaced">>;

const WRITABLE: readonly Pattern[] = [
  ["metadata", "name"],
  ["metadata", "labels", "**"],
  ["metadata", "annotations", "**"],
  ["spec", "**"],
];

/** Fields that only the author of a composition decides: a patch may write them only by transforms that list the values. */
const FIXED: readonly Pattern[] = [
  ["spec", "serviceAccountName"],
  ["spec", "acknowledge"],
  ["spec", "sources", "*", "protect"],
  // Classes need no SecretGrant.
  ["spec", "sources", "*", "providerClass", "name"],
  ["spec", "targets", "*", "apiVersion"],
  ["spec", "targets", "*", "kind"],
  ["spec", "targets", "*", "create", "adopt"],
  ["spec", "targets", "*", "create", "exact"],
  ["spec", "targets", "*", "create", "onImmutable"],
  ["spec", "rollout", "targets", "*", "apiVersion"],
  ["spec", "rollout", "targets", "*", "kind"],
  ["spec", "rollout", "steps", "*", "targets", "*", "apiVersion"],
  ["spec", "rollout", "steps", "*", "targets", "*", "kind"],
];

const CLAIM_WRITABLE: readonly Pattern[] = [
  ["status", "*", "**"],
  ["metadata", "labels", "*"],
  ["metadata", "annotations", "*"],
];
const OF_METADATA: readonly Pattern[] = [["metadata", "**"], ["apiVersion"], ["kind"]];

/** Secrets and ConfigMaps are watched by their metadata alone. */
export const isMetadataOnly = ({ group, kind }: Pick<ClaimKind, "group" | "kind">): boolean =>
  group === "" && (kind === "Secret" || kind === "ConfigMap");

/** Throws Problem("InvalidComposition") for a field of the binding that a patch may not write. */
export function assertWritesBinding({ writes: path, transforms, place }: Parameters<PatchRules["writes"]>[0]): void {
  const keys = keysOf(path);
  for (const written of writtenBy(keys, transforms)) {
    const fixed = FIXED.find((each) => isWithin(written, each) || contains(written, each));
    if (fixed === undefined) continue;
    const what = isWithin(written, fixed)
      ? `a patch may not write ${spell(fixed)}`
      : `${path.text} contains ${spell(fixed)}, which a patch may not write`;
    const advice = "set it in base and write the fields beside it, or list its values by a transform map or match";
    throw mistake(`${place}.toFieldPath`, `${what}; ${advice}`);
  }
  if (!WRITABLE.some((each) => isWithin(keys, each)))
    throw mistake(
      `${place}.toFieldPath`,
      `a patch may not write ${path.text}; of a binding it may write spec, metadata.name, metadata.labels and metadata.annotations`,
    );
}

/** Throws Problem("InvalidComposition") for a field of the claim that a patch may not write. */
export function assertWritesClaim(path: CompositePath, kind: ClaimKind, place: string): void {
  const writable = isMetadataOnly(kind) ? CLAIM_WRITABLE.filter(([root]) => root === "metadata") : CLAIM_WRITABLE;
  if (writable.some((each) => isWithin(keysOf(path), each))) return;
  const what = isMetadataOnly(kind)
    ? "metadata.labels and metadata.annotations"
    : "fields below status, metadata.labels and metadata.annotations";
  throw mistake(
    `${place}.toFieldPath`,
    `a patch may not write ${path.text} of a claim; of a ${kind.kind} it may write ${what}`,
  );
}

/** Throws Problem("InvalidComposition") for a field of the claim that is not watched. */
export function assertReadsClaim(path: CompositePath, kind: ClaimKind, place: string): void {
  if (!isMetadataOnly(kind) || OF_METADATA.some((each) => isWithin(keysOf(path), each))) return;
  const what = `patches read only metadata of a ${kind.kind}`;
  throw mistake(`${place}.fromFieldPath`, `${what}; read its data by a source of the binding`);
}

/** The fields into which a patch may write any value. Values that the composition lists are decided by its author. */
function writtenBy(
  keys: readonly string[],
  { isListed, elements }: Pick<CompiledPatch["transforms"], "isListed" | "elements">,
): string[][] {
  if (isListed) return [];
  if (elements === undefined) return [[...keys]];
  return elements.filter((each) => !each.isListed).map((each) => [...keys, "*", ...keysOf(each.writes)]);
}

/** The keys of a path, with `*` for an element of a list. */
const keysOf = ({ segments }: CompositePath): string[] =>
  segments.map((segment) => (segment.kind === "key" ? segment.key : "*"));

/** Whether a path matches a pattern, or is below a match. */
function isWithin(keys: readonly string[], pattern: Pattern): boolean {
  const isOpen = pattern.at(-1) === "**";
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  return fixed.length <= keys.length && fixed.every((each, at) => each === "*" || each === keys[at]);
}

/** Whether the fields of a pattern are below a path. */
function contains(keys: readonly string[], pattern: Pattern): boolean {
  return (
    keys.length < pattern.length &&
    keys.every((each, at) => each === "*" || pattern[at] === "*" || each === pattern[at])
  );
}

const spell = (pattern: Pattern): string => pattern.join(".").replaceAll(".*", "[]");
