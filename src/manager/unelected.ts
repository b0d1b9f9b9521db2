/**
 * Records a controller without leader election as the holder of the Lease, so that others see that it runs, and reports another controller
 * that holds the Lease. It never waits for the Lease and never takes it from a live holder.
 */
import { LEASE_NAME } from "../api/installation.ts";
import { LEASES, NAMESPACES } from "../apimachinery/resources.ts";
import { isNotFound } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { InstallationProblems } from "../observability/installation-problems.ts";
import type { Log } from "../observability/log.ts";
import { type Candidate, LeaderElection } from "./leader-election.ts";

/** A few renewals fit into the duration of the record. */
const RETRY_MS = 2_400;

export class Unelected {
  readonly #client: Pick<Client, "get" | "create" | "replace" | "may">;
  readonly #candidate: Candidate;
  readonly #problems: Pick<InstallationProblems, "report">;
  readonly #log: Pick<Log, "debug" | "info">;
  readonly #election: LeaderElection;
  #isStopped = false;

  constructor(
    client: Pick<Client, "get" | "create" | "replace" | "may">,
    candidate: Candidate,
    problems: Pick<InstallationProblems, "report">,
    log: Pick<Log, "debug" | "info">,
  ) {
    this.#client = client;
    this.#candidate = candidate;
    this.#problems = problems;
    this.#log = log;
    const debug = (fields: object, text: string) => log.debug(fields, text);
    const warn = (fields: object) => log.info(fields, UNNOTICED);
    this.#election = new LeaderElection(
      client,
      { ...candidate, retryMs: RETRY_MS },
      { debug, info: debug, warn, error: debug },
    );
  }

  start(): void {
    void this.#begin();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#election.stop();
  }

  async #begin(): Promise<void> {
    const { namespace } = this.#candidate;
    // If the API server does not answer, the election tries again.
    const obstacle = await this.#obstacle().catch(() => undefined);
    if (obstacle !== undefined) {
      const { level, why } = obstacle;
      this.#log[level]({ lease: `${namespace}/${LEASE_NAME}` }, `${UNNOTICED}: ${why}`);
    } else if (!this.#isStopped) this.#elect();
  }

  /** Why this controller can't be recorded. In a cluster without an installation, nothing is wrong. */
  async #obstacle(): Promise<{ level: "debug" | "info"; why: string } | undefined> {
    const { namespace } = this.#candidate;
    for (const [verb, name] of [
      ["create", undefined],
      ["get", LEASE_NAME],
      ["update", LEASE_NAME],
    ] as const)
      if (!(await this.#client.may(CONTROLLER, verb, LEASES, namespace, name)))
        return { level: "info", why: `the controller may not ${verb} leases in namespace ${namespace}` };
    try {
      await this.#client.get(CONTROLLER, { resource: NAMESPACES, name: namespace });
      return undefined;
    } catch (error) {
      return isNotFound(error) ? { level: "debug", why: `there is no namespace ${namespace}` } : undefined;
    }
  }

  #elect(): void {
    this.#election.start({
      leading: () => this.#problems.report("second_controller", undefined),
      // After a pause, it may be taken again. Nothing depends on it.
      lost: () => this.#electLater(),
      held: (holder) => this.#problems.report("second_controller", secondController(this.#candidate, holder)),
    });
  }

  /** The API server may have refused the last renewals, so the next one waits as any other. */
  #electLater(): void {
    setTimeout(() => {
      if (!this.#isStopped) this.#elect();
    }, RETRY_MS).unref();
  }
}

const UNNOTICED = "can't record this controller in the Lease, so a second controller is not noticed";

function secondController({ namespace }: Pick<Candidate, "namespace">, holder: string) {
  return {
    message:
      `another controller runs: ${holder} holds the Lease ${namespace}/${LEASE_NAME}. Both write the same fields and restart the same ` +
      "workloads; stop one of them, or start both with --leader-elect",
    parts: [holder],
  };
}
