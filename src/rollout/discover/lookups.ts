/** What a binding says of its rollout comes in; where to look for the workloads, step by step, goes out, or why it can't be. */

import { type SecretBinding, sourceName } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { type Group, groupsOf, type RolloutSpec, type Step } from "../../api/rollout.ts";
import { assertWithin } from "../../api/scope.ts";
import { assertWritableKind, assertWritablePath } from "../../api/writable.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { FieldPath } from "../../apimachinery/field-path.ts";
import { type ObjectRef, parseApiVersion, type Resource } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, kindNotFound } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { type Choice, choiceOf } from "../../targets/selection.ts";
import type { PodReference } from "../../workloads/pod-references.ts";
import { WORKLOAD_KINDS, type WorkloadPaths } from "../../workloads/workload.ts";

/** Workloads of one kind in one namespace. */
export interface Lookup {
  /** The place of its step. */
  step: number;
  resource: Resource;
  paths: WorkloadPaths;
  /** The field that a restart changes. */
  stampAt: FieldPath;
  namespace: string;
  find: Reference | { by: "owner" } | { by: "name"; name: string } | ({ by: "choice" } & Choice);
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
  lookups: Lookup[];
  /** Why some of the workloads can't be known: nothing is restarted then. */
  problem: Problem | undefined;
}

type WorkloadTarget = NonNullable<Group["targets"]>[number];
type Place = Omit<Lookup, "step">;

export async function resolveRollout(
  binding: SecretBinding,
  rollout: RolloutSpec,
  sources: ReadonlyMap<string, ObjectRef | Problem>,
  discovery: Discovery,
  installation: Installation,
): Promise<RolloutReferences> {
  const groups = groupsOf(rollout);
  const steps = await attempt(
    Promise.resolve().then(() =>
      groups.map(
        ({ name, timeout, onFailure }): Step => ({
          name,
          onFailure,
          timeoutMs: parseDuration(timeout ?? rollout.timeout, "spec.rollout.timeout"),
        }),
      ),
    ),
  );
  if (steps instanceof Problem) return { steps: [], lookups: [], problem: steps };
  const found = await Promise.all(
    groups.map((group) =>
      attempt(placesOf(binding, rollout.stamp.annotation, group, sources, discovery, installation)),
    ),
  );
  const lookups = found.flatMap((places, step) =>
    places instanceof Problem ? [] : places.map((place): Lookup => ({ step, ...place })),
  );
  return { steps, lookups, problem: found.find((each) => each instanceof Problem) };
}

/** Throws Problem. */
async function placesOf(
  binding: SecretBinding,
  annotation: string,
  { consumersOf = [], kinds, ownedByTargets, targets = [] }: Group,
  sources: ReadonlyMap<string, ObjectRef | Problem>,
  discovery: Discovery,
  installation: Installation,
): Promise<Place[]> {
  const own = binding.metadata.namespace as string;
  const looksByKind = consumersOf.length > 0 || ownedByTargets === true;
  const known = looksByKind ? await Promise.all(kinds.map((kind) => kindOf({ kind }, annotation, discovery))) : [];
  const places = consumersOf.flatMap((source) => {
    const { kind, name, namespace } = consumed(binding, source, sources);
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
function consumed(binding: SecretBinding, name: string, sources: ReadonlyMap<string, ObjectRef | Problem>) {
  const at = binding.spec.sources.findIndex((each) => sourceName(each) === name);
  const source = binding.spec.sources[at];
  const ref = sources.get(name);
  if (source === undefined || source.object !== undefined || ref === undefined) {
    const what = source === undefined ? "is no source of this binding" : "is no Secret and no ConfigMap";
    const names = binding.spec.sources.filter((each) => !each.object).map(sourceName);
    throw new Problem("InvalidBinding", `spec.rollout.consumersOf: ${name} ${what}; write one of ${names.join(", ")}`);
  }
  if (ref instanceof Problem) throw ref;
  const kind = source.secret ? ("Secret" as const) : ("ConfigMap" as const);
  return { kind, name: ref.name, namespace: ref.namespace as string };
}

/** Throws Problem. */
async function kindOf(
  { apiVersion, kind, template, restartPath }: Pick<WorkloadTarget, "kind"> & Partial<WorkloadTarget>,
  annotation: string,
  discovery: Discovery,
): Promise<Pick<Place, "resource" | "paths" | "stampAt">> {
  const known = Object.hasOwn(WORKLOAD_KINDS, kind) ? WORKLOAD_KINDS[kind as keyof typeof WORKLOAD_KINDS] : undefined;
  const served = apiVersion ?? known?.apiVersion;
  const pods = template ?? known?.template;
  const path = restartPath ?? pods;
  if (served === undefined || path === undefined) {
    const lacks = served === undefined ? "apiVersion" : "template, the path of its pod template, or restartPath";
    throw new Problem(
      "InvalidBinding",
      `spec.rollout.targets: the kind ${kind} is not known by itself; write ${lacks}`,
    );
  }
  const { group } = parseApiVersion(served);
  const parsed = FieldPath.parse(path);
  assertWritableKind(group, kind);
  // What a workload's pods read is found in the whole of it, which is not watched of what holds values.
  if (group === "" && (kind === "Secret" || kind === "ConfigMap"))
    throw new Problem("ForbiddenKind", `spec.rollout.targets: a ${kind} has no pods that could restart`);
  assertWritablePath(parsed);
  if (!parsed.isPlain)
    throw new Problem(
      "InvalidPath",
      `spec.rollout.targets: ${path} goes through a list; no stamp can be written there`,
    );
  const resource = await discovery.byKind(served, kind);
  if (resource === undefined) throw kindNotFound(served, kind);
  if (!resource.namespaced)
    throw new Problem(
      "InvalidBinding",
      `spec.rollout.targets: ${kind} belongs to the cluster; a workload stands in a namespace`,
    );
  const stamped = ["metadata", "annotations", annotation].map((key) => ({ kind: "key", key }) as const);
  const paths = { ...(pods !== undefined && { template: pods }), ...(restartPath !== undefined && { restart: path }) };
  return { resource, paths, stampAt: restartPath === undefined ? parsed.with(...stamped) : parsed };
}
