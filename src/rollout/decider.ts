/**
 * Decides what a rollout does now, from the workloads, the values and the status. Reads what a restart needs only if one is due.
 */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import { restartLimitOf } from "../api/installation.ts";
import { isRefreshRequested, refreshOf } from "../api/refresh.ts";
import { claimsToBeGenerated, ReloaderView } from "../api/reloader.ts";
import { digestParts, type RolloutSpec } from "../api/rollout.ts";
import { idOf, isOlder, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { ApiError } from "../kube/api-error.ts";
import { filterIn } from "../sources/uses.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { isJob } from "../workloads/jobs.ts";
import { givenText } from "../workloads/workload.ts";
import type { RunSteps } from "../workqueue/cpu-scheduler.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import type { StartFacts } from "./decide/affected.ts";
import type { ConcurrencyLimiter } from "./decide/concurrency.ts";
import { withoutDisruptionBudget } from "./decide/disruption-budgets.ts";
import { decideRollout, type RolloutDecision, type RolloutInput } from "./decide/engine.ts";
import type { FormerState, FormerValue } from "./decide/first-looks.ts";
import { blockOf, STOPPED } from "./decide/pace.ts";
import { isTemplateYounger, readRevert, type SourceChange } from "./decide/read-workload.ts";
import { wrongRestartField } from "./decide/restart-field-schema.ts";
import { kindsWithoutStatus, targetsNotObserved, type UnsyncedTargets } from "./decide/wait-for-targets.ts";
import type { RolloutDependencies } from "./dependencies.ts";
import { ABSENT } from "./digest/digest.ts";
import type { DigestCache, SourceReadings, ValueDigests } from "./digest/values.ts";
import { type RolloutContext, writtenBeforeRestarts } from "./discover/dependents.ts";
import type { RecentRestarts, RolloutMemory, WrittenTarget } from "./memory.ts";
import type { Dependent, RolloutBlock } from "./types.ts";

/**
 * Without the sources that don't count for a generated binding: those with Reloader's ignore annotation, and those that its account may not
 * read. `unread` is why a source was removed that the account may not read.
 */
function withoutIgnored<T extends Pick<SourceReadings, "sources">>(
  binding: SecretBinding,
  read: T,
  view: ReloaderView,
): T & { unread?: Problem } {
  if (!claimsToBeGenerated(binding)) return read;
  const counted = [...read.sources].filter(([, source]) => !isIgnored(source, view));
  const unread = counted.flatMap(([, source]) => (isForbidden(source) ? [source] : []))[0];
  const sources = new Map(counted.filter(([, source]) => !isForbidden(source)));
  return { ...read, sources, ...(unread !== undefined && { unread }) };
}

const isForbidden = (source: LiveSource | Problem): source is Problem =>
  source instanceof Problem && source.reason === "Forbidden";

/** The versions of a SecretProviderClass belong to many objects, whose annotations don't count. */
function isIgnored(source: LiveSource | Problem, view: ReloaderView): boolean {
  if (source instanceof Problem || source.kind !== "data" || source.isVersions) return false;
  return view.markOfSource(source.annotations.reveal(), source.labels.reveal()) === "ignore";
}

/** `isUnbudgeted`: no PodDisruptionBudget is known to select its pods. */
export function refusalOf(
  { requireReadinessProbe, requireDisruptionBudget }: RolloutSpec,
  dependent: Dependent,
  isUnbudgeted: boolean,
): string | undefined {
  const { workload, ref, stampAt, isRestartField } = dependent;
  if (workload.templateElsewhere && !isRestartField)
    return `${ref.name} has its pod template in another object (spec.workloadRef); name it in spec.rollout.targets with restartPath: spec.restartAt`;
  if (isJob(ref.resource) && workload.progress.state === "Rolling")
    return `${ref.name} is running; Inlay recreates it when it has ended`;
  // Writing it again has no effect, and pods that have restarted already would keep the former values.
  if (givenText(dependent) === "true" && workload.restart === "true")
    return `${ref.name} is still restarting by ${stampAt}; Inlay restarts it again when its operator has removed that`;
  if (requireReadinessProbe && workload.unprobed.length > 0)
    return `spec.rollout.requireReadinessProbe: no readiness probe in ${workload.unprobed.join(", ")}; add one`;
  if (requireDisruptionBudget && isUnbudgeted)
    return `spec.rollout.requireDisruptionBudget: no PodDisruptionBudget selects the pods of ${ref.name}; add one`;
  return undefined;
}

/** The interval of reads of PodDisruptionBudgets. */
const BUDGETS_AGAIN_MS = 30_000;
const NONE: ReadonlySet<never> = new Set();
/** Of how many workloads one decision reads the age of their pods. Beyond them, they restart. */
const MAX_AGES = 100;

const namespaceOf = ({ ref }: Dependent) => ref.namespace ?? "";

/** The state of a binding's sources and targets when its workloads may restart. */
export interface RollInputs {
  read: SourceReadings;
  targets: UnsyncedTargets;
  /**
   * With onFirstSync IfDifferent, when the binding is first seen: whether a field that is written after the rollout has another
   * value, or why that can't be known.
   */
  differs: boolean | Problem;
  /** The targets that have the present values. */
  written: readonly WrittenTarget[];
}

/** The decision, and the values that it is for. */
export interface Decision {
  decided: RolloutDecision;
  known: ValueDigests;
}

/** What a rollout asks besides the cluster. */
interface DeciderParts {
  values: Pick<DigestCache, "digests" | "digestsIn">;
  slots: Pick<ConcurrencyLimiter, "take">;
  recent: Pick<RecentRestarts, "timesOf">;
}

/** What one decision is made from. */
interface Round extends RolloutContext, Facts, Pick<RolloutInput, "isAgain">, Pick<RollInputs, "differs"> {
  memory: RolloutMemory;
  known: ValueDigests;
  unsynced: UnsyncedTargets;
  /** Why nothing restarts now. */
  blocked: RolloutBlock | undefined;
  /** The workloads without a PodDisruptionBudget, as far as they were read. */
  unbudgeted?: ReadonlySet<Dependent>;
}

export class Decider {
  readonly #deps: RolloutDependencies;
  readonly #parts: DeciderParts;
  readonly #view: ReloaderView;

  constructor(deps: RolloutDependencies, parts: DeciderParts) {
    this.#deps = deps;
    this.#parts = parts;
    this.#view = new ReloaderView(deps.installation.reloader);
  }

  /** Decides what to do now. Throws Problem. */
  async decide(rolling: RolloutContext, inputs: RollInputs, memory: RolloutMemory): Promise<Decision> {
    const { binding, spec, wrong, references, dependents, sources, sourceRevisions } = rolling;
    const { targets: unsynced, differs } = inputs;
    const { schemas } = this.#deps;
    if (dependents.problem) throw dependents.problem;
    const { generation } = binding.metadata;
    const wrongField =
      memory.checked === generation ? undefined : await wrongRestartField(schemas, references.lookups, spec);
    if (wrongField) throw wrongField;
    memory.checked = generation;
    const [key, before] = [bindingKey(binding), memory.before(binding)];
    if (before === undefined && differs instanceof Problem) throw differs;
    memory.setWritten(sourceRevisions, inputs.written);
    const counted = withoutIgnored(binding, inputs.read, this.#view);
    const { values } = this.#parts;
    const known = await values.digests(key, sourceRevisions, dependents.used, sources, counted, before, spec);
    const blocked = unsynced.everywhere ?? known.sourceMismatch ?? wrong;
    // If there are targets, the values are ready once all targets have them.
    if (blocked !== undefined || unsynced.namespaces.size > 0) memory.setReady(false);
    else if (binding.spec.targets.length === 0) memory.setReady(true, memory.observed?.since);
    else if (spec.waitForTargets === undefined) memory.setReady(true);
    const facts = await this.#startsOf(rolling, known, memory);
    const asked = { isAgain: isAgain(binding, memory) };
    const round: Round = { ...rolling, ...facts, ...asked, differs, memory, known, unsynced, blocked };
    if (round.isAgain) memory.reverts.clear();
    const read = await this.#read(round, this.#decideBy(round));
    const aged = await this.#aged(round, read);
    const decided = aged.stamps.length === 0 ? aged : await this.#checked(round, aged);
    // No watch shows the deletion of their pods, or the permission to list them.
    for (const [uid, { revert }] of memory.reverts)
      if (revert.isEnding || revert.arePodsUnknown) memory.reverts.delete(uid);
    return { decided, known };
  }

  /** Reads the workloads that do not bear their restarts, and decides again. Throws Problem. */
  async #read(round: Round, decided: RolloutDecision): Promise<RolloutDecision> {
    if (decided.unread.length === 0) return decided;
    const entries = new Map(decided.status.pending?.workloads?.map((each) => [each.uid, each]));
    await mapConcurrent(decided.unread, async (dependent) => {
      const { uid, resourceVersion: version } = dependent.version;
      const { restartTime, firstRestartTime = restartTime } = entries.get(uid) ?? {};
      const since = firstRestartTime ?? new Date().toISOString();
      const revert = await readRevert(this.#deps.client, round.identity, dependent, since);
      round.memory.reverts.set(uid, { version, revert });
    });
    return this.#decideBy(round);
  }

  /** Reads whether the pods of workloads that would restart are younger than the change, and decides again. Throws Problem. */
  async #aged(round: Round, first: RolloutDecision): Promise<RolloutDecision> {
    let [decided, left] = [first, MAX_AGES];
    while (decided.unaged.length > 0) {
      const unaged = decided.unaged.slice(0, left);
      if (unaged.length === 0) return decided;
      left -= unaged.length;
      await mapConcurrent(unaged, async ({ dependent, causes }) => {
        const change = round.changeOf(dependent, causes);
        if (change === undefined) return;
        const isYounger = await isTemplateYounger(this.#deps.client, round.identity, dependent, change);
        round.memory.ages.set(dependent.version.uid, { of: ageOf(dependent, change), isYounger });
      });
      decided = this.#decideBy(round);
    }
    return decided;
  }

  /** Reads what a restart needs, if a restart is due. Throws Problem. */
  async #checked(round: Round, decided: RolloutDecision): Promise<RolloutDecision> {
    const { identity, targets, spec, unsynced, memory } = round;
    const { client, schemas } = this.#deps;
    let [held, checked] = [round, decided];
    if (spec.waitForTargets !== undefined) {
      const without = await kindsWithoutStatus(schemas, targets);
      const versions = memory.setWritten(round.sourceRevisions, []);
      const awaited = targets
        .filter(({ ref }) => !without.has(ref.resource))
        .map((each) => ({ ...each, written: versions.get(idOf(each.ref)) }));
      const { everywhere, namespaces } = await targetsNotObserved(client, identity, awaited, spec.waitForTargets);
      const isReady = everywhere === undefined && namespaces.size === 0;
      memory.setReady(isReady && unsynced.namespaces.size === 0);
      const both = new Map([...unsynced.namespaces, ...namespaces]);
      held = { ...round, unsynced: { ...unsynced, namespaces: both } };
      if (!isReady) checked = this.#decideBy({ ...held, blocked: everywhere });
      if (everywhere !== undefined) return checked;
    }
    return spec.requireDisruptionBudget ? this.#budgeted(held, checked) : checked;
  }

  /**
   * Reads the budgets of the namespaces in which a restart is due, and decides again without the workloads that have none. That
   * may make restarts in further namespaces due. Throws Problem.
   */
  async #budgeted(round: Round, first: RolloutDecision): Promise<RolloutDecision> {
    const { identity, dependents, unsynced } = round;
    const asked = new Set<string>();
    const unbudgeted = new Set<Dependent>();
    const namespaces = new Map(unsynced.namespaces);
    for (let decided = first; ; ) {
      const due = new Set(
        decided.stamps.map(({ dependent }) => namespaceOf(dependent)).filter((each) => !asked.has(each)),
      );
      if (due.size === 0) return decided;
      const there = dependents.all.filter((each) => due.has(namespaceOf(each)));
      const found = await withoutDisruptionBudget(this.#deps.client, identity, there);
      for (const namespace of due) asked.add(namespace);
      for (const each of found.without) unbudgeted.add(each);
      for (const [namespace, { message }] of found.unknown) namespaces.set(namespace, message);
      if (found.without.length === 0 && found.unknown.size === 0) continue;
      const again = this.#decideBy({ ...round, unsynced: { ...unsynced, namespaces }, unbudgeted });
      // PodDisruptionBudgets are not watched.
      decided = { ...again, requeueAfterMs: Math.min(again.requeueAfterMs ?? BUDGETS_AGAIN_MS, BUDGETS_AGAIN_MS) };
    }
  }

  /**
   * A value that a workload gets through a field reaches it later than its source changes. So its start is not judged, and only the version
   * of an object that its pods read shows their age.
   */
  async #startsOf(rolling: RolloutContext, known: ValueDigests, memory: RolloutMemory): Promise<Facts> {
    const { binding, dependents, sourceObjects } = rolling;
    const { digests, resourceVersions } = known;
    const { firstLooks } = memory;
    const steps: RunSteps = (work) => this.#deps.cpu.steps(binding.metadata.namespace as string, work);
    const written = await steps(writtenBeforeRestarts(binding));
    if (written instanceof Problem) throw written;
    /** The source as the watch shows it, if that is the version that was read. */
    const seenAs = (source: string) => {
      const seen = sourceObjects.get(source);
      return seen?.resourceVersion === resourceVersions.get(source) ? seen : undefined;
    };
    const sourceOf = (id: string) => {
      if (written.has(id)) return undefined;
      return digests[id] === ABSENT ? ABSENT : seenAs(digestParts(id).source);
    };
    const looked = { binding, before: memory.before(binding), dependents, digests, sourceOf };
    await mapConcurrent(await steps(firstLooks.needed(looked)), async (state) =>
      firstLooks.learn(state, await this.#formerValue(rolling, known, state)),
    );
    const names = new Map(
      [...rolling.sources].flatMap(([name, source]) =>
        source instanceof Problem || source.watched === undefined ? [] : [[idOf(source.watched), name] as const],
      ),
    );
    const readIn = (ref: ObjectRef) => {
      const name = names.get(idOf(ref));
      return name === undefined ? memory.writtenIn(ref) : seenAs(name)?.resourceVersion;
    };
    const changeOf = ({ reads }: Dependent, ids: readonly string[]): SourceChange | undefined => {
      if (ids.some((id) => written.has(id))) {
        const versions = reads?.map(readIn).filter((each) => each !== undefined);
        return versions === undefined || versions.length < (reads?.length ?? 0) ? undefined : newest(versions);
      }
      const sources = ids.map(sourceOf).filter((each) => each !== undefined && each !== ABSENT);
      if (sources.length < ids.length || sources.length === 0) return undefined;
      // A key that is removed does not move the time of the data.
      const isTimed = ids.every((id) => filterIn(digestParts(id).key) === undefined);
      const at = Math.max(...sources.map(({ dataAt = Number.NaN }) => dataAt));
      const change = newest(sources.map(({ resourceVersion }) => resourceVersion));
      return change && { ...change, ...(isTimed && !Number.isNaN(at) && { at }) };
    };
    return {
      startedWith: await steps(firstLooks.judge(looked)),
      isYounger: (dependent, ids) => {
        const { version, workload, isRestartField } = dependent;
        const change = changeOf(dependent, ids);
        if (change === undefined || isRestartField || workload.templateHash === undefined) return false;
        const changed = { resourceVersion: change.version };
        if (version.renewedAs !== undefined && isOlder(changed, { resourceVersion: version.renewedAs })) return true;
        // Nothing has happened to it since.
        if (workload.progress.state === "Done" && !isOlder(changed, version)) return false;
        const read = memory.ages.get(version.uid);
        return read?.of === ageOf(dependent, change) ? read.isYounger : "unread";
      },
      changeOf,
    };
  }

  async #formerValue(
    { binding, identity, spec, sources }: RolloutContext,
    known: ValueDigests,
    { id, version }: FormerState,
  ): Promise<FormerValue> {
    const { source: name } = digestParts(id);
    const source = sources.get(name);
    // A grant permits the present state only.
    if (source === undefined || source instanceof Problem || !source.watched || source.grantedObject) return "unknown";
    try {
      const former = source.fromObject(await this.#deps.client.getAt(identity, source.watched, version));
      const { values } = this.#parts;
      const digests = await values.digestsIn(bindingKey(binding), known, [id], [name, former, source], spec);
      return digests === undefined ? "unknown" : { digest: digests[id] };
    } catch (error) {
      if (error instanceof ApiError || error instanceof Problem) return "unknown";
      throw error;
    }
  }

  /** Throws Problem. */
  #decideBy({ binding, spec, dependents, memory, known, unsynced, blocked, unbudgeted = NONE, ...round }: Round) {
    const { keyId, digests, former } = known;
    const key = bindingKey(binding);
    const before = memory.before(binding);
    const { installation } = this.#deps;
    const { recent, slots } = this.#parts;
    const now = Date.now();
    const held = new Map([
      ...unsynced.namespaces,
      ...dependents.unknown.map(({ namespace, problem }) => [namespace, problem.brief] as const),
    ]);
    return decideRollout({
      now,
      binding: { ...binding.metadata, namespace: binding.metadata.namespace ?? "" },
      restartLimit: restartLimitOf(installation.rollouts),
      restartTimesOf: (dependent) => recent.timesOf(dependent),
      steps: round.references.steps,
      dependents: dependents.all,
      before,
      key: keyId,
      used: dependents.used,
      digests,
      ...(before !== undefined && before.digestKeyID !== keyId && { rekeyed: { former } }),
      restartOn: spec.restartOn,
      rollFirst: spec.onFirstSync === "Rollout" || (before === undefined && round.differs === true),
      unknown: dependents.unknown,
      maxConcurrent: spec.maxConcurrent ?? Number.POSITIVE_INFINITY,
      block: (pending, last) =>
        blocked ?? (installation.rollouts.suspend ? STOPPED : undefined) ?? blockOf(spec, pending, last, now),
      refusal: (dependent) => held.get(namespaceOf(dependent)) ?? refusalOf(spec, dependent, unbudgeted.has(dependent)),
      wasRefused: ({ version }) => memory.refused.has(version.uid),
      take: (dependent) => slots.take(key, idOf(dependent.ref), namespaceOf(dependent)),
      isSeen: (dependent) => memory.isSeen(dependent),
      revertOf: ({ version }) => {
        const last = memory.reverts.get(version.uid);
        return last?.version === version.resourceVersion ? last.revert : undefined;
      },
      isAgain: round.isAgain,
      startedWith: round.startedWith,
      isYounger: round.isYounger,
    });
  }
}

interface Facts extends StartFacts {
  /** The last change of what the pods of the workload read of these digests. Undefined if that is not known. */
  changeOf(dependent: Dependent, ids: readonly string[]): SourceChange | undefined;
}

function newest(versions: readonly string[]): SourceChange | undefined {
  const [first, ...others] = versions.map((resourceVersion) => ({ resourceVersion }));
  return first && { version: others.reduce((a, b) => (isOlder(a, b) ? b : a), first).resourceVersion };
}

const ageOf = ({ version }: Dependent, change: SourceChange) => `${version.generation} ${change.version}`;

/** Whether the user asks to try again: by a request to reconcile, or by a change of the spec. Once for each. */
function isAgain(binding: RolloutContext["binding"], memory: RolloutMemory): boolean {
  const { generation } = binding.metadata;
  const reported = binding.status?.conditions?.find(({ type }) => type === "RolledOut")?.observedGeneration;
  const isAsked = isRefreshRequested(binding) || (reported !== undefined && reported !== generation);
  const asked = `${generation} ${refreshOf(binding)}`;
  const isNew = isAsked && memory.asking !== asked;
  if (isNew) memory.asking = asked;
  return isNew;
}
