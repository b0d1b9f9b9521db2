/** Resolves the rollout of a binding to lookups of workloads, step by step. */
import { isAfterRollout, type SecretBinding } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { digestId, type Group, groupsOf, type RolloutSpec } from "../../api/rollout.ts";
import { assertWithin } from "../../api/scope.ts";
import { assertWritableKind, assertWritablePath } from "../../api/writable.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { FieldPath, keySegment } from "../../apimachinery/field-path.ts";
import { getOrInsert } from "../../apimachinery/maps.ts";
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
import { isCronJob, MANUAL_JOB_PATHS } from "../../workloads/jobs.ts";
import { PLACES, type PodPlace, type PodReference } from "../../workloads/pod-references.ts";
import { knownWorkload, WORKLOAD_KINDS, type WorkloadPaths } from "../../workloads/workload.ts";
import type { RunSteps } from "../../workqueue/cpu-scheduler.ts";
import type { NamespaceProblem, Step } from "../types.ts";
import { type UsesOfKeys, usesOfFields, writtenUses } from "./written-values.ts";

/**
 * The most lookups of one binding. Restarting the consumers of as many objects as a binding may select takes 15,000 with the default kinds.
 */
export const MAX_LOOKUPS = 20_000;
/** How often the walk over them may be interrupted. */
const STEP = 256;

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
  /** Whether the SecretProviderClass brings one of the objects to pods is not known, because it lists too many Secrets. */
  isTooLarge?: true;
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

/** The kinds of a group: those of its consumers and dependents, and of each of its targets. */
interface GroupKinds {
  known: readonly KindPlace[];
  targets: readonly KindPlace[];
}

type KindPlace = Pick<Place, "resource" | "paths" | "stampAt">;

/** The parts of a binding that its rollout depends on: the sources, and the objects that are targets. */
interface RolloutSubject extends Pick<References, "parsedSources" | "sources"> {
  objects: readonly SelectedObject[];
}

export async function resolveRollout(
  binding: SecretBinding,
  rollout: RolloutSpec,
  subject: RolloutSubject,
  { discovery, installation }: Services,
  steps: RunSteps,
): Promise<RolloutReferences> {
  const groups = groupsOf(rollout);
  const stepOf = ({ name, timeout, onFailure }: Group): Step => {
    return { name, onFailure, timeoutMs: parseDuration(timeout ?? rollout.timeout, "spec.rollout.timeout") };
  };
  const parsed = attemptSync(() => groups.map(stepOf));
  if (parsed instanceof Problem) return { steps: [], lookups: [], closed: [], problem: parsed };
  const { annotation } = rollout.stamp;
  const kinds = await Promise.all(groups.map((each) => attempt(kindsOf(each, annotation, discovery))));
  const refused = (place: Place) => refusedAt(place, rollout, installation);
  return { steps: parsed, ...(await steps(lookupsOf(binding, groups, kinds, subject, refused))) };
}

/** Yields where it may be interrupted. */
function* lookupsOf(
  binding: SecretBinding,
  groups: readonly Group[],
  kinds: readonly (GroupKinds | Problem)[],
  subject: RolloutSubject,
  refused: (place: Place) => Problem | undefined,
): Generator<void, Omit<RolloutReferences, "steps">> {
  const consumed = new ConsumedObjects(binding, subject);
  /** By object, the kinds and ways that an earlier step looks for. Its workloads belong to that step. */
  const taken = new Map<Consumed, Set<string>>();
  const isTaken = (of: Consumed, { resource, find }: Place) => {
    const id = `${resource.kind}|${find.by === "reference" ? find.ways : ""}`;
    const known = getOrInsert(taken, of, () => new Set());
    return known.has(id) || !known.add(id);
  };
  const lookups: WorkloadLookup[] = [];
  const closed: NamespaceProblem[] = [];
  let first: Problem | undefined;
  let walked = 0;
  for (const [step, group] of groups.entries()) {
    const ofGroup = kinds[step] as GroupKinds | Problem;
    const objects = ofGroup instanceof Problem ? ofGroup : yield* consumed.of(group);
    if (objects instanceof Problem) {
      first ??= objects;
      continue;
    }
    for (const { of, ...place } of placesOf(binding, group, ofGroup as GroupKinds, objects)) {
      if (++walked % STEP === 0) yield;
      if (of !== undefined && isTaken(of, place)) continue;
      const problem = refused(place);
      if (problem === undefined) lookups.push({ step, ...place });
      else closed.push({ namespace: place.namespace, step, problem });
      if (lookups.length + closed.length > MAX_LOOKUPS) return { lookups: [], closed: [], problem: tooManyLookups() };
    }
  }
  return { lookups, closed, problem: first };
}

export function tooManyLookups(): Problem {
  const most = MAX_LOOKUPS.toLocaleString("en");
  const what = `spec.rollout looks for the consumers of too many objects: each kind for each object is one lookup, and a binding has at most ${most}`;
  const instead = "list fewer kinds, give all steps the same consumersBy, or split the binding";
  return new Problem("InvalidBinding", `${what}; ${instead}`, "OnChange");
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
async function kindsOf(
  { consumersOf = [], consumersOfTargets, kinds, ownedByTargets, targets = [] }: Group,
  annotation: string,
  discovery: Services["discovery"],
): Promise<GroupKinds> {
  const all = consumersOf.length > 0 || consumersOfTargets || ownedByTargets ? kinds : [];
  const known = await Promise.all(all.map((kind) => kindOf({ kind }, annotation, discovery)));
  const ofTargets: KindPlace[] = [];
  for (const target of targets) ofTargets.push(await kindOf(target, annotation, discovery));
  return { known, targets: ofTargets };
}

/** `of` is the object whose consumers are looked for. */
function* placesOf(
  binding: SecretBinding,
  { consumersBy, ownedByTargets, targets = [] }: Group,
  kinds: GroupKinds,
  consumed: readonly Consumed[],
): Generator<Place & { of?: Consumed }> {
  const own = binding.metadata.namespace as string;
  const ways = consumersBy && [...new Set(consumersBy.map((way) => PLACES[way]))].sort();
  for (const of of consumed) {
    const { namespace, wide, ...what } = of;
    const place = { namespace, ...(wide ? { wide } : wideIn(namespace, own)) };
    for (const each of kinds.known)
      yield { ...each, ...place, find: { by: "reference", ...what, ...(ways && { ways }) }, of };
  }
  // Objects own dependents in their own namespace only.
  if (ownedByTargets) for (const each of kinds.known) yield { ...each, namespace: own, find: { by: "owner" } };
  for (const [at, target] of targets.entries()) {
    const find: Place["find"] =
      target.selector === undefined
        ? { by: "name", name: target.name as string }
        : { by: "choice", ...choiceOf(target.selector) };
    const namespace = target.namespace ?? own;
    yield { ...(kinds.targets[at] as KindPlace), namespace, ...wideIn(namespace, own), find };
  }
}

/** A Secret or ConfigMap whose consumers restart. */
interface Consumed extends Pick<Reference, "kind" | "name" | "uses"> {
  namespace: string;
  wide?: true;
}

/** The objects whose consumers restart: the same object for all steps that name it. */
class ConsumedObjects {
  readonly #binding: SecretBinding;
  readonly #subject: RolloutSubject;
  readonly #sources = new Map<string, Consumed>();
  #targets: readonly Consumed[] | Problem | undefined;

  constructor(binding: SecretBinding, subject: RolloutSubject) {
    this.#binding = binding;
    this.#subject = subject;
  }

  /** Yields where it may be interrupted. */
  *of({ consumersOf = [], consumersOfTargets }: Group): Generator<void, readonly Consumed[] | Problem> {
    const source = (name: string) => getOrInsert(this.#sources, name, () => sourceConsumed(name, this.#subject));
    const sources = attemptSync(() => consumersOf.map(source));
    if (sources instanceof Problem || !consumersOfTargets) return sources;
    this.#targets ??= yield* targetsConsumed(this.#binding, this.#subject);
    return this.#targets instanceof Problem ? this.#targets : [...sources, ...this.#targets];
  }
}

/** The Secrets and ConfigMaps that the binding writes before the rollout. */
function* targetsConsumed(
  binding: SecretBinding,
  { objects }: RolloutSubject,
): Generator<void, readonly Consumed[] | Problem> {
  const ofFields = yield* usesOfFields(binding);
  if (ofFields instanceof Problem) return ofFields;
  const known = new Map<SelectedObject["target"], UsesOfKeys>();
  const consumed: Consumed[] = [];
  for (const { target, ref } of objects) {
    if (ref instanceof Problem || isAfterRollout(target)) continue;
    const { resource, namespace, name } = ref;
    const { group, kind } = resource;
    if (namespace === undefined || group !== "" || !(kind === "Secret" || kind === "ConfigMap")) continue;
    let uses = known.get(target);
    if (uses === undefined) {
      yield;
      uses = writtenUses(ofFields, target);
      known.set(target, uses);
    }
    consumed.push({ kind, name, namespace, uses, ...(target.namespaceSelector !== undefined && { wide: true }) });
  }
  return consumed;
}

/** Throws Problem. */
function sourceConsumed(name: string, { parsedSources, sources }: RolloutSubject): Consumed {
  const source = parsedSources.find((each) => each.name === name);
  if (source?.data === undefined && source?.providerClass === undefined) {
    const what =
      source === undefined ? "is not a source of this binding" : "is not a Secret, ConfigMap or SecretProviderClass";
    const names = parsedSources.filter(({ data, providerClass }) => data ?? providerClass).map((each) => each.name);
    throw new Problem("InvalidBinding", {
      at: ["spec.rollout.consumersOf"],
      what: `${name} ${what}; use one of these: ${names.join(", ")}`,
    });
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

const mistake = (reason: Reason, what: string) => new Problem(reason, { at: ["spec.rollout.targets"], what });

/** Throws Problem. */
async function kindOf(
  { apiVersion, kind, template, restartPath }: Pick<WorkloadTarget, "kind"> & Partial<WorkloadTarget>,
  annotation: string,
  discovery: Services["discovery"],
): Promise<KindPlace> {
  const known = knownWorkload(kind);
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
  if (resource === undefined) throw (await discovery.kindNotFound(served, kind)).within("spec.rollout.targets");
  if (!resource.namespaced)
    throw mistake("InvalidBinding", `${kind} is cluster-scoped; name a workload that is in a namespace`);
  const stamped = ["metadata", "annotations", annotation].map(keySegment);
  const paths = { ...(pods !== undefined && { template: pods }), ...(restartPath !== undefined && { restart: path }) };
  return { resource, paths, stampAt: restartPath === undefined ? parsed.with(...stamped) : parsed };
}
