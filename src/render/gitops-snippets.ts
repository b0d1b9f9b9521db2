/** Makes the settings with which Argo CD and Flux ignore the fields of bindings. Pure. */
import { FieldPath, type Segment } from "../apimachinery/field-path.ts";
import { pointerTo } from "../apimachinery/json-pointer.ts";
import { type ObjectReference, parseApiVersion } from "../apimachinery/objects.ts";
import type { WrittenObjects } from "./written-objects.ts";

export const SSA_ANNOTATION = "kustomize.toolkit.fluxcd.io/ssa";
const SYNC_OPTIONS = ["RespectIgnoreDifferences=true", "ServerSideApply=true"];

/** The health of all kinds of Inlay for Flux: without them, an object is in progress while its workloads restart or it is suspended. */
const HEALTH = {
  failed: "has(status.conditions) && status.conditions.exists(c, c.type == 'Stalled')",
  current:
    "has(status.conditions) && status.conditions.exists(c, c.type == 'Ready' && (c.status == 'True' || c.reason == 'Suspended'))",
};

/**
 * The part of an Application. Empty if there is nothing to ignore: the option to respect them makes a sync apply the live values of what is
 * ignored, so they are only for fields that git has.
 */
export function argocdSnippet({ objects }: WrittenObjects) {
  if (objects.length === 0) return { spec: {} };
  const ignoreDifferences = objects.map((object) => ({
    ...targetOf(object),
    jqPathExpressions: object.paths.map((path) => jqPath(FieldPath.parse(path))),
  }));
  return { spec: { ignoreDifferences, syncPolicy: { syncOptions: SYNC_OPTIONS } } };
}

/**
 * Parts of a Kustomization and of a HelmRelease. A JSON pointer can't select an element by its fields, so Flux then only creates the object.
 */
export function fluxSnippet({ judged, objects }: WrittenObjects) {
  const ignore = objects.flatMap(({ paths, ...object }) => {
    const pointers = paths.flatMap((path) => pointerOf(FieldPath.parse(path)) ?? []);
    return pointers.length === 0 ? [] : [{ paths: pointers, target: namedExactly(targetOf(object)) }];
  });
  const patches = objects.map(({ apiVersion, paths, ...object }) => {
    const isIgnored = paths.every((path) => pointerOf(FieldPath.parse(path)) !== undefined);
    const patch = [
      `apiVersion: ${apiVersion}`,
      `kind: ${object.kind}`,
      "metadata:",
      `  name: ${object.name}`,
      "  annotations:",
      `    ${SSA_ANNOTATION}: ${isIgnored ? "Merge" : "IfNotPresent"}`,
    ];
    return { target: namedExactly(targetOf({ apiVersion, ...object })), patch: `${patch.join("\n")}\n` };
  });
  const kinds = new Map(judged.map(({ apiVersion, kind }) => [kind, { apiVersion, kind, ...HEALTH }]));
  return {
    kustomization: {
      spec: {
        healthChecks: judged,
        healthCheckExprs: [...kinds.values()],
        ...(ignore.length > 0 && { ignore }),
        ...(patches.length > 0 && { patches }),
      },
    },
    ...(ignore.length > 0 && { helmRelease: { spec: { driftDetection: { mode: "enabled", ignore } } } }),
  };
}

function targetOf({ apiVersion, kind, namespace, name }: ObjectReference) {
  const { group } = parseApiVersion(apiVersion);
  return { ...(group !== "" && { group }), kind, ...(namespace !== undefined && { namespace }), name };
}

/** Names are regular expressions there, and a dot in one matches any character. */
const namedExactly = <T extends { name: string }>(target: T): T => ({
  ...target,
  name: target.name.replaceAll(".", "\\."),
});

/** Undefined if the path selects an element by its fields. */
function pointerOf({ segments }: FieldPath): string | undefined {
  const steps = segments.flatMap((segment) =>
    segment.kind === "key" ? [segment.key] : segment.kind === "index" ? [`${segment.index}`] : [],
  );
  return steps.length === segments.length ? pointerTo(steps) : undefined;
}

/** A path of jq, such as `.spec.env[]? | select((.name | tostring) == "KEY") | .value`. */
export function jqPath({ segments }: FieldPath): string {
  const parts = segments.map(jqStep);
  // After a filter, the next step begins a new path.
  const text = parts.reduce(
    (before, part) => (before.endsWith(")") && part.startsWith(".") ? `${before} | ${part}` : before + part),
    "",
  );
  return text.startsWith(".") ? text : `.${text}`;
}

function jqStep(segment: Segment): string {
  if (segment.kind === "index") return `[${segment.index}]?`;
  if (segment.kind === "key")
    return /^[A-Za-z_]\w*$/.test(segment.key) ? `.${segment.key}` : `[${JSON.stringify(segment.key)}]`;
  const tests = segment.conditions.map(
    ({ key, value }) => `(.[${JSON.stringify(key)}] | tostring) == ${JSON.stringify(value)}`,
  );
  return `[]? | select(${tests.join(" and ")})`;
}
