/**
 * Finds the health of the servers of a connection, without a login. If a server refuses connections or is silent while another one answers,
 * it is reported as shut down. If none answers, the network may be at fault, so nothing is reported. If it is the only server that bindings
 * read, refused connections mean that it is shut down.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { BoundedMap } from "../apimachinery/maps.ts";
import { type JsonObject, quoted } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { failed, refused } from "./failures.ts";
import type { VaultSender } from "./http.ts";
import { HttpFailure } from "./http-failure.ts";
import { answerOf } from "./kv.ts";
import type { ConnectionServices, ConnectionSettings } from "./settings.ts";
import type { VaultAnswer } from "./types.ts";

/** A refusal counts when the server repeats it after this time. */
const REPEAT_MS = 1_000;
/** A server counts as shut down after this time of silence, while another one answers. */
const SILENCE_MS = 15_000;
/** The statuses of sys/health for all states of a server. */
const STATUSES = new Set([200, 429, 472, 473, 474, 501, 503, 530]);
/** How long a server counts as one of several after a binding requested it, so that removed servers do not count. */
const COUNTS_MS = 10 * 60_000;
/** How many servers a connection remembers. */
const MAX_SERVERS = 64;

interface Server {
  readonly url: URL;
  /** When the first of its present series of refused requests was sent. */
  refusingSince?: number | undefined;
  /** When the first request after its last answer was sent. */
  silentSince?: number | undefined;
  /** When a binding last requested it. Undefined for the connection's own address, unless a binding reads it. */
  askedForAt?: number;
}

/** The health that a server reports. */
export interface Health {
  readonly initialized: boolean;
  readonly sealed: boolean;
  readonly standby: boolean;
  readonly performanceStandby: boolean;
  readonly disasterRecovery: boolean;
  /** A standby without an active server. */
  readonly orphaned: boolean;
  /** The cluster no longer has the server. */
  readonly removed: boolean;
  readonly version: string | undefined;
}

const SHUT_DOWN: Health = {
  initialized: false,
  sealed: true,
  standby: false,
  performanceStandby: false,
  disasterRecovery: false,
  orphaned: false,
  removed: false,
  version: undefined,
};

interface Tried {
  health?: Health;
  /** Undefined for a failure that came from the server, or from Inlay itself. */
  outcome?: "refused" | "silent" | undefined;
  problem?: Problem;
}

type Settings = Pick<ConnectionSettings, "address" | "timeoutMs">;

export class ServerHealth {
  readonly #settings: Settings;
  readonly #http: VaultSender;
  readonly #addresses: Pick<ConnectionServices["addresses"], "refusal">;
  readonly #now: () => number;
  /** By origin. The most recently requested servers are at the end. */
  readonly #servers = new BoundedMap<string, Server>(MAX_SERVERS);

  constructor(
    settings: Settings,
    http: VaultSender,
    addresses: Pick<ConnectionServices["addresses"], "refusal">,
    now: () => number,
  ) {
    this.#settings = settings;
    this.#http = http;
    this.#addresses = addresses;
    this.#now = now;
  }

  /** Throws Problem. While the state of the server is unclear, returns `last` with an early time for the next request. */
  async read(address: string | undefined, last: VaultAnswer | undefined): Promise<VaultAnswer> {
    const server = this.#serverAt(address === undefined ? this.#settings.address : urlOf(address));
    const answered = (health: Health) => {
      const answer = answerOf(valuesOf(health), {});
      return answer.version === last?.version && last.refreshMs === undefined ? last : answer;
    };
    server.askedForAt = this.#now();
    const health = await this.#ask(server, true);
    if (typeof health === "object") return answered(health);
    if (health === "refused") {
      // A firewall may refuse connections for all servers.
      if (!this.#isOneOfSeveral(server) || (await this.#isAnotherAnswering(server))) return answered(SHUT_DOWN);
    } else if (this.#now() - (server.silentSince ?? this.#now()) >= SILENCE_MS) {
      if (await this.#isAnotherAnswering(server)) return answered(SHUT_DOWN);
    } else if (last !== undefined) return { ...last, refreshMs: SILENCE_MS / 3 };
    const why =
      "no server of the connection answers, so the network may be at fault; check network policies and the address";
    throw new Problem("Unreachable", `health of ${server.url.host}: ${why}`);
  }

  /** The present health of the connection's own server. Throws Problem. */
  async own(): Promise<Health> {
    const server = this.#serverAt(this.#settings.address);
    const { health, problem } = await this.#try(server);
    if (health === undefined) throw problem;
    return health;
  }

  /**
   * Requests the health, again if the server refuses and `repeats` is set. Throws Problem for an inconclusive answer, and for a bad
   * certificate.
   */
  async #ask(server: Server, repeats: boolean): Promise<Health | "refused" | "silent"> {
    const sentAt = this.#now();
    const { health, problem, outcome } = await this.#try(server);
    if (health !== undefined) return health;
    if (outcome === undefined) throw problem;
    const isRepeated = sentAt - (server.refusingSince ?? sentAt) >= REPEAT_MS;
    if (outcome !== "refused" || isRepeated || !repeats) return outcome;
    await sleep(REPEAT_MS, undefined, { ref: false });
    return this.#ask(server, false);
  }

  /** The health, or why there is none, which the server remembers. */
  async #try(server: Server): Promise<Tried> {
    const sentAt = this.#now();
    const asked = this.#asked(server);
    try {
      const request = { operation: "health", method: "GET", path: "sys/health", server: server.url } as const;
      const reply = await this.#http.send(request);
      if (!STATUSES.has(reply.status)) throw refused(reply, asked);
      const health = healthOf(reply.json(asked), reply.status);
      server.refusingSince = undefined;
      server.silentSince = undefined;
      return { health };
    } catch (error) {
      return { outcome: this.#unanswered(server, error, sentAt), problem: failed(error, asked) };
    }
  }

  #unanswered(server: Server, error: unknown, sentAt: number): Tried["outcome"] {
    const kind = error instanceof HttpFailure ? error.kind : undefined;
    if (kind === "refused") {
      server.refusingSince ??= sentAt;
      server.silentSince = undefined;
      return "refused";
    }
    // The name of a deleted pod has no address, and a proxy may close connections.
    if (kind !== "timeout" && kind !== "unreachable" && kind !== "name" && kind !== "broken") return undefined;
    server.refusingSince = undefined;
    server.silentSince ??= sentAt;
    return "silent";
  }

  /** Whether bindings request other servers too. */
  #isOneOfSeveral(server: Server): boolean {
    const since = this.#now() - COUNTS_MS;
    return [...this.#servers.values()].some((each) => each !== server && (each.askedForAt ?? -Infinity) > since);
  }

  async #isAnotherAnswering(server: Server): Promise<boolean> {
    this.#serverAt(this.#settings.address);
    const others = [...this.#servers.values()].filter((each) => each !== server);
    const answers = others.map(async (each) => {
      const health = await this.#ask(each, false);
      if (typeof health !== "object") throw new HttpFailure("timeout");
    });
    return Promise.any(answers).then(
      () => true,
      () => false,
    );
  }

  /** Throws Problem for a server that the configuration does not allow. */
  #serverAt(url: URL): Server {
    const refusal = this.#addresses.refusal(url);
    if (refusal !== undefined) throw refusal.within(`health of ${url.host}`);
    const server: Server = this.#servers.get(url.origin) ?? { url };
    this.#servers.set(url.origin, server);
    return server;
  }

  #asked({ url }: Server) {
    return { place: `health of ${url.host}`, server: url, timeoutMs: this.#settings.timeoutMs };
  }
}

function urlOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.host !== "") return new URL(url.origin);
  const why = "is not the address of a server; write, for example, https://vault-0.vault.svc:8200";
  throw new Problem("InvalidBinding", `vault.health.address: ${quoted(address)} ${why}`);
}

/** Throws HttpFailure for an answer that is not from sys/health. */
function healthOf(answer: JsonObject, status: number): Health {
  const { initialized, sealed, standby, version } = answer;
  if (typeof initialized !== "boolean" || typeof sealed !== "boolean") throw new HttpFailure("notJson");
  return {
    initialized,
    sealed,
    standby: standby === true,
    performanceStandby: answer["performance_standby"] === true,
    disasterRecovery: status === 472 || answer["replication_dr_mode"] === "secondary",
    orphaned: status === 474,
    removed: status === 530 || answer["removed_from_cluster"] === true,
    version: typeof version === "string" && version !== "" ? version : undefined,
  };
}

function valuesOf({ initialized, sealed, standby, performanceStandby, version, ...more }: Health) {
  const serves = initialized && !sealed && !more.disasterRecovery && !more.orphaned && !more.removed;
  const active = serves && !standby && !performanceStandby;
  const flags = { initialized, sealed, standby, performance_standby: performanceStandby, active };
  const values = new Map(Object.entries(flags).map(([key, value]) => [key, String(value)]));
  return version === undefined ? values : values.set("version", version);
}
