/**
 * The story of a binding: resolve, watch, read, transform, decide, apply, report. A key comes in, the cluster as the
 * binding wants it goes out, and whether to look again. Nothing here depends on what an event said.
 */

import { FINALIZER, missingPolicyOf, type SecretBinding, type Target, type TargetStatus } from "../../api/binding.ts";
import type { ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { Left } from "../../apply/last-applied.ts";
import type { Named as Claimed } from "../../cache/field-claims.ts";
import type { Parts, WritingRun } from "../../parts.ts";
import { newlyReadable } from "../../report/readable.ts";
import { textOf, watchedFor } from "../../rollout/discover/dependents.ts";
import { notWritten, rolloutOf } from "../../rollout/event-messages.ts";
import type { Rolling } from "../../rollout/rollout-controller.ts";
import type { Rolled } from "../../rollout/status.ts";
import { readGranted } from "../../sources/grants.ts";
import { inputsOf, readSource } from "../../sources/read.ts";
import { readSources } from "../../sources/registry.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import { Planning } from "../../targets/plan-cache.ts";
import { olderClaims, yieldToOlder } from "../../targets/precedence.ts";
import { Bookkeeping } from "../../targets/record-changes.ts";
import { targetsOf } from "../../targets/records.ts";
import { resolveReferences } from "../../targets/references.ts";
import { pathsOf, releaseDeleted, releaseModeOf, releaseUnnamed } from "../../targets/release.ts";
import { type Named, type Prepared, prepareTarget, syncTarget } from "../../targets/sync.ts";
import type { LiveSource } from "../../transform/live-source.ts";
import { sourcesDiffer } from "../../transform/require-same.ts";
import { weightOf } from "../../weight.ts";
import { Turns } from "../../workqueue/cpu-scheduler.ts";
import { sideBySide } from "../../workqueue/map-concurrent.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";
import { heldStatus, refused, SUSPENDED, statusOf, type Verdict, withRecords } from "./conditions.ts";
import { Deletions } from "./deletions.ts";
import { type View, viewOf } from "./observed-state.ts";
import { whenAgain } from "./requeue.ts";
import { type Ending, Settled } from "./result-cache.ts";

const DONE: WorkResult = { retry: "never" };
const SOON: WorkResult = { retry: "backoff" };
/** Of what targets hold between being read and being written, as `weightOf` has it. */
const MOST_HELD = 16 * 1024 * 1024;

export class Reconciler {
  readonly #parts: Parts;
  /** All that the outcome of a binding depends on, as it was when nothing was left to do. */
  readonly #settled = new Settled();
  readonly #deletions = new Deletions((...deletion) => releaseDeleted(this.#parts, ...deletion));

  readonly #turns = new Turns();
  readonly #book: Bookkeeping;
  readonly #rolling: Rolling;

  constructor(parts: Parts, rolling: Rolling) {
    this.#parts = parts;
    this.#book = new Bookkeeping(parts);
    this.#rolling = rolling;
  }

  /** Takes note of a binding that is gone; its key has to be reconciled once more. */
  gone(binding: SecretBinding): void {
    this.#deletions.gone(binding);
  }

  async reconcile(key: string): Promise<WorkResult> {
    if (await this.#deletions.releaseGone(key)) return this.#reconcile(key);
    // What a binding of this name that is gone has left to give up may be what this one holds.
    this.#settled.forget(key);
    await this.#reconcile(key);
    this.#settled.forget(key);
    return SOON;
  }

  async #reconcile(key: string): Promise<WorkResult> {
    const { installation, bindings, streams, discovery, client } = this.#parts;
    const binding = bindings.get(key);
    if (binding === undefined) return this.#forget(key);
    if (binding.metadata.deletionTimestamp !== undefined) return this.#delete(key, binding);
    const closed = installation.closedNamespace(binding.metadata.namespace);
    if (closed !== undefined) return this.#hold(key, binding, refused(closed));
    if (binding.spec.suspend) return this.#hold(key, binding, SUSPENDED);

    const actor = this.#parts.actorOf(binding);
    if (actor === undefined) return DONE;
    if (actor instanceof Problem) return this.#hold(key, binding, refused(actor));
    const { identity } = actor.as;
    const references = await resolveReferences(binding, discovery, installation);
    const rollout = await this.#rolling.find(binding, identity, references);
    const view = viewOf(
      streams,
      key,
      binding,
      actor,
      references,
      (target, ref) => olderClaims(this.#parts, binding, ref, pathsOf(target)),
      rollout && [...rollout.lookups.map((lookup) => watchedFor(actor.as, lookup)), ...rollout.classes],
    );
    if (view.pending) return DONE;
    bindings.resolved(key, claimsIn(view));
    const rolling = rollout && this.#rolling.look(binding, actor.as, rollout, references.sources, view);
    if (rolling === undefined) this.#rolling.forget(key);
    else if (rolling.patienceMs > 0) return { retry: "after", ms: rolling.patienceMs };
    const workloads = rolling && textOf(rolling.dependents);
    if (this.#settled.isWhole(key, view, binding, workloads)) return DONE;

    const { account, seen, sourceUids } = view;
    const targets = targetsOf(binding, view);
    const endings = this.#settled.endingsOf(key, view, targets.named);
    const isForRollout = rolling !== undefined && this.#rolling.needsValues(rolling);
    const sources =
      endings.size === targets.named.length && !isForRollout
        ? new Map<string, LiveSource | Problem>()
        : await readSources(references, view, isForRollout, (ref, name) => {
            const policy = missingPolicyOf(binding, name);
            const read = () => readSource(client, identity, ref, policy, seen(ref));
            return readGranted(client, view.consent, ref, policy, read);
          });
    const { requireSame } = binding.spec;
    const differ = requireSame === undefined ? undefined : sourcesDiffer(requireSame, sources);
    const inputs = inputsOf(binding.metadata.generation, sources.values());
    const left = (target: Target, ref: ObjectRef) => this.#leftAt(key, view, target, ref);
    const planning = new Planning(this.#turns, binding.metadata.namespace as string);
    const run: WritingRun = {
      parts: this.#parts,
      binding,
      identity,
      account,
      differ,
      seen,
      left,
      inputs,
      sourceUids,
      planning,
    };
    const released = await releaseUnnamed(run, targets.recorded);
    const outcomes: TargetOutcome[] = [];
    let noted = binding;
    do {
      // What was read and is to be written is held until then: so many objects at once as are not too large together.
      const waiting = targets.named.slice(outcomes.length);
      let weight = 0;
      const prepare = async (each: Named): Promise<Step> => {
        const ending = endings.get(each);
        if (ending !== undefined) return { record: each.record, ending };
        const blocked = account ?? view.problemOf(each.ref);
        const yielded = blocked === undefined ? await yieldToOlder(run, each) : undefined;
        const step = yielded ?? (await prepareTarget(run, each, sources, blocked));
        weight += weightOf(step);
        return step;
      };
      const prepared = await sideBySide(waiting, prepare, () => weight < MOST_HELD);
      const others = [...waiting.slice(prepared.length), ...targets.kept, ...released];
      const records = [...outcomes, ...prepared, ...others].map(({ record }) => record);
      noted = await this.#book.withFinalizer(noted, records);
      if (acquires(prepared)) noted = await this.#book.writeStatus(noted, withRecords(noted, records));
      const synced = await sideBySide(prepared, async (each) =>
        "ending" in each ? { record: each.record, ...each.ending } : syncTarget(run, each),
      );
      outcomes.push(...synced);
      planning.forget();
    } while (outcomes.length < targets.named.length);
    const all = [...outcomes, ...targets.kept, ...released, ...view.unknown];
    // What a former target does not give back is no reason to keep the others from the values that they have.
    const blocked = notWritten(account, [...outcomes, ...view.unknown]);
    const rolled =
      rolling &&
      (await this.#rolling.roll(rolling, { sources, differ }, blocked, async (status) => {
        noted = await this.#book.writeStatus(noted, { ...noted.status, rollout: status });
      }));
    const reported = await this.#report(binding, noted, [...outcomes, ...targets.kept], released, view, rolled);
    const isDone = all.every((each) => each.problem === undefined && !("againMs" in each)) && rolled?.isDone !== false;
    this.#settled.set(key, view, targets.named, outcomes, isDone ? reported : undefined, workloads);
    return whenAgain(binding, rolled ? [...all, rolled] : all);
  }

  #leftAt(key: string, view: View, target: Target, ref: ObjectRef): Left | undefined {
    const { version: last, values } = this.#settled.standing(key, ref) ?? {};
    const version = last && view.unchanged(target, ref, last);
    return version && values !== undefined ? { version, values } : undefined;
  }

  /** Writes the status and tells what changed. `binding` is as it was read, `noted` as it is. */
  async #report(
    binding: SecretBinding,
    noted: SecretBinding,
    outcomes: readonly TargetOutcome[],
    left: readonly TargetOutcome[],
    view: View,
    rolled: Rolled | undefined,
  ): Promise<SecretBinding> {
    const { discovery } = this.#parts;
    const status = statusOf(binding, outcomes, left, new Date(), view, rolled && rolloutOf(rolled));
    const reported = await this.#book.writeStatus(noted, status);
    this.#book.tell(binding, status);
    for (const note of newlyReadable(binding, outcomes)) {
      this.#parts.events.record(binding, { type: "Normal", reason: "ReadableCopies", action: "Sync", note });
    }
    const kinds = [...outcomes, ...left].map(({ record, problem }) => ({ target: record, problem }));
    for (const { target, problem } of [...kinds, ...view.unknown]) {
      if (problem?.reason === "KindNotFound") discovery.forget(target.apiVersion);
    }
    return reported;
  }

  /** For a binding that is not acted upon. Nothing is watched either: what happened meanwhile is seen when it goes on. */
  async #hold(key: string, binding: SecretBinding, verdict: Verdict): Promise<WorkResult> {
    this.#settled.forget(key);
    const unsaid = this.#rolling.forget(key);
    this.#parts.streams.observe(key, []);
    const records = binding.status?.targets ?? [];
    const released = records.map((record) => ({ ...record, onRelease: releaseModeOf(binding, record) }));
    const held = await this.#book.withFinalizer(binding, released);
    const rolled = unsaid && rolloutOf({ status: unsaid, workloads: unsaid.pending?.workloads?.length ?? 0 });
    const status = heldStatus(held, verdict, new Date(), rolled);
    await this.#book.writeStatus(held, status);
    this.#book.tell(binding, status);
    return DONE;
  }

  async #delete(key: string, binding: SecretBinding): Promise<WorkResult> {
    const finalizers = binding.metadata.finalizers ?? [];
    if (!finalizers.includes(FINALIZER)) return DONE;
    this.#settled.forget(key);
    this.#rolling.forget(key);
    if (!(await this.#deletions.releaseHeld(binding))) return SOON;
    await this.#book.letGo(binding);
    return DONE;
  }

  #forget(key: string): WorkResult {
    this.#settled.forget(key);
    this.#rolling.forget(key);
    this.#parts.streams.observe(key, []);
    return DONE;
  }
}

/** What is left to do for a target, or what came of it already. */
type Step = Prepared | { record: TargetStatus; ending: Ending };

/** Before a path is written or an object made for the first time, status says so: a crash leaves nothing unrecorded. */
function acquires(prepared: readonly Step[]): boolean {
  return prepared.some((each) => {
    if ("whole" in each) return each.isNew;
    return "decision" in each && each.decision.write && each.decision.acquires.length > 0;
  });
}

/** The objects that a binding's targets are, with what it names there. */
function claimsIn({ members }: View): Claimed[] {
  return members.flatMap(({ target, ref }) => (ref instanceof Problem ? [] : [{ ref, paths: [...pathsOf(target)] }]));
}
