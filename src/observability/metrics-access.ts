/**
 * Decides whether a request may read the metrics, by its Authorization header. The API server checks the token and the permission to `get`
 * /metrics, as with controller-runtime. Answers are cached for a short time, and the rate of reviews for unknown tokens is limited.
 */
import { hash } from "node:crypto";
import { setNewest } from "../apimachinery/newest.ts";
import type { AccessReviews } from "../kube/access-reviews.ts";
import { describeError, type Log } from "./log.ts";

const PATH = "/metrics";
/** How long an answer is cached, in milliseconds. A revoked permission or an expired token still counts that long. */
const REMEMBERED_MS = { 200: 60_000, 401: 60_000, 403: 30_000 } as const;
/** The number of cached tokens for each kind of answer. The oldest are dropped. */
const MAX_REMEMBERED = 1_000;
/**
 * The reviews at the same time for unknown tokens, so that a flood of them causes little load. Tokens from an address with an allowed token
 * have as many of their own: a scraper gets a new token about each hour.
 */
const REVIEWS_AT_ONCE = 4;
const REVIEWS_PER_SECOND = 10;

/**
 * 200: may scrape. 401: no token, or an unknown one. 403: a known user without the permission. 429: too many unknown tokens. 503: no
 * answer.
 */
export type ScrapeStatus = keyof typeof REMEMBERED_MS | 429 | 503;

type Verdict = keyof typeof REMEMBERED_MS;

export class MetricsAccess {
  readonly #reviews: Pick<AccessReviews, "userOf" | "mayGetPath">;
  readonly #log: Pick<Log, "warn">;
  /** By the SHA-256 of a token, when its answer expires. Allowed tokens are separate, so that a flood does not displace them. */
  readonly #allowed = new Map<string, number>();
  readonly #refused = new Map<string, { verdict: Verdict; until: number }>();
  /** At most one review for each token at a time. */
  readonly #underWay = new Map<string, Promise<ScrapeStatus>>();
  /** Addresses that sent an allowed token, in the order of insertion. */
  readonly #addresses = new Set<string>();
  readonly #strangers = new Budget();
  readonly #known = new Budget();
  /** Failing reviews are logged once, until one succeeds. */
  #isFailing = false;

  constructor(reviews: Pick<AccessReviews, "userOf" | "mayGetPath">, log: Pick<Log, "warn">) {
    this.#reviews = reviews;
    this.#log = log;
  }

  /** `address`: the address of the client. */
  async check(authorization: string | undefined, address = ""): Promise<ScrapeStatus> {
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return 401;
    const digest = hash("sha256", token, "base64");
    const until = this.#allowed.get(digest);
    const now = performance.now();
    if (until !== undefined && now < until) return 200;
    const refused = this.#refused.get(digest);
    if (refused !== undefined && now < refused.until) return refused.verdict;
    const underWay = this.#underWay.get(digest);
    if (underWay !== undefined) return underWay;
    // A token from a known address does not wait behind unknown tokens.
    const budget = this.knows(address) ? this.#known : this.#strangers;
    if (until === undefined && !budget.take(now)) return 429;
    const review = this.#review(token, digest).finally(() => {
      this.#underWay.delete(digest);
      if (until === undefined) budget.giveBack();
    });
    this.#underWay.set(digest, review);
    const status = await review;
    if (status === 200) this.#learn(address);
    return status;
  }

  /** Whether this address sent an allowed token before. */
  knows(address: string): boolean {
    return this.#addresses.has(address);
  }

  #learn(address: string): void {
    this.#addresses.delete(address);
    this.#addresses.add(address);
    const [oldest] = this.#addresses;
    if (this.#addresses.size > MAX_REMEMBERED && oldest !== undefined) this.#addresses.delete(oldest);
  }

  async #review(token: string, digest: string): Promise<ScrapeStatus> {
    try {
      const user = await this.#reviews.userOf(token);
      const verdict = user === undefined ? 401 : (await this.#reviews.mayGetPath(user, PATH)) ? 200 : 403;
      this.#isFailing = false;
      this.#remember(digest, verdict);
      return verdict;
    } catch (error) {
      if (!this.#isFailing)
        this.#log.warn(
          { error: describeError(error) },
          "can't check requests for /metrics; allow the controller to create tokenreviews and subjectaccessreviews",
        );
      this.#isFailing = true;
      return 503;
    }
  }

  #remember(digest: string, verdict: Verdict): void {
    const until = performance.now() + REMEMBERED_MS[verdict];
    this.#allowed.delete(digest);
    this.#refused.delete(digest);
    if (verdict === 200) setNewest(this.#allowed, digest, until, MAX_REMEMBERED);
    else setNewest(this.#refused, digest, { verdict, until }, MAX_REMEMBERED);
  }
}

/** Limits the cost of reviews. */
class Budget {
  #atOnce = 0;
  #second = { start: Number.NEGATIVE_INFINITY, reviews: 0 };

  take(now: number): boolean {
    if (this.#atOnce >= REVIEWS_AT_ONCE) return false;
    if (now - this.#second.start >= 1_000) this.#second = { start: now, reviews: 0 };
    if (++this.#second.reviews > REVIEWS_PER_SECOND) return false;
    this.#atOnce += 1;
    return true;
  }

  giveBack(): void {
    this.#atOnce -= 1;
  }
}
