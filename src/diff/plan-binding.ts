/**
 * Plans one binding as the controller would reconcile it, with its code, but with dry runs of all writes. Keeps nothing and changes nothing.
 */
import { isAfterRollout, type SecretBinding, type TargetStatus } from "../api/binding.ts";
import { apiVersionOf, type KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import type { Watcher } from "../cache/watcher.ts";
import { SELF } from "../explain/reading.ts";
import type { Client } from "../kube/client.ts";
import { markOf } from "../kube/identity.ts";
import { LosslessClient } from "../kube/lossless-client.ts";
import { compile, listedNow, readValues, type World } from "../pipeline/compile.ts";
import type { ProducedBy } from "../sources/grant-rules.ts";
import { holdsOtherValues } from "../targets/compare.ts";
import { ContentionBudget } from "../targets/contention-budget.ts";
import type { Dependencies, WriteContext } from "../targets/dependencies.ts";
import { PlanCache } from "../targets/plan-cache.ts";
import { deferToCompetingBinding } from "../targets/precedence.ts";
import { type TargetWithRecord, targetsOf } from "../targets/records.ts";
import { explainProtection } from "../targets/rejection.ts";
import { Rejections } from "../targets/rejections.ts";
import { releaseModeOf, releasePaths, releaseRemovedTargets } from "../targets/release.ts";
import { prepareTarget, syncTarget } from "../targets/sync.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { changeOf } from "./changes.ts";
import { reasonForUser, type TargetChange } from "./difference.ts";
import { DryRunRecorder } from "./dry-run-recorder.ts";
import type { ActingAs, Readers } from "./readers.ts";
import type { DecideRestarts, RestartPlanner } from "./restarts.ts";

/** What the bindings of one diff share. */
export interface DiffWorld {
  readonly readers: Readers;
  /** All but those of one target. Nothing is recorded in the cluster. */
  readonly services: Omit<Dependencies, "client" | "contention" | "rejections">;
  /** Lists of the cluster, with the objects in the files. */
  readonly watcher: Pick<Watcher, "list">;
  /** Reads sources and grants, of the files or the cluster. */
  readonly sourceReads: Pick<Client, "get">;
  /** All bindings of the cluster, by key; undefined if the user may not list them. */
  readonly bindings: ReadonlyMap<string, KubeObject> | undefined;
  readonly restarts: RestartPlanner;
  /** What the user should know about the result. */
  readonly notes: Set<string>;
}

const NO_STORE = new Problem(
  "Unavailable",
  "inlay diff contacts no server outside of the cluster, so it does not know this value; inlay render can show it from a file",
);

export async function planBinding(
  world: DiffWorld,
  binding: SecretBinding,
  { identity }: ActingAs,
  producedBy: ProducedBy,
  live: SecretBinding | undefined,
): Promise<{ targets: TargetChange[]; restarts: DecideRestarts | undefined }> {
  const { readers, services, sourceReads } = world;
  const asked = userWorld(world, producedBy);
  const compiled = await compile(binding, { identity, accountUid: "" }, asked);
  const { selection, resolved } = compiled;
  const now = listedNow(compiled, asked);
  await readers.lists.settled(() => {
    for (const each of resolved) if (each.listed) now.listed(each);
  });
  const needs = binding.spec.rollout === undefined ? "targets" : "more";
  const { sources, ...values } = await readValues(compiled, sourceReads, now, needs);
  const planning = new PlanCache(services.cpu, binding.metadata.namespace as string);
  const contextWith = (deps: Dependencies): WriteContext => ({
    ...values,
    deps,
    binding,
    identity,
    // If the account does not exist, the user plans the binding.
    account: undefined,
    seenVersion: () => undefined,
    lastApplied: () => undefined,
    sourceUids: [],
    planning,
  });
  // A binding that does not exist yet has no uid, and so no mark.
  const mark =
    binding.metadata.uid !== "" && identity !== SELF && (await readers.mayMark())
      ? markOf(binding.metadata)
      : undefined;
  const sync = async (each: TargetWithRecord) => {
    const { dry, deps } = dependenciesFor(world, binding, mark);
    const context = contextWith(deps);
    const { target, ref } = each;
    const named =
      ref instanceof Problem
        ? { ...target, namespace: undefined }
        : { ...ref, apiVersion: apiVersionOf(ref.resource), kind: target.kind };
    const deferred = await deferToCompetingBinding(context, each);
    const synced = deferred ?? (await syncTarget(context, await prepareTarget(context, each, sources, undefined)));
    const outcome = explainProtection(context, each.ref, synced, mark !== undefined);
    const change: TargetChange = {
      ...changeOf(named, dry.writes),
      ...(isAfterRollout(each.target) && { when: "AfterRollout" as const }),
      ...(outcome.problem && { problem: reasonForUser(outcome.problem) }),
    };
    return { ...each, namespace: outcome.record.namespace, problem: outcome.problem, change };
  };
  const targets = targetsOf(binding, selection);
  const written = await mapConcurrent([...targets.before, ...targets.after], sync);
  const unresolved = selection.unresolved.map(
    ({ target, problem }): TargetChange => ({ ...changeOf(target, []), problem: reasonForUser(problem) }),
  );
  const removed = (binding.status?.targets ?? []).filter((each) => !targets.recorded.has(each));
  const released = await releasing(world, binding, removed, async (deps, record) => {
    const alone = { ...binding, status: { ...binding.status, targets: [record] } } as SecretBinding;
    const [failed] = await releaseRemovedTargets({ ...contextWith(deps), binding: alone }, new Set());
    return failed?.problem;
  });
  const restarts = await world.restarts.plan({
    compiled,
    live,
    sources,
    sourceMismatch: values.sourceMismatch,
    tried: [...written, ...selection.unresolved].filter(({ target }) => !isAfterRollout(target)),
    differs: async () => holdsOtherValues(contextWith(dependenciesFor(world, binding).deps), targets.after, sources),
  });
  planning.forget();
  return { targets: [...written.map(({ change }) => change), ...unresolved, ...released], restarts };
}

/** The user's cluster, with the objects in the files. */
const userWorld = ({ readers, services, watcher, sourceReads }: DiffWorld, producedBy: ProducedBy): World => ({
  discovery: readers.discovery,
  installation: services.installation,
  client: sourceReads,
  watcher,
  compositionOf: () => producedBy,
  connections: { get: () => ({ phase: "failed" as const, problem: NO_STORE, labels: {} }) },
  polls: { stateOf: () => ({ phase: "failed" as const, problem: NO_STORE }) },
  stepsOf: () => async (work) => finish(work),
  settled: (work) => readers.lists.settled(work),
});

/** What the binding would release if it is deleted. */
export function planDeletion(
  world: DiffWorld,
  binding: SecretBinding,
  { identity, account }: ActingAs,
): Promise<TargetChange[]> {
  return releasing(world, binding, binding.status?.targets ?? [], async (deps, record) => {
    const context = { deps, binding, identity, account };
    return (await releasePaths(context, record, releaseModeOf(binding, record), new Set())).problem;
  });
}

/** Each record alone, so that its writes are known. */
function releasing(
  world: DiffWorld,
  binding: SecretBinding,
  records: readonly TargetStatus[],
  work: (deps: Dependencies, record: TargetStatus) => Promise<Problem | undefined>,
): Promise<TargetChange[]> {
  return mapConcurrent(records, async (record) => {
    const { dry, deps } = dependenciesFor(world, binding);
    const problem = await work(deps, record);
    return { ...changeOf(record, dry.writes), ...(problem && { problem: reasonForUser(problem) }) };
  });
}

/** The services for one target: its dry runs are kept apart. */
function dependenciesFor(
  { readers, services }: DiffWorld,
  binding: SecretBinding,
  mark?: string,
): { dry: DryRunRecorder; deps: Dependencies } {
  const dry = new DryRunRecorder(readers.transport, mark);
  const client = new PlanningClient(dry, readers, binding);
  const deps = { ...services, client, contention: new ContentionBudget(), rejections: new Rejections() };
  return { dry, deps };
}

/** Knows the binding although it may not exist yet, as the controller does when it reconciles it. */
class PlanningClient extends LosslessClient {
  readonly #binding: SecretBinding;

  constructor(dry: DryRunRecorder, { versions }: Readers, binding: SecretBinding) {
    super(dry, { mayWrite: () => true, wrote: () => {} }, versions);
    this.#binding = binding;
  }

  override async *list(
    ...[identity, resource, ...how]: Parameters<Client["list"]>
  ): AsyncGenerator<readonly KubeObject[], void> {
    if (resource.group === SECRET_BINDINGS.group && resource.kind === SECRET_BINDINGS.kind)
      yield [this.#binding as unknown as KubeObject];
    else yield* super.list(identity, resource, ...how);
  }
}
