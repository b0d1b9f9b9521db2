/**
 * Runs controllers: starts them when this replica leads, stops them in order, and shows all of them in /livez, /readyz, /metrics and /debug. Add
 * controllers before the manager starts.
 */

import { LEASE_NAME } from "../api/installation.ts";
import { LEASES, NAMESPACES } from "../apimachinery/resources.ts";
import type { Informers } from "../cache/informers.ts";
import type { StreamState } from "../cache/reflector.ts";
import { isNotFound } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { Notifier } from "../notifications/notifier.ts";
import type { EventRecorder } from "../observability/events.ts";
import { type HttpServer, serveDebug, serveHealth } from "../observability/http-server.ts";
import type { InstallationProblems } from "../observability/installation-problems.ts";
import { describeError, type Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";
import type { QueueHooks, WorkQueue, WorkResult } from "../workqueue/work-queue.ts";
import { type Candidate, LeaderElection } from "./leader-election.ts";

/** A few renewals fit into the duration of the record. */
const RETRY_MS = 2_400;

/** Shows a controller without leader election as holder of the Lease, and reports another holder. It never waits or takes over. */
export class Unelected {
  readonly #client: Pick<Client, "get" | "create" | "replace" | "may">;
  readonly #candidate: Candidate;
  readonly #problems: Pick<InstallationProblems, "report">;
  readonly #log: Pick<Log, "debug" | "info">;
  readonly #election: LeaderElection;
  #isStopped = false;

  constructor(
    client: Pick<Client, "get" | "create" | "replace" | "may">,
    candidate: Candidate,
    problems: Pick<InstallationProblems, "report">,
    log: Pick<Log, "debug" | "info">,
  ) {
    this.#client = client;
    this.#candidate = candidate;
    this.#problems = problems;
    this.#log = log;
    const debug = (fields: object, text: string) => log.debug(fields, text);
    const warn = (fields: object) => log.info(fields, UNNOTICED);
    this.#election = new LeaderElection(
      client,
      { ...candidate, retryMs: RETRY_MS },
      { debug, info: debug, warn, error: debug },
    );
  }

  start(): void {
    void this.#begin();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#election.stop();
  }

  async #begin(): Promise<void> {
    const { namespace } = this.#candidate;
    // If the API server does not answer, the election tries again.
    const obstacle = await this.#obstacle().catch(() => undefined);
    if (obstacle !== undefined) {
      const { level, why } = obstacle;
      this.#log[level]({ lease: `${namespace}/${LEASE_NAME}` }, `${UNNOTICED}: ${why}`);
    } else this.#elect();
  }

  /** Why this controller can't be recorded. In a cluster without an installation, nothing is wrong. */
  async #obstacle(): Promise<{ level: "debug" | "info"; why: string } | undefined> {
    const { namespace } = this.#candidate;
    for (const [verb, name] of [
      ["create", undefined],
      ["get", LEASE_NAME],
      ["update", LEASE_NAME],
    ] as const)
      if (!(await this.#client.may(CONTROLLER, verb, LEASES, namespace, name)))
        return { level: "info", why: `the controller may not ${verb} leases in namespace ${namespace}` };
    try {
      await this.#client.get(CONTROLLER, { resource: NAMESPACES, name: namespace });
      return undefined;
    } catch (error) {
      return isNotFound(error) ? { level: "debug", why: `there is no namespace ${namespace}` } : undefined;
    }
  }

  #elect(): void {
    if (this.#isStopped) return;
    this.#election.start({
      leading: () => this.#problems.report("second_controller", undefined),
      // After a pause, it may be taken again. Nothing depends on it. The API server may have refused the last renewals, so the next one
      // waits as any other.
      lost: () => void setTimeout(() => this.#elect(), RETRY_MS).unref(),
      held: (holder) => this.#problems.report("second_controller", secondController(this.#candidate, holder)),
    });
  }
}

const UNNOTICED = "can't record this controller in the Lease, so a second controller is not noticed";

function secondController({ namespace }: Pick<Candidate, "namespace">, holder: string) {
  return {
    message:
      `another controller runs: ${holder} holds the Lease ${namespace}/${LEASE_NAME}. Both write the same fields and restart the same ` +
      "workloads; stop one of them, or start both with --leader-elect",
    parts: [holder],
  };
}

/** A bookmark arrives every minute, and a stream without a line for 100 s is restarted, which should have helped by now. */
const SILENT_SECONDS = 120;
/** A broken stream is usually restarted within some seconds. */
const INTERRUPTED_SECONDS = 10;
/** A first list takes longer only if something is wrong. */
const PENDING_SECONDS = 30;
/** Every request has a deadline of seconds, so a reconcile of this length never ends. */
const STUCK_SECONDS = 600;

/**
 * Why the controllers do not work at the moment, by state and kind. `own` are the kinds that they reconcile. A standby has nothing to do,
 * so it is ready.
 */
export function notReady(
  election: Pick<LeaderElection, "mayWrite" | "inTouch"> | undefined,
  own: readonly StreamState[],
  others: readonly StreamState[],
): string[] {
  if (election?.inTouch === false) return ["unreachable: coordination.k8s.io/leases"];
  if (election?.mayWrite === false) return [];
  const wrong = [
    ...own.map((stream) => ({ ...stream, state: stream.phase === "synced" ? stateOf(stream) : stream.phase })),
    ...others.map((stream) => ({ ...stream, state: stateOf(stream) })),
  ].flatMap(({ resource, state }) => (state === undefined ? [] : [`${state}: ${resource}`]));
  return [...Map.groupBy(wrong, (what) => what)].map(([what, { length }]) =>
    length === 1 ? what : `${what} (${length} watches)`,
  );
}

/** Why the process should be restarted. */
export function notAlive(controller: string, runningSeconds: readonly number[]): string[] {
  const longest = Math.max(0, ...runningSeconds);
  return longest > STUCK_SECONDS ? [`stuck: a reconcile of ${controller} has run for ${Math.round(longest)} s`] : [];
}

/** A refused stream is a matter of its binding's permissions, and the binding reports it. */
function stateOf({ phase, refused, quietSeconds, interruptedSeconds }: StreamState): string | undefined {
  if (refused) return undefined;
  if (interruptedSeconds > INTERRUPTED_SECONDS) return "interrupted";
  if (phase !== "synced" && quietSeconds > PENDING_SECONDS) return phase;
  return quietSeconds > SILENT_SECONDS ? "silent" : undefined;
}

interface DebugSources extends Pick<ManagerOptions, "version" | "problems" | "cpu"> {
  /** Undefined without leader election. */
  leading: boolean | undefined;
  controllers: readonly Pick<Controller, "name" | "store" | "queue" | "debugState">[];
  watches: readonly StreamState[];
}

/** How many keys of a queue are listed. */
const MAX_KEYS = 200;
/** How many namespaces are listed by their use of the processor. */
const MAX_BUSIEST = 20;

/** The state of the process for people who look for the cause of a problem. Contains names of objects, and no value. */
export function debugState({ version, leading, controllers, watches, problems, cpu }: DebugSources): object {
  const resources = Map.groupBy(process.getActiveResourcesInfo(), (name) => name);
  return {
    version,
    node: process.version,
    uptimeSeconds: Math.round(process.uptime()),
    leading,
    memory: process.memoryUsage(),
    activeResources: Object.fromEntries([...resources].map(([name, all]) => [name, all.length])),
    installation: Object.fromEntries([...problems.all].map(([check, problem]) => [check, problem?.message ?? "ok"])),
    processor: cpu.busiest(MAX_BUSIEST).map(({ name, share, waiting }) => ({
      namespace: name,
      percent: Math.round(1_000 * share) / 10,
      waiting,
    })),
    controllers: controllers.map(({ name, store, queue, debugState: own }) => ({
      name,
      ...(store && { watch: store.state }),
      queue: queue.state(MAX_KEYS),
      ...own,
    })),
    watches,
  };
}

/** Runs as long as this replica leads, such as the watch of a kind. */
interface Store {
  readonly state: StreamState;
  start(): void;
  stop(): Promise<void>;
}

export interface Controller {
  /** The name in metrics, log lines and health checks. */
  readonly name: string;
  /** The objects that it reconciles, if it has a kind of its own. */
  readonly store?: Store | undefined;
  /** The keys that wait to be reconciled. */
  readonly queue: WorkQueue;
  /** What it knows, for /debug: names of objects and no value. */
  readonly debugState?: object | undefined;
  reconcile(key: string): Promise<WorkResult>;
  /** Called when this replica begins to lead, for instance to add a first key. */
  start?(): void;
  /** Called when the queue has stopped, while this replica still leads and the next one waits. */
  resign?(): Promise<void>;
  /** Called at the end, when the queue has stopped, to undo `start`. */
  stop?(): Promise<void>;
}

interface ManagerOptions {
  log: Log;
  metrics: Metrics;
  /** The watches that all controllers share. */
  informers: Pick<Informers, "states" | "stop">;
  events: Pick<EventRecorder, "stop">;
  notifier: Pick<Notifier, "stop">;
  /** Without it, this replica is the only one. */
  election: LeaderElection | undefined;
  /** Records a replica without leader election. */
  unelected: Unelected | undefined;
  problems: Pick<InstallationProblems, "all">;
  cpu: Pick<CpuScheduler, "busiest">;
  /** Called when this replica led and no longer may. */
  onLost: () => void;
  /** The port of /livez and /readyz. Without it, they are not served. */
  healthPort: number | undefined;
  /** The port of /debug on the loopback addresses. Without it, it is not served. */
  debugPort: number | undefined;
  /** Also serves /metrics on the health port, without encryption and to everyone. */
  insecureMetrics: boolean;
  /** Served on the health port as /version. */
  version: string;
  /** Serves /metrics to users who may get it. */
  serveMetrics: (() => Promise<HttpServer>) | undefined;
}

/** How long a stopping leader waits for events and notifications to be sent, if other replicas wait. */
const MAX_EVENTS_MS = 500;

export class Manager {
  readonly #options: ManagerOptions;
  readonly #controllers: Controller[] = [];
  readonly #servers: HttpServer[] = [];

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  add(controller: Controller): void {
    this.#controllers.push(controller);
  }

  async start(): Promise<void> {
    const { cpu, debugPort, election, healthPort, informers, insecureMetrics, metrics } = this.#options;
    const { onLost, problems, serveMetrics, unelected, version } = this.#options;
    metrics.observeInstallation(problems);
    // A standby watches nothing.
    const watches = () => (election?.mayWrite === false ? [] : [...this.#states(), ...informers.states]);
    metrics.observe({ controllers: () => this.#controllers, watches, leading: () => election?.mayWrite });
    if (healthPort !== undefined) {
      const health = {
        livez: () => this.#controllers.flatMap(({ name, queue }) => notAlive(name, queue.running)),
        readyz: () => notReady(election, this.#states(), informers.states),
        installation: problems,
        version,
        metrics: insecureMetrics ? metrics : undefined,
      };
      this.#servers.push(await serveHealth(healthPort, health));
    }
    if (debugPort !== undefined) {
      const sources = () => ({ version, leading: election?.mayWrite, controllers: this.#controllers, problems, cpu });
      this.#servers.push(await serveDebug(debugPort, () => debugState({ ...sources(), watches: informers.states })));
    }
    if (serveMetrics !== undefined) this.#servers.push(await serveMetrics());
    if (insecureMetrics || serveMetrics !== undefined) metrics.collectProcess();
    // A standby shows every controller too.
    const controllers = this.#controllers.map((each) => ({ each, hooks: metrics.queueHooks(each.name) }));
    const begin = () => {
      for (const { each, hooks } of controllers) this.#begin(each, hooks);
    };
    unelected?.start();
    if (election === undefined) begin();
    else election.start({ leading: begin, lost: onLost });
  }

  /** Finishes the running reconciles, releases the lease, then ends every watch. */
  async stop(): Promise<void> {
    const { election, events, informers, notifier, unelected } = this.#options;
    await Promise.all(this.#controllers.map(({ queue }) => queue.stop()));
    const withinMs = election && MAX_EVENTS_MS;
    const resigned = this.#controllers.map((each) => each.resign?.());
    await Promise.all([...resigned, events.stop(withinMs), notifier.stop(withinMs)]);
    await Promise.all([election?.stop(), unelected?.stop()]);
    const stopped = this.#controllers.flatMap((each) => [each.store?.stop(), each.stop?.()]);
    await Promise.all([...stopped, informers.stop()]);
    await Promise.all(this.#servers.map((server) => server.stop()));
  }

  #begin(controller: Controller, hooks: QueueHooks): void {
    const { log } = this.#options;
    const { name, store, queue } = controller;
    queue.start(controller, {
      onError: (key, error) =>
        log.warn({ controller: name, key, error: describeError(error) }, "reconcile failed; retrying with backoff"),
      hooks,
    });
    store?.start();
    controller.start?.();
  }

  #states(): StreamState[] {
    return this.#controllers.flatMap(({ store }) => store?.state ?? []);
  }
}
