/**
 * One login: keeps its token, renews it at two thirds of its life while readers use it, and revokes it when none did for five
 * minutes. A login that failed is not tried again at once, however many readers ask.
 */
import { Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { Authenticator, Principal, Token } from "./auth.ts";
import { VaultProblem } from "./failures.ts";

/** A token that no reader used for so long is revoked. */
const IDLE_MS = 5 * 60_000;
/** After how much of its life a token is renewed, less up to a tenth, so that not all are renewed at once. */
const RENEW_AT = 2 / 3;
const JITTER = 0.1;
/** What a renewal has to bring, in parts of the first life. Less means that the token nears its end, and a new login is due. */
const WORTHWHILE = 0.5;
const BACKOFF_MS = { first: 1_000, most: 30_000 };
/** A reader gets no token that expires before the request arrives. */
const MARGIN_MS = 1_000;
/** A token that nears its end is not renewed more often. */
const MIN_RENEW_MS = 1_000;
/** A denied request makes Inlay doubt a token, but not one that is as young as that: what else would a new login change? */
const UNDOUBTED_MS = { unsure: 30_000, unknown: 5_000 };
/** For so long Inlay believes that a token is valid, if Vault says so. */
const BELIEVED_MS = 30_000;
/** Timers can't be longer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface LoginServices {
  now(): number;
  random(): number;
}

interface Held extends Token {
  readonly madeAt: number;
  readonly firstTtlMs: number;
  renewAt: number;
  expiresAt: number;
}

export class Login {
  readonly principal: Principal;
  readonly #authenticator: Authenticator;
  readonly #services: LoginServices;
  readonly #onIdle: () => void;
  #held: Held | undefined;
  #usedAt = 0;
  #pending: Promise<Held> | undefined;
  #failure: { problem: Problem; until: number; times: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** The check of the token that is under way. */
  #doubt: Promise<SecretValue<string> | undefined> | undefined;
  #believedUntil = 0;

  /** `onIdle` is called when it has ended because no reader used it. */
  constructor(principal: Principal, authenticator: Authenticator, services: LoginServices, onIdle: () => void) {
    this.principal = principal;
    this.#authenticator = authenticator;
    this.#services = services;
    this.#onIdle = onIdle;
  }

  /** The token that is held, for as long as it is valid. */
  get token(): SecretValue<string> | undefined {
    const held = this.#held;
    return held !== undefined && this.#services.now() < held.expiresAt - MARGIN_MS ? held.token : undefined;
  }

  /** Whether it holds no token, and no reader asked for one for five minutes. */
  get isIdle(): boolean {
    const isUsed = this.#services.now() < this.#usedAt + IDLE_MS || this.#pending !== undefined;
    return this.#held === undefined && !isUsed;
  }

  /** Whether the last login or renewal failed. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** The token for a reader, after a login if there is none. Throws Problem. */
  async use(): Promise<SecretValue<string>> {
    this.#usedAt = this.#services.now();
    return this.token ?? (await this.#login()).token;
  }

  /**
   * After Vault denied a request with `token`: another token, if this one is not valid any more. `isUnknown`: Vault said so by
   * itself. Undefined where the policies deny the request. Throws Problem.
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
    const age = now() - held.madeAt;
    if (age < UNDOUBTED_MS.unknown || (!isUnknown && now() < this.#believedUntil)) return undefined;
    const known = isUnknown ? "unknown" : await this.#authenticator.lookUp(this.principal, held.token);
    if (typeof known !== "string") this.#believedUntil = now() + BELIEVED_MS;
    if (typeof known !== "string" || age < UNDOUBTED_MS[known]) return undefined;
    const made = await this.#login();
    // In case it was valid after all.
    if (known === "unsure") this.#revoke(held);
    return made.token;
  }

  /** Revokes the token, also that of a login that is under way. */
  async end(): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    const held = (await this.#pending?.catch(() => undefined)) ?? this.#held;
    this.#held = undefined;
    if (held?.isRevocable) await this.#authenticator.revoke(this.principal, held.token);
  }

  /** All that ask meanwhile share it. */
  #login(): Promise<Held> {
    if (this.#pending !== undefined) return this.#pending;
    const { now } = this.#services;
    const failure = this.#failure;
    if (failure !== undefined && now() < failure.until) return Promise.reject(failure.problem);
    const ended = "the connection was replaced; Inlay asks over the new one";
    if (this.#isEnded) return Promise.reject(new Problem("ConnectionNotReady", ended));
    const pending = this.#authenticator.login(this.principal).then(
      (token) => this.#hold(token),
      (error) => {
        if (error instanceof Problem) this.#failed(error);
        throw error;
      },
    );
    this.#pending = pending.finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  #hold(token: Token): Held {
    this.#believedUntil = 0;
    const madeAt = this.#services.now();
    const held = { ...token, madeAt, firstTtlMs: token.ttlMs, renewAt: 0, expiresAt: 0 };
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

  #failed(problem: Problem): void {
    const { now, random } = this.#services;
    const times = (this.#failure?.times ?? 0) + 1;
    const backoff = Math.min(BACKOFF_MS.first * 2 ** (times - 1), BACKOFF_MS.most) * (0.75 + random() / 2);
    const asked = problem instanceof VaultProblem ? (problem.retryAfterMs ?? 0) : 0;
    this.#failure = { problem, until: now() + Math.max(backoff, asked), times };
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#held === undefined || this.#isEnded) return;
    const due = Math.min(this.#usedAt + IDLE_MS, this.#held.renewAt) - this.#services.now();
    const work = () => void this.#onDue();
    this.#timer = setTimeout(work, Math.min(Math.max(due, 0), MAX_TIMER_MS)).unref();
  }

  async #onDue(): Promise<void> {
    const { now } = this.#services;
    const held = this.#held;
    if (held === undefined) return;
    if (now() >= this.#usedAt + IDLE_MS) {
      this.#onIdle();
      return this.end();
    }
    if (now() < held.renewAt) return this.#schedule();
    await this.#refresh(held);
  }

  /** Renews the token, or else logs in once more. Until one of them works, the token is used for as long as it is valid. */
  async #refresh(held: Held): Promise<void> {
    try {
      const lease = held.renewable ? await this.#authenticator.renew(this.principal, held.token) : undefined;
      if (this.#held !== held || this.#isEnded) return;
      const isWorthwhile = lease !== undefined && (lease.ttlMs === 0 || lease.ttlMs >= held.firstTtlMs * WORTHWHILE);
      if (isWorthwhile) return this.#extend(held, lease.ttlMs);
      await this.#login();
      this.#revoke(held);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      // A login that failed has said so; a renewal has not.
      if ((this.#failure?.until ?? 0) <= this.#services.now()) this.#failed(error);
      held.renewAt = this.#failure?.until ?? 0;
      this.#schedule();
    }
  }

  #revoke(held: Held): void {
    if (held.isRevocable) this.#authenticator.revoke(this.principal, held.token).catch(() => {});
  }
}
