/**
 * Collects what is wrong with the installation of Inlay, such as a missing policy. Each change is logged once; /readyz?verbose and the
 * metrics show the present state.
 */
import type { Log } from "./log.ts";

const INSTALLATION_CHECKS = ["policies", "permissions", "digest_key", "second_controller"] as const;
export type InstallationCheck = (typeof INSTALLATION_CHECKS)[number];

export interface InstallationProblem {
  /** What is wrong, where, and what to do. */
  readonly message: string;
  /** The names of the parts that are wrong. */
  readonly parts: readonly string[];
}

type Listener = (check: InstallationCheck) => void;

export class InstallationProblems {
  readonly #log: Pick<Log, "info" | "error">;
  readonly #found = new Map<InstallationCheck, InstallationProblem | undefined>();
  readonly #listeners: Listener[] = [];

  constructor(log: Pick<Log, "info" | "error">) {
    this.#log = log;
  }

  /** Records the result of a check. Without a problem, the part of the installation is as it should be. */
  report(check: InstallationCheck, problem: InstallationProblem | undefined): void {
    const before = this.#found.get(check);
    this.#found.set(check, problem);
    if (before?.message === problem?.message) return;
    if (problem === undefined) this.#log.info({ check }, "this check of the installation passes again");
    else this.#log.error({ check }, problem.message);
    for (const changed of this.#listeners) changed(check);
  }

  /** Removes the result of a check that can't be made any more. */
  withdraw(check: InstallationCheck): void {
    const before = this.#found.get(check);
    this.#found.delete(check);
    if (before !== undefined) for (const changed of this.#listeners) changed(check);
  }

  /** What is wrong, by check. A check that has no result is missing. */
  get all(): ReadonlyMap<InstallationCheck, InstallationProblem | undefined> {
    return this.#found;
  }

  /** Called when the result of a check has changed. */
  onChange(listener: Listener): void {
    this.#listeners.push(listener);
  }
}
