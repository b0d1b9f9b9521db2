/** Warns of what a binding names that neither the files nor the cluster have: selected objects, claims, connections, grants, kinds. Pure. */
import { fieldsOfTarget } from "../api/binding.ts";
import { describeObject, idOf } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { AnalysedBinding, Analysis } from "../render/analysis.ts";
import type { Mistake } from "../render/documents.ts";
import { mistakeAt } from "../render/inputs.ts";
import { connectionKinds } from "../sources/registry.ts";
import { isSelection } from "../targets/references.ts";

/** `emptyInCluster` returns whether a selection of a binding has no objects in the cluster either. */
export function missingThings(
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
export function uncheckedKinds({ inputs, bindings }: Analysis): string[] {
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
