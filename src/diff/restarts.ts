/**
 * Says which workloads a binding would restart, when and why. The decision is that of the controller, for the workloads in the cluster and the
 * values that the files would give them.
 */
import { bindingKey, type SecretBinding, type StoredBinding } from "../api/binding.ts";
import { digestParts } from "../api/rollout.ts";
import { sameJson } from "../apimachinery/json.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import type { JsonValue, ObjectRef } from "../apimachinery/objects.ts";
import { type Advice, Problem } from "../apimachinery/problem.ts";
import type { Watcher } from "../cache/watcher.ts";
import { attempt, streamRefusal, WRITE_VERBS } from "../kube/access-error.ts";
import type { CompiledBinding } from "../pipeline/compile.ts";
import { NEVER } from "../rollout/decide/affected.ts";
import { ConcurrencyLimiter, limitsOf } from "../rollout/decide/concurrency.ts";
import { causesOf } from "../rollout/decide/schedule.ts";
import { kindsWithoutStatus, type Tried, unsyncedTargets } from "../rollout/decide/wait-for-targets.ts";
import type { Decision, RollInputs } from "../rollout/decider.ts";
import type { RolloutDependencies } from "../rollout/dependencies.ts";
import { apartFrom, type Owners, type RolloutContext } from "../rollout/discover/dependents.ts";
import { RolloutController } from "../rollout/rollout-controller.ts";
import type { RolloutBlock } from "../rollout/types.ts";
import { parseSources, resolveSources } from "../sources/registry.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { type Restart, type Restarts, reasonForUser, type TargetChange } from "./difference.ts";
import { PlannedDigests } from "./planned-digests.ts";
import type { Readers } from "./readers.ts";

/** A binding with a rollout whose targets are planned. */
export interface PlannedBinding {
  readonly compiled: CompiledBinding;
  /** The binding in the cluster. */
  readonly live: SecretBinding | undefined;
  readonly sources: ReadonlyMap<string, LiveSource | Problem>;
  readonly sourceMismatch: Problem | undefined;
  /** The targets that would be written before the rollout, with their changes. */
  readonly tried: readonly (Tried & { readonly ref?: ObjectRef | Problem; readonly change?: TargetChange })[];
  /** Whether a field that is written after the rollout has another value. */
  differs(): Promise<boolean | Problem>;
}

/** Decides in turn, because all bindings share the slots of the installation. */
export type DecideRestarts = () => Promise<Restarts | undefined>;

const MAX_NAMED = 3;

type Services = Omit<RolloutDependencies, "client" | "watcher" | "bindings" | "requeue" | "notifier" | "rollouts">;

export class RestartPlanner {
  readonly #readers: Readers;
  readonly #isInFiles: (ref: ObjectRef) => boolean;
  readonly #values = new PlannedDigests();
  readonly #rollouts: RolloutController;

  /** `bindings` are those of the cluster. `isInFiles` says whether the files have an object. */
  constructor(
    readers: Readers,
    services: Services,
    watcher: Pick<Watcher, "list">,
    bindings: StoredBinding[],
    isInFiles: (ref: ObjectRef) => boolean,
  ) {
    const { client, lists } = readers;
    this.#readers = readers;
    this.#isInFiles = isInFiles;
    const nothing = () => {};
    const deps = {
      ...services,
      client,
      watcher: {
        get: (key, wanted) => ("ref" in wanted ? lists.get(key, wanted) : { phase: "pending" as const }),
        list: watcher.list,
        namesBeside: () => [],
        subscribe: nothing,
        *subscribing() {},
      } satisfies Watcher,
      bindings: { all: bindings },
      requeue: nothing,
      // A decision has no effects.
      notifier: { notify: nothing },
      rollouts: { restarted: nothing, failed: nothing, ended: nothing, limited: nothing },
    };
    const slots = new ConcurrencyLimiter(() => limitsOf(services.installation), nothing);
    this.#rollouts = new RolloutController(deps, this.#values, slots);
  }

  /** Finds the workloads. Undefined for a binding without a rollout. */
  async plan(planned: PlannedBinding): Promise<DecideRestarts | undefined> {
    const found = await attempt(this.#find(planned));
    if (found === undefined) return undefined;
    if (found instanceof Problem) return async () => ({ workloads: [], problem: reasonForUser(found) });
    const { rolling, inputs, replaced } = found;
    const isSuspended = planned.live?.spec.suspend === true;
    return async () => {
      const decision = await attempt(this.#rollouts.decide(rolling, inputs));
      if (decision instanceof Problem) return { workloads: [], problem: reasonForUser(decision) };
      return restartsIn(rolling, decision, replaced, isSuspended ? WAS_SUSPENDED : undefined);
    };
  }

  async #find(planned: PlannedBinding) {
    const { compiled, sources, sourceMismatch, tried } = planned;
    const { binding, identity, references, selection, rollout } = compiled;
    if (rollout === undefined) return undefined;
    const { lists, schemas } = this.#readers;
    const observed = {
      sourceState: "",
      objects: selection.objects,
      owners: () => this.#ownersIn(planned),
    };
    const rolling = await lists.settled(async () => {
      const found = await this.#rollouts.follow(binding, identity, rollout);
      return finish(this.#rollouts.look(binding, { identity }, found, references.sources, observed));
    });
    const replaced = await this.#compareSources(planned);
    const targets = unsyncedTargets(binding, undefined, tried);
    if (rolling.spec.waitForTargets !== undefined) {
      const changing = new Set(tried.flatMap(({ ref, change }) => (change?.change === "none" ? [] : [ref])));
      const awaited = rolling.targets.filter(({ ref }) => changing.has(ref));
      const without = await kindsWithoutStatus(schemas, awaited);
      if (awaited.some(({ ref }) => !without.has(ref.resource))) targets.everywhere ??= NOT_OBSERVED;
    }
    const isCompared = rolling.spec.onFirstSync === "IfDifferent" && binding.status?.rollout === undefined;
    const differs = isCompared && (await planned.differs());
    const inputs: RollInputs = { read: { sources, sourceMismatch }, targets, differs, written: [] };
    return { rolling, inputs, replaced };
  }

  /** The uids of the targets, whose dependents may restart. */
  #ownersIn({ compiled: { identity, selection } }: PlannedBinding): Owners {
    const { objects, unresolved } = selection;
    const looks = objects.map(({ ref }) => {
      if (ref instanceof Problem) return { problem: ref };
      const { phase, version, ...seen } = this.#readers.lists.get("", { identity, ref });
      if (!("error" in seen)) return { uid: version?.uid };
      return { problem: streamRefusal(seen.error, { identity, ref, verbs: WRITE_VERBS }, "list") };
    });
    return {
      uids: new Set(looks.flatMap(({ uid }) => uid ?? [])),
      problem: [...unresolved, ...looks].find(({ problem }) => problem !== undefined)?.problem,
    };
  }

  /** Compares the sources with those of the binding in the cluster. Returns what is replaced by the object of a source, by its name. */
  async #compareSources({ compiled: { binding, resolving, references }, live }: PlannedBinding) {
    const client = this.#readers.client;
    const parsed = live === undefined ? [] : parseSources(live);
    const before = await resolveSources(parsed, { ...resolving, client });
    const entries = new Map(parsed.map(({ name }, at) => [name, live?.spec.sources[at]]));
    const [same, replaced] = [new Set<string>(), new Map<string, string>()];
    const inCluster = new Map<string, LiveSource | Problem>();
    for (const [at, { name }] of references.parsedSources.entries()) {
      const [now, was] = [references.sources.get(name), before.get(name)];
      if (now === undefined || now instanceof Problem || was === undefined || was instanceof Problem) {
        // The server of the source is not contacted.
        const isSame = sameJson(binding.spec.sources[at] as JsonValue, (entries.get(name) ?? null) as JsonValue);
        if (isSame) same.add(name);
      } else if (!sameJson([...now.place], [...was.place])) replaced.set(name, was.description);
      else if (now.watched === undefined || was.listed || !this.#isInFiles(now.watched)) same.add(name);
      else inCluster.set(name, await was.read(undefined));
    }
    this.#values.set(bindingKey(binding), { same, live: inCluster });
    return replaced;
  }
}

const WAS_SUSPENDED: Advice = {
  reason: "Suspended",
  message:
    "Inlay has not processed the binding since it was suspended, so restarts for values that changed since then are unknown",
};

const NOT_OBSERVED: RolloutBlock = {
  reason: "TargetsNotReady",
  message: "spec.rollout.waitForTargets: the targets do not have the new values yet",
};

/** The restarts of a decision. `replaced` has the former objects of sources, by their names. Pure. */
function restartsIn(
  { dependents, references, sources }: RolloutContext,
  { decided: { status, stamps, block }, known }: Decision,
  replaced: ReadonlyMap<string, string>,
  unknown: Advice | undefined,
): Restarts | undefined {
  const { digests: baseline = {}, pending } = status;
  const atOnce = new Set(stamps.map(({ dependent }) => dependent.version.uid));
  const byUid = new Map(dependents.all.map((each) => [each.version.uid, each]));
  const open = (pending?.workloads ?? []).flatMap(({ uid, state, message }) => {
    const dependent = byUid.get(uid);
    return dependent === undefined || state === "Done" ? [] : [{ dependent, state, message }];
  });
  const openSteps = [...new Set(open.map(({ dependent }) => dependent.step))];
  const why = (ids: readonly string[]): string => {
    const names = [...new Set(ids.map((id) => digestParts(id).source))];
    const texts = names.map((name) => {
      const source = sources.get(name);
      const what = source === undefined || source instanceof Problem ? `the source ${name}` : source.description;
      const before = replaced.get(name);
      if (before !== undefined) return `${what} replaces ${before}`;
      const isFirst = ids.every((id) => digestParts(id).source !== name || baseline[id] === NEVER);
      return isFirst ? `its pods may not have the values of ${what}` : `${what} changed`;
    });
    return firstOf(texts, MAX_NAMED);
  };
  const workloads = open.flatMap(({ dependent, state, message }): Restart[] => {
    const { ref, version, step } = dependent;
    const isNow = atOnce.has(version.uid);
    if (!isNow && state !== "Waiting") return [];
    const earlier = Math.max(...openSteps.filter((each) => each < step));
    const [own, after] = [step, earlier].map((each) => references.steps[each]?.name);
    return [
      {
        kind: ref.resource.kind,
        namespace: ref.namespace ?? "",
        name: ref.name,
        ...(own !== undefined && { step: own }),
        when: isNow ? "AtOnce" : "Later",
        ...(!isNow && after !== undefined && { after }),
        why: why(causesOf(dependent, pending?.digests ?? {}, {})),
        ...(message !== undefined && { message }),
      },
    ];
  });
  const apart = pending && (apartFrom(dependents) ?? known.unread);
  const problem = apart === undefined ? unknown : reasonForUser(apart);
  if (workloads.length === 0 && problem === undefined) return undefined;
  const isWaiting = block !== undefined && workloads.some(({ when }) => when === "Later");
  const { reason = "", message = "", endsAt } = block ?? {};
  const until = endsAt === undefined ? {} : { until: new Date(endsAt).toISOString() };
  return { workloads, ...(isWaiting && { waits: { reason, message, ...until } }), ...(problem && { problem }) };
}
