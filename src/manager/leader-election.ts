/**
 * Elects a leader by a Lease, with the record and the rules of client-go. Reports when this replica becomes the leader, and when it no
 * longer may write. Other clocks are never trusted: a lease has expired when its record did not change for its duration by this replica's
 * monotonic clock.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { LEASE_NAME } from "../api/installation.ts";
import type { KubeObject, ObjectMeta, ObjectRef } from "../apimachinery/objects.ts";
import { LEASES } from "../apimachinery/resources.ts";
import { ifFound, isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { Log } from "../observability/log.ts";

/** The deadline of every request for the lease, so that several attempts fit before the renewal is overdue. */
export const LEASE_DEADLINE_MS = 2_000;

/** How long other replicas respect a record that is not renewed. */
const DURATION_MS = 9_000;
/** How long the leader writes without a renewal. Its last requests arrive before another replica may lead. */
const RENEW_DEADLINE_MS = 6_000;
/** How often the leader renews, and the others check. */
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

interface ElectionEvents {
  /** This replica leads. Called at most once. */
  leading(): void;
  /** This replica no longer leads and must not write again. This is permanent. */
  lost(): void;
  /** Another replica holds the lease and renews it. Called once for each holder. */
  held?(holder: string): void;
}

export interface Candidate {
  namespace: string;
  /** Each process has its own, so that a restarted process does not continue its former lease. */
  identity: string;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
  /** How often to renew or check the lease. */
  retryMs?: number;
}

export class LeaderElection {
  readonly #client: Pick<Client, "get" | "create" | "replace">;
  readonly #ref: ObjectRef & { namespace: string };
  readonly #identity: string;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #retryMs: number;
  readonly #stop = new AbortController();
  /** The last record that differed from the one before, and when it was seen. */
  #observed: { record: string; at: number; holder: string | undefined; isRenewed: boolean } | undefined;
  /** The live holder that was reported last. */
  #reported: string | undefined;
  /** The lease after our last renewal. */
  #held: Lease | undefined;
  /** When our last renewal began; undefined while this replica does not lead. */
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
    this.#retryMs = candidate.retryMs ?? RETRY_MS;
    this.#log = log;
  }

  /** Whether this replica may write now: it leads, and was not paused for so long that another replica may lead. */
  get mayWrite(): boolean {
    return this.#renewed !== undefined && this.#now() - this.#renewed < RENEW_DEADLINE_MS;
  }

  /** Whether the current leader is known. */
  get inTouch(): boolean {
    return this.#answered !== undefined && this.#now() - this.#answered < DURATION_MS;
  }

  start(events: ElectionEvents): void {
    this.#done = this.#run(events);
  }

  /** Stops the election. A leader releases the lease, so that another replica follows within about a second. */
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
      this.#log.info({ lease: this.#where }, "released the lease");
    } catch (error) {
      const fields = { lease: this.#where, error: messageOf(error) };
      this.#log.warn(fields, "could not release the lease; it expires by itself");
    }
  }

  async #run(events: ElectionEvents): Promise<void> {
    let led = false;
    while (!this.#stop.signal.aborted) {
      // After a pause of the whole process, not even the lease may be written.
      if (!led || this.mayWrite) await this.#try();
      this.#reportHolder(events);
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
      const ms = this.#retryMs * (0.9 + Math.random() * 0.2);
      await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => {});
    }
  }

  /** Takes or renews the lease if this replica may. A failed request counts as a failed attempt. */
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
      // Another replica has written it since, so its current content decides.
      if (guess !== undefined) await this.#try();
    }
  }

  /** A record that does not change may be that of a replica that was killed. */
  #reportHolder({ held }: ElectionEvents): void {
    const { holder, isRenewed } = this.#observed ?? {};
    const other = this.#renewed === undefined && isRenewed ? holder : undefined;
    if (other !== undefined && other !== this.#reported) {
      this.#log.info({ lease: this.#where, holder: other }, "waiting for the lease, because another replica leads");
      held?.(other);
    }
    this.#reported = other;
  }

  async #read(): Promise<Lease | undefined> {
    const lease = await ifFound(this.#client.get<Lease>(CONTROLLER, this.#ref));
    return lease && { ...lease, spec: lease.spec ?? {} };
  }

  #write(before: Lease | undefined, spec: LeaseSpec): Promise<Lease> {
    const { name, namespace } = this.#ref;
    const kind = { apiVersion: "coordination.k8s.io/v1", kind: "Lease" };
    if (before !== undefined) return this.#client.replace(CONTROLLER, this.#ref, { ...before, ...kind, spec });
    return this.#client.create(CONTROLLER, LEASES, namespace, { ...kind, metadata: { name, namespace }, spec });
  }

  /** Whether the lease is ours, has no holder, or was not renewed for its duration while we watched. */
  #isFree({ spec }: Lease): boolean {
    const record = JSON.stringify(spec);
    const { holderIdentity: holder } = spec;
    if (this.#observed?.record !== record) {
      const isRenewed = this.#observed?.holder === holder && holder !== this.#identity;
      this.#observed = { record, at: this.#now(), holder, isRenewed };
    }
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

  /** As client-go does: a record without a holder, with a duration of one second. */
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
      this.#log.warn(
        { lease: this.#where, error: messageOf(error) },
        `can't take or renew the lease${adviceOn(error)}`,
      );
    this.#failing = true;
  }

  get #where(): string {
    return `${this.#ref.namespace}/${this.#ref.name}`;
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

function adviceOn(error: unknown): string {
  if (isStatus(error, 403))
    return "; apply 10-controller-role.yaml of this version, which has the permissions on leases";
  return isStatus(error, 404) ? "; create its namespace, or set --lease-namespace" : "";
}

/** The format of Kubernetes' MicroTime. */
const microTime = () => new Date().toISOString().replace(/Z$/, "000Z");
