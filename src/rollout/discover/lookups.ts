/** What a binding says of its rollout comes in; where to look for the workloads, step by step, goes out, or why it can't be. */
import type { SecretBinding } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { type Group, groupsOf, type RolloutSpec } from "../../api/rollout.ts";
import { assertWithin } from "../../api/scope.ts";
import { assertWritableKind, assertWritablePath } from "../../api/writable.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { parseApiVersion, type Resource } from "../../apimachinery/objects.ts";
import { attemptSync, Problem, type Reason } from "../../apimachinery/problem.ts";
import { attempt, kindNotFound } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import type { References } from "../../targets/references.ts";
import { choiceOf, type SelectionCriteria } from "../../targets/selection.ts";
import type { PodReference } from "../../workloads/pod-references.ts";
import { WORKLOAD_KINDS, type WorkloadPaths } from "../../workloads/workload.ts";
import type { Step } from "../types.ts";

/** Workloads of one kind in one namespace. */
export interface WorkloadLookup {
  /** The place of its step. */
  step: number;
  resource: Resource;
  paths: WorkloadPaths;
  /** The field that a restart changes. */
  stampAt: FieldPath;
  namespace: string;
  find: Reference | { by: "owner" } | { by: "name"; name: string } | ({ by: "choice" } & SelectionCriteria);
}

/** Workloads whose pods refer to something, for the sake of a source. */
interface Reference extends Pick<PodReference, "kind" | "name"> {
  by: "reference";
  source: string;
  /** Those of the source that come by it, where that is another object; else those that pods name. */
  keys?: readonly string[];
}

export interface RolloutReferences {
  steps: Step[];
  lookups: WorkloadLookup[];
  /** Why some of the workloads can't be known: nothing is restarted then. */
  problem: Problem | undefined;
}

type WorkloadTarget = NonNullable<Group["targets"]>[number];
type Place = Omit<WorkloadLookup, "step">;

interface Services {
  discovery: Pick<Discovery, "byKind">;
  installation: Pick<Installation, "scope" | "refusal">;
}

export async function resolveRollout(
  binding: SecretBinding,
  rollout: RolloutSpec,
  sources: Pick<References, "parsedSources" | "sources">,
  deps: Services,
): Promise<RolloutReferences> {
  const groups = groupsOf(rollout);
  const stepOf = ({ name, timeout, onFailure }: Group): Step => {
    return { name, onFailure, timeoutMs: parseDuration(timeout ?? rollout.timeout, "spec.rollout.timeout") };
  };
  const steps = attemptSync(() => groups.map(stepOf));
  if (steps instanceof Problem) return { steps: [], lookups: [], problem: steps };
  const { annotation } = rollout.stamp;
  const found = await Promise.all(groups.map((each) => attempt(placesOf(binding, annotation, each, sources, deps))));
  const lookups = found.flatMap((places, step) =>
    places instanceof Problem ? [] : places.map((place): WorkloadLookup => ({ step, ...place })),
  );
  return { steps, lookups, problem: found.find((each) => each instanceof Problem) };
}

/** Throws Problem. */
async function placesOf(
  binding: SecretBinding,
  annotation: string,
  { consumersOf = [], kinds, ownedByTargets, targets = [] }: Group,
  sources: Pick<References, "parsedSources" | "sources">,
  { discovery, installation }: Services,
): Promise<Place[]> {
  const own = binding.metadata.namespace as string;
  const known =
    consumersOf.length > 0 || ownedByTargets
      ? await Promise.all(kinds.map((kind) => kindOf({ kind }, annotation, discovery)))
      : [];
  const places = consumersOf.flatMap((source) => {
    const { kind, name, namespace } = consumed(source, sources);
    return known.map((each): Place => ({ ...each, namespace, find: { by: "reference", source, kind, name } }));
  });
  // Nobody owns what stands in another namespace.
  if (ownedByTargets) places.push(...known.map((each): Place => ({ ...each, namespace: own, find: { by: "owner" } })));
  for (const target of targets) {
    const find: Place["find"] =
      target.selector === undefined
        ? { by: "name", name: target.name as string }
        : { by: "choice", ...choiceOf(target.selector) };
    places.push({ ...(await kindOf(target, annotation, discovery)), namespace: own, find });
  }
  for (const { resource, stampAt, namespace } of places) {
    assertWithin(installation.scope, { resource, namespace, name: "" });
    // All that is written of them.
    const refused = installation.refusal(resource, namespace, { paths: [stampAt] });
    if (refused !== undefined) throw refused;
  }
  return places;
}

/** Throws Problem. */
function consumed(name: string, { parsedSources, sources }: Pick<References, "parsedSources" | "sources">) {
  const source = parsedSources.find((each) => each.name === name);
  if (source?.data === undefined) {
    const what = source === undefined ? "is no source of this binding" : "is no Secret and no ConfigMap";
    const names = parsedSources.filter(({ data }) => data).map((each) => each.name);
    throw new Problem("InvalidBinding", `spec.rollout.consumersOf: ${name} ${what}; write one of ${names.join(", ")}`);
  }
  const problem = sources.get(name);
  if (problem instanceof Problem) throw problem;
  return source.data;
}

const mistake = (reason: Reason, what: string) => new Problem(reason, `spec.rollout.targets: ${what}`);

/** Throws Problem. */
async function kindOf(
  { apiVersion, kind, template, restartPath }: Pick<WorkloadTarget, "kind"> & Partial<WorkloadTarget>,
  annotation: string,
  discovery: Pick<Discovery, "byKind">,
): Promise<Pick<Place, "resource" | "paths" | "stampAt">> {
  const known = Object.hasOwn(WORKLOAD_KINDS, kind) ? WORKLOAD_KINDS[kind as keyof typeof WORKLOAD_KINDS] : undefined;
  const served = apiVersion ?? known?.apiVersion;
  const pods = template ?? known?.template;
  const path = restartPath ?? pods;
  if (served === undefined || path === undefined) {
    const lacks = served === undefined ? "apiVersion" : "template, the path of its pod template, or restartPath";
    throw mistake("InvalidBinding", `the kind ${kind} is not known by itself; write ${lacks}`);
  }
  const { group } = parseApiVersion(served);
  const parsed = FieldPath.parse(path);
  assertWritableKind(group, kind);
  // What a workload's pods read is found in the whole of it, which is not watched of what holds values.
  if (group === "" && (kind === "Secret" || kind === "ConfigMap"))
    throw mistake("ForbiddenKind", `a ${kind} has no pods that could restart`);
  assertWritablePath(parsed);
  if (!parsed.isPlain) throw mistake("InvalidPath", `${path} goes through a list; no stamp can be written there`);
  const resource = await discovery.byKind(served, kind);
  if (resource === undefined) throw kindNotFound(served, kind);
  if (!resource.namespaced)
    throw mistake("InvalidBinding", `${kind} belongs to the cluster; a workload stands in a namespace`);
  const stamped = ["metadata", "annotations", annotation].map((key) => ({ kind: "key", key }) as const);
  const paths = { ...(pods !== undefined && { template: pods }), ...(restartPath !== undefined && { restart: path }) };
  return { resource, paths, stampAt: restartPath === undefined ? parsed.with(...stamped) : parsed };
}
