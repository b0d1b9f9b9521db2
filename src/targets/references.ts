/** Resolves the references of a binding: each object with its kind as the API server serves it, or why that fails. */
import {
  fieldsOfTarget,
  manifestOf,
  onReleaseOf,
  type SecretBinding,
  selects,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import { type Installation, SOME_NAMESPACE, type Where, whereOf } from "../api/installation.ts";
import { assertWithin } from "../api/scope.ts";
import { assertReadablePath, assertWritableKind } from "../api/writable.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { apiVersionOf, idOf, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { parseSources, resolveSources } from "../sources/registry.ts";
import type { ParsedSource, ResolveContext, ResolvedSource } from "../sources/source.ts";
import { copiedMetadata } from "../transform/whole-copy.ts";
import { type Selection, selectionOf } from "./selection.ts";

export interface References {
  /** In the order of the spec. */
  parsedSources: readonly ParsedSource[];
  /** By the name that fields and templates use. */
  sources: Map<string, ResolvedSource | Problem>;
  /** In the order of the spec: one object, or a selection. */
  targets: { target: Target; at: ObjectRef | Selection | Problem }[];
}

/** The services and rules for resolving references. */
export interface ReferenceContext extends ResolveContext {
  discovery: Pick<Discovery, "byKind" | "byPlural" | "kindNotFound">;
  installation: Pick<Installation, "scope" | "closedNamespace" | "refusal" | "limits">;
}

export async function resolveReferences(binding: SecretBinding, context: ReferenceContext): Promise<References> {
  const namespace = binding.metadata.namespace as string;
  const parsedSources = parseSources(binding);
  const sources = await resolveSources(parsedSources, context);
  const resolve = async (target: Target) => ({ target, at: await attempt(resolveTarget(target, namespace, context)) });
  const targets = await Promise.all(binding.spec.targets.map(resolve));
  return { parsedSources, sources, targets: withoutDuplicates(targets) };
}

/** The object that a source is; undefined if it is none, or can't be resolved. */
export function watchedSource({ sources }: Pick<References, "sources">, name: string): ObjectRef | undefined {
  const source = sources.get(name);
  return source instanceof Problem ? undefined : source?.watched;
}

/** The object of a record in the status; undefined if the cluster no longer serves its kind in any version. */
export async function resolveRecorded(
  record: TargetStatus,
  discovery: Pick<Discovery, "byKind" | "byKindInGroup">,
): Promise<ObjectRef | undefined> {
  const { apiVersion, kind, name, namespace } = record;
  const resource = (await discovery.byKind(apiVersion, kind)) ?? (await discovery.byKindInGroup(apiVersion, kind));
  return resource && { resource, name, ...(namespace !== undefined && { namespace }) };
}

/** The first record of a target. */
export function newRecord(binding: SecretBinding, target: Target, ref: ObjectRef | Problem): TargetStatus {
  const { namespace, name } = ref instanceof Problem ? target : ref;
  return {
    apiVersion: target.apiVersion,
    kind: target.kind,
    ...(namespace !== undefined && { namespace }),
    name: name ?? "",
    reason: "Pending",
    onRelease: onReleaseOf(binding, target, false),
  };
}

async function resolveTarget(
  target: Target,
  own: string,
  { discovery, installation }: ReferenceContext,
): Promise<ObjectRef | Selection> {
  const { group } = parseApiVersion(target.apiVersion);
  assertWritableKind(group, target.kind);
  const paths = fieldsOfTarget(target).map(({ path }) => FieldPath.parse(path));
  for (const path of paths) assertReadablePath(group, target.kind, path);
  const resource = await discovery.byKind(target.apiVersion, target.kind);
  if (resource === undefined) throw await discovery.kindNotFound(target.apiVersion, target.kind);
  if (!resource.namespaced && target.namespace !== undefined) {
    const message = `the target ${target.kind} ${target.name ?? ""} is cluster-scoped; remove its namespace`;
    throw new Problem("InvalidBinding", message);
  }
  const writes = { paths: [...paths, ...copiedMetadata(target)], manifest: manifestOf(target) };
  const refusedIn = (where: Where) => installation.refusal(resource, where, writes);
  const namespace = resource.namespaced ? (target.namespace ?? own) : undefined;
  const where = target.namespaceSelector ? SOME_NAMESPACE : whereOf(resource, namespace, target.name);
  const selection =
    selects(target) || target.name === undefined ? { ...selectionOf(target, resource, own), refusedIn } : undefined;
  const refused = refusedIn(where);
  if (refused !== undefined) throw refused;
  const at = selection ?? { resource, name: target.name as string, ...(namespace !== undefined && { namespace }) };
  assertWithin(installation.scope, at);
  return at;
}

export const isSelection = (at: ObjectRef | Selection | Problem): at is Selection => "objects" in at;

/**
 * Refuses the second of two entries for one object, such as in different versions, or with and without its namespace.
 */
function withoutDuplicates(targets: References["targets"]): References["targets"] {
  const seen = new Set<string>();
  return targets.map(({ target, at }) => {
    if (at instanceof Problem || isSelection(at)) return { target, at };
    const key = idOf(at);
    if (!seen.has(key)) {
      seen.add(key);
      return { target, at };
    }
    const message = `${apiVersionOf(at.resource)} ${at.resource.kind} ${at.name} is listed twice; put its fields into one entry`;
    return { target, at: new Problem("InvalidBinding", message) };
  });
}
