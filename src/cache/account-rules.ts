/** Caches what identities may do in namespaces, from the API server's rules reviews. One review answers for all kinds and names. */
import { createHash } from "node:crypto";
import { BoundedMap } from "../apimachinery/maps.ts";
import { isImpersonation } from "../kube/access-error.ts";
import { type AccessRules, rulesText } from "../kube/access-rules.ts";
import { isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";

/** An identity and the namespace in which its permissions are listed. */
export interface AccessPlace {
  identity: Identity;
  namespace: string;
}

const LIVES_MS = 60_000;
/** The most words of an answer: verbs, groups, resources and names. Beyond, the answer counts as incomplete. */
const MAX_WORDS = 10_000;
/** The most words of all answers that are kept. */
const MAX_KEPT_WORDS = 1_000_000;
/** A review that took longer than this is not repeated before ten times as long, and one with a too large answer not for minutes. */
const SLOW_MS = 1_000;
const SLOW_FACTOR = 10;
const MAX_PAUSE_MS = 3 * 60_000;
const REVIEWS = { plural: "selfsubjectrulesreviews" };
/** The answer of an API server that does not allow the identity to create a review. */
const NOTHING_KNOWN: AccessRules = { incomplete: true, resourceRules: [] };
/** In place of an answer that is too large. */
const TOO_LARGE: AccessRules = { ...NOTHING_KNOWN };

interface Answer {
  rules: Promise<AccessRules>;
  since: number;
  /** How long the review is not repeated. */
  pauseMs: number;
  words: number;
}

export class AccountRules {
  readonly #client: Pick<Client, "rules">;
  /** From the oldest answer to the newest. */
  readonly #answers = new BoundedMap<string, Answer>(Infinity, MAX_KEPT_WORDS, ({ words }) => words);

  constructor(client: Pick<Client, "rules">) {
    this.#client = client;
  }

  /**
   * The answer to a review that was sent at most `withinMs` ago. Throws ApiError. Its status is 403 only if the controller may
   * not impersonate the identity.
   */
  of(place: AccessPlace, withinMs = LIVES_MS): Promise<AccessRules> {
    const known = this.#answers.get(keyOf(place));
    return known !== undefined && isNewerThan(known, withinMs) ? known.rules : this.#ask(place);
  }

  /** Drops the cached answer if it is older than `sinceMs`, so that the next call of `of` reviews again. */
  expire(place: AccessPlace, sinceMs: number): void {
    const known = this.#answers.get(keyOf(place));
    if (known !== undefined && !isNewerThan(known, sinceMs)) this.#answers.delete(keyOf(place));
  }

  /** Reviews again now, unless the last review was slow, and returns a digest of the answer. Throws ApiError if there is no answer. */
  async refresh(place: AccessPlace): Promise<string> {
    return createHash("sha256")
      .update(await textOf(this.of(place, 0)))
      .digest("base64");
  }

  #ask(place: AccessPlace): Promise<AccessRules> {
    this.#answers.dropOutdated((oldest) => !isNewerThan(oldest, LIVES_MS));
    const key = keyOf(place);
    const rules = this.#review(place);
    const answer: Answer = { rules, since: Date.now(), pauseMs: 0, words: 0 };
    this.#answers.set(key, answer);
    const isKept = () => this.#answers.get(key) === answer;
    rules.then(
      (known) => {
        if (!isKept()) return;
        const tookMs = Date.now() - answer.since;
        const pauseMs = known === TOO_LARGE ? MAX_PAUSE_MS : tookMs < SLOW_MS ? 0 : SLOW_FACTOR * tookMs;
        this.#answers.set(key, { ...answer, pauseMs: Math.min(pauseMs, MAX_PAUSE_MS), words: wordsIn(known) });
      },
      (error) => {
        if (!isStatus(error, 403) && isKept()) this.#answers.delete(key);
      },
    );
    return rules;
  }

  async #review({ identity, namespace }: AccessPlace): Promise<AccessRules> {
    try {
      const rules = await this.#client.rules(identity, namespace);
      // The client returns incomplete rules, and none, for an answer that it did not read.
      const isUnread = rules.incomplete && rules.resourceRules.length === 0;
      return isUnread || wordsIn(rules) > MAX_WORDS ? TOO_LARGE : rules;
    } catch (error) {
      if (!isStatus(error, 403) || isImpersonation(error, { identity, ref: { resource: REVIEWS } })) throw error;
      return NOTHING_KNOWN;
    }
  }
}

const keyOf = ({ identity, namespace }: AccessPlace) => `${identity}|${namespace}`;

function isNewerThan({ since, pauseMs }: Answer, ms: number): boolean {
  const age = Date.now() - since;
  // The clock may have been set back.
  return age >= 0 && age < Math.max(ms, pauseMs);
}

function wordsIn({ resourceRules }: AccessRules): number {
  let words = 0;
  for (const { verbs, apiGroups = [], resources = [], resourceNames = [] } of resourceRules)
    words += verbs.length + apiGroups.length + resources.length + resourceNames.length;
  return words;
}

async function textOf(rules: Promise<AccessRules>): Promise<string> {
  try {
    return rulesText(await rules);
  } catch (error) {
    if (isStatus(error, 403)) return "may not be impersonated";
    throw error;
  }
}
