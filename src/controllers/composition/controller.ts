/**
 * The controller of BindingCompositions: it decides which compositions Inlay processes, watches their claims, and queues a key
 * for each claim to reconcile.
 */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import type { BindingComposition } from "../../api/composition.ts";
import type { Installation } from "../../api/installation.ts";
import { SetsByKey } from "../../apimachinery/maps.ts";
import { apiVersionOf, type Resource } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import { BINDING_COMPOSITIONS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { Informers } from "../../cache/informers.ts";
import type { ResourceStore } from "../../cache/resource-store.ts";
import { namespaceOfClaim } from "../../composition/claim.ts";
import { compileComposition } from "../../composition/compile.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import type { Discovery } from "../../kube/discovery.ts";
import { CONTROLLER, serviceAccountIdentity } from "../../kube/identity.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { ProducedBy } from "../../sources/grant-rules.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import { BACKOFF, DONE, WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { orWhenStalled, requeueResult } from "../binding/requeue.ts";
import { GeneratedBindings } from "../generated-bindings.ts";
import { untilTooLarge } from "../status-writer.ts";
import { ClaimReconciler, type ClaimRef } from "./claim-reconciler.ts";
import { ClaimWriter } from "./claim-writer.ts";
import { Claims } from "./claims.ts";
import { CleanUp, type CleanUpServices } from "./clean-up.ts";
import { ComposedIndex } from "./composed-index.ts";
import { CompositionState } from "./composition-state.ts";
import { ACCEPTED, notAccepted, outOfScope, SUSPENDED } from "./composition-status.ts";
import { claimKey, groupOf, parseKey, statusKey } from "./keys.ts";
import { generatorOf } from "./made-bindings.ts";
import { Reporter } from "./reporter.ts";

interface ProducerServices {
  /** Undefined while the list of compositions is not complete. */
  exists(composition: string): boolean | undefined;
  stateOf(composition: string): CompositionState | undefined;
  claims: Pick<Claims, "get">;
  index: Pick<ComposedIndex, "allOf" | "bindingsOf">;
}

/** Each binding is called, however many have the labels. */
const ALL = Number.POSITIVE_INFINITY;

/** Answers which composition generates a binding, from the present claims and never from the labels of the binding. */
export class Producers {
  readonly #services: ProducerServices;
  /** By composition, the bindings whose answer was not known when it was asked for. */
  readonly #asked = new SetsByKey<string, string>();
  #changed: (key: string) => void = () => {};

  constructor(services: ProducerServices) {
    this.#services = services;
  }

  onChange(changed: (key: string) => void): void {
    this.#changed = changed;
  }

  /**
   * Also `unknown` while the binding differs from the wanted one, and `pending` until its claim is reconciled or while Inlay
   * updates it.
   */
  of(binding: SecretBinding): ProducedBy {
    const from = composedFrom(binding);
    if (from === undefined || this.#services.exists(from.composition) === false) return "none";
    const { composition } = from;
    const key = bindingKey(binding);
    const answer = this.#composes(binding, key, from);
    if (typeof answer === "object" || answer === "none") return answer;
    this.#asked.add(composition, key);
    return answer;
  }

  /** Call it when a claim was reconciled. */
  known(composition: string, claim: string): void {
    if (!this.#asked.has(composition)) return;
    for (const binding of this.#services.index.bindingsOf(composition, claim, ALL))
      if (this.#asked.remove(composition, bindingKey(binding))) this.#changed(bindingKey(binding));
  }

  /** Call it when the list of compositions is complete. */
  listed(): void {
    for (const composition of [...this.#asked.keys()])
      if (this.#services.exists(composition) === false) this.considered(composition);
  }

  /** Call it when the composition was reconciled: its bindings need not wait any longer. */
  considered(composition: string): void {
    const asked = this.#asked.get(composition) ?? [];
    this.#asked.delete(composition);
    for (const key of asked) this.#changed(key);
  }

  /** Call it when the composition is deleted. From then on, no composition generates the bindings that it left. */
  gone(composition: string): void {
    this.#asked.delete(composition);
    for (const binding of this.#services.index.allOf(composition)) this.#changed(bindingKey(binding));
  }

  bindingGone(composition: string, key: string): void {
    this.#asked.remove(composition, key);
  }

  #composes(
    binding: SecretBinding,
    key: string,
    { composition, claim, template }: NonNullable<ReturnType<typeof composedFrom>>,
  ): ProducedBy {
    const state = this.#services.stateOf(composition);
    const record = state?.records.get(claim);
    if (record === undefined && (state === undefined || state.isComing(claim))) return "pending";
    if (record === undefined) return this.#services.claims.get(composition, claim) === "absent" ? "none" : "unknown";
    if (record.held.has(template)) return "unknown";
    const desired = record.desired.get(key);
    if (desired === undefined) return "none";
    const accepted = state?.accepted;
    if (state === undefined || accepted === undefined) return "unknown";
    const { generated } = accepted;
    const isUpdated = () => state.isActive && !state.isSuspended && generated.isUnderWay(claim, binding);
    if (!generated.isAsGenerated(binding, desired)) return isUpdated() ? "pending" : "unknown";
    const claimNamespace = namespaceOfClaim(desired.owner, accepted.compiled.kind);
    return { by: composition, ...(claimNamespace !== undefined && { claimNamespace }) };
  }
}

/**
 * Puts the compiled composition into `state`, unless it is up to date. Returns why the composition can't be processed. `written`
 * is called with the key of a binding that was written without a change that a watch shows.
 */
async function accept(
  services: Services,
  composition: BindingComposition,
  state: CompositionState,
  written: (key: string) => void,
): Promise<Problem | undefined> {
  const { metadata, spec } = composition;
  const { apiVersion, kind } = spec.for;
  if (state.noticeRefresh(composition)) services.discovery.forget(apiVersion);
  const resource = await attempt(services.discovery.byKindAsNamed(apiVersion, kind));
  if (resource instanceof Problem) return resource;
  if (resource === undefined) return services.discovery.kindNotFound(apiVersion, kind);
  const { generation = 0, name } = metadata;
  const before = state.accepted;
  if (before?.generation === generation && servingOf(before.resource) === servingOf(resource)) return undefined;
  const compiled = attemptSync(() => compileComposition(spec, resource));
  if (compiled instanceof Problem) return compiled;
  const preferred = await attempt(services.discovery.byKindInGroup(apiVersion, kind));
  if (preferred instanceof Problem) return preferred;
  const identity = serviceAccountIdentity(spec.serviceAccount.namespace, spec.serviceAccount.name);
  const ownOf = (each: SecretBinding) => state.ownOf(each);
  const generated =
    before?.identity === identity
      ? before.generated
      : new GeneratedBindings(services, generatorOf(name, identity, ownOf), written);
  const ownerApiVersion = apiVersionOf(preferred ?? resource);
  const entries = new Set(compiled.bindings.map((each) => each.name));
  state.accepted = { generation, compiled, entries, resource, ownerApiVersion, identity, generated };
  state.isListed = false;
  return undefined;
}

/** The properties of a served kind that matter here. */
const servingOf = ({ version, plural, namespaced, hasStatus }: Resource): string =>
  [version, plural, namespaced, hasStatus].join();

interface Services extends CleanUpServices {
  metrics: Pick<Metrics, "objects" | "limited">;
  cpu: Pick<CpuScheduler, "run">;
  installation: Installation;
  client: Client;
  discovery: Pick<Discovery, "byKindAsNamed" | "byKindInGroup" | "kindNotFound" | "forget">;
  bindings: BindingStore;
  informers: Pick<Informers, "watcher">;
  storeOf<T extends BindingComposition>(resource: typeof BINDING_COMPOSITIONS): ResourceStore<T>;
}

const BACKOFF_MS = { first: 500, most: 30_000 };

export class CompositionController {
  readonly name = "bindingcomposition";
  /** Undefined in an installation for one namespace, which may not be allowed to watch compositions. */
  readonly store: ResourceStore<BindingComposition> | undefined;
  readonly #store: ResourceStore<BindingComposition>;
  /** Contains keys of compositions, of their claims, and of their status. */
  readonly queue: WorkQueue;
  readonly #services: Services;
  readonly #states = new Map<string, CompositionState>();
  readonly #claims: Claims;
  readonly #index: ComposedIndex;
  readonly #reconciler: ClaimReconciler;
  readonly #reporter: Reporter;
  readonly #cleanUp: CleanUp;
  readonly #producers: Producers;

  constructor(services: Services, concurrency: number) {
    const { installation, bindings, informers } = services;
    this.#services = services;
    const store = services.storeOf<BindingComposition>(BINDING_COMPOSITIONS);
    this.#store = store;
    this.store = installation.scope === undefined ? store : undefined;
    this.queue = new WorkQueue({ concurrency, backoffMs: BACKOFF_MS, groupOf });
    this.#claims = new Claims(informers, installation, (composition, claim, cause) =>
      this.queue.add(claim === undefined ? composition : claimKey(composition, claim), cause),
    );
    this.#index = new ComposedIndex(bindings, (composition, claim, key) =>
      this.#bindingChanged(composition, claim, key),
    );
    const index = this.#index;
    this.#reconciler = new ClaimReconciler({ ...services, index, writer: new ClaimWriter(services) });
    this.#reporter = new Reporter({ ...services, store });
    this.#cleanUp = new CleanUp(services, index, this.#reporter);
    this.#producers = new Producers({
      exists: (name) => {
        // An installation for one namespace processes no compositions.
        if (installation.scope !== undefined) return false;
        return store.state.phase === "synced" ? store.get(name) !== undefined : undefined;
      },
      stateOf: (name) => this.#states.get(name),
      claims: this.#claims,
      index,
    });
    store.listen({
      // Most changes are of the status that Inlay writes itself.
      changed: (key, composition) => {
        if (this.#states.get(key)?.isKnown(composition) !== true) this.queue.add(key);
      },
      gone: (key, { metadata }) => {
        this.#cleanUp.forget(metadata);
        this.queue.add(key);
      },
      synced: () => {
        this.#producers.listed();
        for (const { metadata } of store.all) this.queue.add(metadata.name, "resync");
      },
    });
    bindings.listen({ changed: () => {}, gone: (_, binding) => this.#bindingGone(binding) });
  }

  /** The composition that generates a binding, computed from the present claims. */
  compositionOf(binding: SecretBinding): ProducedBy {
    return this.#producers.of(binding);
  }

  /**
   * Calls back with the key of a binding for which `compositionOf` returned `unknown` or `pending` and may return something else
   * now.
   */
  onProducerChanged(changed: (key: string) => void): void {
    this.#producers.onChange(changed);
  }

  /** In an installation for one namespace, reports that compositions are out of scope, if it is allowed to watch them. */
  start(): void {
    const { client, installation } = this.#services;
    if (installation.scope === undefined) return;
    client.may(CONTROLLER, "watch", BINDING_COMPOSITIONS).then(
      (isAllowed) => isAllowed && this.#store.start(),
      () => {},
    );
  }

  async stop(): Promise<void> {
    if (this.store === undefined) await this.#store.stop();
  }

  async reconcile(key: string): Promise<WorkResult> {
    const { composition, claim } = parseKey(key);
    if (claim === undefined)
      return untilTooLarge(this.#reconcileComposition(composition)).finally(() => this.#considered(composition));
    return claim === "" ? untilTooLarge(this.#report(composition)) : this.#reconcileClaim(composition, claim);
  }

  #considered(name: string): void {
    const state = this.#states.get(name);
    if (state !== undefined) state.isConsidered = true;
    this.#producers.considered(name);
  }

  async #reconcileComposition(name: string): Promise<WorkResult> {
    const composition = this.#store.get(name);
    if (composition === undefined) return this.#forget(name);
    const { installation, bindings } = this.#services;
    if (installation.scope !== undefined) {
      await this.#reporter.holdQuietly(composition, outOfScope(installation.scope));
      return DONE;
    }
    const isDeleted = composition.metadata.deletionTimestamp !== undefined;
    // Until then, the composition has no state: it is not known which bindings it composes.
    if (!isDeleted && bindings.state.phase !== "synced") return BACKOFF;
    const state = this.#states.get(name) ?? new CompositionState();
    this.#states.set(name, state);
    if (isDeleted) {
      state.accepted = undefined;
      this.#claims.forget(name);
      return this.#cleanUp.run(composition);
    }
    const stored = await this.#reporter.addFinalizer(composition);
    state.problem = await accept(this.#services, stored, state, (key) => this.#written(name, key));
    if (state.problem !== undefined) return this.#refuse(stored, state.problem);
    if (state.isSuspended !== (stored.spec.suspend === true)) state.isListed = false;
    state.isSuspended = stored.spec.suspend === true;
    if (state.accepted !== undefined) this.#claims.follow(name, stored.spec.for, state.accepted);
    this.#addClaims(name, state);
    if (state.isSuspended) await this.#reporter.hold(stored, ACCEPTED, SUSPENDED);
    else this.queue.add(statusKey(name), "resync");
    if (!this.#claims.isUnserved(name)) return DONE;
    this.#services.discovery.forget(stored.spec.for.apiVersion);
    return BACKOFF;
  }

  /** Queues the claims that were not reconciled with the present composition, and the deleted claims that still have bindings. */
  #addClaims(name: string, state: CompositionState): void {
    const isDone = (claim: string) =>
      state.isListed &&
      state.records.get(claim)?.isExcess === undefined &&
      state.records.has(claim) &&
      this.#claims.get(name, claim) !== "absent";
    for (const claim of new Set([
      ...this.#claims.keysOf(name),
      ...this.#index.claimsOf(name),
      ...state.records.keys(),
    ])) {
      if (isDone(claim)) continue;
      state.pending.add(claim);
      this.queue.add(claimKey(name, claim), "resync");
    }
    state.isListed = this.#claims.isListed(name);
  }

  async #reconcileClaim(name: string, key: string): Promise<WorkResult> {
    const state = this.#states.get(name);
    const accepted = state?.accepted;
    if (state === undefined || accepted === undefined || state.problem !== undefined) return DONE;
    const ref = { composition: name, state, accepted, key };
    const claim = this.#claims.get(name, key);
    try {
      if (claim === "unknown") return DONE;
      if (claim === "absent") return await this.#release(ref);
      const excess = this.#claims.excess(name, key, claim);
      if (claim.isDeleted) this.#reconciler.hold(ref, claim);
      else if (excess === undefined) return await this.#reconciler.reconcile(ref, claim);
      else this.#reconciler.exclude(ref, claim, excess);
      return DONE;
    } finally {
      if (state.accepted === accepted) state.pending.delete(key);
      this.#producers.known(name, key);
      this.queue.add(statusKey(name), "resync");
    }
  }

  /** If bindings can't be deleted, they stay and the composition reports it. */
  async #release(ref: ClaimRef): Promise<WorkResult> {
    const { composition, state, key } = ref;
    const result = await attempt(this.#reconciler.release(ref));
    state.leftovers.delete(key);
    if (!(result instanceof Problem)) return result;
    state.leftovers.set(key, result);
    return requeueResult(composition, [{ problem: result }]);
  }

  async #refuse(composition: BindingComposition, problem: Problem): Promise<WorkResult> {
    const status = await this.#reporter.hold(composition, notAccepted(problem));
    const result = requeueResult(composition.metadata.name, [{ problem }]);
    return orWhenStalled(result, status, new Date());
  }

  async #report(name: string): Promise<WorkResult> {
    const composition = this.#store.get(name);
    const state = this.#states.get(name);
    if (composition === undefined || state?.accepted === undefined || state.problem !== undefined) return DONE;
    if (state.isSuspended) return DONE;
    return this.#reporter.report(composition, state, this.#claims.refusal(name));
  }

  #bindingChanged(composition: string, claim: string, key: string): void {
    const state = this.#states.get(composition);
    const accepted = state?.accepted;
    if (accepted === undefined) return;
    const binding = this.#services.bindings.get(key);
    const desired = state?.records.get(claim)?.desired.get(key);
    const isSettled =
      binding !== undefined && desired !== undefined && accepted.generated.isAsGenerated(binding, desired);
    if (!isSettled || accepted.compiled.writes.length > 0) this.queue.add(claimKey(composition, claim));
    else this.queue.add(statusKey(composition), "resync");
    if (!isSettled) return;
    state?.own.set(key, { uid: binding.metadata.uid, claim, claimUID: desired.owner.uid });
    this.#producers.known(composition, claim);
  }

  /** A binding was written without a change that a watch shows. */
  #written(composition: string, key: string): void {
    const binding = this.#services.bindings.get(key);
    const from = binding && composedFrom(binding);
    if (from !== undefined) this.#producers.known(composition, from.claim);
  }

  #bindingGone(binding: SecretBinding): void {
    const from = composedFrom(binding);
    if (from === undefined) return;
    const state = this.#states.get(from.composition);
    state?.accepted?.generated.gone(binding);
    state?.own.delete(bindingKey(binding));
    this.#producers.bindingGone(from.composition, bindingKey(binding));
    if (state?.accepted !== undefined) this.queue.add(statusKey(from.composition), "resync");
    // A deleted composition keeps its finalizer until its bindings are deleted.
    else if (this.#index.claimsOf(from.composition).next().done) this.queue.add(from.composition, "resync");
  }

  #forget(name: string): WorkResult {
    this.#claims.forget(name);
    this.#states.delete(name);
    this.#reporter.forget(name);
    this.#producers.gone(name);
    return DONE;
  }
}
