/**
 * Remembers the results of a binding's targets together with the state that they depend on. While that state is the same, the
 * results are used again and nothing is read. A generator yields where it may be interrupted: a binding may have thousands of targets.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { idOf, type ObjectRef, type Version } from "../../apimachinery/objects.ts";
import { Problem, type Reason } from "../../apimachinery/problem.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import type { TargetWithRecord } from "../../targets/records.ts";
import type { ObservedState } from "./observed-state.ts";

/** The result of a target: it has its value, or it has a problem that only a change of its state can end. */
export type TargetResult = Pick<TargetOutcome, "problem" | "note" | "readable" | "applied">;

interface Known {
  /** Of the whole binding; undefined while something is left to do. */
  fingerprint: string | undefined;
  /** Of the sources; part of the state of each target. */
  sourceRevisions: string;
  targets: ReadonlyMap<string, { state: string; ending: TargetResult }>;
}

export class ResultCache {
  readonly #known = new Map<string, Known>();
  readonly #expired = new Set<string>();

  /**
   * Forgets the results of a binding at the start of its next reconcile. Results of a reconcile that runs now are as old as the
   * remembered ones.
   */
  expire(key: string): void {
    this.#expired.add(key);
  }

  /** Whether nothing is left to do for the binding. Called first in every reconcile. */
  isUpToDate(key: string, observed: ObservedState, binding: SecretBinding, workloads = ""): boolean {
    if (this.#expired.delete(key)) this.#known.delete(key);
    return this.#known.get(key)?.fingerprint === observed.fingerprint(binding, new Map(), workloads);
  }

  /** The results of the targets whose state is still the same. */
  *resultsOf(
    key: string,
    observed: ObservedState,
    named: readonly TargetWithRecord[],
  ): Generator<void, Map<TargetWithRecord, TargetResult>> {
    const all = this.#known.get(key);
    const known = all?.sourceRevisions === observed.sourceRevisions ? all.targets : undefined;
    const endings = new Map<TargetWithRecord, TargetResult>();
    for (const each of known === undefined ? [] : named) {
      yield;
      const { target, ref, record } = each;
      const last = ref instanceof Problem ? undefined : known?.get(idOf(ref));
      if (ref instanceof Problem || last === undefined) continue;
      const { problem, applied } = last.ending;
      const state = observed.stateOf(target, ref, record, problem === undefined, observed.shown(ref, applied?.version));
      if (state === last.state) endings.set(each, last.ending);
    }
    return endings;
  }

  /** How the last write or read left a target, whatever has happened since. */
  lastApplied(key: string, ref: ObjectRef): TargetOutcome["applied"] {
    return this.#known.get(key)?.targets.get(idOf(ref))?.ending.applied;
  }

  /** Remembers the results of the targets and, if `reported` is given, that nothing is left to do for the binding. */
  *set(
    key: string,
    observed: ObservedState,
    named: readonly TargetWithRecord[],
    outcomes: readonly TargetOutcome[],
    reported: SecretBinding | undefined,
    workloads = "",
  ): Generator<void, void> {
    const targets = new Map<string, { state: string; ending: TargetResult }>();
    const versions = new Map<ObjectRef, Version>();
    for (const [position, { record, problem, note, readable, applied, requeueAfterMs }] of outcomes.entries()) {
      yield;
      const { target, ref } = named[position] as TargetWithRecord;
      if (ref instanceof Problem || requeueAfterMs !== undefined || !endsByItsState(problem)) continue;
      // The version that Inlay wrote or read counts: the watch may not show it yet, or may still show a former object of that
      // name.
      const version = applied?.version ?? observed.shown(ref);
      if (version) versions.set(ref, version);
      const state = observed.stateOf(target, ref, record, problem === undefined, version);
      const ending = {
        ...(problem && { problem }),
        ...(note !== undefined && { note }),
        ...(readable && { readable }),
        ...(applied && { applied }),
      };
      targets.set(idOf(ref), { state, ending });
    }
    const fingerprint = reported && observed.fingerprint(reported, versions, workloads);
    this.#known.set(key, { fingerprint, sourceRevisions: observed.sourceRevisions, targets });
  }

  /** What is remembered of a binding: the fingerprint if nothing is left to do, and the number of targets with a result. */
  memoryOf(key: string): { fingerprint?: string; targets: number } | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    const { fingerprint, targets } = known;
    return { ...(fingerprint !== undefined && { fingerprint }), targets: targets.size };
  }

  forget(key: string): void {
    this.#known.delete(key);
    this.#expired.delete(key);
  }
}

/** Problems that depend on something outside of a target's state: a schema, and a rollout. */
const OUTSIDE: readonly Reason[] = ["InvalidValue", "RolloutPending"];

/** Whether only a change of the target's state can help. */
function endsByItsState(problem: Problem | undefined): boolean {
  return problem === undefined || (problem.retryPolicy === "OnChange" && !OUTSIDE.includes(problem.reason));
}
