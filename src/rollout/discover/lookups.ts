/** Resolves the rollout of a binding to lookups of workloads, step by step. */
import { isAfterRollout, type SecretBinding } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { digestId, type Group, groupsOf, type RolloutSpec } from "../../api/rollout.ts";
import { assertWithin } from "../../api/scope.ts";
import { assertWritableKind, assertWritablePath } from "../../api/writable.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { FieldPath, keySegment } from "../../apimachinery/field-path.ts";
import { parseApiVersion, type Resource } from "../../apimachinery/objects.ts";
import { attemptSync, Problem, type Reason } from "../../apimachinery/problem.ts";
import { JOBS } from "../../apimachinery/resources.ts";
import { similarName } from "../../apimachinery/suggest-names.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { wideIn } from "../../kube/identity.ts";
import { ALL_KEYS } from "../../sources/uses.ts";
import type { References } from "../../targets/references.ts";
import type { SelectedObject } from "../../targets/select.ts";
import { choiceOf, type SelectionCriteria } from "../../targets/selection.ts";
import { isCronJob, MANUAL_JOB_PATHS } from "../../workloads/manual-job.ts";
import { PLACES, type PodPlace, type PodReference } from "../../workloads/pod-references.ts";
import { WORKLOAD_KINDS, type WorkloadPaths } from "../../workloads/workload.ts";
import type { NamespaceProblem, Step } from "../types.ts";
import { type UsesOfKeys, writtenUses } from "./written-values.ts";

/** Workloads of one kind in one namespace. */
export interface WorkloadLookup {
  /** The position of its step. */
  step: number;
  /**
   * Its namespace is one of many, or is named and not the binding's own. Such lookups share a cluster-wide watch, if the account
   * may have one.
   */
  wide?: true | "named";
  resource: Resource;
  paths: WorkloadPaths;
  /** The field that a restart changes. */
  stampAt: FieldPath;
  namespace: string;
  find: Reference | { by: "owner" } | { by: "name"; name: string } | ({ by: "choice" } & SelectionCriteria);
}

/** Workloads whose pods refer to an object. */
interface Reference extends Pick<PodReference, "kind" | "name"> {
  by: "reference";
  /** The kinds of references that count; undefined for all. */
  ways?: readonly PodPlace[];
  /** The values behind the keys that pods name. */
  uses: UsesOfKeys;
  /** The keys that a SecretProviderClass brings to pods; undefined if the keys that pods name count. */
  keys?: readonly string[];
}

export interface RolloutReferences {
  steps: Step[];
  lookups: WorkloadLookup[];
  /** Namespaces in which workloads can't be known or may not be restarted. Nothing restarts there. */
  closed: readonly NamespaceProblem[];
  /** Why no workloads can be known. Nothing restarts then. */
  problem: Problem | undefined;
}

type WorkloadTarget = NonNullable<Group["targets"]>[number];
type Place = Omit<WorkloadLookup, "step">;

interface Services {
  discovery: Pick<Discovery, "byKind" | "kindNotFound">;
  installation: Pick<Installation, "scope" | "refusal">;
}

/** The parts of a binding that its rollout depends on: the sources, and the objects that are targets. */
export interface RolloutSubject extends Pick<References, "parsedSources" | "sources"> {
  objects: readonly SelectedObject[];
}

export async function resolveRollout(
  binding: SecretBinding,
  rollout: RolloutSpec,
  subject: RolloutSubject,
  deps: Services,
): Promise<RolloutReferences> {
  const groups = groupsOf(rollout);
  const stepOf = ({ name, timeout, onFailure }: Group): Step => {
    return { name, onFailure, timeoutMs: parseDuration(timeout ?? rollout.timeout, "spec.rollout.timeout") };
  };
  const steps = attemptSync(() => groups.map(stepOf));
  if (steps instanceof Problem) return { steps: [], lookups: [], closed: [], problem: steps };
  const { annotation } = rollout.stamp;
  const found = await Promise.all(groups.map((each) => attempt(placesOf(binding, annotation, each, subject, deps))));
  const lookups: WorkloadLookup[] = [];
  const closed: NamespaceProblem[] = [];
  for (const [step, places] of found.entries())
    for (const place of places instanceof Problem ? [] : places) {
      const problem = refusedAt(place, rollout, deps.installation);
      if (problem === undefined) lookups.push({ step, ...place });
      else closed.push({ namespace: place.namespace, step, problem });
    }
  return { steps, lookups, closed, problem: found.find((each) => each instanceof Problem) };
}

/** Why the workloads of a place may not be restarted. */
function refusedAt(
  { resource, stampAt, namespace }: Place,
  { runCronJobs }: RolloutSpec,
  installation: Services["installation"],
) {
  const outside = attemptSync(() => assertWithin(installation.scope, { resource, namespace, name: "" }));
  if (outside instanceof Problem) return outside;
  // A restart writes this field alone.
  const refusal = installation.refusal(resource, namespace, { paths: [stampAt] });
  if (refusal !== undefined || !runCronJobs || !isCronJob(resource)) return refusal;
  return installation.refusal(JOBS, namespace, { paths: MANUAL_JOB_PATHS });
}

/** Throws Problem. */
async function placesOf(
  binding: SecretBinding,
  annotation: string,
  { consumersOf = [], consumersOfTargets, consumersBy, kinds, ownedByTargets, targets = [] }: Group,
  subject: RolloutSubject,
  { discovery }: Services,
): Promise<Place[]> {
  const own = binding.metadata.namespace as string;
  const known =
    consumersOf.length > 0 || consumersOfTargets || ownedByTargets
      ? await Promise.all(kinds.map((kind) => kindOf({ kind }, annotation, discovery)))
      : [];
  const ways = consumersBy?.map((way) => PLACES[way]);
  const consumed = [
    ...consumersOf.map((source) => sourceConsumed(source, subject)),
    ...(consumersOfTargets ? targetsConsumed(subject) : []),
  ];
  const places = consumed.flatMap(({ namespace, wide, ...what }) =>
    known.map(
      (each): Place => ({
        ...each,
        namespace,
        ...(wide ? { wide } : wideIn(namespace, own)),
        find: { by: "reference", ...what, ...(ways && { ways }) },
      }),
    ),
  );
  // Objects own dependents in their own namespace only.
  if (ownedByTargets) places.push(...known.map((each): Place => ({ ...each, namespace: own, find: { by: "owner" } })));
  for (const target of targets) {
    const find: Place["find"] =
      target.selector === undefined
        ? { by: "name", name: target.name as string }
        : { by: "choice", ...choiceOf(target.selector) };
    const namespace = target.namespace ?? own;
    places.push({ ...(await kindOf(target, annotation, discovery)), namespace, ...wideIn(namespace, own), find });
  }
  return places;
}

/** A Secret or ConfigMap whose consumers restart. */
interface Consumed extends Pick<Reference, "kind" | "name" | "uses"> {
  namespace: string;
  wide?: true;
}

/** The Secrets and ConfigMaps that the binding writes before the rollout. */
function targetsConsumed({ parsedSources, objects }: RolloutSubject): Consumed[] {
  const known = new Map<SelectedObject["target"], UsesOfKeys>();
  return objects.flatMap(({ target, ref }): Consumed[] => {
    if (ref instanceof Problem || isAfterRollout(target)) return [];
    const { resource, namespace, name } = ref;
    const { group, kind } = resource;
    if (namespace === undefined || group !== "" || !(kind === "Secret" || kind === "ConfigMap")) return [];
    const uses = known.get(target) ?? writtenUses(parsedSources, target);
    known.set(target, uses);
    return [{ kind, name, namespace, uses, ...(target.namespaceSelector !== undefined && { wide: true }) }];
  });
}

/** Throws Problem. */
function sourceConsumed(name: string, { parsedSources, sources }: RolloutSubject): Consumed {
  const source = parsedSources.find((each) => each.name === name);
  if (source?.data === undefined && source?.providerClass === undefined) {
    const what =
      source === undefined ? "is not a source of this binding" : "is not a Secret, ConfigMap or SecretProviderClass";
    const names = parsedSources.filter(({ data, providerClass }) => data ?? providerClass).map((each) => each.name);
    throw new Problem(
      "InvalidBinding",
      `spec.rollout.consumersOf: ${name} ${what}; use one of these: ${names.join(", ")}`,
    );
  }
  const problem = sources.get(name);
  if (problem instanceof Problem) throw problem;
  // Pods see all keys of a class that they mount.
  if (source.providerClass !== undefined)
    return { kind: "SecretProviderClass", ...source.providerClass, uses: () => [digestId(name, ALL_KEYS)] };
  const uses: UsesOfKeys = (keys = [ALL_KEYS]) => keys.map((key) => digestId(name, key));
  const { kind, namespace, name: read } = source.data as NonNullable<typeof source.data>;
  return { kind, namespace, name: read, uses };
}

const mistake = (reason: Reason, what: string) => new Problem(reason, `spec.rollout.targets: ${what}`);

/** Throws Problem. */
async function kindOf(
  { apiVersion, kind, template, restartPath }: Pick<WorkloadTarget, "kind"> & Partial<WorkloadTarget>,
  annotation: string,
  discovery: Services["discovery"],
): Promise<Pick<Place, "resource" | "paths" | "stampAt">> {
  const known = Object.hasOwn(WORKLOAD_KINDS, kind) ? WORKLOAD_KINDS[kind as keyof typeof WORKLOAD_KINDS] : undefined;
  const served = apiVersion ?? known?.apiVersion;
  const pods = template ?? known?.template;
  const path = restartPath ?? pods;
  if (served === undefined || path === undefined) {
    const meant = apiVersion === undefined ? similarName(kind, Object.keys(WORKLOAD_KINDS)) : undefined;
    if (meant !== undefined) throw mistake("InvalidBinding", `there is no kind ${kind}; did you mean ${meant}?`);
    const lacks = served === undefined ? "apiVersion" : "template, the path of its pod template, or restartPath";
    throw mistake("InvalidBinding", `Inlay does not know the kind ${kind}; set ${lacks}`);
  }
  const { group } = parseApiVersion(served);
  const parsed = FieldPath.parse(path);
  assertWritableKind(group, kind);
  // The references of a workload are found in the whole object. Objects that contain values are not watched as a whole.
  if (group === "" && (kind === "Secret" || kind === "ConfigMap"))
    throw mistake("ForbiddenKind", `a ${kind} has no pods to restart; name a workload`);
  assertWritablePath(parsed);
  if (!parsed.isPlain) throw mistake("InvalidPath", `${path} goes through a list; name a field that is not in a list`);
  const resource = await discovery.byKind(served, kind);
  if (resource === undefined) throw mistake("KindNotFound", (await discovery.kindNotFound(served, kind)).message);
  if (!resource.namespaced)
    throw mistake("InvalidBinding", `${kind} is cluster-scoped; name a workload that is in a namespace`);
  const stamped = ["metadata", "annotations", annotation].map(keySegment);
  const paths = { ...(pods !== undefined && { template: pods }), ...(restartPath !== undefined && { restart: path }) };
  return { resource, paths, stampAt: restartPath === undefined ? parsed.with(...stamped) : parsed };
}
