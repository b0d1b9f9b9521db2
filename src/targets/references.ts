/** A binding comes in; the objects that it names go out, each as the API server serves its kind, or why it can't be. */

import {
  manifestOf,
  onReleaseOf,
  type SecretBinding,
  type Source,
  selects,
  sourceName,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import { type Installation, SOME_NAMESPACE, type Where, whereOf } from "../api/installation.ts";
import { assertWithin } from "../api/scope.ts";
import { assertReadablePath, assertWritableKind } from "../api/writable.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { apiVersionOf, idOf, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { CONFIG_MAPS, SECRETS } from "../apimachinery/resources.ts";
import { attempt, kindNotFound } from "../kube/access-error.ts";
import type { Discovery } from "../kube/discovery.ts";
import { type Selection, selectionOf } from "./selection.ts";

export interface References {
  /** By the name that fields and templates use. */
  sources: Map<string, ObjectRef | Problem>;
  /** In the order of the spec: one object, or what to look for. */
  targets: { target: Target; at: ObjectRef | Selection | Problem }[];
}

export async function resolveReferences(
  binding: SecretBinding,
  discovery: Discovery,
  installation: Installation,
): Promise<References> {
  const namespace = binding.metadata.namespace as string;
  const sources = await Promise.all(
    binding.spec.sources.map(
      async (source) =>
        [
          sourceName(source),
          await attempt(within(installation, resolveSource(source, namespace, discovery, installation))),
        ] as const,
    ),
  );
  const targets = await Promise.all(
    binding.spec.targets.map(async (target) => ({
      target,
      at: await attempt(within(installation, resolveTarget(target, namespace, discovery, installation))),
    })),
  );
  return {
    sources: new Map(sources),
    targets: withoutTwins(targets),
  };
}

async function within<T extends ObjectRef | Selection>({ scope }: Installation, found: Promise<T>): Promise<T> {
  const at = await found;
  assertWithin(scope, at);
  return at;
}

/**
 * The object that a record in status speaks of. Undefined when the cluster serves its kind no more, in whatever version:
 * that of the record may have gone.
 */
export async function resolveRecorded(record: TargetStatus, discovery: Discovery): Promise<ObjectRef | undefined> {
  const { apiVersion, kind, name, namespace } = record;
  const resource = (await discovery.byKind(apiVersion, kind)) ?? (await discovery.byKindInGroup(apiVersion, kind));
  return resource && { resource, name, ...(namespace !== undefined && { namespace }) };
}

/** What `status.targets` says of a target before anything is known of it. */
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

async function resolveSource(
  source: Source,
  namespace: string,
  discovery: Discovery,
  installation: Installation,
): Promise<ObjectRef> {
  const closed = installation.closedNamespace((source.secret ?? source.configMap)?.namespace);
  if (closed !== undefined) throw closed;
  if (source.secret) return { resource: SECRETS, namespace, ...source.secret };
  if (source.configMap) return { resource: CONFIG_MAPS, namespace, ...source.configMap };
  const { apiVersion, resource: plural, name, scope } = source.object;
  const resource = await discovery.byPlural(apiVersion, plural);
  if (resource === undefined) throw kindNotFound(apiVersion, plural);
  if (resource.namespaced !== (scope === "Namespaced")) {
    const actual = resource.namespaced ? "Namespaced" : "Cluster";
    throw new Problem(
      "InvalidBinding",
      `the source ${sourceName(source)} is of a kind with scope ${actual}; say so in its field scope`,
    );
  }
  return { resource, name, ...(resource.namespaced && { namespace }) };
}

async function resolveTarget(
  target: Target,
  own: string,
  discovery: Discovery,
  installation: Installation,
): Promise<ObjectRef | Selection> {
  const { group } = parseApiVersion(target.apiVersion);
  assertWritableKind(group, target.kind);
  const paths = target.fields.map(({ path }) => FieldPath.parse(path));
  for (const path of paths) assertReadablePath(group, target.kind, path);
  const resource = await discovery.byKind(target.apiVersion, target.kind);
  if (resource === undefined) throw kindNotFound(target.apiVersion, target.kind);
  if (!resource.namespaced && target.namespace !== undefined) {
    throw new Problem(
      "InvalidBinding",
      `the target ${target.kind} ${target.name ?? ""} belongs to the cluster; leave its namespace out`,
    );
  }
  const writes = { paths, manifest: manifestOf(target) };
  const refusedIn = (where: Where) => installation.refusal(resource, where, writes);
  const namespace = resource.namespaced ? (target.namespace ?? own) : undefined;
  const where = target.namespaceSelector ? SOME_NAMESPACE : whereOf(resource, namespace, target.name);
  const selection =
    selects(target) || target.name === undefined ? { ...selectionOf(target, resource, own), refusedIn } : undefined;
  const refused = refusedIn(where);
  if (refused !== undefined) throw refused;
  return selection ?? { resource, name: target.name as string, ...(namespace !== undefined && { namespace }) };
}

export const isSelection = (at: ObjectRef | Selection | Problem): at is Selection => "objects" in at;

/** Two entries for one object, by different versions or with and without its namespace: the second is refused. */
function withoutTwins(targets: References["targets"]): References["targets"] {
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
