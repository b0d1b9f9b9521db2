/**
 * How the servers of a connection are, without a login. A server that refuses connections, or is silent, while another one answers,
 * has the values of a server that is shut down. Where none answers the network may be at fault, so nothing is said of any. A server that
 * is the only one that bindings ask for is shut down when it refuses connections.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { answerOf } from "./content.ts";
import { failed, refused } from "./failures.ts";
import type { VaultSender } from "./http.ts";
import { HttpFailure } from "./http-failure.ts";
import type { ConnectionServices, ConnectionSettings } from "./settings.ts";
import type { VaultAnswer } from "./types.ts";

/** A refusal is believed when the server repeats it after that time. */
const REPEAT_MS = 1_000;
/** A server is down when it was silent for so long while another one answers. */
const SILENCE_MS = 15_000;
/** What sys/health answers with, by what the server is. */
const STATUSES = new Set([200, 429, 472, 473, 474, 501, 503, 530]);
/** A server counts as one of several for so long after a binding asked for it. Servers that are gone do not. */
const COUNTS_MS = 10 * 60_000;
/** Of how many servers a connection remembers the state. */
const MAX_SERVERS = 64;

interface Server {
  readonly url: URL;
  /** When the first request was sent that it refused, of those since it last did anything else. */
  refusingSince: number | undefined;
  /** When the first request was sent that got no answer, of those since the last answer. */
  silentSince: number | undefined;
  /** When a binding last asked for it. Undefined for the address of the connection, unless a binding reads it. */
  askedForAt: number | undefined;
}

/** What a server reports of itself. */
export interface Health {
  readonly initialized: boolean;
  readonly sealed: boolean;
  readonly standby: boolean;
  readonly performanceStandby: boolean;
  readonly disasterRecovery: boolean;
  /** A standby that lost its active server. */
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

type Settings = Pick<ConnectionSettings, "address" | "timeoutMs">;

export class ServerHealth {
  readonly #settings: Settings;
  readonly #http: VaultSender;
  readonly #addresses: Pick<ConnectionServices["addresses"], "refusal">;
  readonly #now: () => number;
  /** By origin; those that were asked for last are at the end. */
  readonly #servers = new Map<string, Server>();

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

  /** Throws Problem. While it is not clear how the server is, `last` is the answer, with a time to ask again soon. */
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
      // A firewall may refuse connections in the place of all servers.
      if (!this.#isOneOfSeveral(server) || (await this.#isAnotherAnswering(server))) return answered(SHUT_DOWN);
    } else if (this.#now() - (server.silentSince ?? this.#now()) >= SILENCE_MS) {
      if (await this.#isAnotherAnswering(server)) return answered(SHUT_DOWN);
    } else if (last !== undefined) return { ...last, refreshMs: SILENCE_MS / 3 };
    const why =
      "no server of the connection answers, so the network may be at fault; check network policies and the address";
    throw new Problem("Unreachable", `health of ${server.url.host}: ${why}`);
  }

  /** How the server of the connection is, as it says now. Throws Problem. */
  async own(): Promise<Health> {
    const server = this.#serverAt(this.#settings.address);
    const sentAt = this.#now();
    return this.#request(server).then(
      (health) => {
        this.#answered(server);
        return health;
      },
      (error) => {
        this.#unanswered(server, error, sentAt);
        throw failed(error, this.#asked(server));
      },
    );
  }

  /** Asks a server that refuses once more, if `repeats`. Throws Problem for an answer that says nothing, and a bad certificate. */
  async #ask(server: Server, repeats: boolean): Promise<Health | "refused" | "silent"> {
    const sentAt = this.#now();
    try {
      const health = await this.#request(server);
      this.#answered(server);
      return health;
    } catch (error) {
      const outcome = this.#unanswered(server, error, sentAt);
      if (outcome === undefined) throw failed(error, this.#asked(server));
      const isRepeated = sentAt - (server.refusingSince ?? sentAt) >= REPEAT_MS;
      if (outcome !== "refused" || isRepeated || !repeats) return outcome;
      await sleep(REPEAT_MS, undefined, { ref: false });
      return this.#ask(server, false);
    }
  }

  async #request(server: Server): Promise<Health> {
    const request = { operation: "health", method: "GET", path: "sys/health", server: server.url } as const;
    const reply = await this.#http.send(request);
    if (!STATUSES.has(reply.status)) throw refused(reply, this.#asked(server));
    return healthOf(reply.json(), reply.status);
  }

  #answered(server: Server): void {
    server.refusingSince = undefined;
    server.silentSince = undefined;
  }

  /** Undefined for a failure that came from the server, or from Inlay itself. */
  #unanswered(server: Server, error: unknown, sentAt: number): "refused" | "silent" | undefined {
    const kind = error instanceof HttpFailure ? error.kind : undefined;
    if (kind === "refused") {
      server.refusingSince ??= sentAt;
      server.silentSince = undefined;
      return "refused";
    }
    // The name of a pod that is gone has no address, and what is between may end connections.
    if (kind !== "timeout" && kind !== "unreachable" && kind !== "name" && kind !== "broken") return undefined;
    server.refusingSince = undefined;
    server.silentSince ??= sentAt;
    return "silent";
  }

  /** Whether bindings ask for other servers, too. */
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

  /** Throws Problem for a server that the configuration does not list. */
  #serverAt(url: URL): Server {
    const refusal = this.#addresses.refusal(url);
    if (refusal !== undefined) throw new Problem(refusal.reason, `health of ${url.host}: ${refusal.message}`);
    const server = this.#servers.get(url.origin) ?? {
      url,
      refusingSince: undefined,
      silentSince: undefined,
      askedForAt: undefined,
    };
    this.#servers.delete(url.origin);
    this.#servers.set(url.origin, server);
    const [oldest] = this.#servers.keys();
    if (this.#servers.size > MAX_SERVERS && oldest !== undefined) this.#servers.delete(oldest);
    return server;
  }

  #asked({ url }: Server) {
    return { place: `health of ${url.host}`, server: url, timeoutMs: this.#settings.timeoutMs };
  }
}

function urlOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.host !== "") return new URL(url.origin);
  const why = "is no address of a server; write one like https://vault-0.vault.svc:8200";
  throw new Problem("InvalidBinding", `vault.health.address: ${JSON.stringify(address)} ${why}`);
}

/** Throws HttpFailure for what is no answer of sys/health. */
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
