/** Finds and prints the objects in git that bindings write, with the fields that a GitOps tool must ignore: those that git has too. Pure. */
import { bindingKey, onConflictOf, selects, type Target } from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { valueAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { describeObject, idOf, type KubeObject, type ObjectReference } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import { Problem } from "../apimachinery/problem.ts";
import { RECONCILED } from "../apimachinery/resources.ts";
import { layOutWhole, paragraph, section, table } from "../explain/text.ts";
import { pathsOf } from "../targets/release.ts";
import { shapeOf, type TargetShape } from "../transform/target-shape.ts";
import type { AnalysedBinding, Analysis } from "./analysis.ts";
import { fileCluster } from "./file-cluster.ts";
import { isOwn } from "./own-kinds.ts";

/** An object in the files. */
interface WrittenObject extends ObjectReference {
  /**
   * The canonical paths of what the tool must ignore: placeholders of fields, and lists and objects that are one value for the API
   * server. A path that git does not have is not among them: the tool would apply the live value, and own it too.
   */
  paths: string[];
  /** The bindings that write them, such as `registry/harbor-s3`. */
  bindings: string[];
}

export interface WrittenObjects {
  /** The objects of Inlay whose status shows whether they are healthy. */
  judged: ObjectReference[];
  objects: WrittenObject[];
  notes: string[];
}

const JUDGED: readonly string[] = RECONCILED.map(({ kind }) => kind);

/** What is used of an analysis. */
type Analysed = Pick<Analysis, "inputs" | "composed" | "bindings">;

export function writtenObjects({ inputs, composed, bindings }: Analysed): WrittenObjects {
  const { kinds } = inputs;
  const files = fileCluster(inputs);
  const objects = new Map<string, WrittenObject>();
  const notes = new Set<string>();
  const examine = ({ each, selection }: AnalysedBinding) => {
    const { binding } = each;
    for (const { target, ref } of selection.objects) {
      if (ref instanceof Problem) continue;
      const what = describeObject(target.kind, ref.namespace, ref.name);
      const live = files.find(ref);
      if (target.create !== undefined && target.create.adopt === undefined)
        notes.add(`${what}: Inlay creates it; do not put it into git`);
      else if (live === undefined)
        notes.add(
          `${what} is not in the files; if it is in git, such as in a chart, add it, because git may have a field that Inlay writes`,
        );
      if (live === undefined) continue;
      const schema = kinds.schemaOf(ref.resource);
      const inGit = gitHas(target, live, schema && shapeOf(schema));
      for (const { path, isWhole, isList } of inGit.ignored) {
        const { apiVersion, kind, metadata } = live;
        const { namespace, name } = metadata;
        const written = objects.get(idOf(ref)) ?? {
          apiVersion,
          kind,
          ...(namespace !== undefined && { namespace }),
          name,
          paths: [],
          bindings: [],
        };
        objects.set(idOf(ref), written);
        add(written.paths, path);
        add(written.bindings, bindingKey(binding));
        if (isWhole)
          notes.add(
            `${what} ${path}: one value for the API server, ${isList ? "a list" : "an object"} that Inlay writes into; remove all of it from git, or both tools overwrite it`,
          );
        else if (onConflictOf(binding, target) !== "Force") notes.add(forceNote(each, target, what, path));
      }
      for (const path of inGit.uncertain)
        notes.add(
          `${what} ${path}: if the list is atomic, remove all of it from git; add the CRD with --crds to find out`,
        );
    }
    for (const { kind } of binding.spec.targets.filter((each) => selects(each) && !isShown(each, selection.objects)))
      notes.add(
        `no ${kind} in the files is selected by SecretBinding ${bindingKey(binding)}; if git has such objects, add them`,
      );
  };
  for (const each of bindings) if (!each.each.isBroken) examine(each);
  for (const { composition, claim, entry, problem } of composed.notMade)
    notes.add(
      `bindings[${entry}] of ${composition} for ${claim}: no binding, so its fields are missing here: ${problem.message}`,
    );
  const judged = inputs.objects.flatMap(({ object, isBroken }): ObjectReference[] => {
    const { apiVersion, kind, metadata } = object;
    if (isBroken || !isOwn(object) || !JUDGED.includes(kind)) return [];
    return [{ apiVersion, kind, ...(metadata.namespace && { namespace: metadata.namespace }), name: metadata.name }];
  });
  return { judged, objects: [...objects.values()], notes: [...notes] };
}

export const NOTHING = "the bindings write no field that the files have, so there is nothing to ignore";

/** The text, as a table. */
export function gitopsText({ objects, notes }: WrittenObjects, width: number): string[] {
  const rows = objects.flatMap(({ kind, namespace, name, paths, bindings }) =>
    paths.map((path) => [plain(describeObject(kind, namespace, name)), path, bindings.join(", ")]),
  );
  if (rows.length === 0 && notes.length === 0) return [NOTHING];
  const parts = [
    ...(rows.length === 0 ? [NOTHING] : table(["OBJECT", "FIELD TO IGNORE", "BINDINGS THAT WRITE IT"], rows)),
    ...section("NOTES", notes.map(paragraph)),
  ];
  return layOutWhole(parts, width);
}

/** Objects of Inlay with a text that Flux would replace, by `spec.postBuild`. */
export function substituted({ inputs }: Pick<Analysis, "inputs">): string[] {
  return inputs.objects.flatMap(({ object }) => {
    const { kind, metadata, spec } = object;
    if (!isOwn(object) || !JSON.stringify(spec ?? {}).includes("${")) return [];
    const what = describeObject(kind, metadata.namespace, metadata.name);
    return [
      `${what} contains $\{…}: if the Kustomization has spec.postBuild, Flux replaces that; write $$\{…}, which Flux turns into $\{…}, or set the annotation kustomize.toolkit.fluxcd.io/substitute: disabled`,
    ];
  });
}

interface InGit {
  ignored: { path: string; isWhole: boolean; isList: boolean }[];
  /** Paths into a list in git whose type is unknown. */
  uncertain: string[];
}

/** What the object in git has of the fields of a target. `shape` is undefined if the schema is unknown. */
function gitHas(target: Target, live: KubeObject, shape: TargetShape | undefined): InGit {
  const ignored: InGit["ignored"] = [];
  const uncertain: string[] = [];
  for (const text of pathsOf(target)) {
    const path = FieldPath.parse(text);
    const whole = shape && oneValue(path, shape);
    const value = valueAt(live, whole ?? path);
    if (isThere(value, whole !== undefined))
      ignored.push({ path: `${whole ?? path}`, isWhole: whole !== undefined, isList: Array.isArray(value) });
    if (shape === undefined && listOn(path, live)) uncertain.push(text);
  }
  return { ignored, uncertain };
}

/** An empty object is no value, unless it is one value with one owner. */
const isThere = (value: unknown, isWhole: boolean): boolean =>
  value !== undefined && value !== null && (isWhole || !isObject(value) || Object.keys(value).length > 0);

/** Whether the object has a list that the path goes into. */
function listOn(path: FieldPath, live: KubeObject): boolean {
  const at = path.segments.findIndex(({ kind }) => kind !== "key");
  return at >= 0 && Array.isArray(valueAt(live, path.upTo(at)));
}

function forceNote({ binding, from }: AnalysedBinding["each"], { kind }: Target, what: string, path: string): string {
  const where =
    from === undefined ? `SecretBinding ${bindingKey(binding)}` : `entry ${from.entry} of ${from.composition}`;
  return `${what}: git has a placeholder for ${path}, and the tool owns the field because it creates the object, so the binding would report Conflict; set onConflict: Force on the target ${kind} of ${where}`;
}

const isShown = (target: Target, objects: AnalysedBinding["selection"]["objects"]): boolean =>
  objects.some((each) => each.target === target);

/** The outermost list or object on the path that is one value with one owner. */
function oneValue(path: FieldPath, shape: TargetShape): FieldPath | undefined {
  for (const [at, segment] of path.segments.entries()) {
    const parent = path.upTo(at);
    const isInList = segment.kind !== "key";
    if (isInList ? shape.listAt(parent).kind === "atomic" : at > 0 && shape.isAtomic(parent)) return parent;
  }
  return undefined;
}

const add = (list: string[], text: string): void => {
  if (!list.includes(text)) list.push(text);
};
