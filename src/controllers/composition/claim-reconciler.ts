/**
 * Reconciles one claim of a composition: composes its bindings, creates and corrects them, and writes back the fields that the
 * claim shows.
 */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { composedFrom, patchedFields } from "../../api/composed.ts";
import type { Installation } from "../../api/installation.ts";
import { apiVersionOf, type JsonObject } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { CachedObject } from "../../cache/cached-object.ts";
import type { Claim } from "../../composition/claim.ts";
import type { CompiledBinding } from "../../composition/compile.ts";
import { type ComposedBinding, composeBinding } from "../../composition/compose.ts";
import { type DesiredBinding, desiredBinding, desiredKey } from "../../composition/made-binding.ts";
import { writeBack } from "../../composition/write-back.ts";
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
  async release({ composition, state, accepted, key }: ClaimRef): Promise<WorkResult> {
    state.record(key, undefined);
    this.#services.index.want(composition, key, []);
    if (state.isSuspended) return { retry: "never" };
    const obsolete = this.#ownOf(composition, state, key);
    return accepted.generated.sync(key, [], obsolete, () => undefined);
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
    const composed = await this.#composeAll(ref, claim);
    // The composition has changed meanwhile, so the claim is queued again, or is to get no binding.
    if (state.accepted !== accepted || state.problem !== undefined) return { retry: "never" };
    const size = [...composed.values()].reduce((sum, each) => sum + (each instanceof Problem ? 0 : each.size), 0);
    const { bindingBytesPerNamespace: most } = this.#services.installation.limits;
    if (size > 0 && state.sizeWith(key, size) > most) {
      this.exclude(ref, seen, tooLargeTogether(claim, most));
      return LATER;
    }
    const before = state.records.get(key);
    const own = this.#ownOf(composition, state, key);
    for (const each of own) this.#remember(state, key, each);
    const { desired, held, problems, failed, taken } = this.#decide(ref, claim, composed, own, before);
    this.#services.index.want(composition, key, [...desired.keys(), ...taken]);
    // More problems are added to these below.
    state.record(key, { uid: seen.uid, desired, held, problems, size });
    if (state.isSuspended) return { retry: "never" };
    const obsolete = own.filter((each) => {
      const template = composedFrom(each)?.template ?? "";
      return !desired.has(bindingKey(each)) && !held.has(template);
    });
    const find = (each: DesiredBinding) => this.#services.bindings.get(desiredKey(each));
    const results: WorkResult[] = [];
    try {
      results.push(await accepted.generated.sync(key, [...desired.values()], obsolete, find));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const failures = [...accepted.generated.failuresOf(key).values()];
      problems.push(...(failures.length > 0 ? failures.map(notCreated) : [error]));
    }
    for (const [name, problem] of accepted.generated.failuresOf(key)) {
      const template = [...desired.values()].find((each) => each.name === name)?.template;
      if (template !== undefined) failed.set(template, notCreated(problem));
    }
    const left = own.filter((each) => held.has(composedFrom(each)?.template ?? ""));
    const written = await this.#writeBack(ref, claim, { desired, left, failed });
    problems.push(...written.problems);
    if (written.result !== undefined) results.push(written.result);
    this.#announce(claim, ref, problems, before?.problems ?? []);
    const retried = requeueResult(
      { metadata: { namespace: composition } },
      problems.map((problem) => ({ problem })),
    );
    return soonest([...results, retried]);
  }

  /** The bindings labelled as composed for the claim, except those known to belong to another claim. */
  #ownOf(composition: string, { own }: CompositionState, key: string): SecretBinding[] {
    return this.#services.index.bindingsOf(composition, key).filter((each) => {
      const known = own.get(bindingKey(each));
      return known?.uid !== each.metadata.uid || known.claim === key;
    });
  }

  /** The labels that a binding has when it is first seen count from then on. */
  #remember({ own }: CompositionState, claim: string, binding: SecretBinding): void {
    const { uid } = binding.metadata;
    const claimUID = composedFrom(binding)?.claimUID;
    if (claimUID !== undefined && own.get(bindingKey(binding))?.uid !== uid)
      own.set(bindingKey(binding), { uid, claim, claimUID });
  }

  /** The binding of each entry, or why there is none. A claim chooses the size of its fields, so each one takes a turn of the processor. */
  async #composeAll(
    { composition, accepted }: ClaimRef,
    claim: Claim,
  ): Promise<Map<string, ComposedBinding | Problem>> {
    const { compiled } = accepted;
    const composed = new Map<string, ComposedBinding | Problem>();
    for (const binding of compiled.bindings) {
      const compose = () => attemptSync(() => composeBinding(compiled, binding, claim));
      composed.set(binding.name, await this.#services.cpu.run(claim.namespace ?? composition, compose));
    }
    return composed;
  }

  /** Decides which bindings the claim gets. */
  #decide(
    ref: ClaimRef,
    claim: Claim,
    all: ReadonlyMap<string, ComposedBinding | Problem>,
    own: readonly SecretBinding[],
    before: ClaimRecord | undefined,
  ) {
    const { compiled } = ref.accepted;
    const desired = new Map<string, DesiredBinding>();
    const held = new Set<string>();
    const problems: Problem[] = [];
    const failed = new Map<string, Problem>();
    const taken: string[] = [];
    for (const binding of compiled.bindings) {
      const existing = own.filter((each) => isComposedFor(each, binding, claim));
      const composed = all.get(binding.name) as ComposedBinding | Problem;
      const found = composed instanceof Problem ? composed : this.#check(ref, claim, composed, existing, desired);
      if (!(composed instanceof Problem) && found instanceof Problem) taken.push(desiredKey(composed));
      if (!(found instanceof Problem)) {
        desired.set(desiredKey(found), found);
        continue;
      }
      // A claim that asks for something unsupported gets one message for all entries.
      if (!problems.some((each) => each.isSame(found))) problems.push(found);
      failed.set(binding.name, found);
      if (found.reason === "NameTaken") continue;
      // The binding stays as last composed, and is corrected, if that is still known.
      const last = [...(before?.desired.values() ?? [])].find(({ template }) => template === binding.name);
      if (last !== undefined && before?.uid === claim.uid) desired.set(desiredKey(last), last);
      else if (existing.length > 0) held.add(binding.name);
    }
    return { desired, held, problems, failed, taken };
  }

  /**
   * Whether the binding can be created as composed: all its required fields of the claim exist, and no other binding has its
   * name.
   */
  #check(
    { composition, state, accepted, key }: ClaimRef,
    claim: Claim,
    composed: ComposedBinding,
    existing: readonly SecretBinding[],
    others: ReadonlyMap<string, DesiredBinding>,
  ): DesiredBinding | Problem {
    // An existing binding keeps its name. A binding in another namespace does not count, whatever its labels say.
    const there = existing.filter(({ metadata }) => metadata.namespace === composed.namespace);
    const kept = there.find(({ metadata }) => metadata.name === composed.name) ?? there[0];
    const name = kept?.metadata.name ?? composed.name;
    const owner = { ...claim, apiVersion: accepted.ownerApiVersion };
    const binding = desiredBinding({ ...composed, name }, { composition, claim: key, owner });
    const present = this.#services.bindings.get(desiredKey(binding));
    const from = present && composedFrom(present);
    const known = present && state.own.get(bindingKey(present));
    const namesThisClaim = from?.composition === composition && from.claim === key;
    const isOwn = known !== undefined && known.uid === present?.metadata.uid ? known.claim === key : namesThisClaim;
    const isTaken = present !== undefined && !isOwn;
    if (isTaken || others.has(desiredKey(binding))) {
      const message = `another SecretBinding in namespace ${binding.namespace} has the name ${binding.name}; delete it, or set metadata.name with a patch`;
      return new Problem("NameTaken", message);
    }
    const patched = new Set(kept ? patchedFields(kept) : []);
    const gone = composed.missing.find(
      ({ isRequired, isRemoved, toFieldPath }) => isRequired || (!isRemoved && patched.has(toFieldPath)),
    );
    if (gone === undefined) return binding;
    const consequence = kept ? "so the binding is not changed" : "so the binding is not created";
    return new Problem(
      "FieldNotFound",
      `${gone.place}: the claim has no ${gone.path}, ${consequence}; add the field to the claim`,
    );
  }

  async #writeBack(
    ref: ClaimRef,
    claim: Claim,
    {
      desired,
      left,
      failed,
    }: {
      desired: ReadonlyMap<string, DesiredBinding>;
      /** Existing bindings whose last composed form is no longer known. */
      left: readonly SecretBinding[];
      failed: ReadonlyMap<string, Problem>;
    },
  ) {
    const { compiled, identity, resource } = ref.accepted;
    if (compiled.writes.length === 0) return { problems: [] };
    const byTemplate = new Map<string, object>(left.map((each) => [composedFrom(each)?.template ?? "", each]));
    for (const [key, { template }] of desired) {
      const binding = this.#services.bindings.get(key);
      if (binding !== undefined) byTemplate.set(template, binding);
    }
    const name = claim.namespace ?? ref.composition;
    const { fields, problems } = await this.#services.cpu.run(name, () =>
      writeBack(compiled, byTemplate, failed, claim),
    );
    if (Object.keys(fields).length === 0) return { problems };
    const { namespace, uid } = claim;
    const target = { resource, name: claim.name, ...(namespace !== undefined && { namespace }) };
    try {
      const write = { composition: ref.composition, identity, ref: target, uid, fields, present: claim.fields };
      return { problems, result: await this.#services.writer.write(write) };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return { problems: [...problems, error] };
    }
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

const isComposedFor = (each: SecretBinding, { name }: CompiledBinding, { uid }: Claim): boolean => {
  const from = composedFrom(each);
  return from?.template === name && from.claimUID === uid;
};

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
