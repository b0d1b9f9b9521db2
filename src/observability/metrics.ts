/**
 * Counts and measures for Prometheus, under the names that controllers in Go use, so that their dashboards work. No label contains a value,
 * or the name of an object other than a BindingComposition or VaultConnection.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { LimitName } from "../api/limits.ts";
import { catalogue } from "../apimachinery/problem.ts";
import { STATE_REASONS } from "../apimachinery/reasons.ts";
import type { WorkQueue } from "../workqueue/work-queue.ts";
import type { InstallationProblems } from "./installation-problems.ts";

const CONNECTION_STATES = ["ready", "not_ready", "pending"] as const;
/** Whether the last check of a VaultConnection found the server ready; pending before the first one. */
export type ConnectionHealth = (typeof CONNECTION_STATES)[number];

/** Counts requests to Vault, and shows how many VaultConnections are ready. No label contains a name or a path. */
class VaultMetrics {
  readonly #registry: Registry;
  readonly #requests: Counter<"operation" | "code">;
  readonly #logins: Counter<"outcome">;
  readonly #reads: Histogram;

  /** `seconds` are the buckets of histograms. */
  constructor(registry: Registry, seconds: number[]) {
    this.#registry = registry;
    const registers = [registry];
    this.#requests = new Counter({
      name: "inlay_vault_requests_total",
      help: "Requests to Vault.",
      labelNames: ["operation", "code"],
      registers,
    });
    this.#logins = new Counter({
      name: "inlay_vault_logins_total",
      help: "Logins to Vault.",
      labelNames: ["outcome"],
      registers,
    });
    this.#reads = new Histogram({
      name: "inlay_vault_read_seconds",
      help: "How long a read from Vault took, including a login if one was needed.",
      buckets: seconds,
      registers,
    });
  }

  /** `code` is the HTTP status, or the failure: timeout, refused, tls, error. */
  requested(operation: string, code: string): void {
    this.#requests.inc({ operation, code });
  }

  loggedIn(outcome: string): void {
    this.#logins.inc({ outcome });
  }

  readSeconds(seconds: number): void {
    this.#reads.observe(seconds);
  }

  /** Reads the state of each connection at each scrape. */
  observeConnections(connections: () => Iterable<ConnectionHealth>): void {
    new Gauge({
      name: "inlay_vault_connections",
      help: "VaultConnections by readiness.",
      labelNames: ["state"],
      registers: [this.#registry],
      collect() {
        for (const state of CONNECTION_STATES) this.set({ state }, 0);
        for (const state of connections()) this.inc({ state });
      },
    });
  }
}

/** `collect` sets all of its series: those of the scrape before are removed. */
function liveGauge<T extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly T[],
  collect: (gauge: Gauge<T>) => void,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      collect(this);
    },
  });
}

/** The condition Ready of an object. Undefined if it has none yet. */
export type Readiness = { readonly status: string; readonly reason: string } | undefined;

/** The bindings of one composition or connection. */
interface BindingCounts {
  readonly ready: number;
  readonly notReady: number;
}

/** The composition or connection, by the values of its labels. */
interface NamedBindings<T extends string> extends BindingCounts {
  readonly labels: Readonly<Record<T, string>>;
  /** RFC 3339. The oldest are named. */
  readonly createdAt: string;
}

/** How many compositions, and how many connections, have series of their own. The others are counted together. */
export const MAX_NAMED = 100;
/** The label of the others. No object can have this name. */
export const OTHERS = "_others";

const REASONS: ReadonlySet<string> = new Set([...Object.keys(catalogue), ...STATE_REASONS]);
const READY = ["True", "False", "Unknown"];
const PENDING = { status: "Unknown", reason: "Pending" };
/** Users may write the status of an object. A reason that Inlay does not have is not a label. */
const UNKNOWN = { status: "Unknown", reason: "Other" };

/** These objects are few, so their names are labels. Teams may create connections, so the number of series is bounded. */
export class ObjectMetrics {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Reads the condition Ready of each binding at each scrape. */
  observeBindings(all: () => Iterable<Readiness>): void {
    this.#readiness("inlay_bindings", "SecretBindings by their condition Ready.", all);
  }

  /** Reads the compositions and the counts of their bindings at each scrape. */
  observeCompositions(all: () => readonly (NamedBindings<"composition"> & { readonly is: Readiness })[]): void {
    this.#readiness("inlay_compositions", "BindingCompositions by their condition Ready.", () =>
      all().map(({ is }) => is),
    );
    this.#named("inlay_composition_bindings", "Bindings of a BindingComposition.", ["composition"], all);
  }

  /** Reads the connections and the counts of the bindings that read through them at each scrape. */
  observeConnections(all: () => readonly NamedBindings<"connection_namespace" | "connection">[]): void {
    const labels = ["connection_namespace", "connection"] as const;
    this.#named("inlay_vault_connection_bindings", "Bindings that read through a VaultConnection.", labels, all);
  }

  #readiness(name: string, help: string, all: () => Iterable<Readiness>): void {
    liveGauge(this.#registry, name, help, ["ready", "reason"], (gauge) => {
      for (const each of all()) {
        const { status, reason } = known(each);
        gauge.inc({ ready: status, reason });
      }
    });
  }

  #named<T extends string>(
    name: string,
    help: string,
    labels: readonly T[],
    all: () => readonly NamedBindings<T>[],
  ): void {
    liveGauge(this.#registry, name, help, [...labels, "state"], (gauge: Gauge<string>) => {
      const byAge = all().toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));
      const others = Object.fromEntries(labels.map((label) => [label, OTHERS]));
      for (const [at, { labels: own, ready, notReady }] of byAge.entries()) {
        const labelled = at < MAX_NAMED ? own : others;
        gauge.inc({ ...labelled, state: "ready" }, ready);
        gauge.inc({ ...labelled, state: "not_ready" }, notReady);
      }
    });
  }
}

function known(readiness: Readiness): { status: string; reason: string } {
  if (readiness === undefined) return PENDING;
  return READY.includes(readiness.status) && REASONS.has(readiness.reason) ? readiness : UNKNOWN;
}

/** The buckets of controller-runtime and client-go: from a millisecond to minutes. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The state of the controllers and watches at the time of a scrape. */
export interface MetricSources {
  controllers(): Iterable<{ name: string; queue: QueueState }>;
  watches(): { resource: string; phase: string; quietSeconds: number; interruptedSeconds: number }[];
  /** Undefined without leader election. */
  leading(): boolean | undefined;
}

type QueueState = Pick<WorkQueue, "concurrency" | "depths" | "running">;

/** The metrics that rollouts update. */
export type RolloutCounts = Pick<Metrics, "restarted" | "failed" | "ended" | "limited">;

export class Metrics {
  readonly #registry = new Registry();
  readonly #counter = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Counter({ name, help, labelNames, registers: [this.#registry] });
  readonly #histogram = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Histogram({ name, help, labelNames, buckets: SECONDS, registers: [this.#registry] });

  readonly #reconciles = this.#counter(
    "controller_runtime_reconcile_total",
    "Reconciles by result.",
    "controller",
    "result",
  );
  readonly #reconcileErrors = this.#counter(
    "controller_runtime_reconcile_errors_total",
    "Reconciles that ended with an error.",
    "controller",
  );
  readonly #reconcileTime = this.#histogram(
    "controller_runtime_reconcile_time_seconds",
    "How long a reconcile took.",
    "controller",
  );
  readonly #adds = this.#counter("workqueue_adds_total", "Keys added to the queue.", "name", "controller");
  readonly #retries = this.#counter("workqueue_retries_total", "Keys that are retried.", "name", "controller");
  readonly #queued = this.#histogram(
    "workqueue_queue_duration_seconds",
    "How long a key waited in the queue.",
    "name",
    "controller",
  );
  readonly #worked = this.#histogram(
    "workqueue_work_duration_seconds",
    "How long the reconcile of a key took.",
    "name",
    "controller",
  );
  readonly #watchRestarts = this.#counter(
    "inlay_watch_restarts_total",
    "Restarts of watches, by resource and reason.",
    "resource",
    "reason",
  );
  readonly #writes = this.#counter("inlay_writes_total", "Writes to the API server.", "verb", "outcome");
  readonly #propagation = this.#histogram(
    "inlay_propagation_seconds",
    "From the first watch event since a binding's last write to the write that the API server accepted.",
  );

  readonly #workloadRestarts = this.#counter("inlay_rollout_restarts_total", "Workloads that were restarted.");
  readonly #rolloutFailures = this.#counter(
    "inlay_rollout_failures_total",
    "Workloads that did not roll out in time, or whose controllers reported a failure.",
  );
  readonly #rolloutTime = this.#histogram(
    "inlay_rollout_seconds",
    "From the observed change to the completed rollout of the last workload.",
  );

  readonly #notifications = this.#counter(
    "inlay_notifications_total",
    "Notifications of restarts, by receiver and result.",
    "receiver",
    "result",
  );

  readonly #limited = this.#counter(
    "inlay_tenant_limited_total",
    "What was not done, or was done later, because a namespace exceeded a limit.",
    "limit",
  );

  readonly vault = new VaultMetrics(this.#registry, SECONDS);
  readonly objects = new ObjectMetrics(this.#registry);

  /** Adds the metrics of Node and the process. */
  collectProcess(): void {
    // At the default of 10 ms, measuring the event loop would be most of an idle controller's work.
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: 100 });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** Hooks for the work queue of a controller. */
  queueHooks(controller: string) {
    const queue = { name: controller, controller };
    this.#reconcileErrors.inc({ controller }, 0);
    for (const counter of [this.#adds, this.#retries]) counter.inc(queue, 0);
    for (const result of Object.values(RESULTS)) this.#reconciles.inc({ controller, result }, 0);
    return {
      added: () => this.#adds.inc(queue),
      retried: () => this.#retries.inc(queue),
      started: (waited: number) => this.#queued.observe(queue, waited),
      ended: (took: number, result: keyof typeof RESULTS) => {
        this.#worked.observe(queue, took);
        this.#reconcileTime.observe({ controller }, took);
        this.#reconciles.inc({ controller, result: RESULTS[result] });
        if (result === "error") this.#reconcileErrors.inc({ controller });
      },
    };
  }

  watchRestarted(resource: string, reason: string): void {
    this.#watchRestarts.inc({ resource, reason });
  }

  wrote(verb: string, outcome: string): void {
    this.#writes.inc({ verb, outcome });
  }

  /** A workload was restarted. */
  restarted(): void {
    this.#workloadRestarts.inc();
  }

  /** A workload failed to roll out. */
  failed(): void {
    this.#rolloutFailures.inc();
  }

  /** All workloads of a binding have rolled out. `seconds`: since the change was observed. */
  ended(seconds: number): void {
    this.#rolloutTime.observe(seconds);
  }

  /** Notifications to a receiver, with their result. */
  notified(receiver: string, result: string, count: number): void {
    this.#notifications.inc({ receiver, result }, count);
  }

  /** A namespace exceeded a limit, so something was not done, or was done later. */
  limited(limit: LimitName, count = 1): void {
    this.#limited.inc({ limit }, count);
  }

  propagated(seconds: number): void {
    this.#propagation.observe(seconds);
  }

  /** Reads the state of the controllers and watches at each scrape. */
  observe({ controllers, watches, leading }: MetricSources): void {
    const perQueue = (name: string, help: string, measure: (queue: QueueState) => number) =>
      this.#gauge(name, help, ["name", "controller"], (gauge) => {
        for (const { name, queue } of controllers()) gauge.set({ name, controller: name }, measure(queue));
      });
    const perController = (name: string, help: string, measure: (queue: QueueState) => number) =>
      this.#gauge(name, help, ["controller"], (gauge) => {
        for (const { name, queue } of controllers()) gauge.set({ controller: name }, measure(queue));
      });
    this.#gauge("workqueue_depth", "Keys that wait in the queue.", ["name", "controller", "priority"], (gauge) => {
      for (const { name, queue } of controllers())
        for (const [priority, depth] of Object.entries(queue.depths))
          gauge.set({ name, controller: name, priority }, depth);
    });
    perQueue("workqueue_unfinished_work_seconds", "Seconds that the running reconciles have taken.", ({ running }) =>
      running.reduce((sum, seconds) => sum + seconds, 0),
    );
    perQueue(
      "workqueue_longest_running_processor_seconds",
      "How long the longest running reconcile has run.",
      ({ running }) => Math.max(0, ...running),
    );
    perController("controller_runtime_active_workers", "Running reconciles.", ({ running }) => running.length);
    perController(
      "controller_runtime_max_concurrent_reconciles",
      "The maximum number of reconciles that run at the same time.",
      ({ concurrency }) => concurrency,
    );
    this.#gauge("inlay_watch_streams", "Watches by state.", ["state"], (gauge) => {
      for (const state of ["pending", "synced", "failed", "interrupted", "waiting"]) gauge.set({ state }, 0);
      for (const { phase, interruptedSeconds } of watches())
        gauge.inc({ state: phase === "synced" && interruptedSeconds > 0 ? "interrupted" : phase });
    });
    this.#gauge(
      "inlay_watch_last_event_age_seconds",
      "How long the quietest synced watch of a kind has received nothing, not even a bookmark.",
      ["resource"],
      (gauge) => {
        const ages = new Map<string, number>();
        for (const { resource, phase, quietSeconds } of watches())
          if (phase === "synced") ages.set(resource, Math.max(ages.get(resource) ?? 0, quietSeconds));
        for (const [resource, age] of ages) gauge.set({ resource }, age);
      },
    );
    this.#gauge("leader_election_master_status", "1 for the replica that leads.", ["name"], (gauge) => {
      const isLeading = leading();
      if (isLeading !== undefined) gauge.set({ name: "inlay-controller" }, isLeading ? 1 : 0);
    });
  }

  /** Reads how many bindings have a running rollout, by what it waits for, at each scrape. */
  observeRollouts(waiting: () => ReadonlyMap<string, number>): void {
    const help = "Bindings with a running rollout, by what it waits for.";
    this.#gauge("inlay_rollouts_pending", help, ["reason"], (gauge) => {
      for (const [reason, count] of waiting()) gauge.set({ reason }, count);
    });
  }

  /** Reads, by resource, in how many namespaces the account for Reloader's annotations may not list it, at each scrape. */
  observeRefusedLists(refused: () => ReadonlyMap<string, number>): void {
    const help = "Namespaces in which the account for Reloader's annotations may not list a resource.";
    this.#gauge("inlay_reloader_refused_lists", help, ["resource"], (gauge) => {
      for (const [resource, count] of refused()) gauge.set({ resource }, count);
    });
  }

  /** Reads how many parts of the installation are missing or wrong, by check, at each scrape. */
  observeInstallation(problems: Pick<InstallationProblems, "all">): void {
    const help = "Parts of the installation that are missing or wrong, by check.";
    this.#gauge("inlay_installation_problems", help, ["check"], (gauge) => {
      for (const [check, problem] of problems.all) gauge.set({ check }, problem?.parts.length ?? 0);
    });
  }

  /** Reads when the certificate of the metrics port expires, in seconds since 1970, at each scrape. */
  observeCertificate(expiresAt: () => number): void {
    const name = "inlay_metrics_certificate_expiry_timestamp_seconds";
    this.#gauge(name, "When the certificate of the metrics port expires.", [], (gauge) => gauge.set(expiresAt()));
  }

  #gauge<T extends string>(name: string, help: string, labelNames: T[], collect: (gauge: Gauge<T>) => void): void {
    liveGauge(this.#registry, name, help, labelNames, collect);
  }
}

/** The results of a reconcile, in controller-runtime's words. */
const RESULTS = { never: "success", backoff: "requeue", after: "requeue_after", error: "error" } as const;
