/** The logins of a connection: one for all readers with the same principal. Sends their requests with its token. */
import { Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import { Authenticator, isTokenUnknown, type Lease, type Principal, type Token } from "./auth.ts";
import { REPLACED, VaultProblem } from "./failures.ts";
import type { VaultReply, VaultRequest, VaultSender } from "./http.ts";
import type { Auth, ConnectionServices, ConnectionSettings } from "./settings.ts";
import type { VaultReader } from "./types.ts";

/** How long an unused login is kept. */
const IDLE_MS = 5 * 60_000;
/** When a token is renewed, as a part of its life; up to a tenth earlier, so that not all are renewed at the same time. */
const RENEW_AT = 2 / 3;
const JITTER = 0.1;
/** The part of the first life that a renewal must give. Less means that the token nears its end, and a new login is needed. */
const WORTHWHILE = 0.5;
const BACKOFF_MS = { first: 1_000, most: 30_000 };
/** Polls vary their pauses by a tenth. A poll just before the next allowed login would have to wait for another pause. */
const POLL_MARGIN = 1.125;
/** The rest of a token's life that a request needs. */
const MARGIN_MS = 1_000;
/** The shortest pause between renewals of a token that nears its end. */
const MIN_RENEW_MS = 1_000;
/** A denied request makes Inlay check the token, unless the token is younger than this: a new login would change nothing. */
const UNDOUBTED_MS = { unsure: 30_000, unknown: 5_000 };
/** How long a token counts as valid after Vault confirmed it. */
const BELIEVED_MS = 30_000;
/** The longest possible timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

interface LoginServices {
  now(): number;
  random(): number;
}

interface Held extends Token {
  readonly createdAt: number;
  readonly firstTtlMs: number;
  renewAt: number;
  expiresAt: number;
}

interface Failure {
  readonly problem: Problem;
  /** No login is tried before. */
  until: number;
  readonly times: number;
}

/** Renews its token at two thirds of its life while readers use it, and revokes it after five minutes without, unless it was given. */
class Login {
  readonly principal: Principal;
  readonly #authenticator: Authenticator;
  readonly #services: LoginServices;
  readonly #onIdle: (ended: Promise<void>) => void;
  #held: Held | undefined;
  #usedAt = 0;
  #pending: Promise<Held> | undefined;
  #failure: Failure | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** The running check of the token. */
  #doubt: Promise<SecretValue<string> | undefined> | undefined;
  #believedUntil = 0;
  /** The running revocations. */
  readonly #revocations = new Set<Promise<void>>();

  /** `onIdle` is called when it ends because it was unused. */
  constructor(
    principal: Principal,
    authenticator: Authenticator,
    services: LoginServices,
    onIdle: (ended: Promise<void>) => void,
  ) {
    this.principal = principal;
    this.#authenticator = authenticator;
    this.#services = services;
    this.#onIdle = onIdle;
  }

  /** The stored token, while it is valid. */
  get token(): SecretValue<string> | undefined {
    const held = this.#held;
    return held !== undefined && this.#services.now() < held.expiresAt - MARGIN_MS ? held.token : undefined;
  }

  /** Whether it has no token, and no reader requested one for five minutes. */
  get isIdle(): boolean {
    const isUsed = this.#services.now() < this.#usedAt + IDLE_MS || this.#pending !== undefined;
    return this.#held === undefined && !isUsed;
  }

  /** Whether the last login or renewal failed. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** Retries a failed login at the next use, without the rest of its pause. */
  retryNow(): void {
    const retry = () => {
      if (this.#failure !== undefined) this.#failure.until = 0;
    };
    retry();
    // The running attempt may still fail for the former reason.
    this.#pending?.catch(retry);
  }

  /** The token for a reader, after a login if there is none. Throws Problem. */
  async use(): Promise<SecretValue<string>> {
    this.#usedAt = this.#services.now();
    return this.token ?? (await this.#login()).token;
  }

  /**
   * Called after Vault denied a request with `token`: returns another token if this one is no longer valid. `isUnknown`: Vault reported an
   * unknown token. Undefined if the policies deny the request. Throws Problem.
   */
  async afterDenial(token: SecretValue<string>, isUnknown: boolean): Promise<SecretValue<string> | undefined> {
    const held = this.#held;
    if (held === undefined || held.token !== token) return this.use();
    this.#doubt ??= this.#replacementOf(held, isUnknown).finally(() => {
      this.#doubt = undefined;
    });
    return this.#doubt;
  }

  async #replacementOf(held: Held, isUnknown: boolean): Promise<SecretValue<string> | undefined> {
    const { now } = this.#services;
    const age = now() - held.createdAt;
    if (age < UNDOUBTED_MS.unknown || (!isUnknown && now() < this.#believedUntil)) return undefined;
    const known = isUnknown ? "unknown" : await this.#authenticator.lookUp(this.principal, held.token);
    if (typeof known !== "string") this.#believedUntil = now() + BELIEVED_MS;
    if (typeof known !== "string" || age < UNDOUBTED_MS[known]) return undefined;
    const renewed = await this.#login();
    // The token may be valid after all.
    if (known === "unsure") this.#revoke(held);
    return renewed.token;
  }

  /** Revokes the token, also that of a running login. Waits for all revocations. */
  async end(): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    const held = (await this.#pending?.catch(() => undefined)) ?? this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#revoke(held);
    await Promise.all(this.#revocations);
  }

  /** All requests during a login share it. */
  #login(): Promise<Held> {
    if (this.#pending !== undefined) return this.#pending;
    if (this.#isEnded) return Promise.reject(new Problem("ConnectionNotReady", REPLACED));
    const failure = this.#failure;
    if (failure !== undefined && this.#services.now() < failure.until) return Promise.reject(this.#problemOf(failure));
    const pending = this.#authenticator.login(this.principal).then(
      (token) => this.#hold(token),
      (error) => this.#failed(error),
    );
    this.#pending = pending.finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  #hold(token: Token): Held {
    this.#believedUntil = 0;
    const createdAt = this.#services.now();
    const held = { ...token, createdAt, firstTtlMs: token.ttlMs, renewAt: 0, expiresAt: 0 };
    this.#held = held;
    this.#extend(held, token.ttlMs);
    return held;
  }

  #extend(held: Held, ttlMs: number): void {
    const { now, random } = this.#services;
    held.expiresAt = ttlMs === 0 ? Number.POSITIVE_INFINITY : now() + ttlMs;
    const pause = ttlMs === 0 ? Number.POSITIVE_INFINITY : ttlMs * RENEW_AT * (1 - JITTER * random());
    held.renewAt = now() + Math.max(pause, MIN_RENEW_MS);
    this.#failure = undefined;
    this.#schedule();
  }

  /** Throws the Problem for readers. */
  #failed(error: unknown): never {
    if (!(error instanceof Problem)) throw error;
    const { now, random } = this.#services;
    const times = (this.#failure?.times ?? 0) + 1;
    const backoff = Math.min(BACKOFF_MS.first * 2 ** (times - 1), BACKOFF_MS.most) * (0.75 + random() / 4);
    const failure = { problem: error, until: now() + Math.max(backoff, error.retryAfterMs ?? 0), times };
    this.#failure = failure;
    throw this.#problemOf(failure);
  }

  /** Adds when a login may be retried, so that polls come right then. */
  #problemOf({ problem: { reason, message, retryPolicy }, until }: Failure): Problem {
    const afterMs = (until - this.#services.now()) * POLL_MARGIN;
    return new VaultProblem(reason, message, afterMs, retryPolicy);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#held === undefined || this.#isEnded) return;
    const due = Math.min(this.#idleAt(this.#held), this.#held.renewAt) - this.#services.now();
    const work = () => void this.#onDue();
    this.#timer = setTimeout(work, Math.min(Math.max(due, 0), MAX_TIMER_MS)).unref();
  }

  /** A given token can't be obtained again, so it is renewed even while it is unused. */
  #idleAt({ isGiven }: Held): number {
    return isGiven ? Number.POSITIVE_INFINITY : this.#usedAt + IDLE_MS;
  }

  async #onDue(): Promise<void> {
    const { now } = this.#services;
    const held = this.#held;
    if (held === undefined) return;
    if (now() >= this.#idleAt(held)) return this.#onIdle(this.end());
    if (now() < held.renewAt) return this.#schedule();
    await this.#refresh(held);
  }

  /** Renews the token, or logs in again. Until one of them succeeds, the token is used while it is valid. */
  async #refresh(held: Held): Promise<void> {
    try {
      const lease = held.renewable ? await this.#renewed(held) : undefined;
      if (this.#held !== held || this.#isEnded) return;
      const isWorthwhile = lease !== undefined && (lease.ttlMs === 0 || lease.ttlMs >= held.firstTtlMs * WORTHWHILE);
      if (isWorthwhile) return this.#extend(held, lease.ttlMs);
      await this.#login();
      this.#revoke(held);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (this.#held !== held) return;
      held.renewAt = this.#failure?.until ?? 0;
      // The next reader logs in.
      if (this.#services.now() >= held.expiresAt) this.#held = undefined;
      this.#schedule();
    }
  }

  #renewed(held: Held): Promise<Lease | undefined> {
    return this.#authenticator.renew(this.principal, held.token).catch((error) => this.#failed(error));
  }

  #revoke({ isRevocable, token }: Held): void {
    if (!isRevocable) return;
    keepUntilEnd(this.#revocations, this.#authenticator.revoke(this.principal, token));
  }
}

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
    for (const login of this.#logins.values()) keepUntilEnd(this.#endings, login.end());
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
      keepUntilEnd(this.#endings, ended);
    });
    this.#logins.set(principal.key, login);
    return login;
  }
}

/** Keeps running work, so that others can wait for it. */
function keepUntilEnd(running: Set<Promise<void>>, work: Promise<void>): void {
  const ending = work.finally(() => running.delete(ending));
  ending.catch(() => {});
  running.add(ending);
}
