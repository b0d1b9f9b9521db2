/** Validates the objects of Inlay in files: their schema and rules, the fields of targets, loops, and names that neither files nor cluster have. */
import { bindingKey, type Field, fieldsOfTarget, type Target } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import { FieldPath, keySegment } from "../apimachinery/field-path.ts";
import { describeObject, idOf, idOfObject, type JsonObject, type ObjectRef } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { type AnalysedBinding, type Analysis, analyse, inOrder, type ReadObjects } from "../render/analysis.ts";
import { type Mistake, readDocuments, type TextFile } from "../render/documents.ts";
import { isOurs, mistakeAt, type Surroundings } from "../render/inputs.ts";
import { isCrd } from "../render/kinds.ts";
import { connectionKinds } from "../sources/registry.ts";
import { filterIn, usesOf } from "../sources/uses.ts";
import { isSelection, watchedSource } from "../targets/references.ts";
import { keyFilter, newFilterEffort } from "../transform/key-filter.ts";
import { compileTemplate } from "../transform/template.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { type Finding, finding, type Validation } from "./findings.ts";
import { renamedThings } from "./renamed.ts";
import { earlyBindings } from "./sync-waves.ts";

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

/** A loop is a field that is, perhaps through other bindings, a source of itself. Inlay writes such fields less and less often. */
function loops(bindings: readonly AnalysedBinding[]): Mistake[] {
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

function readsOf({ references }: AnalysedBinding, field: Field): Read[] {
  const { parsedSources } = references;
  return usesOf(parsedSources, field, (text) => compileTemplate(text).references).flatMap(({ source, of }): Read[] => {
    const watched = watchedSource(references, source);
    const parsed = parsedSources.find(({ name }) => name === source);
    if (watched === undefined) return [];
    const id = idOf(watched);
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
  const keys = new Set(loop.map(({ binding: { each } }) => bindingKey(each.binding)));
  const others = [...keys].filter((key) => key !== own).map((key) => `SecretBinding ${key}`);
  const steps = others.length > 0 ? others : loop.slice(1).map(describe);
  const through = steps.length === 0 ? "" : `, through ${steps.join(" and ")}`;
  const why = `${what} is also a source of this field${through}, ${LOOP}`;
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

/** `emptyInCluster` returns whether a selection of a binding has no objects in the cluster either. */
function missingThings(
  { inputs, composed, bindings }: Analysis,
  emptyInCluster: (binding: AnalysedBinding, at: number) => boolean,
): Mistake[] {
  const where = inputs.isCluster ? "in the files or the cluster" : "in the files";
  const advice = inputs.isCluster ? "" : "; add it to the files, or check with --cluster";
  const known = new Set(inputs.objects.map(({ object }) => idOfObject(object)));
  const ofBinding = (binding: AnalysedBinding): Mistake[] => {
    const { each, references, targets, selection } = binding;
    const warn = (reason: Mistake["reason"], place: string, what: string) =>
      each.mistakeAt(reason, { at: [place], what });
    const selected = new Set(selection.objects.map(({ target }) => target));
    const selectors = references.targets.flatMap(({ target, at }, position) => {
      if (at instanceof Problem || !isSelection(at) || selected.has(target)) return [];
      if (inputs.isCluster && !emptyInCluster(binding, position)) return [];
      const part = target.selector === undefined ? "namespaceSelector" : "selector";
      const message = `no object of the kind ${target.kind} ${where} matches, so nothing is written; compare it with the objects${inputs.isCluster ? "" : ", or check with --cluster"}`;
      return [warn("TargetNotFound", `spec.targets[${position}].${part}`, message)];
    });
    const connections = references.parsedSources.flatMap(({ store }, position) => {
      const ref = store?.connection?.ref;
      if (ref === undefined || known.has(idOf(ref))) return [];
      const { resource, namespace, name } = ref;
      const field = connectionKinds().find((each) => each.resource === resource)?.field;
      const message = `there is no ${describeObject(resource.kind, namespace, name)} ${where}; correct the name, or create it${advice}`;
      return [warn("ConnectionNotFound", `spec.sources[${position}].${field}.connection`, message)];
    });
    const refused = targets.flatMap(({ fields }, position) =>
      fields.flatMap(({ problem }, at) => {
        if (problem?.reason !== "NotGranted") return [];
        const target = selection.objects[position]?.target;
        const index = target === undefined ? 0 : each.binding.spec.targets.indexOf(target);
        return [warn("NotGranted", `spec.targets[${index}].fields[${at}]`, problem.message)];
      }),
    );
    const kinds = each.binding.spec.targets.flatMap(({ apiVersion, kind }, position) => {
      if (!inputs.isCluster || inputs.kinds.known(apiVersion, kind) !== undefined) return [];
      const message = `the cluster serves no ${kind} in ${apiVersion}, and the files have no CRD of it; correct the kind, or install its CRD`;
      return [warn("KindNotFound", `spec.targets[${position}].kind`, message)];
    });
    return [...selectors, ...connections, ...refused, ...kinds];
  };
  const unclaimed = inputs.isCluster
    ? []
    : composed.unclaimed.map(({ document }) => {
        const what = "no object in the files is a claim, so the bindings are not checked with one; add a claim";
        return mistakeAt(document, "TargetNotFound", { at: ["spec.for"], what });
      });
  return [...bindings.flatMap(ofBinding), ...unclaimed];
}

/** The kinds of targets whose fields can't be checked, because their schema is unknown. */
function uncheckedKinds({ inputs, bindings }: Analysis): string[] {
  const kinds = bindings.flatMap(({ each }) =>
    each.binding.spec.targets.flatMap(({ apiVersion, kind, fields }) => {
      const resource = inputs.kinds.resourceOf(apiVersion, kind);
      const version = apiVersion.split("/").at(-1) as string;
      const isKnown =
        fieldsOfTarget({ fields }).length === 0 || inputs.kinds.schemaOf({ ...resource, version }) !== undefined;
      return isKnown ? [] : [`${kind} (${apiVersion})`];
    }),
  );
  return [...new Set(kinds)].sort();
}

interface FilesToValidate {
  readonly files: readonly TextFile[];
  /** Files with further CRDs. */
  readonly crds: readonly TextFile[];
  /** Of objects that name none. */
  readonly namespace: string;
  /** By default, one without a configuration file. */
  readonly installation?: Installation;
}

/** Problems of a claim, which is no object of Inlay: the composition works as it should. */
const OF_CLAIMS = new Set(["NotSupported"]);

/** `lookUp` asks the cluster about the objects. */
export async function validate(
  { files, crds, namespace, installation }: FilesToValidate,
  lookUp?: (
    objects: readonly JsonObject[],
    analysisIn: (known: Surroundings) => Promise<Analysis>,
  ) => Promise<ClusterFacts>,
): Promise<Validation> {
  const read = readableObjects(files);
  const definitions = readDocuments(crds);
  const known: Surroundings = {
    ownOnly: true,
    ...(installation && { installation }),
    crds: definitions.documents.map(({ object }) => object).filter(isCrd),
  };
  const own = read.documents.filter(({ object }) => isOurs(object));
  const analysisIn = (more: Surroundings) => analyse(files, namespace, [], { ...known, ...more }, read);
  const facts = await lookUp?.(
    own.map(({ object }) => object),
    analysisIn,
  );
  const analysis = await analysisIn(facts === undefined ? {} : { cluster: facts.surroundings });
  const warnings = [
    ...analysis.bindings.flatMap((each) => each.warnings),
    ...earlyBindings(analysis),
    ...renamedThings(analysis),
    ...missingThings(analysis, facts?.emptyInCluster ?? (() => true)),
  ];
  const errors = [...definitions.mistakes, ...analysis.mistakes, ...loops(analysis.bindings)];
  const severityOf = ({ reason }: Mistake): Finding["severity"] => (OF_CLAIMS.has(reason) ? "warning" : "error");
  const found = inOrder(
    [...errors.map((each) => finding(severityOf(each), each)), ...warnings.map((each) => finding("warning", each))],
    [...files, ...crds],
  );
  const kinds = uncheckedKinds(analysis);
  const advice = facts === undefined ? "; add their CRDs with --crds, or check with --cluster" : "";
  return {
    errors: unique(found),
    notes: [
      ...(facts?.notes ?? []),
      ...(kinds.length === 0
        ? []
        : [`the schemas of these kinds are unknown, so their fields are not checked: ${kinds.join(", ")}${advice}`]),
    ],
    checked: { files: files.length, objects: own.length },
  };
}

/** A file of a folder that contains no object, such as a JSON Patch, is none of Inlay's. */
function readableObjects(files: readonly TextFile[]): ReadObjects {
  const { documents, mistakes, others } = readDocuments(files);
  const found = new Set(files.filter(({ isFound }) => isFound).map(({ name }) => name));
  return { documents, mistakes: mistakes.filter((each) => !others.has(each) || !found.has(each.file)) };
}

const unique = (findings: readonly Finding[]): Finding[] => [
  ...new Map(findings.map((each) => [JSON.stringify(each), each])).values(),
];
