/** The controller of SecretBindings: it decides what requeues a binding, and creates the reconciler. */
import { createHmac, randomBytes } from "node:crypto";
import { bindingKey, namespaceIn, type SecretBinding, type StoredBinding } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { claimsToBeGenerated } from "../../api/reloader.ts";
import { SetsByKey } from "../../apimachinery/maps.ts";
import { idOf, parseApiVersion, type Resource } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { Informers } from "../../cache/informers.ts";
import type { Client } from "../../kube/client.ts";
import { markOf } from "../../kube/identity.ts";
import type { RequestBudget } from "../../kube/request-budget.ts";
import type { Schemas } from "../../kube/schemas.ts";
import type { WriteVersions } from "../../kube/write-versions.ts";
import type { InstallationProblems } from "../../observability/installation-problems.ts";
import { describeError } from "../../observability/log.ts";
import type { Metrics, RolloutCounts } from "../../observability/metrics.ts";
import { Propagation } from "../../observability/propagation.ts";
import { ConcurrencyLimiter, limitsOf } from "../../rollout/decide/concurrency.ts";
import type { RolloutDependencies } from "../../rollout/dependencies.ts";
import type { DigestKeys } from "../../rollout/digest/keys.ts";
import { DigestCache } from "../../rollout/digest/values.ts";
import { RolloutController } from "../../rollout/rollout-controller.ts";
import type { ProducedBy } from "../../sources/grant-rules.ts";
import { Poller } from "../../sources/poller.ts";
import { parseSources } from "../../sources/registry.ts";
import { SharedReads } from "../../sources/shared-reads.ts";
import type { Connections } from "../../sources/source.ts";
import { type Actor, actorOf as actorOfBinding } from "../../targets/actor.ts";
import type { ReleaseDependencies } from "../../targets/release.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import { WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { readinessOf } from "../readiness.ts";
import { dependsOn, incompleteFor } from "./incomplete.ts";
import { Reconciler } from "./reconciler.ts";
import { BACKOFF_MS } from "./requeue.ts";

/** The bindings that read through each connection to a store, so that a change of a connection does not look at all bindings. */
export class ConnectionUsers {
  /** The connections of each binding, and the bindings of each connection: bindings by `namespace/name`, connections by their id. */
  readonly #connections = new Map<string, ReadonlySet<string>>();
  readonly #bindings = new SetsByKey<string, string>();

  set(key: string, binding: SecretBinding): void {
    const used = parseSources(binding).flatMap(({ store }) => (store?.connection ? [idOf(store.connection.ref)] : []));
    this.delete(key);
    if (used.length === 0) return;
    this.#connections.set(key, new Set(used));
    for (const each of used) this.#bindings.add(each, key);
  }

  delete(binding: string): void {
    for (const each of this.#connections.get(binding) ?? []) this.#bindings.remove(each, binding);
    this.#connections.delete(binding);
  }

  of(connection: string): string[] {
    return [...(this.#bindings.get(connection) ?? [])];
  }
}

/** Generates bindings that are reconciled as an account of the installation. */
export interface BindingGenerator {
  /** For a binding that is labelled as generated. Undefined for one that differs from what its generator wants, or if that is not known yet. */
  actorOf(binding: SecretBinding): Actor | Problem | undefined;
  /** Called with the key of a binding whose actor was undefined and may be known now. */
  onActorChanged(changed: (key: string) => void): void;
}

/** Returns the BindingComposition that generates a binding. Rules of SecretGrants for compositions compare with it. */
export interface CompositionProvider {
  /**
   * Computed from the present claims and the present binding. `"unknown"`: it can't be computed at the moment, or the binding
   * differs from what the composition generates and is not corrected yet; Inlay then reads nothing for it and removes nothing.
   * `"pending"`: the binding waits and reports nothing. `"none"`: what a grant allowed to copy is removed, if the source says so.
   */
  compositionOf(binding: SecretBinding): ProducedBy;
  /** Called with the key of a binding for which the answer was `"unknown"` or `"pending"` and may have changed. */
  onProducerChanged(changed: (key: string) => void): void;
}

/** Reports the state of the connections of one kind, for the sources of a store. */
export interface ConnectionProvider extends Connections {
  readonly resource: Resource;
  /** Both get the id of a connection: `changed` when it differs from before, `refresh` when all its values must be read at once. */
  listen(listener: { changed(connection: string): void; refresh(connection: string): void }): void;
}

interface Services extends Omit<ReleaseDependencies, "propagation"> {
  installation: Installation;
  client: Client;
  requests: Pick<RequestBudget, "during">;
  versions: Pick<WriteVersions, "expectWrite">;
  cpu: Pick<CpuScheduler, "run" | "steps">;
  bindings: BindingStore;
  informers: Pick<Informers, "watcher" | "changed">;
  schemas: Pick<Schemas, "of" | "renew" | "revision" | "onChange">;
  metrics: RolloutCounts & Pick<Metrics, "propagated" | "observeRollouts" | "objects" | "limited">;
  generator: BindingGenerator;
  compositions: CompositionProvider;
  connections: readonly ConnectionProvider[];
  notifier: RolloutDependencies["notifier"];
  digestKeys: DigestKeys;
  /** What is wrong with the installation. */
  problems: Pick<InstallationProblems, "all" | "onChange">;
}

/** The longest pause before a reconcile is tried again that exceeded its budget. */
const OVER_BUDGET_MS = 60_000;

export class BindingController {
  readonly name = "secretbinding";
  readonly store: BindingStore;
  readonly queue: WorkQueue;
  readonly #reconciler: Reconciler;
  readonly #propagation: Propagation;
  readonly #polls: Poller;
  readonly #rollouts: RolloutController;
  readonly #services: Pick<Services, "requests" | "metrics">;

  constructor(services: Services, concurrency: number) {
    const { installation, client, schemas, bindings, informers, metrics, generator, compositions, log, problems } =
      services;
    this.#services = services;
    this.store = bindings;
    // In an installation for one namespace, there are no others to leave runs to.
    const groups = installation.scope === undefined ? { groupOf: namespaceIn } : {};
    this.queue = new WorkQueue({ concurrency, backoffMs: BACKOFF_MS, ...groups });
    this.#propagation = new Propagation((seconds) => metrics.propagated(seconds));
    const requeue = (key: string) => this.queue.add(key);
    const watcher = informers.watcher((key, cause) => {
      if (cause === "change") this.#propagation.changed(key);
      this.queue.add(key, cause);
    }, namespaceIn);
    const sourceReads = new SharedReads(client, informers.changed);
    const polls = new Poller({
      changed: (key) => {
        this.#propagation.changed(key);
        this.queue.add(key);
      },
      refreshed: (key) => this.queue.add(key),
      onError: (error) =>
        log.warn({ error: describeError(error) }, "a source could not be polled; retrying with backoff"),
    });
    this.#polls = polls;
    const shared = { propagation: this.#propagation, rollouts: metrics, watcher, requeue };
    const connections: Connections = {
      get: (ref) => services.connections.find(({ resource }) => resource === ref.resource)?.get(ref),
    };
    const deps = { ...services, ...shared, connections, sourceReads, polls };
    const limiter = new ConcurrencyLimiter(() => limitsOf(installation), requeue);
    const rollouts = new RolloutController(deps, new DigestCache(services.digestKeys, services.cpu), limiter);
    this.#rollouts = rollouts;
    const actorOf = (binding: SecretBinding) =>
      claimsToBeGenerated(binding) ? generator.actorOf(binding) : actorOfBinding(binding, installation);
    const compositionOf = (binding: SecretBinding) => compositions.compositionOf(binding);
    const incomplete = (binding: SecretBinding) => incompleteFor(binding, problems);
    this.#reconciler = new Reconciler({ ...deps, actorOf, compositionOf, incomplete }, rollouts);
    problems.onChange((check) => {
      for (const key of bindings.all.filter((each) => dependsOn(each, check)).map(bindingKey)) {
        this.#reconciler.results.expire(key);
        this.queue.add(key, "resync");
      }
    });
    installation.onRollouts(() => {
      limiter.limitsChanged();
      rollouts.wake();
    });
    metrics.observeRollouts(() => rollouts.waiting);
    metrics.objects.observeBindings(() => bindings.all.map(readinessOf));
    generator.onActorChanged(requeue);
    compositions.onProducerChanged(requeue);
    schemas.onChange((apiVersion, isChanged) => {
      // Inlay may write a target in another version than the target names.
      const { group } = parseApiVersion(apiVersion);
      const isOf = (named: string) => parseApiVersion(named).group === group;
      const isConcerned = ({ spec }: StoredBinding) =>
        spec.targets?.some((each) => isOf(each.apiVersion) && isChanged(each.kind)) === true;
      for (const key of bindings.all.filter(isConcerned).map(bindingKey)) {
        this.#reconciler.results.expire(key);
        this.queue.add(key, "resync");
      }
    });
    const users = new ConnectionUsers();
    for (const provider of services.connections)
      provider.listen({
        changed: (connection) => {
          for (const key of users.of(connection)) this.queue.add(key);
        },
        refresh: (connection) => polls.refresh(connection),
      });
    bindings.listen({
      changed: (key, cause) => {
        const binding = bindings.get(key);
        if (binding !== undefined) users.set(key, binding);
        this.queue.add(key, cause);
      },
      gone: (key, binding) => {
        users.delete(key);
        this.#reconciler.gone(binding);
        requeue(key);
      },
    });
  }

  async stop(): Promise<void> {
    this.#polls.stop();
  }

  /** What this replica knows of each binding, its rollouts and its caches. Contains no value. */
  get debugState(): object {
    const bindings = this.store.all.map((each) => {
      const { generation, resourceVersion } = each.metadata;
      const { status: ready, reason } = readinessOf(each) ?? {};
      const { fingerprint, targets = 0 } = this.#reconciler.results.memoryOf(bindingKey(each)) ?? {};
      const upToDateFor = fingerprint && nameOf(fingerprint);
      const { observedGeneration } = each.status ?? {};
      return {
        key: bindingKey(each),
        generation,
        observedGeneration,
        resourceVersion,
        ready,
        reason,
        upToDateFor,
        targets,
      };
    });
    return { bindings, rollouts: this.#rollouts.state, caches: this.#polls.size };
  }

  reconcile(key: string): Promise<WorkResult> {
    const { requests, metrics } = this.#services;
    const run = async (): Promise<WorkResult> => {
      const { result, isOver } = await requests.during(this.#markOf(key), () => this.#reconciler.reconcile(key));
      if (!isOver) return result;
      metrics.limited("reconcile");
      return { retry: "backoff", mostMs: OVER_BUDGET_MS, rateLimitGroup: namespaceIn(key) };
    };
    return this.#propagation.during(key, run, ({ retry }) => retry === "backoff");
  }

  /** What a binding leaves that no longer exists is released for that binding. */
  #markOf(key: string): string | undefined {
    const binding = this.store.get(key) ?? this.#reconciler.lastOf(key);
    return binding && markOf(binding.metadata);
  }
}

/** No digest of a fingerprint leaves the process without this key, because a fingerprint depends on what a binding reads. */
const PROCESS_KEY = randomBytes(32);
/** Differs if the fingerprints differ. */
const nameOf = (fingerprint: string) =>
  createHmac("sha256", PROCESS_KEY).update(fingerprint).digest("hex").slice(0, 12);
