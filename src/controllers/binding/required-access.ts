/**
 * Lists all permissions that the account of a binding needs, whichever of its requests is sent first. An open watch changes nothing: it
 * outlives the permission, and the controller opens it again at its next start. Pure.
 */
import { onReleaseOf, recreates, type SecretBinding, type Target } from "../../api/binding.ts";
import type { ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { DISRUPTION_BUDGETS, EVICTIONS, JOBS, PODS } from "../../apimachinery/resources.ts";
import { AccessDenied, READ_VERBS, STREAM_VERBS, verbsFor, WRITE_VERBS } from "../../kube/access-error.ts";
import type { Permission } from "../../kube/grant-commands.ts";
import type { WorkloadLookup } from "../../rollout/discover/lookups.ts";
import { JOB_VERBS } from "../../rollout/restart/recreate-job.ts";
import type { Connections, ParsedSource, ResolvedSource } from "../../sources/source.ts";
import { isCronJob, isJob } from "../../workloads/jobs.ts";

/** What is known of a binding when a permission is missing. */
export interface Needs {
  binding: SecretBinding;
  account: ObjectRef;
  references: {
    parsedSources: readonly ParsedSource[];
    sources: ReadonlyMap<string, ResolvedSource | Problem>;
  };
  objects: readonly { target: Target; ref: ObjectRef | Problem }[];
  /** What selectors watch. */
  collections: readonly Permission[];
  lookups: readonly WorkloadLookup[];
  connections: Connections;
  /** All problems of this reconcile: they may be about objects that the spec no longer names. */
  problems: readonly (Problem | undefined)[];
}

/** A permission, and the part of the binding that needs it. */
export interface RequiredPermission extends Permission {
  why: string;
}

export function requiredAccess(needs: Needs): RequiredPermission[] {
  const { collections, lookups, problems } = needs;
  // The namespaces of the first permissions are reviewed, if there are many.
  return [
    ...problems.flatMap((each) => (each instanceof AccessDenied ? [{ ...each.access, why: "a denied request" }] : [])),
    ...sourceAccess(needs),
    ...targetAccess(needs),
    ...collections.map(({ ref, verbs }) => ({ ref: placeOf(ref), verbs, why: "a selector" })),
    ...lookups.flatMap((lookup) => workloadAccess(lookup, needs)),
  ];
}

function sourceAccess({ references: { parsedSources, sources }, connections, account }: Needs) {
  const toStores = parsedSources.flatMap(({ store }) => {
    const state = store?.connection && connections.get(store.connection.ref);
    return (store?.access?.(account, state) ?? []).map((each) => ({ ...each, why: `login to ${store?.product}` }));
  });
  const read = [...sources].flatMap(([name, source]): RequiredPermission[] => {
    if (source instanceof Problem) return [];
    const why = `source ${name}`;
    if (source.listed) return [{ ref: placeOf(source.listed), verbs: STREAM_VERBS, why }];
    const ref = source.watched;
    return ref === undefined ? [] : [{ ref, verbs: READ_VERBS, why }];
  });
  return [...read, ...toStores];
}

/** A target that selects objects by labels or patterns needs all objects of the kind there. */
function targetAccess({ binding, objects }: Needs): RequiredPermission[] {
  return objects.flatMap(({ target, ref }): RequiredPermission[] => {
    if (ref instanceof Problem) return [];
    const why = `target ${target.kind}`;
    if (target.name === undefined) return [{ ref: placeOf(ref), verbs: WRITE_VERBS, why: `${why} by selector` }];
    const verbs = verbsFor(target.create !== undefined, onReleaseOf(binding, target), recreates(target));
    return [{ ref, verbs, why: `${why} ${target.name}` }];
  });
}

function workloadAccess({ resource, namespace, find }: WorkloadLookup, { binding }: Needs) {
  const there = (resource: ObjectRef["resource"], why: string, ...verbs: string[]): RequiredPermission => {
    return { ref: { resource, namespace }, verbs, why: `rollout.${why}` };
  };
  const { runCronJobs, replacePods, requireDisruptionBudget } = binding.spec.rollout ?? {};
  const isNamed = find.by === "name" && !isJob(resource);
  const verbs = isJob(resource) ? JOB_VERBS : WRITE_VERBS;
  const ref = { resource, namespace, ...(isNamed && { name: find.name }) };
  return [
    { ref, verbs, why: `restart of ${resource.kind}${isNamed ? ` ${find.name}` : "s"}` },
    ...(runCronJobs && isCronJob(resource) ? [there(JOBS, "runCronJobs", "create")] : []),
    ...(replacePods ? [there(PODS, "replacePods", "list"), there(EVICTIONS, "replacePods", "create")] : []),
    ...(requireDisruptionBudget ? [there(DISRUPTION_BUDGETS, "requireDisruptionBudget", "list")] : []),
  ];
}

const placeOf = ({ resource, namespace }: Permission["ref"]) => ({
  resource,
  ...(namespace !== undefined && { namespace }),
});
