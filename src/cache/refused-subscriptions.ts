/**
 * Keeps subscriptions without a stream because their account lacks the permission. One review serves all of them in a namespace, and the
 * rate of reviews is limited for all accounts together.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../kube/api-error.ts";
import { SlowBucket } from "../workqueue/slow-bucket.ts";
import type { AccessPlace, AccountRules } from "./account-rules.ts";

/** For all accounts together. A review takes the API server a millisecond. */
const REVIEWS_A_SECOND = 10;
const PAUSE_MS = { first: 500, most: 4_000 };

interface Group<S> {
  members: Set<S>;
  /**
   * The permissions of the account when its members were last checked. Undefined when there is a new member, which an older answer may have
   * refused.
   */
  rules: string | undefined;
  end: AbortController;
}

export class RefusedSubscriptions<S extends object> {
  readonly #reviews: Pick<AccountRules, "refresh">;
  readonly #rulesChanged: (place: AccessPlace) => void;
  readonly #groups = new Map<string, Group<S>>();
  readonly #groupOf = new Map<S, string>();
  readonly #bucket = new SlowBucket(REVIEWS_A_SECOND);

  /** `rulesChanged` is called when the permissions of an account differ from those at the last check of its subscriptions. */
  constructor(reviews: Pick<AccountRules, "refresh">, rulesChanged: (place: AccessPlace) => void) {
    this.#reviews = reviews;
    this.#rulesChanged = rulesChanged;
  }

  /** Waiting subscriptions take turns by `tenant`. */
  add(subscription: S, place: AccessPlace, tenant: string): void {
    const key = `${place.identity}|${place.namespace}`;
    const group = this.#groups.get(key) ?? { members: new Set(), rules: undefined, end: new AbortController() };
    group.members.add(subscription);
    group.rules = undefined;
    this.#groupOf.set(subscription, key);
    if (this.#groups.has(key)) return;
    this.#groups.set(key, group);
    void this.#ask(group, place, tenant);
  }

  delete(subscription: S): void {
    const key = this.#groupOf.get(subscription);
    if (key === undefined) return;
    this.#groupOf.delete(subscription);
    const group = this.#groups.get(key);
    group?.members.delete(subscription);
    if (group?.members.size !== 0) return;
    this.#groups.delete(key);
    group.end.abort();
  }

  stop(): void {
    for (const { end } of this.#groups.values()) end.abort();
    this.#groups.clear();
    this.#groupOf.clear();
  }

  async #ask(group: Group<S>, place: AccessPlace, tenant: string): Promise<void> {
    const { signal } = group.end;
    for (let tries = 0; !signal.aborted; tries++) {
      const pause = Math.min(PAUSE_MS.first * 2 ** Math.min(tries, 10), PAUSE_MS.most) * (0.5 + Math.random() / 2);
      await sleep(pause, undefined, { signal }).catch(() => {});
      await this.#bucket.take(tenant, signal);
      if (signal.aborted) return;
      const before = group.rules;
      const rules = await this.#refresh(place);
      if (signal.aborted || rules === undefined || rules === before) continue;
      group.rules = rules;
      if (before !== undefined) this.#bucket.refund();
      this.#rulesChanged(place);
    }
  }

  /** Undefined while the API server does not answer. */
  async #refresh(place: AccessPlace): Promise<string | undefined> {
    try {
      return await this.#reviews.refresh(place);
    } catch (error) {
      if (error instanceof ApiError) return undefined;
      throw error;
    }
  }
}
