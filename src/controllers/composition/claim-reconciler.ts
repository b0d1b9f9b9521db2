/**
 * Reconciles one claim of a composition: composes its bindings, creates and corrects them, and writes back the fields that the
 * claim shows.
 */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import type { Installation } from "../../api/installation.ts";
import { apiVersionOf, type JsonObject } from "../../apimachinery/objects.ts";
import { distinct, Problem } from "../../apimachinery/problem.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import type { Claim } from "../../composition/claim.ts";
import { type ComposedEntry, composeBinding } from "../../composition/compose.ts";
import { type DecidedEntry, type DesiredBinding, decideBindings, desiredKey } from "../../composition/made-binding.ts";
import { writeBack } from "../../composition/write-back.ts";
import { attempt } from "../../kube/access-error.ts";
import type { EventRecorder } from "../../observability/events.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import { soonest } from "../../workqueue/soonest.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";
import { requeueResult } from "../binding/requeue.ts";
import type { ClaimWriter } from "./claim-writer.ts";
import type { ComposedIndex } from "./composed-index.ts";
import type { AcceptedComposition, ClaimRecord, CompositionState } from "./composition-state.ts";
import { placeOfClaim } from "./keys.ts";

interface Services {
  bindings: Pick<BindingStore, "get">;
  index: Pick<ComposedIndex, "bindingsOf" | "want">;
  writer: Pick<ClaimWriter, "write">;
  events: Pick<EventRecorder, "recordOn">;
  cpu: Pick<CpuScheduler, "run">;
  metrics: Pick<Metrics, "limited">;
  installation: Pick<Installation, "limits">;
}

const NONE: ReadonlyMap<string, DesiredBinding> = new Map();
/** Other claims of the namespace may have become smaller. */
const LATER: WorkResult = { retry: "after", ms: 10 * 60_000 };

/** At most so many problems of a claim are kept. */
const MAX_PROBLEMS = 10;

/** A claim of a composition. */
export interface ClaimRef {
  readonly composition: string;
  readonly state: CompositionState;
  readonly accepted: AcceptedComposition;
  /** The claim's key. */
  readonly key: string;
}

export class ClaimReconciler {
  readonly #services: Services;

  constructor(services: Services) {
    this.#services = services;
  }

  /** Deletes the bindings of a claim that is deleted or no longer selected. */
  async release(ref: ClaimRef): Promise<WorkResult> {
    const { composition, state, accepted, key } = ref;
    state.record(key, undefined);
    this.#services.index.want(composition, key, []);
    if (state.isSuspended) return { retry: "never" };
    return accepted.generated.sync(key, [], this.#ownOf(ref), () => undefined);
  }

  /** Keeps all bindings as they are while the claim is being deleted and other finalizers keep it. */
  hold({ state, accepted, key }: ClaimRef, { uid }: CachedObject): void {
    if (state.records.get(key)?.uid !== uid) state.record(key, heldRecord(accepted, uid, []));
  }

  /** Keeps all bindings of a claim as they are that gets none, because its namespace exceeds a limit. */
  exclude(ref: ClaimRef, seen: CachedObject, problem: Problem): void {
    const { composition, state, accepted, key } = ref;
    const { problems: before = [], isExcess } = state.records.get(key) ?? {};
    state.record(key, { ...heldRecord(accepted, seen.uid, [problem]), isExcess: true });
    this.#services.index.want(composition, key, []);
    if (isExcess && before.some(({ reason }) => reason === problem.reason)) return;
    this.#services.metrics.limited(problem.reason === "TooLarge" ? "bindingBytesPerNamespace" : "claimsPerNamespace");
    this.#announce(claimOf(ref, seen), ref, [problem], before);
  }

  async reconcile(ref: ClaimRef, seen: CachedObject): Promise<WorkResult> {
    const { composition, state, accepted, key } = ref;
    const claim = claimOf(ref, seen);
    const entries = await this.#compose(ref, claim);
    // The composition has changed meanwhile, so the claim is queued again, or is to get no binding.
    if (state.accepted !== accepted || state.problem !== undefined) return { retry: "never" };
    const size = entries.reduce((sum, { composed }) => sum + (composed?.size ?? 0), 0);
    const { bindingBytesPerNamespace: most } = this.#services.installation.limits;
    if (size > 0 && state.sizeWith(key, size) > most) {
      this.exclude(ref, seen, tooLargeTogether(claim, most));
      return LATER;
    }
    const before = state.records.get(key);
    const own = this.#ownOf(ref);
    const origin = { composition, claim: key, owner: { ...claim, apiVersion: accepted.ownerApiVersion } };
    const last = before?.uid === claim.uid ? [...before.desired.values()] : [];
    const decided = decideBindings(entries, origin, { own, last, isTaken: (each) => this.#isTaken(ref, each) });
    const desired = new Map(decided.flatMap(({ desired: each }) => (each ? [[desiredKey(each), each]] : [])));
    const held = new Set(decided.flatMap(({ isHeld, entry }) => (isHeld ? entry.name : [])));
    // A change of a binding with one of these names queues the claim again.
    this.#services.index.want(composition, key, [...desired.keys(), ...decided.flatMap(({ name }) => name ?? [])]);
    // A claim that asks for something unsupported gets one message for all entries.
    const wrong = distinct(decided.flatMap(({ problems }) => problems.slice(0, MAX_PROBLEMS)));
    const record = { uid: seen.uid, desired, held, size };
    state.record(key, { ...record, problems: wrong.slice(0, MAX_PROBLEMS) });
    if (state.isSuspended) return { retry: "never" };
    const isHeld = (each: SecretBinding) => held.has(composedFrom(each)?.template ?? "");
    const obsolete = own.filter((each) => !desired.has(bindingKey(each)) && !isHeld(each));
    const { generated } = accepted;
    const synced = await attempt(generated.sync(key, [...desired.values()], obsolete, (each) => this.#find(each)));
    const failures = new Map([...generated.failuresOf(key)].map(([name, each]) => [name, notCreated(each)]));
    const written = await this.#writeBack(ref, claim, decided, own, failures);
    const outcomes = [...wrong, ...(failures.size > 0 ? failures.values() : [synced]), ...written];
    const problems = outcomes.filter((each) => each instanceof Problem);
    const recorded = problems.slice(0, MAX_PROBLEMS);
    state.record(key, { ...record, problems: recorded });
    this.#announce(claim, ref, recorded, before?.problems ?? []);
    const retried = requeueResult(
      composition,
      problems.map((problem) => ({ problem })),
    );
    return soonest([...outcomes.flatMap((each) => (each instanceof Problem ? [] : each)), retried]);
  }

  /** A claim chooses the size of its fields, so each entry takes a turn of the processor. */
  async #compose({ composition, accepted: { compiled } }: ClaimRef, claim: Claim): Promise<ComposedEntry[]> {
    const entries: ComposedEntry[] = [];
    for (const entry of compiled.bindings) {
      const compose = () => composeBinding(compiled, entry, claim);
      entries.push(await this.#services.cpu.run(claim.namespace ?? composition, compose));
    }
    return entries;
  }

  /** The bindings of the claim. The labels that a binding has when it is first seen count from then on. */
  #ownOf(ref: ClaimRef): SecretBinding[] {
    const { composition, state, key: claim } = ref;
    const own = this.#services.index.bindingsOf(composition, claim).filter((each) => isOwn(ref, each));
    for (const each of own) {
      const { uid } = each.metadata;
      const claimUID = composedFrom(each)?.claimUID;
      if (claimUID !== undefined && state.ownOf(each) === undefined)
        state.own.set(bindingKey(each), { uid, claim, claimUID });
    }
    return own;
  }

  /** Whether a binding that is not of the claim has the name. */
  #isTaken(ref: ClaimRef, desired: DesiredBinding): boolean {
    const present = this.#find(desired);
    return present !== undefined && !isOwn(ref, present);
  }

  /** The existing binding of that name. */
  #find(desired: DesiredBinding): SecretBinding | undefined {
    return this.#services.bindings.get(desiredKey(desired));
  }

  /** Writes into the claim what patches read from its bindings. `failures` are those of writing them, by their names. */
  async #writeBack(
    { composition, accepted: { compiled, identity, resource } }: ClaimRef,
    claim: Claim,
    decided: readonly DecidedEntry[],
    own: readonly SecretBinding[],
    failures: ReadonlyMap<string, Problem>,
  ): Promise<(Problem | WorkResult)[]> {
    if (compiled.writes.length === 0) return [];
    const present = new Map<string, SecretBinding>();
    const failed = new Map<string, Problem>();
    for (const { entry, desired, isHeld, problems } of decided) {
      const held = isHeld ? own.findLast((each) => composedFrom(each)?.template === entry.name) : undefined;
      const binding = desired === undefined ? held : this.#find(desired);
      const problem = failures.get(desired?.name ?? "") ?? problems[0];
      if (binding !== undefined) present.set(entry.name, binding);
      if (problem !== undefined) failed.set(entry.name, problem);
    }
    const { namespace, name, uid } = claim;
    const write = () => writeBack(compiled, present, failed, claim);
    const { fields, problems } = await this.#services.cpu.run(namespace ?? composition, write);
    if (Object.keys(fields).length === 0) return [...problems];
    const ref = { resource, name, ...(namespace !== undefined && { namespace }) };
    const wanted = { composition, identity, ref, uid, fields, present: claim.fields };
    return [...problems, await attempt(this.#services.writer.write(wanted))];
  }

  /** Records an event on the claim for each new problem. */
  #announce(claim: Claim, { composition }: ClaimRef, problems: readonly Problem[], before: readonly Problem[]): void {
    const { apiVersion, kind, name, namespace, uid } = claim;
    const regarding = { apiVersion, kind, metadata: { name, namespace, uid } };
    for (const problem of problems) {
      const { reason, message } = problem;
      // generated-bindings.ts records events for these.
      if (before.some((each) => problem.isSame(each)) || reason === "BindingNotMade") continue;
      const note = `BindingComposition ${composition}: ${message}`;
      this.#services.events.recordOn(regarding, { type: "Warning", reason, action: "Compose", note });
    }
  }
}

const heldRecord = ({ entries }: AcceptedComposition, uid: string, problems: Problem[]): ClaimRecord => ({
  uid,
  desired: NONE,
  held: entries,
  problems,
  size: 0,
});

const tooLargeTogether = ({ namespace = "" }: Claim, most: number): Problem =>
  new Problem(
    "TooLarge",
    `the bindings of the claims in namespace ${namespace} have more than ${most} bytes together; make the claims smaller, or ask the administrator of Inlay to raise limits.bindingBytesPerNamespace`,
  );

/** A refusal by a quota or a policy concerns the binding, whatever its reason. */
const notCreated = (problem: Problem): Problem =>
  problem.reason === "Unavailable" ? problem : new Problem("BindingNotMade", problem, problem.retryPolicy);

/** Whether the binding was composed for the claim. */
function isOwn({ composition, state, key }: ClaimRef, binding: SecretBinding): boolean {
  const known = state.ownOf(binding);
  if (known !== undefined) return known.claim === key;
  const from = composedFrom(binding);
  return from?.composition === composition && from.claim === key;
}

function claimOf({ accepted, key }: ClaimRef, { uid, fields = {} }: CachedObject): Claim {
  const { resource } = accepted;
  const { namespace, name } = placeOfClaim(key);
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    ...(namespace !== "" && { namespace }),
    uid,
    fields: fields as JsonObject,
  };
}
