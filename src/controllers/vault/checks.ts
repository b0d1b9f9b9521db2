/**
 * Checks in the background whether the server of each VaultConnection is ready: no reconcile waits for Vault, and a server that is
 * silent delays the check of its own connection alone.
 */

import { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Connection, ConnectionCheck } from "../../vault/connection.ts";

export type Checked = Pick<Connection, "check">;

const EVERY_MS = 60_000;
/** How often reads that fail may lead to a check that finds nothing wrong. */
const DOUBTED_EVERY_MS = 5_000;
/** Each check that finds the server not ready doubles the pause before the next one. */
const BACKOFF_MS = { first: 1_000, most: 30_000 };

/** Called with the key of a connection. */
export interface CheckHooks {
  /** A check has another result than the one before. */
  changed(key: string): void;
  /** The server is ready again. */
  recovered(key: string): void;
  /** A check ended with an unexpected error. */
  failed(key: string, error: unknown): void;
}

interface Check {
  readonly connection: Checked;
  result: ConnectionCheck | undefined;
  failures: number;
  /** When the last check began, by a clock that never goes back. */
  beganAt: number;
  timer: NodeJS.Timeout | undefined;
  isRunning: boolean;
  /** A check was asked for while one ran. */
  isDue: boolean;
}

export class Checks {
  readonly #checks = new Map<string, Check>();
  readonly #hooks: CheckHooks;
  readonly #now: () => number;

  /** `now` is a clock in ms that never goes back. */
  constructor(hooks: CheckHooks, now = () => performance.now()) {
    this.#hooks = hooks;
    this.#now = now;
  }

  /** Checks a connection at once and from time to time, in place of the one that the key had before. */
  start(key: string, connection: Checked): void {
    this.stop(key);
    const state = { result: undefined, failures: 0, beganAt: 0, timer: undefined, isRunning: false, isDue: false };
    const check = { connection, ...state };
    this.#checks.set(key, check);
    void this.#run(key, check);
  }

  stop(key: string): void {
    clearTimeout(this.#checks.get(key)?.timer);
    this.#checks.delete(key);
  }

  stopAll(): void {
    for (const key of [...this.#checks.keys()]) this.stop(key);
  }

  /** Checks a connection at once. */
  now(key: string): void {
    const check = this.#checks.get(key);
    if (check === undefined) return;
    if (check.isRunning) check.isDue = true;
    else void this.#run(key, check);
  }

  /** Checks a connection soon if it is taken to be ready: a read failed. One that is not is checked anyway. */
  doubt(key: string): void {
    const check = this.#checks.get(key);
    if (check === undefined || check.isRunning || check.result?.problem !== undefined) return;
    if (this.#now() >= check.beganAt + DOUBTED_EVERY_MS) void this.#run(key, check);
  }

  /** Undefined until the first check is done. */
  resultOf(key: string): ConnectionCheck | undefined {
    return this.#checks.get(key)?.result;
  }

  async #run(key: string, check: Check): Promise<void> {
    clearTimeout(check.timer);
    check.isRunning = true;
    check.beganAt = this.#now();
    check.isDue = false;
    const result = await this.#resultOf(key, check);
    check.isRunning = false;
    if (this.#checks.get(key) !== check) return;
    check.failures = result.problem === undefined ? 0 : check.failures + 1;
    const hasRecovered = check.result?.problem !== undefined && result.problem === undefined;
    const isOther = check.result === undefined || !isSame(check.result, result);
    check.result = result;
    const pause = check.isDue ? 0 : pauseAfter(check.failures, result.problem);
    check.timer = setTimeout(() => void this.#run(key, check), pause).unref();
    if (isOther) this.#hooks.changed(key);
    if (hasRecovered) this.#hooks.recovered(key);
  }

  async #resultOf(key: string, { connection }: Check): Promise<ConnectionCheck> {
    try {
      const result = await attempt(connection.check());
      return result instanceof Problem ? { problem: result } : result;
    } catch (error) {
      this.#hooks.failed(key, error);
      const message = "Inlay could not check the server, for an unexpected error that is in the log of the controller";
      return { problem: new Problem("VaultUnavailable", message) };
    }
  }
}

function isSame(a: ConnectionCheck, b: ConnectionCheck): boolean {
  return (
    a.version === b.version && a.problem?.reason === b.problem?.reason && a.problem?.message === b.problem?.message
  );
}

/** Connections that became ready at the same moment are not checked at the same moment for ever. */
function pauseAfter(failures: number, problem: Problem | undefined): number {
  if (problem === undefined) return EVERY_MS * (0.9 + Math.random() * 0.2);
  const { first, most } = BACKOFF_MS;
  const backoff = Math.min(first * 2 ** Math.min(failures - 1, 20), most) * (0.75 + Math.random() / 2);
  return Math.max(backoff, problem.retryAfterMs ?? 0);
}
