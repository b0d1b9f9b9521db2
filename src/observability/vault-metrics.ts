/** Counts requests to Vault, and shows how many VaultConnections are ready. No label contains a name or a path. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const CONNECTION_STATES = ["ready", "not_ready", "pending"] as const;
/** Whether the last check of a VaultConnection found the server ready; pending before the first one. */
export type ConnectionHealth = (typeof CONNECTION_STATES)[number];

export class VaultMetrics {
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
