/**
 * Limits the running requests to each server, and the running requests and the rate of each namespace. Waiting namespaces take turns at a
 * server, and the servers of a namespace take turns within its limits.
 */
import { getOrInsert } from "../apimachinery/maps.ts";
import { RoundRobinQueue } from "./round-robin-queue.ts";

type Work = () => Promise<void> | undefined;

interface TurnLimits {
  /** The most running requests to each server. */
  readonly perServer: number;
  readonly perNamespace?: {
    /** The most running requests. */
    readonly running: number;
    /** The rate at which requests begin, after a burst. */
    readonly perSecond: number;
    readonly burst: number;
  };
}

interface Server {
  running: number;
  readonly waiting: RoundRobinQueue<{ namespace: string; work: Work }>;
}

interface Share {
  running: number;
  /** How many requests may begin at once, as of `at`. */
  tokens: number;
  at: number;
  /** The servers at which it waits for its own limits. */
  readonly servers: Set<string>;
  timer: NodeJS.Timeout | undefined;
}

/** How many namespaces are remembered that have no requests. */
const MAX_IDLE = 1_000;

export class Turns {
  readonly #limits: TurnLimits;
  readonly #now: () => number;
  readonly #servers = new Map<string, Server>();
  readonly #shares = new Map<string, Share>();

  /** `now` is a monotonic clock in ms. */
  constructor(limits: TurnLimits, now = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Runs `work` when it is its turn; at once if a slot is free. Replaces waiting work with the same key. */
  take(server: string, namespace: string, key: string, work: Work): void {
    const turns = getOrInsert(this.#servers, server, () => ({ running: 0, waiting: new RoundRobinQueue() }));
    turns.waiting.set(namespace, key, { namespace, work });
    this.#fill(server);
  }

  #fill(server: string): void {
    const turns = this.#servers.get(server);
    if (turns === undefined) return;
    while (turns.running < this.#limits.perServer) {
      const next = turns.waiting.next((namespace) => this.#may(namespace, server));
      if (next === undefined) break;
      const running = next.work();
      if (running === undefined) continue;
      const share = this.#shareOf(next.namespace);
      turns.running++;
      share.running++;
      share.tokens--;
      void running.finally(() => {
        turns.running--;
        share.running--;
        this.#fill(server);
        this.#continue(next.namespace);
      });
    }
    if (turns.running === 0 && turns.waiting.size === 0) this.#servers.delete(server);
  }

  /** If not, the server is filled again when the limits of the namespace permit it. */
  #may(namespace: string, server: string): boolean {
    const { perNamespace } = this.#limits;
    if (perNamespace === undefined) return true;
    const share = this.#shareOf(namespace);
    if (share.running < perNamespace.running && share.tokens >= 1) return true;
    share.servers.add(server);
    if (share.tokens < 1) {
      const ms = ((1 - share.tokens) * 1_000) / perNamespace.perSecond;
      share.timer ??= setTimeout(() => {
        share.timer = undefined;
        this.#continue(namespace);
      }, Math.ceil(ms)).unref();
    }
    return false;
  }

  #continue(namespace: string): void {
    const share = this.#shareOf(namespace);
    for (let left = share.servers.size; left > 0; left--) {
      const [server] = share.servers;
      if (server === undefined || !this.#may(namespace, server)) return;
      share.servers.delete(server);
      this.#fill(server);
    }
  }

  #shareOf(namespace: string): Share {
    const { perSecond = 0, burst = 0 } = this.#limits.perNamespace ?? {};
    const now = this.#now();
    if (this.#shares.size > MAX_IDLE) this.#forgetIdle();
    const newShare = () => ({ running: 0, tokens: burst, at: now, servers: new Set<string>(), timer: undefined });
    const share = getOrInsert(this.#shares, namespace, newShare);
    share.tokens = Math.min(burst, share.tokens + ((now - share.at) * perSecond) / 1_000);
    share.at = now;
    return share;
  }

  #forgetIdle(): void {
    for (const [namespace, { running, servers }] of this.#shares)
      if (running === 0 && servers.size === 0) this.#shares.delete(namespace);
  }
}
