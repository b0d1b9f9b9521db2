/** The logins of a connection: one for all readers with the same principal. Sends their requests with its token. */
import { Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import { Authenticator, isTokenUnknown } from "./auth.ts";
import { REPLACED } from "./failures.ts";
import type { VaultReply, VaultRequest, VaultSender } from "./http.ts";
import { Login } from "./login.ts";
import type { Auth, ConnectionServices, ConnectionSettings } from "./settings.ts";
import type { VaultReader } from "./types.ts";

/** Shorter tokens, such as `root` of a development server, are words that values may contain. Vault's own tokens are longer. */
const MIN_TOKEN = 20;

type Settings = Pick<ConnectionSettings, "address" | "timeoutMs"> & { readonly auth: Auth };

export class Logins {
  readonly #authenticator: Authenticator;
  readonly #http: VaultSender;
  readonly #services: { now: () => number; random: () => number };
  readonly #logins = new Map<string, Login>();
  /** The ends of unused logins. */
  readonly #endings = new Set<Promise<void>>();
  #isEnded = false;

  constructor(settings: Settings, http: VaultSender, services: Omit<ConnectionServices, "addresses">) {
    this.#authenticator = new Authenticator(settings, http, services);
    this.#http = http;
    this.#services = { now: services.now ?? (() => performance.now()), random: services.random ?? Math.random };
  }

  /** Readers with the same key share a login. */
  keyOf(reader: VaultReader): string {
    return this.#authenticator.principalOf(reader).key;
  }

  /** The login of a reader in messages. */
  describe(reader: VaultReader): string {
    return this.#authenticator.describe(this.#authenticator.principalOf(reader));
  }

  /** Logs in, unless that has been done. Throws Problem. */
  async logIn(reader: VaultReader): Promise<void> {
    await this.#loginOf(reader).use();
  }

  /** Whether the last login attempt for a reader failed. */
  isFailing(reader: VaultReader): boolean {
    return this.#logins.get(this.keyOf(reader))?.isFailing ?? false;
  }

  /**
   * Sends a read request. Status 403 means that the policies deny it. Throws Problem if the login fails, and HttpFailure if the request
   * fails.
   */
  async send(reader: VaultReader, request: Omit<VaultRequest, "token">): Promise<VaultReply> {
    const login = this.#loginOf(reader);
    const send = async (token: SecretValue<string>) => {
      const reply = await this.#http.send({ ...request, token });
      // Several endpoints of Vault return the token itself, which a binding could write anywhere.
      const text = token.reveal();
      if (text.length < MIN_TOKEN || !reply.text.reveal().includes(text)) return reply;
      throw new Problem("ForbiddenPath", "the answer contains the token of the login itself; read another path");
    };
    const token = await login.use();
    const reply = await send(token);
    if (reply.status !== 403) return reply;
    const other = await login.afterDenial(token, isTokenUnknown(reply));
    return other === undefined ? reply : send(other);
  }

  /** Retries failed logins at the next use. */
  retry(): void {
    for (const login of this.#logins.values()) login.retryNow();
  }

  /** Revokes all tokens of logins. No login is possible after that. */
  async end(): Promise<void> {
    this.#isEnded = true;
    for (const login of this.#logins.values()) this.#ending(login.end());
    this.#logins.clear();
    await Promise.all(this.#endings);
  }

  /** Throws Problem. */
  #loginOf(reader: VaultReader): Login {
    if (this.#isEnded) throw new Problem("ConnectionNotReady", REPLACED);
    const principal = this.#authenticator.principalOf(reader);
    const known = this.#logins.get(principal.key);
    if (known !== undefined) return known;
    // A login that never succeeded has no timer that removes it.
    for (const [key, login] of this.#logins) if (login.isIdle) this.#logins.delete(key);
    const login = new Login(principal, this.#authenticator, this.#services, (ended) => {
      this.#logins.delete(principal.key);
      this.#ending(ended);
    });
    this.#logins.set(principal.key, login);
    return login;
  }

  #ending(ended: Promise<void>): void {
    const ending = ended.finally(() => this.#endings.delete(ending));
    ending.catch(() => {});
    this.#endings.add(ending);
  }
}
