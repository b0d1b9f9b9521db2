/** A Vault server by the settings of one VaultConnection: reads for sources, checks for its status, and its end. */
import { plainPath } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import { type Health, ServerHealth } from "./health.ts";
import { VaultHttp } from "./http.ts";
import { KvReader } from "./kv.ts";
import { Logins } from "./logins.ts";
import { NAMESPACE } from "./path.ts";
import type { ConnectionServices, ConnectionSettings } from "./settings.ts";
import type { KvDataPlace, KvPlace, VaultAnswer, VaultConnected, VaultReader } from "./types.ts";

export type { Auth, ConnectionServices, ConnectionSettings, VaultCounts } from "./settings.ts";

/** How long revoking tokens may delay the end. */
const END_WITHIN_MS = 2_000;

/** Longer than most intervals of polls. */
const UNUSED_AFTER_MS = 10 * 60_000;

/** Reasons that concern the server, not one path or login. */
const OF_THE_SERVER: ReadonlySet<string> = new Set(["VaultSealed", "VaultUnavailable", "VaultUntrusted"]);

/** The result of a check. */
export interface ConnectionCheck {
  /** The version that the server reports. */
  readonly version?: string;
  readonly problem?: Problem;
}

interface Reading {
  readonly logins: Logins;
  readonly kv: KvReader;
}

export class Connection implements VaultConnected {
  readonly #settings: ConnectionSettings;
  readonly #services: ConnectionServices;
  readonly #now: () => number;
  readonly #http: VaultHttp;
  readonly #health: ServerHealth;
  /** Undefined without a login. */
  readonly #reading: Reading | undefined;
  /** When a binding last read through it. */
  #usedAt = Number.NEGATIVE_INFINITY;
  /** Whether a login of a check has succeeded. After that, only reads log in. */
  #hasLoggedIn = false;

  constructor(settings: ConnectionSettings, services: ConnectionServices) {
    this.#settings = settings;
    this.#services = services;
    this.#now = services.now ?? (() => performance.now());
    this.#http = new VaultHttp(settings, services);
    this.#health = new ServerHealth(settings, this.#http, services.addresses, this.#now);
    const { auth } = settings;
    if (auth !== undefined) {
      const logins = new Logins({ ...settings, auth }, this.#http, services);
      this.#reading = { logins, kv: new KvReader(settings, logins, this.#now, services.cpu) };
    }
  }

  loginOf(reader: VaultReader): string {
    return this.#reading?.logins.keyOf(reader) ?? "";
  }

  data(reader: VaultReader, place: KvDataPlace, last: VaultAnswer | undefined): Promise<VaultAnswer> {
    return this.#timed(place, ({ kv }) => kv.data(reader, place, last));
  }

  metadata(reader: VaultReader, place: KvPlace): Promise<VaultAnswer> {
    return this.#timed(place, ({ kv }) => kv.metadata(reader, place));
  }

  health(address: string | undefined, last: VaultAnswer | undefined): Promise<VaultAnswer> {
    this.#use();
    return this.#health.read(address, last);
  }

  /**
   * Checks the server. If all readers share the login, also logs in, until that has succeeded, and again after a failed login. A login that
   * no reader uses is not kept, except a given token.
   */
  async check(): Promise<ConnectionCheck> {
    let version: string | undefined;
    try {
      const health = await this.#health.own();
      version = health.version;
      assertServing(health, this.#settings.address.host);
      await this.#checkLogin();
      return version === undefined ? {} : { version };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return version === undefined ? { problem: error } : { version, problem: error };
    }
  }

  /** Whether a binding read through it in the last minutes. */
  get isUsed(): boolean {
    return this.#now() - this.#usedAt < UNUSED_AFTER_MS;
  }

  /** Retries failed logins at the next read or check, without the rest of their pauses. */
  retryLogins(): void {
    this.#reading?.logins.retry();
  }

  /** Revokes the tokens of logins, within two seconds, and closes the connections. */
  async close(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, END_WITHIN_MS);
    try {
      await Promise.race([this.#reading?.logins.end(), late]);
    } finally {
      clearTimeout(timer);
      await this.#http.close();
    }
  }

  async #checkLogin(): Promise<void> {
    const { auth, key } = this.#settings;
    const isOfReaders = auth?.kind === "kubernetes" && (auth.as === undefined || auth.role.includes(NAMESPACE));
    if (this.#reading === undefined || isOfReaders) return;
    const { logins } = this.#reading;
    const [namespace = "", name = ""] = key.split("/");
    const reader = { identity: serviceAccountIdentity(namespace, name), namespace };
    if (this.#hasLoggedIn && !logins.isFailing(reader)) return;
    await logins.logIn(reader);
    this.#hasLoggedIn = true;
  }

  #use(): void {
    const { isUsed } = this;
    this.#usedAt = this.#now();
    if (!isUsed) this.#services.used?.();
  }

  async #timed<T>(place: KvPlace, read: (reading: Reading) => Promise<T>): Promise<T> {
    if (this.#reading === undefined) {
      const why = `the VaultConnection ${this.#settings.key} has no login, so only the health of servers can be read; set auth`;
      throw new Problem("ConnectionNotReady", `${plainPath(`${place.mount}/${place.path}`)}: ${why}`);
    }
    this.#use();
    const startedAt = this.#now();
    try {
      return await read(this.#reading);
    } catch (error) {
      if (error instanceof Problem && OF_THE_SERVER.has(error.reason)) this.#services.doubted?.();
      throw error;
    } finally {
      this.#services.metrics.readSeconds((this.#now() - startedAt) / 1_000);
    }
  }
}

/** Throws Problem for a server that can't serve reads. */
function assertServing({ initialized, sealed, disasterRecovery, orphaned, removed }: Health, host: string): void {
  const unavailable = (what: string) => new Problem("VaultUnavailable", `${host} ${what}`);
  if (!initialized) throw unavailable("is not initialized; initialize it (vault operator init)");
  if (removed) throw unavailable("was removed from its cluster; set address to a server of the cluster");
  if (sealed) throw new Problem("VaultSealed", `${host} is sealed; unseal it`);
  if (orphaned) throw unavailable("lost its active server; check that the cluster has an active server");
  const secondary = "is a disaster recovery secondary, which serves no reads; set address to the primary";
  if (disasterRecovery) throw unavailable(secondary);
}
