/** Validates the objects of Inlay in files: their schema and rules, the fields of targets, loops, and names that neither files nor cluster have. */
import { fieldsOfTarget } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import { describeObject, idOf, type JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type AnalysedBinding, type Analysis, analyse, inOrder, type ReadObjects } from "../render/analysis.ts";
import { type Mistake, readDocuments, type TextFile } from "../render/documents.ts";
import { isOurs, mistakeAt, type Surroundings } from "../render/inputs.ts";
import { isCrd } from "../render/kinds.ts";
import { connectionKinds } from "../sources/registry.ts";
import { isSelection } from "../targets/references.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { loops } from "./feeds.ts";
import { type Finding, finding, type Validation } from "./findings.ts";
import { renamedThings } from "./renamed.ts";
import { earlyBindings } from "./sync-waves.ts";

/** `emptyInCluster` returns whether a selection of a binding has no objects in the cluster either. */
function missingThings(
  { inputs, composed, bindings }: Analysis,
  emptyInCluster: (binding: AnalysedBinding, at: number) => boolean,
): Mistake[] {
  const where = inputs.isCluster ? "in the files or the cluster" : "in the files";
  const advice = inputs.isCluster ? "" : "; add it to the files, or check with --cluster";
  const known = new Set(
    inputs.objects.map(({ object: { apiVersion, kind, metadata } }) =>
      idOf({ resource: inputs.kinds.resourceOf(apiVersion, kind), ...metadata }),
    ),
  );
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

export interface FilesToValidate {
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
