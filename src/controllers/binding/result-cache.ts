/**
 * What came of a binding's targets when nothing was left to do comes in, with the state of all that it depends on; while
 * that state is the same, it goes out again, and nobody has to look.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { idOf, type ObjectRef, type Version } from "../../apimachinery/objects.ts";
import { Problem, type Reason } from "../../apimachinery/problem.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import type { TargetWithRecord } from "../../targets/records.ts";
import type { ObservedState } from "./observed-state.ts";

/** What came of a target: its value stands, or only a change of its state can help. */
export type TargetResult = Pick<TargetOutcome, "problem" | "note" | "applied">;

interface Known {
  /** Of the whole binding; undefined while there is something to do. */
  fingerprint: string | undefined;
  /** Of the sources, as part of the state of each target. */
  sourceRevisions: string;
  targets: ReadonlyMap<string, { state: string; ending: TargetResult }>;
}

export class ResultCache {
  readonly #known = new Map<string, Known>();
  readonly #expired = new Set<string>();

  /**
   * Forgets what came of a binding's targets once it is reconciled again: results of a reconcile that goes on now are as old
   * as what was known before.
   */
  expire(key: string): void {
    this.#expired.add(key);
  }

  /** Whether there is nothing to do for the binding. Called first in every reconcile. */
  isUpToDate(key: string, observed: ObservedState, binding: SecretBinding, workloads = ""): boolean {
    if (this.#expired.delete(key)) this.#known.delete(key);
    return this.#known.get(key)?.fingerprint === observed.fingerprint(binding, new Map(), workloads);
  }

  /** What came of those targets whose state is still the same. */
  resultsOf(
    key: string,
    observed: ObservedState,
    named: readonly TargetWithRecord[],
  ): Map<TargetWithRecord, TargetResult> {
    const all = this.#known.get(key);
    const known = all?.sourceRevisions === observed.sourceRevisions ? all.targets : undefined;
    const endings = new Map<TargetWithRecord, TargetResult>();
    for (const each of known === undefined ? [] : named) {
      const { target, ref, record } = each;
      const last = ref instanceof Problem ? undefined : known?.get(idOf(ref));
      if (ref instanceof Problem || last === undefined) continue;
      const { problem, applied } = last.ending;
      const state = observed.stateOf(target, ref, record, problem === undefined, observed.shown(ref, applied?.version));
      if (state === last.state) endings.set(each, last.ending);
    }
    return endings;
  }

  /** How the last write left a target, or a look at it, whatever happened since. */
  lastApplied(key: string, ref: ObjectRef): TargetOutcome["applied"] {
    return this.#known.get(key)?.targets.get(idOf(ref))?.ending.applied;
  }

  /** Remembers what came of each target, and that nothing is left to do for the binding as `reported`, if so. */
  set(
    key: string,
    observed: ObservedState,
    named: readonly TargetWithRecord[],
    outcomes: readonly TargetOutcome[],
    reported: SecretBinding | undefined,
    workloads = "",
  ): void {
    const targets = new Map<string, { state: string; ending: TargetResult }>();
    const versions = new Map<ObjectRef, Version>();
    for (const [position, { record, problem, note, applied, requeueAfterMs }] of outcomes.entries()) {
      const { target, ref } = named[position] as TargetWithRecord;
      if (ref instanceof Problem || requeueAfterMs !== undefined || !endsByItsState(problem)) continue;
      // What we made or read counts, though the stream may show nothing of it yet, or of one of that name before.
      const version = applied?.version ?? observed.shown(ref);
      if (version) versions.set(ref, version);
      const state = observed.stateOf(target, ref, record, problem === undefined, version);
      const ending = { ...(problem && { problem }), ...(note !== undefined && { note }), ...(applied && { applied }) };
      targets.set(idOf(ref), { state, ending });
    }
    const fingerprint = reported && observed.fingerprint(reported, versions, workloads);
    this.#known.set(key, { fingerprint, sourceRevisions: observed.sourceRevisions, targets });
  }

  forget(key: string): void {
    this.#known.delete(key);
    this.#expired.delete(key);
  }
}

/** What no part of a target's state shows: a schema, and a rollout. */
const OUTSIDE: readonly Reason[] = ["InvalidValue", "RolloutPending"];

/** Whether only a change of what a target's state is made of can help. */
function endsByItsState(problem: Problem | undefined): boolean {
  return problem === undefined || (problem.retryPolicy === "OnChange" && !OUTSIDE.includes(problem.reason));
}
