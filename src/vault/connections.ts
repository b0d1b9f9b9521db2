/** Stores the state of each VaultConnection, for the sources that read through it. The controller of VaultConnections updates it. */
import { isDeepStrictEqual } from "node:util";
import { objectKey } from "../cache/reflector.ts";
import type { ConnectionState } from "./types.ts";

export interface ConnectionListener {
  /** The state, the paths or the labels of a connection changed, or it was deleted. */
  changed(key: string): void;
  /** The annotation inlay.dev/refresh requests that everything is read through a connection at once. */
  refresh(key: string): void;
}

const PENDING: ConnectionState = { phase: "pending" };

export class VaultConnections {
  /** By namespace/name. */
  readonly #states = new Map<string, ConnectionState>();
  readonly #listeners: ConnectionListener[] = [];
  /** Connections that were requested before all connections were listed. */
  readonly #asked = new Set<string>();
  #isListed = false;

  /** Undefined if there is no such VaultConnection. Pending until the watch has listed all connections. */
  get(namespace: string, name: string): ConnectionState | undefined {
    const key = objectKey(namespace, name);
    if (!this.#isListed) this.#asked.add(key);
    return this.#stateOf(key);
  }

  /** Listeners are called in the order in which they were added. */
  listen(listener: ConnectionListener): void {
    this.#listeners.push(listener);
  }

  /** A connection exists, and its state is not known yet. */
  appeared(key: string): void {
    if (!this.#states.has(key)) this.set(key, PENDING);
  }

  set(key: string, state: ConnectionState): void {
    const before = this.#stateOf(key);
    this.#states.set(key, state);
    if (before === undefined || !isSame(before, state)) this.#notify(key);
  }

  delete(key: string): void {
    if (this.#states.delete(key)) this.#notify(key);
  }

  /** The watch has listed all connections. */
  listed(): void {
    this.#isListed = true;
    const missing = [...this.#asked].filter((key) => !this.#states.has(key));
    this.#asked.clear();
    for (const key of missing) this.#notify(key);
  }

  /** Retries failed logins of a connection at the next read. */
  retryLogins(key: string): void {
    const state = this.#states.get(key);
    if (state?.phase === "ready") state.connected.retryLogins();
  }

  refresh(key: string): void {
    for (const listener of this.#listeners) listener.refresh(key);
  }

  #stateOf(key: string): ConnectionState | undefined {
    return this.#states.get(key) ?? (this.#isListed ? undefined : PENDING);
  }

  #notify(key: string): void {
    for (const listener of this.#listeners) listener.changed(key);
  }
}

/** The revision covers the settings of the connection and its paths. */
function isSame(a: ConnectionState, b: ConnectionState): boolean {
  if (a.phase === "failed" && b.phase === "failed")
    return a.problem.isSame(b.problem) && isDeepStrictEqual(a.labels, b.labels);
  if (a.phase === "ready" && b.phase === "ready")
    return a.revision === b.revision && isDeepStrictEqual(a.labels, b.labels);
  return a.phase === b.phase;
}
