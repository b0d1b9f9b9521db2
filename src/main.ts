/** Options come in, the running controller goes out. Wiring only: each part is made, started, and stopped in reverse. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { namespaceIn } from "./api/binding.ts";
import type { Installation } from "./api/installation.ts";
import { resourceName } from "./apimachinery/objects.ts";
import { BindingStore } from "./cache/binding-store.ts";
import { Streams } from "./cache/informers.ts";
import { Reconciler } from "./controllers/binding/reconciler.ts";
import { Reloading } from "./controllers/reloader/controller.ts";
import type { ApiError } from "./kube/api-error.ts";
import { Client } from "./kube/client.ts";
import { loadCredentials } from "./kube/credentials.ts";
import { Discovery } from "./kube/discovery.ts";
import { Schemas } from "./kube/schemas.ts";
import { Transport } from "./kube/transport.ts";
import { notAlive, notReady } from "./manager/health-checks.ts";
import { LEASE_DEADLINE_MS, LeaderElection } from "./manager/leader-election.ts";
import { EventRecorder } from "./observability/events.ts";
import { serveHealth } from "./observability/health.ts";
import { createLog, describeError, type LogLevel } from "./observability/log.ts";
import { Metrics } from "./observability/metrics.ts";
import { Propagation } from "./observability/propagation.ts";
import type { Parts } from "./parts.ts";
import { Slots } from "./rollout/decide/concurrency.ts";
import { DigestKeys } from "./rollout/digest/keys.ts";
import { Rolling } from "./rollout/rollout-controller.ts";
import { Contention } from "./targets/contention-budget.ts";
import { WorkQueue } from "./workqueue/work-queue.ts";

export interface ControllerOptions {
  /** A file; without it what kubectl would use, or the pod's own account. */
  kubeconfig?: string;
  logLevel: LogLevel;
  /** What bindings may do here, whatever their accounts may. */
  installation: Installation;
  /** Where /livez, /readyz and /metrics are served. None are, without it. */
  healthPort?: number;
  /** How many bindings are reconciled at once. */
  concurrency: number;
  /** Where the Lease is by which one of several replicas leads. Without it, this one is taken for the only one. */
  leaseNamespace?: string;
  /** Called when this replica led and may not any more. Nothing is written from then on; the process should end. */
  onLost: () => void;
}

export interface Controller {
  /** Finishes what is under way, gives the lease away, then ends every stream and connection. */
  stop(): Promise<void>;
}

/** How soon a binding is looked at again that waits for what can't be watched, such as a right. */
const BACKOFF_MS = { first: 500, most: 5_000 };
/** How long a replica that others wait for stays to write events. */
const EVENTS_WITHIN_MS = 500;

export async function startController(options: ControllerOptions): Promise<Controller> {
  const log = createLog(options.logLevel);
  const credentials = await loadCredentials(options.kubeconfig);
  const transport = new Transport(credentials);
  // Of its own, so that no request for the lease waits behind others.
  const leaseTransport = new Transport(credentials, LEASE_DEADLINE_MS);
  const election =
    options.leaseNamespace === undefined
      ? undefined
      : new LeaderElection(
          new Client(leaseTransport),
          { namespace: options.leaseNamespace, identity: `${hostname()}_${randomUUID()}` },
          log,
        );
  const metrics = new Metrics({
    concurrency: options.concurrency,
    depths: () => queue.depths,
    running: () => queue.running,
    // A standby has none.
    streams: () => (election?.mayWrite === false ? [] : [bindings.state, ...streams.states]),
    leading: () => election?.mayWrite,
    rollouts: () => rolling.waiting,
  });
  const client = new Client(transport, {
    mayWrite: () => election?.mayWrite ?? true,
    wrote: (verb, outcome) => metrics.wrote(verb, outcome),
  });
  const propagation = new Propagation((seconds) => metrics.propagated(seconds));
  const queue = new WorkQueue({
    concurrency: options.concurrency,
    backoffMs: BACKOFF_MS,
    groupOf: namespaceIn,
    work: (key) =>
      propagation.during(
        key,
        () => reconciler.reconcile(key),
        ({ retry }) => retry === "backoff",
      ),
    onError: (binding, error) =>
      log.warn({ binding, error: describeError(error) }, "reconcile failed and is tried again"),
    hooks: metrics.queue,
  });
  const { installation } = options;
  const { scope } = installation;
  const bindings = new BindingStore(
    transport,
    {
      changed: (key, cause) => {
        queue.add(key, cause);
        const binding = bindings.get(key);
        if (binding !== undefined) reloading.bindingChanged(binding);
      },
      gone: (key, binding) => {
        reconciler.gone(binding);
        queue.add(key);
        reloading.bindingChanged(binding, true);
      },
      failed: (error) =>
        log.error({ error: describeError(error) }, `can't watch SecretBindings: ${whatLacks(error, scope)}`),
      restarted: (resource, reason) => metrics.watchRestarted(resourceName(resource), reason),
    },
    scope,
  );
  const streams = new Streams(
    transport,
    client,
    {
      changed: (key, cause) => {
        if (Reloading.owns(key)) return reloading.changed(key);
        if (cause === "change") propagation.changed(key);
        queue.add(key, cause);
      },
      restarted: (resource, reason) => metrics.watchRestarted(resourceName(resource), reason),
    },
    scope !== undefined,
  );
  const events = new EventRecorder(client, hostname());
  const parts: Parts = {
    installation,
    client,
    discovery: new Discovery(transport),
    schemas: new Schemas(transport),
    bindings,
    streams,
    contention: new Contention(),
    events,
    propagation,
    rollouts: metrics,
    log,
    actorOf: (binding) => reloading.actorOf(binding),
    again: (key) => queue.add(key),
  };
  const reloading = new Reloading(parts);
  const slots = new Slots(
    () => installation.rollouts,
    (key) => queue.add(key),
  );
  const rolling = new Rolling(parts, new DigestKeys(client, installation.ownNamespace), slots);
  installation.onRollouts(() => {
    slots.limitsChanged();
    rolling.wake();
  });
  const reconciler = new Reconciler(parts, rolling);
  const health =
    options.healthPort === undefined
      ? undefined
      : await serveHealth(options.healthPort, {
          livez: () => notAlive(queue.running),
          readyz: () => notReady(election, bindings.state, streams.states),
          metrics,
        });
  if (health !== undefined) metrics.collectProcess();
  const begin = () => {
    bindings.start();
    reloading.start();
  };
  if (election === undefined) begin();
  else election.start({ leading: begin, lost: options.onLost });
  const where = { server: credentials.server.href, ...(scope !== undefined && { namespace: scope }) };
  log.info(where, "controller started");

  return {
    async stop() {
      await Promise.all([queue.stop(), reloading.stop()]);
      await events.stop(election && EVENTS_WITHIN_MS);
      await election?.stop();
      await Promise.all([bindings.stop(), streams.stop()]);
      await health?.stop();
      await Promise.all([transport.close(), leaseTransport.close()]);
      log.info({}, "controller stopped");
    },
  };
}

function whatLacks({ status }: ApiError, scope: string | undefined): string {
  if (status === 0) return "the API server is not reached";
  return scope === undefined
    ? "apply apis/ and deploy/manifests/ to the cluster"
    : "apply apis/ to the cluster, and deploy/namespaced/ to the namespace";
}
