/**
 * Checks in the background whether the server of each VaultConnection is ready. No reconcile waits for Vault, and a server that
 * does not answer delays only the checks of its own connection. All checks share a rate, of which namespaces take turns.
 */
import { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Connection, ConnectionCheck } from "../../vault/connection.ts";
import { namespaceOf } from "../../vault/path.ts";
import { SlowBucket } from "../../workqueue/slow-bucket.ts";

type Checked = Pick<Connection, "check" | "isUsed">;

/** Each check may need a TLS handshake, and so some milliseconds of the processor. */
const CHECKS_A_SECOND = 50;
const EVERY_MS = 60_000;
/** The minimum time between two checks that failed reads cause while the server is ready. */
const DOUBTED_EVERY_MS = 5_000;
/** The backoff of checks while the server is not ready. */
const BACKOFF_MS = { first: 1_000, most: 30_000 };
/** The longest pause of a connection that no binding uses. Its first use ends the pause. */
const UNUSED_EVERY_MS = 10 * 60_000;

/** Called with the key of a connection. */
interface CheckHooks {
  /** The result of a check differs from the one before, or the check was requested. */
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
  /** When the last check began, in ms of a monotonic clock. */
  beganAt: number;
  timer: NodeJS.Timeout | undefined;
  state: "idle" | "waiting" | "running";
  /** Ends the wait for a turn. */
  readonly abort: AbortController;
  /** A check was requested while one ran. */
  isDue: boolean;
  /** A check was requested, and none that began later has ended. */
  isAwaited: boolean;
}

export class Checks {
  readonly #checks = new Map<string, Check>();
  readonly #hooks: CheckHooks;
  readonly #now: () => number;
  readonly #turns = new SlowBucket(CHECKS_A_SECOND);

  /** `now` is a monotonic clock in ms. */
  constructor(hooks: CheckHooks, now = () => performance.now()) {
    this.#hooks = hooks;
    this.#now = now;
  }

  /** Checks a connection at once and then at intervals. Replaces the connection that the key had before. */
  start(key: string, connection: Checked): void {
    this.stop(key);
    const idle = { state: "idle", timer: undefined, isDue: false, isAwaited: false } as const;
    const check = { connection, result: undefined, failures: 0, beganAt: 0, abort: new AbortController(), ...idle };
    this.#checks.set(key, check);
    void this.#run(key, check);
  }

  stop(key: string): void {
    const check = this.#checks.get(key);
    clearTimeout(check?.timer);
    this.#checks.delete(key);
    check?.abort.abort();
  }

  stopAll(): void {
    for (const key of [...this.#checks.keys()]) this.stop(key);
  }

  /** Checks a connection at once. */
  now(key: string): void {
    const check = this.#checks.get(key);
    if (check === undefined) return;
    check.isAwaited = true;
    if (check.state === "running") check.isDue = true;
    else if (check.state === "idle") void this.#run(key, check);
  }

  /** Checks a connection soon after a failed read, if it counts as ready. One that is not ready is checked anyway. */
  doubt(key: string): void {
    const check = this.#checks.get(key);
    if (check === undefined || check.state !== "idle" || check.result?.problem !== undefined) return;
    if (this.#now() >= check.beganAt + DOUBTED_EVERY_MS) void this.#run(key, check);
  }

  /** Checks a connection that bindings begin to use, and whose next check may be far. */
  used(key: string): void {
    const check = this.#checks.get(key);
    if (check?.state === "idle") void this.#run(key, check);
  }

  /** Undefined until the first check is done. */
  resultOf(key: string): ConnectionCheck | undefined {
    return this.#checks.get(key)?.result;
  }

  /** Whether the check that `now` requested has not ended yet. */
  isAwaited(key: string): boolean {
    return this.#checks.get(key)?.isAwaited === true;
  }

  async #run(key: string, check: Check): Promise<void> {
    clearTimeout(check.timer);
    check.state = "waiting";
    await this.#turns.take(namespaceOf(key), check.abort.signal);
    if (this.#checks.get(key) !== check) return;
    check.state = "running";
    check.beganAt = this.#now();
    check.isDue = false;
    const result = await this.#resultOf(key, check);
    check.state = "idle";
    if (this.#checks.get(key) !== check) return;
    check.failures = result.problem === undefined ? 0 : check.failures + 1;
    const hasRecovered = check.result?.problem !== undefined && result.problem === undefined;
    const isOther = check.result === undefined || !isSame(check.result, result);
    check.result = result;
    const wasAwaited = check.isAwaited && !check.isDue;
    if (wasAwaited) check.isAwaited = false;
    const pause = check.isDue ? 0 : pauseAfter(check, result.problem);
    check.timer = setTimeout(() => void this.#run(key, check), pause).unref();
    if (isOther || wasAwaited) this.#hooks.changed(key);
    if (hasRecovered) this.#hooks.recovered(key);
  }

  async #resultOf(key: string, { connection }: Check): Promise<ConnectionCheck> {
    try {
      const result = await attempt(connection.check());
      return result instanceof Problem ? { problem: result } : result;
    } catch (error) {
      this.#hooks.failed(key, error);
      const message = "an unexpected error kept Inlay from checking the server; see the controller's log";
      return { problem: new Problem("VaultUnavailable", message) };
    }
  }
}

function isSame(a: ConnectionCheck, b: ConnectionCheck): boolean {
  return a.version === b.version && (a.problem?.isSame(b.problem) ?? b.problem === undefined);
}

/** The random part keeps connections that became ready at the same moment from being checked at the same moment. */
function pauseAfter({ failures, connection: { isUsed } }: Check, problem: Problem | undefined): number {
  if (problem === undefined) return (isUsed ? EVERY_MS : UNUSED_EVERY_MS) * (0.9 + Math.random() * 0.2);
  const { first } = BACKOFF_MS;
  const most = isUsed ? BACKOFF_MS.most : UNUSED_EVERY_MS;
  const backoff = Math.min(first * 2 ** Math.min(failures - 1, 20), most) * (0.75 + Math.random() / 2);
  return Math.max(backoff, problem.retryAfterMs ?? 0);
}
