/**
 * Leader election by a Lease, with the record and the rules of client-go: who this replica is comes in, the moment when
 * it leads goes out, and the moment when it no longer may. Other clocks are never trusted: a lease has run out when its
 * record did not change for its duration by this replica's own, monotonic clock.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject, ObjectMeta, ObjectRef } from "../apimachinery/objects.ts";
import { LEASES } from "../apimachinery/resources.ts";
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { Log } from "../observability/log.ts";

const LEASE_NAME = "inlay-controller";

/** Every request for the lease is given up after this long, so that there are several before the renewal is overdue. */
export const LEASE_DEADLINE_MS = 2_000;

/** For how long others leave a record alone that is not renewed. */
const DURATION_MS = 9_000;
/** How long the leader goes on without a renewal. What it has sent by then arrives before anybody else may lead. */
const RENEW_DEADLINE_MS = 6_000;
/** How often the leader renews, and the others look. */
const RETRY_MS = 800;

interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

export interface Lease extends Pick<KubeObject, "apiVersion" | "kind"> {
  metadata: Partial<ObjectMeta> & { name: string; namespace: string };
  spec: LeaseSpec;
}

export interface ElectionEvents {
  /** This replica leads. Called once at most. */
  leading(): void;
  /** It leads no more and must not write again; nothing brings it back. */
  lost(): void;
}

export interface Candidate {
  namespace: string;
  /** Another one for each process: what it led before it was started anew is not its own. */
  identity: string;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

export class LeaderElection {
  readonly #client: Pick<Client, "get" | "create" | "replace">;
  readonly #ref: ObjectRef & { namespace: string };
  readonly #identity: string;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #stop = new AbortController();
  /** The record as it was last seen to differ, and when. */
  #observed: { record: string; at: number } | undefined;
  /** The lease as our last renewal left it. */
  #held: Lease | undefined;
  /** When our last renewal was begun; undefined while we don't lead. */
  #renewed: number | undefined;
  /** When the API server last answered. */
  #answered: number | undefined;
  #failing = false;
  #done: Promise<void> = Promise.resolve();

  constructor(client: Pick<Client, "get" | "create" | "replace">, candidate: Candidate, log: Log) {
    this.#client = client;
    this.#ref = { resource: LEASES, namespace: candidate.namespace, name: LEASE_NAME };
    this.#identity = candidate.identity;
    this.#now = candidate.now ?? (() => performance.now());
    this.#log = log;
  }

  /** Whether this replica may write now: it leads, and was not held up for so long that another may lead instead. */
  get mayWrite(): boolean {
    return this.#renewed !== undefined && this.#now() - this.#renewed < RENEW_DEADLINE_MS;
  }

  /** Whether it is known who leads. */
  get inTouch(): boolean {
    return this.#answered !== undefined && this.#now() - this.#answered < DURATION_MS;
  }

  start(events: ElectionEvents): void {
    this.#done = this.#run(events);
  }

  /** Stops trying; a leader gives the lease away, so that another one follows within a second or so. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    if (!this.mayWrite) return;
    this.#renewed = undefined;
    try {
      await this.#release().catch((error: unknown) => {
        if (isStatus(error, 409)) return this.#release();
        throw error;
      });
      this.#log.info({ lease: this.#where }, "gave the lease away");
    } catch (error) {
      const fields = { lease: this.#where, error: messageOf(error) };
      this.#log.warn(fields, "could not give the lease away; it runs out by itself");
    }
  }

  async #run(events: ElectionEvents): Promise<void> {
    let led = false;
    while (!this.#stop.signal.aborted) {
      // After a pause of the whole process, not even the lease is written.
      if (!led || this.mayWrite) await this.#try();
      if (led && !this.mayWrite) {
        this.#renewed = undefined;
        this.#log.error({ lease: this.#where }, "lost the lease");
        events.lost();
        return;
      }
      if (!led && this.mayWrite) {
        led = true;
        this.#log.info({ lease: this.#where, identity: this.#identity }, "leading");
        if (!this.#stop.signal.aborted) events.leading();
      }
      const ms = RETRY_MS * (0.9 + Math.random() * 0.2);
      await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => {});
    }
  }

  /** Takes or renews the lease if that is ours to do. A request that fails is a try without success. */
  async #try(): Promise<void> {
    const at = this.#now();
    const guess = this.#held;
    this.#held = undefined;
    try {
      const lease = guess ?? (await this.#read());
      if (lease !== undefined && !this.#isFree(lease)) {
        this.#renewed = undefined;
      } else {
        this.#held = await this.#write(lease, this.#record(lease));
        this.#renewed = at;
      }
      this.#hear();
    } catch (error) {
      if (!isStatus(error, 409)) return this.#fail(error);
      this.#hear();
      // Somebody else wrote it since: what he wrote decides.
      if (guess !== undefined) await this.#try();
    }
  }

  async #read(): Promise<Lease | undefined> {
    try {
      const lease = await this.#client.get<Lease>(CONTROLLER, this.#ref);
      return { ...lease, spec: lease.spec ?? {} };
    } catch (error) {
      if (isStatus(error, 404)) return undefined;
      throw error;
    }
  }

  #write(before: Lease | undefined, spec: LeaseSpec): Promise<Lease> {
    const { name, namespace } = this.#ref;
    const kind = { apiVersion: "coordination.k8s.io/v1", kind: "Lease" };
    if (before !== undefined) return this.#client.replace(CONTROLLER, this.#ref, { ...before, ...kind, spec });
    return this.#client.create(CONTROLLER, LEASES, namespace, { ...kind, metadata: { name, namespace }, spec });
  }

  /** Ours, nobody's, or not renewed for its duration while we looked. */
  #isFree({ spec }: Lease): boolean {
    const record = JSON.stringify(spec);
    if (this.#observed?.record !== record) this.#observed = { record, at: this.#now() };
    if (spec.holderIdentity === this.#identity || !spec.holderIdentity) return true;
    const durationMs = spec.leaseDurationSeconds === undefined ? DURATION_MS : spec.leaseDurationSeconds * 1000;
    return this.#now() - this.#observed.at > durationMs;
  }

  #record(before: Lease | undefined): LeaseSpec {
    const renews = before?.spec.holderIdentity === this.#identity;
    const now = microTime();
    return {
      holderIdentity: this.#identity,
      leaseDurationSeconds: DURATION_MS / 1000,
      acquireTime: renews ? (before.spec.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before?.spec.leaseTransitions ?? 0) + (before === undefined || renews ? 0 : 1),
    };
  }

  /** As client-go does: a record without a holder, that lasts a second. */
  async #release(): Promise<void> {
    const lease = this.#held ?? (await this.#read());
    this.#held = undefined;
    if (lease?.spec.holderIdentity !== this.#identity) return;
    const { leaseTransitions = 0 } = lease.spec;
    const now = microTime();
    await this.#write(lease, { leaseDurationSeconds: 1, acquireTime: now, renewTime: now, leaseTransitions });
  }

  #hear(): void {
    this.#answered = this.#now();
    this.#failing = false;
  }

  #fail(error: unknown): void {
    if (!this.#failing)
      this.#log.warn({ lease: this.#where, error: messageOf(error) }, "can't take or renew the lease");
    this.#failing = true;
  }

  get #where(): string {
    return `${this.#ref.namespace}/${this.#ref.name}`;
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Kubernetes' MicroTime. */
const microTime = () => new Date().toISOString().replace(/Z$/, "000Z");
