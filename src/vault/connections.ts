/** Stores the state of each VaultConnection, for the sources that read through it. The controller of VaultConnections updates it. */
import { isDeepStrictEqual } from "node:util";
import { type ObjectRef, objectId } from "../apimachinery/objects.ts";
import { VAULT_CONNECTIONS } from "../apimachinery/resources.ts";
import { objectKey } from "../cache/reflector.ts";
import type { ConnectionState } from "./types.ts";

/** Both get the id of a connection. */
interface ConnectionListener {
  /** The state, the paths or the labels of a connection changed, or it was deleted. */
  changed(id: string): void;
  /** The annotation inlay.dev/refresh requests that everything is read through a connection at once. */
  refresh(id: string): void;
}

const PENDING: ConnectionState = { phase: "pending" };

export class VaultConnections {
  readonly resource = VAULT_CONNECTIONS;
  /** By namespace/name. */
  readonly #states = new Map<string, ConnectionState>();
  readonly #listeners: ConnectionListener[] = [];
  /** Connections that were requested before all connections were listed. */
  readonly #asked = new Set<string>();
  #isListed = false;

  /** Undefined if there is no such VaultConnection. Pending until the watch has listed all connections. */
  get({ namespace, name }: Pick<ObjectRef, "namespace" | "name">): ConnectionState | undefined {
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

  refresh(key: string): void {
    for (const listener of this.#listeners) listener.refresh(idOf(key));
  }

  #stateOf(key: string): ConnectionState | undefined {
    return this.#states.get(key) ?? (this.#isListed ? undefined : PENDING);
  }

  #notify(key: string): void {
    for (const listener of this.#listeners) listener.changed(idOf(key));
  }
}

function idOf(key: string): string {
  const [namespace, name = ""] = key.split("/");
  return objectId(VAULT_CONNECTIONS, namespace, name);
}

/** The revision covers the settings of the connection and its paths. */
function isSame(a: ConnectionState, b: ConnectionState): boolean {
  if (a.phase === "failed" && b.phase === "failed")
    return a.problem.isSame(b.problem) && isDeepStrictEqual(a.labels, b.labels);
  if (a.phase === "ready" && b.phase === "ready")
    return a.revision === b.revision && isDeepStrictEqual(a.labels, b.labels);
  return a.phase === b.phase;
}
