/** Finds the objects in git that bindings write, and which of their fields a GitOps tool must ignore. Pure. */
import { selects, type Target } from "../api/binding.ts";
import { fieldManagerOf } from "../api/field-manager.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { describeObject, objectId, parseApiVersion } from "../apimachinery/objects.ts";
import { shapeOf, type TargetShape } from "../transform/target-shape.ts";
import type { Kinds } from "./kinds.ts";
import type { RenderedTarget, Rendering } from "./rendering.ts";

export interface WrittenObject {
  apiVersion: string;
  kind: string;
  namespace?: string;
  /** Absent if a binding selects objects of this kind that the files do not show, whatever their names. */
  name?: string;
  /** The canonical paths of what the tool must ignore: fields, and whole lists and objects that are one value for the API server. */
  paths: string[];
  /** The field managers of the bindings. */
  managers: string[];
}

export interface WrittenObjects {
  bindings: { namespace: string; name: string }[];
  objects: WrittenObject[];
  notes: string[];
}

/** What is used of a rendering. */
type Rendered = Pick<Rendering<unknown>, "bindings" | "notMade">;

export function writtenObjects(
  { bindings, notMade }: Rendered,
  kinds: Pick<Kinds, "resourceOf" | "schemaOf">,
): WrittenObjects {
  const objects = new Map<string, WrittenObject>();
  const notes = new Set<string>();
  const inFiles: WrittenObjects["bindings"] = [];
  for (const { binding, composition, targets: shown } of bindings) {
    const metadata = binding.metadata as { namespace: string; name: string };
    if (composition === undefined) inFiles.push({ namespace: metadata.namespace, name: metadata.name });
    const targets: Written[] = [...shown, ...unseen(binding.spec.targets, shown)];
    for (const { apiVersion, kind, namespace, name, creates, adopts, fields } of targets) {
      if (creates && adopts === undefined) {
        const what = name === undefined ? kind : describeObject(kind, namespace, name);
        notes.add(`${what}: Inlay creates it; do not put it into git`);
        continue;
      }
      const resource = kinds.resourceOf(apiVersion, kind);
      const shape = shapeOf(kinds.schemaOf(resource));
      const { group } = parseApiVersion(apiVersion);
      const id = `${objectId({ group, kind }, namespace, name ?? "")}`;
      const written = objects.get(id) ?? {
        apiVersion,
        kind,
        ...(namespace !== undefined && { namespace }),
        ...(name !== undefined && { name }),
        paths: [],
        managers: [],
      };
      objects.set(id, written);
      add(written.managers, fieldManagerOf({ metadata }));
      for (const { path } of fields) {
        const parsed = FieldPath.parse(path);
        const whole = kinds.schemaOf(resource) === undefined ? undefined : oneValue(parsed, shape);
        add(written.paths, `${whole ?? parsed}`);
        if (whole !== undefined)
          notes.add(
            `${kind} ${whole}: one value for the API server; remove all of it from git, or both tools overwrite it`,
          );
        else if (!parsed.isPlain && kinds.schemaOf(resource) === undefined)
          notes.add(
            `${kind} ${parsed}: if the list is atomic, remove all of it from git; add the CRD with --crds to find out`,
          );
      }
    }
  }
  for (const { composition, claim, entry, message } of notMade)
    notes.add(
      `bindings[${entry}] of ${composition} for ${claim}: no binding, so its fields are missing here: ${message}`,
    );
  return { bindings: inFiles, objects: [...objects.values()], notes: [...notes] };
}

type Written = Pick<RenderedTarget<unknown>, "apiVersion" | "kind" | "namespace" | "name" | "creates" | "adopts"> & {
  fields: readonly { readonly path: string }[];
};

/** The targets whose selector matches no object in the files. */
function unseen(targets: readonly Target[], shown: readonly Written[]): Written[] {
  const isShown = ({ apiVersion, kind, fields }: Target) =>
    shown.some(
      (each) =>
        each.apiVersion === apiVersion &&
        each.kind === kind &&
        fields.every(({ path }) => each.fields.some((field) => field.path === path)),
    );
  return targets
    .filter((each) => selects(each) && !isShown(each))
    .map(({ apiVersion, kind, name, create, fields }) => ({
      apiVersion,
      kind,
      ...(name !== undefined && { name }),
      creates: create !== undefined,
      ...(create?.adopt !== undefined && { adopts: create.adopt }),
      fields,
    }));
}

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
