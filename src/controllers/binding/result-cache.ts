/**
 * What came of a binding's targets when nothing was left to do comes in, with the state of all that it depends on; while
 * that state is the same, it goes out again, and nobody has to look.
 */
import type { SecretBinding } from "../../api/binding.ts";
import { idOf, type ObjectRef, type Version } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import type { Named } from "../../targets/sync.ts";
import type { View } from "./observed-state.ts";

/** What came of a target: its value stands, or only a change of its state can help. */
export type Ending = Pick<TargetOutcome, "problem" | "note" | "stands">;

interface Known {
  /** Of the whole binding; undefined while there is something to do. */
  fingerprint: string | undefined;
  targets: ReadonlyMap<string, { state: string; ending: Ending }>;
}

export class Settled {
  readonly #known = new Map<string, Known>();

  /** Whether there is nothing to do for the binding. */
  isWhole(key: string, view: View, binding: SecretBinding, workloads = ""): boolean {
    return this.#known.get(key)?.fingerprint === view.fingerprint(binding, new Map(), workloads);
  }

  /** What came of those targets whose state is still the same. */
  endingsOf(key: string, view: View, named: readonly Named[]): Map<Named, Ending> {
    const known = this.#known.get(key)?.targets;
    const endings = new Map<Named, Ending>();
    for (const each of known === undefined ? [] : named) {
      const { target, ref, record } = each;
      const last = ref instanceof Problem ? undefined : known?.get(idOf(ref));
      if (ref instanceof Problem || last === undefined) continue;
      const { problem, stands } = last.ending;
      const state = view.stateOf(target, ref, record, problem === undefined, view.shown(ref, stands?.version));
      if (state === last.state) endings.set(each, last.ending);
    }
    return endings;
  }

  /** How the last write left a target, or a look at it, whatever happened since. */
  standing(key: string, ref: ObjectRef): TargetOutcome["stands"] {
    return this.#known.get(key)?.targets.get(idOf(ref))?.ending.stands;
  }

  /** Remembers what came of each target, and that nothing is left to do for the binding as `reported`, if so. */
  set(
    key: string,
    view: View,
    named: readonly Named[],
    outcomes: readonly TargetOutcome[],
    reported: SecretBinding | undefined,
    workloads = "",
  ): void {
    const targets = new Map<string, { state: string; ending: Ending }>();
    const versions = new Map<ObjectRef, Version>();
    for (const [position, { record, problem, note, stands, againMs }] of outcomes.entries()) {
      const { target, ref } = named[position] as Named;
      if (ref instanceof Problem || againMs !== undefined || !endsByItsState(problem)) continue;
      // What we made or read counts, though the stream may show nothing of it yet, or of one of that name before.
      const version = stands?.version ?? view.shown(ref);
      if (version) versions.set(ref, version);
      const state = view.stateOf(target, ref, record, problem === undefined, version);
      const ending = { ...(problem && { problem }), ...(note !== undefined && { note }), ...(stands && { stands }) };
      targets.set(idOf(ref), { state, ending });
    }
    this.#known.set(key, { fingerprint: reported && view.fingerprint(reported, versions, workloads), targets });
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}

/** Whether only a change of what a target's state is made of can help. A schema is no part of it. */
function endsByItsState(problem: Problem | undefined): boolean {
  return problem === undefined || (problem.healing === "event" && problem.reason !== "InvalidValue");
}
