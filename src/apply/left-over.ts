/**
 * Finds what the field manager of a binding still owns in an object, and the JSON Patch that removes it: for a binding that no longer
 * exists, so that there is no record. Pure.
 */
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable, keySegment, type Segment } from "../apimachinery/field-path.ts";
import type { JsonObject, KubeObject } from "../apimachinery/objects.ts";
import { attemptSync } from "../apimachinery/problem.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { isEntryOf, isLeaf, nodesAt, segmentOf } from "./ownership.ts";
import { planRelease, type Shared } from "./release.ts";

export interface LeftOver {
  /** All paths that the manager owns. */
  paths: string[];
  /** The manager created the object. */
  created: boolean;
  /** Removes the values that the manager alone owns and the kind does not require. It fails if the object is another one by then. */
  patch: JsonPatchOperation[];
  /** Others own these values too, so they stay. */
  shared: Pick<Shared, "path" | "managers">[];
  /** The object is not valid without these values. */
  required: string[];
  /** Lists and objects that are one value: others may have written parts of them. */
  whole: string[];
}

/** The label of an object that the binding created, as managedFields show it: anyone could set the label itself. */
const MARK = new FieldPath(["metadata", "labels", CREATED_BY].map(keySegment));
const MARKS: readonly FieldPath[] = [MARK, new FieldPath(["metadata", "ownerReferences"].map(keySegment))];

/** `live` must not change afterwards. */
export function leftOver(live: KubeObject, fieldManager: string, shape: TargetShape): LeftOver {
  const entries = (live.metadata.managedFields ?? []).filter((entry) => isEntryOf(entry, fieldManager));
  const [paths, parents]: [Set<string>, Set<string>] = [new Set(), new Set()];
  for (const { fieldsV1 = {} } of entries) collect(fieldsV1, [], paths, parents);
  for (const mark of MARKS)
    for (const path of [...paths]) if (FieldPath.parse(path).startsWith(mark)) paths.delete(path);
  // Of elements with equal keys, one may be the binding's.
  const isWhole = (path: string) => {
    const value = attemptSync(() => FieldPath.parse(path).get(live));
    return value !== null && typeof value === "object";
  };
  const whole = [...paths].filter(isWhole);
  const single = [...paths].filter((path) => !whole.includes(path));
  const plan = planRelease(live, {
    uid: live.metadata.uid,
    paths: single,
    written: [],
    reverted: [],
    kept: [],
    parents: [...parents],
    mode: "Remove",
    fieldManager,
    shape,
  });
  return {
    paths: [...paths],
    created: nodesAt(live, fieldManager, MARK).own.length > 0,
    patch: plan.removal.length === 0 ? [] : [testOf(live, plan.removal), ...plan.removal],
    shared: plan.released.shared.map(({ path, managers }) => ({ path, managers })),
    required: plan.released.blocked,
    whole,
  };
}

/** An index may be that of another element in another version of the object. */
function testOf({ metadata }: KubeObject, removal: readonly JsonPatchOperation[]): JsonPatchOperation {
  const hasIndex = removal.some(({ path }) => /\/\d+(\/|$)/.test(path));
  const field = hasIndex ? "resourceVersion" : "uid";
  return { op: "test", path: `/metadata/${field}`, value: metadata[field] };
}

/** The leaves below a node of fieldsV1, and the elements that the manager owns. */
function collect(fields: JsonObject, at: readonly Segment[], paths: Set<string>, parents: Set<string>): void {
  for (const [name, child] of Object.entries(fields) as [string, JsonObject][]) {
    if (name === ".") continue;
    const segment = segmentOf(name);
    // A set is shown as a whole.
    if (segment === undefined) paths.add(String(new FieldPath(at)));
    else if (!namesIn(segment).every(isNameable)) continue;
    else if (segment.kind !== "element" && isLeaf(child)) paths.add(String(new FieldPath([...at, segment])));
    else if (segment.kind !== "element") collect(child, [...at, segment], paths, parents);
    else {
      const path = [...at, segment];
      const keys = [".", ...segment.conditions.map(({ key }) => `f:${key}`)];
      const own = Object.fromEntries(Object.entries(child).filter(([each]) => !keys.includes(each)));
      // The keys are removed with their element.
      if (child["."] !== undefined) parents.add(String(new FieldPath(path)));
      collect(own as JsonObject, path, paths, parents);
    }
  }
}

const namesIn = (segment: Segment): string[] =>
  segment.kind === "key" ? [segment.key] : segment.kind === "element" ? segment.conditions.map(({ key }) => key) : [];
