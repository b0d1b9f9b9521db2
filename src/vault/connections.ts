/** Keeps how each VaultConnection is, for the sources that read through it. The controller of VaultConnections writes it. */
import { isDeepStrictEqual } from "node:util";
import { objectKey } from "../cache/reflector.ts";
import type { ConnectionState } from "./types.ts";

export interface ConnectionListener {
  /** A connection is in another state, has other paths or labels, or is gone. */
  changed(key: string): void;
  /** Someone asks by the annotation inlay.dev/refresh for what is read through a connection to be read at once. */
  refresh(key: string): void;
}

const PENDING: ConnectionState = { phase: "pending" };

export class VaultConnections {
  /** By namespace/name. */
  readonly #states = new Map<string, ConnectionState>();
  readonly #listeners: ConnectionListener[] = [];
  /** Those that were asked for before it was known which connections exist. */
  readonly #asked = new Set<string>();
  #isListed = false;

  /** Undefined where there is no such VaultConnection. Pending until the watch has brought all connections. */
  get(namespace: string, name: string): ConnectionState | undefined {
    const key = objectKey(namespace, name);
    if (!this.#isListed) this.#asked.add(key);
    return this.#stateOf(key);
  }

  /** Listeners are called in the order in which they were added. */
  listen(listener: ConnectionListener): void {
    this.#listeners.push(listener);
  }

  /** A connection exists, and it is not known yet how it is. */
  appeared(key: string): void {
    if (!this.#states.has(key)) this.set(key, PENDING);
  }

  set(key: string, state: ConnectionState): void {
    const before = this.#stateOf(key);
    this.#states.set(key, state);
    if (before === undefined || !isSame(before, state)) this.#tell(key);
  }

  delete(key: string): void {
    if (this.#states.delete(key)) this.#tell(key);
  }

  /** The watch has brought all connections. */
  listed(): void {
    this.#isListed = true;
    const missing = [...this.#asked].filter((key) => !this.#states.has(key));
    this.#asked.clear();
    for (const key of missing) this.#tell(key);
  }

  /** Has failed logins of a connection tried with the next read. */
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

  #tell(key: string): void {
    for (const listener of this.#listeners) listener.changed(key);
  }
}

/** The revision stands for the connection and its paths. */
function isSame(a: ConnectionState, b: ConnectionState): boolean {
  if (a.phase === "failed" && b.phase === "failed")
    return (
      a.problem.reason === b.problem.reason &&
      a.problem.message === b.problem.message &&
      isDeepStrictEqual(a.labels, b.labels)
    );
  if (a.phase === "ready" && b.phase === "ready")
    return a.revision === b.revision && isDeepStrictEqual(a.labels, b.labels);
  return a.phase === b.phase;
}
