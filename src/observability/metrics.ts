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

/** The buckets of controller-runtime and client-go: from a millisecond to minutes. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Creates the metrics of one registry. */
class Meters {
  protected readonly registry: Registry;

  constructor(registry: Registry) {
    this.registry = registry;
  }

  protected counter<T extends string>(name: string, help: string, ...labelNames: T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  protected histogram<T extends string>(name: string, help: string, ...labelNames: T[]): Histogram<T> {
    return new Histogram({ name, help, labelNames, buckets: SECONDS, registers: [this.registry] });
  }

  /** A counter without other uses: the function that counts one more, by the values of the labels. */
  protected counting<T extends string[]>(name: string, help: string, ...labelNames: T) {
    const counter = this.counter(name, help, ...labelNames);
    return (...values: { [K in keyof T]: string }): void => counter.labels(...values).inc();
  }

  /** A histogram without labels: the function that records a time. */
  protected timing(name: string, help: string): (seconds: number) => void {
    const histogram = this.histogram(name, help);
    return (seconds) => histogram.observe(seconds);
  }

  /** `collect` sets all of its series at each scrape: those of the scrape before are removed. */
  protected gauge<T extends string>(
    name: string,
    help: string,
    labelNames: readonly T[],
    collect: (gauge: Gauge<T>) => void,
  ): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        this.reset();
        collect(this);
      },
    });
  }

  /** A gauge with one label: its values by the value of the label. */
  protected gaugeBy(name: string, help: string, label: string, all: () => Iterable<readonly [string, number]>): void {
    this.gauge(name, help, [label], (gauge) => {
      for (const [value, number] of all()) gauge.set({ [label]: value }, number);
    });
  }
}

/** Counts requests to Vault, and shows how many VaultConnections are ready. No label contains a name or a path. */
class VaultMetrics extends Meters {
  /** `code` is the HTTP status, or the failure: timeout, refused, tls, error. */
  readonly requested = this.counting("inlay_vault_requests_total", "Requests to Vault.", "operation", "code");
  readonly loggedIn = this.counting("inlay_vault_logins_total", "Logins to Vault.", "outcome");
  readonly readSeconds = this.timing(
    "inlay_vault_read_seconds",
    "How long a read from Vault took, including a login if one was needed.",
  );

  /** Reads the state of each connection at each scrape. */
  observeConnections(connections: () => Iterable<ConnectionHealth>): void {
    this.gauge("inlay_vault_connections", "VaultConnections by readiness.", ["state"], (gauge) => {
      for (const state of CONNECTION_STATES) gauge.set({ state }, 0);
      for (const state of connections()) gauge.inc({ state });
    });
  }
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
export class ObjectMetrics extends Meters {
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
    this.gauge(name, help, ["ready", "reason"], (gauge) => {
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
    this.gauge(name, help, [...labels, "state"], (gauge: Gauge<string>) => {
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

export class Metrics extends Meters {
  readonly #reconciles = this.counter(
    "controller_runtime_reconcile_total",
    "Reconciles by result.",
    "controller",
    "result",
  );
  readonly #reconcileErrors = this.counter(
    "controller_runtime_reconcile_errors_total",
    "Reconciles that ended with an error.",
    "controller",
  );
  readonly #reconcileTime = this.histogram(
    "controller_runtime_reconcile_time_seconds",
    "How long a reconcile took.",
    "controller",
  );
  readonly #adds = this.counter("workqueue_adds_total", "Keys added to the queue.", "name", "controller");
  readonly #retries = this.counter("workqueue_retries_total", "Keys that are retried.", "name", "controller");
  readonly #queued = this.histogram(
    "workqueue_queue_duration_seconds",
    "How long a key waited in the queue.",
    "name",
    "controller",
  );
  readonly #worked = this.histogram(
    "workqueue_work_duration_seconds",
    "How long the reconcile of a key took.",
    "name",
    "controller",
  );
  readonly watchRestarted = this.counting(
    "inlay_watch_restarts_total",
    "Restarts of watches, by resource and reason.",
    "resource",
    "reason",
  );
  readonly wrote = this.counting("inlay_writes_total", "Writes to the API server.", "verb", "outcome");
  readonly propagated = this.timing(
    "inlay_propagation_seconds",
    "From the first watch event since a binding's last write to the write that the API server accepted.",
  );

  /** A workload was restarted. */
  readonly restarted = this.counting("inlay_rollout_restarts_total", "Workloads that were restarted.");
  /** A workload failed to roll out. */
  readonly failed = this.counting(
    "inlay_rollout_failures_total",
    "Workloads that did not roll out in time, or whose controllers reported a failure.",
  );
  /** All workloads of a binding have rolled out. Seconds since the change was observed. */
  readonly ended = this.timing(
    "inlay_rollout_seconds",
    "From the observed change to the completed rollout of the last workload.",
  );

  readonly #notifications = this.counter(
    "inlay_notifications_total",
    "Notifications of restarts, by receiver and result.",
    "receiver",
    "result",
  );

  readonly #limited = this.counter(
    "inlay_tenant_limited_total",
    "What was not done, or was done later, because a namespace exceeded a limit.",
    "limit",
  );

  readonly vault = new VaultMetrics(this.registry);
  readonly objects = new ObjectMetrics(this.registry);

  constructor() {
    super(new Registry());
  }

  /** Adds the metrics of Node and the process. */
  collectProcess(): void {
    // At the default of 10 ms, measuring the event loop would be most of an idle controller's work.
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: 100 });
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  text(): Promise<string> {
    return this.registry.metrics();
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

  /** Notifications to a receiver, with their result. */
  notified(receiver: string, result: string, count: number): void {
    this.#notifications.inc({ receiver, result }, count);
  }

  /** A namespace exceeded a limit, so something was not done, or was done later. */
  limited(limit: LimitName, count = 1): void {
    this.#limited.inc({ limit }, count);
  }

  /** Reads the state of the controllers and watches at each scrape. */
  observe({ controllers, watches, leading }: MetricSources): void {
    type Label = "name" | "controller";
    const perQueue = (name: string, help: string, labels: Label[], measure: (queue: QueueState) => number) =>
      this.gauge(name, help, labels, (gauge) => {
        for (const { name, queue } of controllers())
          gauge.set(Object.fromEntries(labels.map((label) => [label, name])), measure(queue));
      });
    this.gauge("workqueue_depth", "Keys that wait in the queue.", ["name", "controller", "priority"], (gauge) => {
      for (const { name, queue } of controllers())
        for (const [priority, depth] of Object.entries(queue.depths))
          gauge.set({ name, controller: name, priority }, depth);
    });
    perQueue(
      "workqueue_unfinished_work_seconds",
      "Seconds that the running reconciles have taken.",
      ["name", "controller"],
      ({ running }) => running.reduce((sum, seconds) => sum + seconds, 0),
    );
    perQueue(
      "workqueue_longest_running_processor_seconds",
      "How long the longest running reconcile has run.",
      ["name", "controller"],
      ({ running }) => Math.max(0, ...running),
    );
    perQueue(
      "controller_runtime_active_workers",
      "Running reconciles.",
      ["controller"],
      ({ running }) => running.length,
    );
    perQueue(
      "controller_runtime_max_concurrent_reconciles",
      "The maximum number of reconciles that run at the same time.",
      ["controller"],
      ({ concurrency }) => concurrency,
    );
    this.gauge("inlay_watch_streams", "Watches by state.", ["state"], (gauge) => {
      for (const state of ["pending", "synced", "failed", "interrupted", "waiting"]) gauge.set({ state }, 0);
      for (const { phase, interruptedSeconds } of watches())
        gauge.inc({ state: phase === "synced" && interruptedSeconds > 0 ? "interrupted" : phase });
    });
    const quiet = "How long the quietest synced watch of a kind has received nothing, not even a bookmark.";
    this.gaugeBy("inlay_watch_last_event_age_seconds", quiet, "resource", () => {
      const ages = new Map<string, number>();
      for (const { resource, phase, quietSeconds } of watches())
        if (phase === "synced") ages.set(resource, Math.max(ages.get(resource) ?? 0, quietSeconds));
      return ages;
    });
    this.gauge("leader_election_master_status", "1 for the replica that leads.", ["name"], (gauge) => {
      const isLeading = leading();
      if (isLeading !== undefined) gauge.set({ name: "inlay-controller" }, isLeading ? 1 : 0);
    });
  }

  /** Reads how many bindings have a running rollout, by what it waits for, at each scrape. */
  observeRollouts(waiting: () => ReadonlyMap<string, number>): void {
    const help = "Bindings with a running rollout, by what it waits for.";
    this.gaugeBy("inlay_rollouts_pending", help, "reason", waiting);
  }

  /** Reads, by resource, in how many namespaces the account for Reloader's annotations may not list it, at each scrape. */
  observeRefusedLists(refused: () => ReadonlyMap<string, number>): void {
    const help = "Namespaces in which the account for Reloader's annotations may not list a resource.";
    this.gaugeBy("inlay_reloader_refused_lists", help, "resource", refused);
  }

  /** Reads how many parts of the installation are missing or wrong, by check, at each scrape. */
  observeInstallation(problems: Pick<InstallationProblems, "all">): void {
    const help = "Parts of the installation that are missing or wrong, by check.";
    const counts = () => [...problems.all].map(([check, problem]) => [check, problem?.parts.length ?? 0] as const);
    this.gaugeBy("inlay_installation_problems", help, "check", counts);
  }

  /** Reads when the certificate of the metrics port expires, in seconds since 1970, at each scrape. */
  observeCertificate(expiresAt: () => number): void {
    const name = "inlay_metrics_certificate_expiry_timestamp_seconds";
    this.gauge(name, "When the certificate of the metrics port expires.", [], (gauge) => gauge.set(expiresAt()));
  }
}

/** The results of a reconcile, in controller-runtime's words. */
const RESULTS = { never: "success", backoff: "requeue", after: "requeue_after", error: "error" } as const;
