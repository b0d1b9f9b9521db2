/**
 * The controller of VaultConnections: it maintains one connection to the server of each for the sources that read through it, and
 * reports in the status whether the server is ready.
 */
import { isDeepStrictEqual } from "node:util";
import { namespaceIn } from "../../api/binding.ts";
import type { ConnectionStatus, VaultConnection } from "../../api/connection.ts";
import type { Installation } from "../../api/installation.ts";
import { withProgress } from "../../api/progress.ts";
import { handledRefresh } from "../../api/refresh.ts";
import { conditionOf, type Verdict } from "../../api/verdict.ts";
import { getOrInsert } from "../../apimachinery/maps.ts";
import { apiVersionOf } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { VAULT_CONNECTIONS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import type { Informers } from "../../cache/informers.ts";
import { OldestFirst } from "../../cache/oldest-first.ts";
import { objectKey } from "../../cache/reflector.ts";
import type { ResourceStore } from "../../cache/resource-store.ts";
import type { Client } from "../../kube/client.ts";
import { describeError } from "../../observability/log.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { Connection, type ConnectionCheck } from "../../vault/connection.ts";
import type { VaultConnections } from "../../vault/connections.ts";
import { NAMESPACE } from "../../vault/path.ts";
import type { ConnectionServices, ConnectionSettings } from "../../vault/settings.ts";
import type { CpuScheduler } from "../../workqueue/cpu-scheduler.ts";
import { SlowBucket } from "../../workqueue/slow-bucket.ts";
import { WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";
import { BACKOFF_MS } from "../binding/requeue.ts";
import { readinessOf, type WithConditions } from "../readiness.ts";
import { StatusWriter, untilTooLarge } from "../status-writer.ts";
import { Checks } from "./checks.ts";
import { ConnectionReconciler, isTokenReadable, type OpenConnection } from "./reconciler.ts";

interface Counts {
  ready: number;
  notReady: number;
}

interface Reader extends WithConditions {
  metadata: { namespace?: string };
  spec: { sources?: readonly { vault?: { connection: { name: string; namespace?: string } } }[] };
}

/** The bindings that read through each VaultConnection, by its `namespace/name`. */
export function countByConnection(bindings: Iterable<Reader>): Map<string, Counts> {
  const counts = new Map<string, Counts>();
  for (const binding of bindings) {
    const used = (binding.spec.sources ?? []).flatMap(({ vault }) =>
      vault === undefined
        ? []
        : [`${vault.connection.namespace ?? binding.metadata.namespace}/${vault.connection.name}`],
    );
    for (const connection of new Set(used)) {
      const count = getOrInsert(counts, connection, () => ({ ready: 0, notReady: 0 }));
      if (readinessOf(binding)?.status === "True") count.ready++;
      else count.notReady++;
    }
  }
  return counts;
}

/** The warning for a connection whose token is in a ConfigMap. */
const TOKEN_READABLE = {
  reason: "TokenReadable",
  message:
    "the token is in a ConfigMap, so everyone who may read ConfigMaps in this namespace can read it; move it to a Secret",
} as const;

export function statusOf(
  connection: VaultConnection,
  { version, problem }: ConnectionCheck,
  now: Date,
): ConnectionStatus {
  const { metadata, spec, status } = connection;
  const verdict: Verdict =
    problem === undefined
      ? { ready: "True", reason: "Ready", message: whatWorks(spec.auth) }
      : { ready: "False", reason: problem.reason, message: problem.message };
  const condition = conditionOf("Ready", connection, withWarning(connection, verdict), now);
  // While a server does not answer, its last known version stays.
  const before = status?.conditions?.[0]?.observedGeneration === metadata.generation ? status?.version : undefined;
  const known = version ?? (problem && before);
  const conditions = withProgress(connection, [condition], now);
  return { observedGeneration: metadata.generation ?? 0, conditions, ...(known !== undefined && { version: known }) };
}

export const isSameStatus = (a: ConnectionStatus | undefined, b: ConnectionStatus): boolean =>
  a !== undefined && isDeepStrictEqual(a, b);

/** Whether no status says of this spec yet that its token is readable. */
export const isNewlyReadable = (connection: VaultConnection): boolean =>
  isTokenReadable(connection) && connection.status?.observedGeneration !== connection.metadata.generation;

function withWarning(connection: VaultConnection, verdict: Verdict): Verdict {
  if (!isTokenReadable(connection)) return verdict;
  const message = `${verdict.message}; ${TOKEN_READABLE.message}`;
  return { ...verdict, message, ...(verdict.ready === "True" && { reason: TOKEN_READABLE.reason }) };
}

function whatWorks(auth: VaultConnection["spec"]["auth"]): string {
  const answers = "the server answers and is unsealed";
  if (auth === undefined) return answers;
  if (auth.kubernetes?.as === "Binding") return `${answers}; each binding logs in as its own account`;
  if (auth.kubernetes?.role.includes(NAMESPACE)) return `${answers}; each namespace logs in with its own role`;
  return `${answers}, and the login succeeds`;
}

type StatusServices = ConstructorParameters<typeof StatusWriter>[0];

interface Services extends StatusServices {
  installation: Installation;
  bindings: Pick<BindingStore, "all">;
  client: StatusServices["client"] & Pick<Client, "get">;
  informers: Pick<Informers, "watcher">;
  requestToken: ConnectionServices["requestToken"];
  /** The sources' view of the connections. */
  vault: VaultConnections;
  metrics: Pick<Metrics, "vault" | "objects" | "limited">;
  cpu: Pick<CpuScheduler, "run">;
  storeOf<T extends VaultConnection>(resource: typeof VAULT_CONNECTIONS): ResourceStore<T>;
}

/** A reconcile waits for the API server alone. */
const CONCURRENCY = 4;
/** How long the stop waits for tokens to be revoked. */
const STOP_WITHIN_MS = 2_000;
/** How many statuses of connections beyond the limit of their namespace are written. */
const REFUSALS_A_SECOND = 20;

export class VaultController {
  readonly name = "vaultconnection";
  readonly store: ResourceStore<VaultConnection>;
  readonly queue = new WorkQueue({
    concurrency: CONCURRENCY,
    backoffMs: BACKOFF_MS,
    groupOf: namespaceIn,
  });
  readonly #services: Services;
  readonly #status: StatusWriter<VaultConnection, VaultConnection>;
  readonly #checks: Checks;
  readonly #reconciler: ConnectionReconciler;
  readonly #order: OldestFirst;
  readonly #refusals = new SlowBucket(REFUSALS_A_SECOND);
  /** Connections beyond the limit whose statuses wait for their turn, and those whose turn it is. */
  readonly #waiting = new Set<string>();
  readonly #turns = new Set<string>();
  readonly #stopped = new AbortController();
  /** Connections that are being closed. */
  readonly #closing = new Set<Promise<void>>();

  constructor(services: Services) {
    const { bindings, client, informers, installation, log, metrics, vault } = services;
    this.#services = services;
    this.#order = new OldestFirst(installation.limits.connectionsPerNamespace);
    const store = services.storeOf<VaultConnection>(VAULT_CONNECTIONS);
    this.store = store;
    this.#status = new StatusWriter<VaultConnection, VaultConnection>(services, {
      resource: VAULT_CONNECTIONS,
      logKey: "connection",
      encode: (connection, status) => ({ ...connection, status }),
      wrote: (answer) => {
        store.wrote(answer);
        return answer;
      },
    });
    const failed = (key: string, error: unknown) =>
      log.warn({ connection: key, error: describeError(error) }, "unexpected error in a VaultConnection");
    // Otherwise failed reads wait for the end of their backoff.
    this.#checks = new Checks({
      changed: (key) => this.queue.add(key),
      recovered: (key) => this.#reconciler.readAgain(key),
      failed,
    });
    this.#reconciler = new ConnectionReconciler({
      installation,
      client,
      store,
      cpu: services.cpu,
      numberBeyond: ({ metadata }) => this.#order.numberBeyond(metadata),
      watcher: informers.watcher((key, cause) => this.queue.add(key, cause)),
      registry: vault,
      checks: this.#checks,
      connect: (settings) => this.#connect(settings),
      close: (connection) => this.#close(connection, failed),
      report: (connection, result, isChecked) => this.#report(connection, result, isChecked),
      reportLater: (connection, problem) => this.#reportLater(connection, problem),
    });
    metrics.vault.observeConnections(() => this.#reconciler.health);
    metrics.objects.observeConnections(() => {
      const counts = countByConnection(bindings.all);
      const counted = store.all.filter(({ metadata }) => this.#order.numberBeyond(metadata) === undefined);
      return counted.map(({ metadata: { namespace = "", name, creationTimestamp: createdAt = "" } }) => {
        const labels = { connection_namespace: namespace, connection: name };
        return { labels, createdAt, ...(counts.get(objectKey(namespace, name)) ?? { ready: 0, notReady: 0 }) };
      });
    });
    store.listen({
      changed: (key, { metadata }) => {
        const pushedOut = this.#order.add(metadata);
        vault.appeared(key);
        this.queue.add(key);
        if (pushedOut !== undefined) this.queue.add(pushedOut);
      },
      gone: (key, { metadata }) => {
        const next = this.#order.delete(metadata);
        this.#turns.delete(key);
        this.queue.add(key);
        if (next !== undefined) this.queue.add(next);
      },
      synced: () => {
        for (const { metadata } of store.all) this.queue.add(objectKey(metadata.namespace, metadata.name), "resync");
        vault.listed();
      },
    });
  }

  reconcile(key: string): Promise<WorkResult> {
    return untilTooLarge(this.#reconciler.reconcile(key));
  }

  /** Revokes the tokens that Inlay obtained from Vault, if the servers answer in time. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#checks.stopAll();
    this.#reconciler.closeAll();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, STOP_WITHIN_MS);
    await Promise.race([Promise.all(this.#closing), late]);
    clearTimeout(timer);
  }

  #connect(settings: ConnectionSettings): Connection {
    const { requestToken, cpu, installation, metrics } = this.#services;
    return new Connection(settings, {
      cpu,
      addresses: installation.vaultAddresses,
      requestToken,
      metrics: metrics.vault,
      doubted: () => this.#checks.doubt(settings.key),
      used: () => this.#checks.used(settings.key),
    });
  }

  #close(connection: OpenConnection, failed: (key: string, error: unknown) => void): void {
    const closing = connection
      .close()
      .catch((error: unknown) => failed("", error))
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Requeues the connection when it is the turn of its namespace. */
  async #reportLater(connection: VaultConnection, problem: Problem): Promise<ConnectionStatus | undefined> {
    const { namespace = "", name } = connection.metadata;
    const key = objectKey(namespace, name);
    if (isSameStatus(connection.status, this.#statusOf(connection, { problem }, true))) return connection.status;
    if (this.#turns.delete(key)) {
      this.#services.metrics.limited("connectionsPerNamespace");
      return this.#report(connection, { problem }, true);
    }
    if (this.#waiting.has(key)) return undefined;
    this.#waiting.add(key);
    void this.#refusals.take(namespace, this.#stopped.signal).then(() => {
      this.#waiting.delete(key);
      if (this.#stopped.signal.aborted) return;
      this.#turns.add(key);
      this.queue.add(key);
    });
    return undefined;
  }

  #statusOf(connection: VaultConnection, result: ConnectionCheck, isChecked: boolean): ConnectionStatus {
    return { ...statusOf(connection, result, new Date()), ...handledRefresh(connection, isChecked) };
  }

  async #report(connection: VaultConnection, result: ConnectionCheck, isChecked: boolean): Promise<ConnectionStatus> {
    const status = this.#statusOf(connection, result, isChecked);
    await this.#status.writeStatus(connection, status);
    this.#status.recordEvent(connection, status);
    if (!isNewlyReadable(connection)) return status;
    const { reason, message: note } = TOKEN_READABLE;
    const regarding = { apiVersion: apiVersionOf(VAULT_CONNECTIONS), kind: VAULT_CONNECTIONS.kind };
    const { metadata } = connection;
    this.#services.events.recordOn({ ...regarding, metadata }, { type: "Warning", reason, action: "Sync", note });
    return status;
  }
}
