/**
 * Finds loops: a field that a binding writes is, perhaps through other bindings, a source of itself; or a binding writes a
 * field of its claim from which the composition makes the value. Inlay writes such fields less and less often (Contended). Pure.
 */
import { bindingKey, type Field, fieldsOfTarget, type Target } from "../api/binding.ts";
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import { describeObject, idOf, type ObjectRef } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { AnalysedBinding } from "../render/analysis.ts";
import type { Mistake } from "../render/documents.ts";
import { filterIn, usesOf } from "../sources/uses.ts";
import { keyFilter, newFilterEffort } from "../transform/key-filter.ts";
import { compileTemplate } from "../transform/template.ts";

/** One field of one target object. */
interface Flow {
  readonly binding: AnalysedBinding;
  readonly place: string;
  readonly field: Field;
  readonly ref: ObjectRef;
  readonly path: FieldPath;
  readonly reads: readonly Read[];
}

interface Read {
  readonly id: string;
  isOf(path: FieldPath): boolean;
}

const LOOP = "so each write changes the source again. Break the loop: remove one of these fields, or read another key";

export function loops(bindings: readonly AnalysedBinding[]): Mistake[] {
  const flows = bindings.flatMap(flowsOf);
  return [...betweenBindings(flows), ...flows.flatMap(intoClaim)];
}

function flowsOf(binding: AnalysedBinding): Flow[] {
  const { targets } = binding.each.binding.spec;
  return binding.selection.objects.flatMap(({ target, ref }) =>
    ref instanceof Problem
      ? []
      : fieldsOfTarget(target).flatMap((field, at): Flow[] => {
          const path = attemptSync(() => FieldPath.parse(field.path));
          if (path instanceof Problem) return [];
          const place = `spec.targets[${targets.indexOf(target)}].fields[${at}].path`;
          return [{ binding, place, field, ref, path: asRead(target, path), reads: readsOf(binding, field) }];
        }),
  );
}

/** Sources have the keys of `binaryData` beside those of `data`. */
function asRead({ kind, apiVersion }: Target, path: FieldPath): FieldPath {
  const [first, ...rest] = path.segments;
  const isBinary = apiVersion === "v1" && kind === "ConfigMap" && first?.kind === "key" && first.key === "binaryData";
  return isBinary ? new FieldPath([keySegment("data"), ...rest]) : path;
}

function readsOf({ references: { parsedSources, sources } }: AnalysedBinding, field: Field): Read[] {
  return usesOf(parsedSources, field, (text) => compileTemplate(text).references).flatMap(({ source, of }): Read[] => {
    const resolved = sources.get(source);
    const parsed = parsedSources.find(({ name }) => name === source);
    if (resolved === undefined || resolved instanceof Problem || !("watched" in resolved) || !resolved.watched)
      return [];
    const id = idOf(resolved.watched);
    if (parsed?.addressedBy === "fieldPath") {
      const read = attemptSync(() => FieldPath.parse(of));
      return [{ id, isOf: (path) => !(read instanceof FieldPath) || mayOverlap(path, read) }];
    }
    return [{ id, isOf: (path) => isKeyOf(path, of) }];
  });
}

/** Whether a path of a Secret or ConfigMap is a key that `use` names or selects, or contains all keys. */
function isKeyOf({ segments }: FieldPath, use: string): boolean {
  const [data, key] = segments;
  if (data?.kind !== "key" || data.key !== "data") return false;
  if (key?.kind !== "key") return true;
  const filter = filterIn(use);
  if (filter === undefined) return key.key === use;
  const passes = attemptSync(() => keyFilter(filter, "", newFilterEffort())(key.key));
  return passes instanceof Problem || passes;
}

function betweenBindings(flows: readonly Flow[]): Mistake[] {
  const byObject = Map.groupBy(flows, ({ ref }) => idOf(ref));
  /** The fields whose values the field depends on. */
  const before = new Map(
    flows.map((flow) => [
      flow,
      flow.reads.flatMap(({ id, isOf }) => (byObject.get(id) ?? []).filter(({ path }) => isOf(path))),
    ]),
  );
  const reported = new Set<Flow>();
  return flows.flatMap((flow) => {
    if (reported.has(flow)) return [];
    const loop = loopThrough(flow, before);
    for (const each of loop) reported.add(each);
    return loop.length === 0 ? [] : [loopMistake(loop)];
  });
}

/** The shortest way from the field back to itself, in the order of the values. Empty if there is none. */
function loopThrough(start: Flow, before: ReadonlyMap<Flow, readonly Flow[]>): Flow[] {
  const next = new Map<Flow, Flow>();
  const queue = [start];
  for (let flow = queue.shift(); flow !== undefined; flow = queue.shift())
    for (const each of before.get(flow) ?? []) {
      if (each === start) {
        const way: Flow[] = [start];
        for (let at = flow; at !== start; at = next.get(at) as Flow) way.push(at);
        return way;
      }
      if (next.has(each)) continue;
      next.set(each, flow);
      queue.push(each);
    }
  return [];
}

function loopMistake(loop: readonly Flow[]): Mistake {
  const [first] = loop as [Flow];
  const { binding, place, field } = first;
  const what = describe(first);
  const own = bindingKey(binding.each.binding);
  const others = [...new Set(loop.map(({ binding: { each } }) => bindingKey(each.binding)))].filter(
    (key) => key !== own,
  );
  const why =
    loop.length === 1
      ? `${what} is also a source of this field, ${LOOP}`
      : others.length === 0
        ? `${what} is also a source of this field, through ${loop.slice(1).map(describe).join(" and ")}, ${LOOP}`
        : `${what} is also a source of this field, through ${others.map((key) => `SecretBinding ${key}`).join(" and ")}, ${LOOP}`;
  return binding.each.mistakeAt("Contended", { at: [place, field.path], what: why }, [place]);
}

const describe = ({ ref: { resource, namespace, name }, field }: Flow): string =>
  `${field.path} of ${describeObject(resource.kind, namespace, name)}`;

/** A field of its claim on which the value of the field depends, by a patch of the composition. */
function intoClaim({ binding, place, field, ref, path }: Flow): Mistake[] {
  const { each, references } = binding;
  const { claim } = each;
  if (claim === undefined || claim.id !== idOf(ref)) return [];
  const used = usesOf(references.parsedSources, field, (text) => compileTemplate(text).references);
  const places = [
    place.replace(/\.path$/, ""),
    ...references.parsedSources.flatMap(({ name }, at) =>
      used.some(({ source }) => source === name) ? [`spec.sources[${at}]`] : [],
    ),
  ].map((each) => FieldPath.parse(each));
  const inputs = claim.patches.filter(({ writes }) => places.some((each) => mayOverlap(writes, each)));
  const read = inputs.flatMap(({ reads }) => reads).find((other) => mayOverlap(path, other));
  if (read === undefined) return [];
  const what = `the binding writes this field into its claim, and the composition makes its value from ${read} of the claim, so each write changes the value again. Write another field, or remove the patch that reads ${read}`;
  return [each.mistakeAt("Contended", { at: [place, field.path], what }, [place])];
}
