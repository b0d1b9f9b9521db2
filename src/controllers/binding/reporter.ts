/** Reports the outcome of a reconcile: the status, events and metrics, and when to reconcile again. */
import type { SecretBinding, Status } from "../../api/binding.ts";
import { isStalledAtOnce } from "../../api/progress.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import { type RolloutResult, rolloutOf } from "../../rollout/status.ts";
import { copiedSources } from "../../sources/grants.ts";
import { TooManyKeys } from "../../sources/many-keys.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import { notesOn } from "../../targets/shared-values.ts";
import { AT_ONCE, type WorkResult } from "../../workqueue/work-queue.ts";
import type { BindingStatusWriter } from "./binding-status-writer.ts";
import { newlyReadable, statusOf } from "./conditions.ts";
import type { BindingDependencies, Inputs } from "./dependencies.ts";
import type { PermissionAdvice } from "./permission-advice.ts";
import { protectedTokens } from "./protected-tokens.ts";
import { orWhenStalled, requeueResult } from "./requeue.ts";
import type { ResultCache } from "./result-cache.ts";

/** The API server publishes the schema of a changed CRD up to a second later. */
const PUBLISHED_WITHIN_MS = 1_500;
const OF_SCHEMAS: readonly string[] = ["UnknownField", "TypeMismatch", "InvalidValue"];

/** What a reconcile has done. */
export interface Outcome {
  /** In the order of the targets to write. */
  readonly written: readonly TargetOutcome[];
  /** Objects that the spec no longer names, and that are not released yet. */
  readonly released: readonly TargetOutcome[];
  readonly rollout: RolloutResult | undefined;
}

export class Reporter {
  readonly #deps: BindingDependencies;
  readonly #status: BindingStatusWriter;
  readonly #permissions: PermissionAdvice;
  readonly #results: ResultCache;
  /** Since when a newer schema may make a binding right, in ms. */
  readonly #doubts = new Map<string, number>();

  constructor(
    deps: BindingDependencies,
    status: BindingStatusWriter,
    permissions: PermissionAdvice,
    results: ResultCache,
  ) {
    this.#deps = deps;
    this.#status = status;
    this.#permissions = permissions;
    this.#results = results;
  }

  /** Also remembers the results, so that the next reconcile does only what has changed. Returns when that is. */
  async report(inputs: Inputs, { written, released, rollout }: Outcome): Promise<WorkResult> {
    const { observation, targets, sources, context } = inputs;
    const { key, binding, observed, workloads, schemas } = observation;
    const { stored } = inputs.status;
    const { cpu, discovery, events } = this.#deps;
    const outcomes = [...written, ...targets.kept];
    const all = [...outcomes, ...released, ...observed.unresolved];
    const withRollout = [...all, ...(rollout ? [rollout] : [])];
    const problems = withRollout.map(({ problem }) => problem);
    this.#countLimits(inputs, problems);
    const notes = [...observed.notes, ...notesOn(context.retained ?? [])];
    const overview = { ...observed, notes, lacking: await this.#permissions.lacking(observation, problems) };
    const incomplete = this.#deps.incomplete(binding);
    const now = new Date();
    const status = {
      ...statusOf(binding, outcomes, released, now, overview, rollout && rolloutOf(rollout), incomplete),
      ...copiedSources(stored, context.parsedSources),
      ...protectedTokens(binding, sources),
    };
    const sooner = await this.#forNewerSchemas(key, stored, status, schemas, now);
    if (sooner !== undefined) return sooner;
    const reported = await this.#status.writeStatus(stored, status);
    this.#status.recordEvent(binding, status);
    for (const note of newlyReadable(binding, outcomes))
      events.record(binding, { type: "Normal", reason: "ReadableCopies", action: "Sync", note });
    const kinds = [...outcomes, ...released].map(({ record, problem }) => ({ target: record, problem }));
    for (const { target, problem } of [...kinds, ...observed.unresolved])
      if (problem?.reason === "KindNotFound") discovery.forget(target.apiVersion);

    const isDone = all.every((each) => each.problem === undefined && !("requeueAfterMs" in each));
    const remembered = isDone && rollout?.isDone !== false ? reported : undefined;
    const named = [...targets.before, ...targets.after];
    const remember = this.#results.set(key, observed, named, written, remembered, workloads);
    await cpu.steps(binding.metadata.namespace as string, remember);
    return orWhenStalled(requeueResult(binding.metadata.namespace, withRollout), status, now);
  }

  #countLimits({ observation, sources }: Inputs, problems: readonly (Problem | undefined)[]): void {
    const { metrics } = this.#deps;
    const unread = observation.rollout?.dependents.unread ?? [];
    const unkept = unread.filter(({ isTooLarge }) => isTooLarge).length;
    if (unread.length > unkept) metrics.limited("referencesPerWorkload", unread.length - unkept);
    if (unkept > 0) metrics.limited("watchedBytes", unkept);
    const tooMany = [...sources.values()].filter((each) => each instanceof TooManyKeys).length;
    if (tooMany > 0) metrics.limited("keysPerSource", tooMany);
    if (problems.some((each) => each?.reason === "TooManyWatches")) metrics.limited("watches");
  }

  /** What a schema lacks may be in one that is published since it was read, or in a moment. Undefined if that is waited for, or not the mistake. */
  async #forNewerSchemas(
    key: string,
    stored: SecretBinding,
    status: Status,
    revision: number,
    now: Date,
  ): Promise<WorkResult | undefined> {
    const isNew = isStalledAtOnce(stored, status, now);
    const isOfSchemas = status.conditions?.some(
      ({ type, reason }) => type === "Stalled" && OF_SCHEMAS.includes(reason),
    );
    const since = this.#doubts.get(key);
    this.#doubts.delete(key);
    if (!isNew || !isOfSchemas) return undefined;
    if ((await attempt(this.#deps.schemas.renew(revision))) === true) return AT_ONCE;
    const waited = since === undefined ? 0 : now.getTime() - since;
    if (waited < 0 || waited >= PUBLISHED_WITHIN_MS) return undefined;
    this.#doubts.set(key, since ?? now.getTime());
    return { retry: "after", ms: PUBLISHED_WITHIN_MS - waited };
  }

  forget(key: string): void {
    this.#doubts.delete(key);
    this.#permissions.forget(key);
  }
}
