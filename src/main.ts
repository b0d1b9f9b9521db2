/** Options come in, the running controller goes out. Wiring only: each part is made, started, and stopped in reverse. */
import { hostname } from "node:os";
import { Contention } from "./apply/contention.ts";
import { Client } from "./kube/client.ts";
import { loadCredentials } from "./kube/credentials.ts";
import { Discovery } from "./kube/discovery.ts";
import { Schemas } from "./kube/schemas.ts";
import { Transport } from "./kube/transport.ts";
import type { Parts } from "./parts.ts";
import { WorkQueue } from "./queue/work-queue.ts";
import { Reconciler } from "./reconcile.ts";
import { EventRecorder } from "./report/events.ts";
import { serveHealth } from "./run/health.ts";
import { createLog, type LogLevel } from "./run/log.ts";
import { BindingStore } from "./watch/bindings.ts";
import { Streams } from "./watch/streams.ts";

export interface ControllerOptions {
  /** A file; without it what kubectl would use, or the pod's own account. */
  kubeconfig?: string;
  logLevel: LogLevel;
  /** Where /livez and /readyz are served. None are, without it. */
  healthPort?: number;
  /** How many bindings are reconciled at once. */
  concurrency: number;
}

export interface Controller {
  /** Finishes what is under way, then ends every stream and connection. */
  stop(): Promise<void>;
}

/** How soon a binding is looked at again that waits for what can't be watched, such as a right. */
const BACKOFF_MS = { first: 500, most: 5_000 };

export async function startController(options: ControllerOptions): Promise<Controller> {
  const log = createLog(options.logLevel);
  const credentials = await loadCredentials(options.kubeconfig);
  const transport = new Transport(credentials);
  const client = new Client(transport);
  const queue = new WorkQueue({
    concurrency: options.concurrency,
    backoffMs: BACKOFF_MS,
    work: (key) => reconciler.reconcile(key),
    onError: (binding, error) => log.warn({ binding, error: describe(error) }, "reconcile failed and is tried again"),
  });
  const bindings = new BindingStore(transport, {
    changed: (key) => queue.add(key),
    gone: (key, binding) => {
      reconciler.gone(key, binding);
      queue.add(key);
    },
    failed: (error) =>
      log.error(
        { error: describe(error) },
        "can't watch SecretBindings: apply apis/ and deploy/manifests/ to the cluster",
      ),
  });
  const streams = new Streams(transport, client, (key) => queue.add(key));
  const events = new EventRecorder(client, hostname());
  const parts: Parts = {
    client,
    discovery: new Discovery(transport),
    schemas: new Schemas(transport),
    bindings,
    streams,
    contention: new Contention(),
    events,
    log,
  };
  const reconciler = new Reconciler(parts);
  const health =
    options.healthPort === undefined ? undefined : await serveHealth(options.healthPort, () => bindings.synced);
  bindings.start();
  log.info({ server: credentials.server.href }, "controller started");

  return {
    async stop() {
      await bindings.stop();
      await queue.stop();
      await streams.stop();
      await events.stop();
      await health?.stop();
      await transport.close();
      log.info({}, "controller stopped");
    },
  };
}

/** An error's name and message, and where it came from if it is a bug of ours. */
function describe(error: unknown): { name: string; message: string; stack?: string } {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return name === "ApiError" || name === "Problem" ? { name, message } : { name, message, ...(stack && { stack }) };
}
