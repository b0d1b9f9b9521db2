/** Makes the settings with which Argo CD and Flux ignore the fields of bindings. Pure. */
import { FieldPath, type Segment } from "../apimachinery/field-path.ts";
import { pointerTo } from "../apimachinery/json-pointer.ts";
import { parseApiVersion } from "../apimachinery/objects.ts";
import { OWN_VERSION } from "./own-kinds.ts";
import type { WrittenObject, WrittenObjects } from "./written-objects.ts";

export interface IgnoredDifference {
  group?: string;
  kind: string;
  namespace?: string;
  name?: string;
  jqPathExpressions: string[];
  managedFieldsManagers: string[];
}

/** The part of an Application. */
export interface ArgocdSnippet {
  spec: { ignoreDifferences: IgnoredDifference[]; syncPolicy: { syncOptions: string[] } };
}

export interface IgnoredPaths {
  paths: string[];
  target: { group?: string; kind: string; namespace?: string; name?: string };
}

/** Parts of a Kustomization and of a HelmRelease. */
export interface FluxSnippet {
  kustomization: {
    spec: {
      ignore: IgnoredPaths[];
      patches: { target: IgnoredPaths["target"]; patch: string }[];
      healthChecks: { apiVersion: string; kind: string; namespace: string; name: string }[];
    };
  };
  helmRelease: { spec: { driftDetection: { mode: "enabled"; ignore: IgnoredPaths[] } } };
}

export const SSA_ANNOTATION = "kustomize.toolkit.fluxcd.io/ssa";
const SYNC_OPTIONS = ["RespectIgnoreDifferences=true", "ServerSideApply=true"];

export function argocdSnippet({ objects }: WrittenObjects): ArgocdSnippet {
  const ignoreDifferences = objects.map(({ paths, managers, ...object }) => ({
    ...targetOf(object),
    jqPathExpressions: paths.map((path) => jqPath(FieldPath.parse(path))),
    managedFieldsManagers: managers,
  }));
  return { spec: { ignoreDifferences, syncPolicy: { syncOptions: SYNC_OPTIONS } } };
}

/** A JSON pointer can't select an element by its fields, so Flux then only creates the object. */
export function fluxSnippet({ bindings, objects }: WrittenObjects): FluxSnippet {
  const ignore = objects.flatMap(({ paths, ...object }): IgnoredPaths[] => {
    const pointers = paths.flatMap((path) => pointerOf(FieldPath.parse(path)) ?? []);
    return pointers.length === 0 ? [] : [{ paths: pointers, target: namedExactly(targetOf(object)) }];
  });
  const patches = objects.map((object) => {
    const isIgnored = object.paths.every((path) => pointerOf(FieldPath.parse(path)) !== undefined);
    const { apiVersion, kind, name = "any" } = object;
    const annotations = [`    ${SSA_ANNOTATION}: ${isIgnored ? "Merge" : "IfNotPresent"}`];
    const patch = [
      `apiVersion: ${apiVersion}`,
      `kind: ${kind}`,
      "metadata:",
      `  name: ${name}`,
      "  annotations:",
      ...annotations,
    ];
    return { target: namedExactly(targetOf(object)), patch: `${patch.join("\n")}\n` };
  });
  const healthChecks = bindings.map((binding) => ({ apiVersion: OWN_VERSION, kind: "SecretBinding", ...binding }));
  return {
    kustomization: { spec: { ignore, patches, healthChecks } },
    helmRelease: { spec: { driftDetection: { mode: "enabled", ignore } } },
  };
}

function targetOf({ apiVersion, kind, namespace, name }: Omit<WrittenObject, "paths" | "managers">) {
  const { group } = parseApiVersion(apiVersion);
  return {
    ...(group !== "" && { group }),
    kind,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
  };
}

/** Names are regular expressions there, and a dot in one matches any character. */
const namedExactly = <T extends { name?: string }>(target: T): T =>
  target.name === undefined ? target : { ...target, name: target.name.replaceAll(".", "\\.") };

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
