/** Caches what identities may do in namespaces, from the API server's rules reviews. One review answers for all kinds and names. */
import { createHash } from "node:crypto";
import { dropOutdated } from "../apimachinery/newest.ts";
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
const REVIEWS = { plural: "selfsubjectrulesreviews" };
/** The answer of an API server that does not allow the identity to create a review. */
const NOTHING_KNOWN: AccessRules = { incomplete: true, resourceRules: [] };

interface Answer {
  rules: Promise<AccessRules>;
  since: number;
}

export class AccountRules {
  readonly #client: Pick<Client, "rules">;
  /** From the oldest answer to the newest. */
  readonly #answers = new Map<string, Answer>();

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

  /** Reviews again now, and returns a digest of the answer. Throws ApiError if there is no answer. */
  async refresh(place: AccessPlace): Promise<string> {
    return createHash("sha256")
      .update(await textOf(this.#ask(place)))
      .digest("base64");
  }

  #ask(place: AccessPlace): Promise<AccessRules> {
    dropOutdated(this.#answers, (answer) => !isNewerThan(answer, LIVES_MS));
    const rules = this.#review(place);
    const answer = { rules, since: Date.now() };
    this.#answers.delete(keyOf(place));
    this.#answers.set(keyOf(place), answer);
    rules.catch((error) => {
      if (!isStatus(error, 403) && this.#answers.get(keyOf(place)) === answer) this.#answers.delete(keyOf(place));
    });
    return rules;
  }

  async #review({ identity, namespace }: AccessPlace): Promise<AccessRules> {
    try {
      return await this.#client.rules(identity, namespace);
    } catch (error) {
      if (!isStatus(error, 403) || isImpersonation(error, { identity, ref: { resource: REVIEWS } })) throw error;
      return NOTHING_KNOWN;
    }
  }
}

const keyOf = ({ identity, namespace }: AccessPlace) => `${identity}|${namespace}`;

function isNewerThan({ since }: Answer, ms: number): boolean {
  const age = Date.now() - since;
  // The clock may have been set back.
  return age >= 0 && age < ms;
}

async function textOf(rules: Promise<AccessRules>): Promise<string> {
  try {
    return rulesText(await rules);
  } catch (error) {
    if (isStatus(error, 403)) return "may not be impersonated";
    throw error;
  }
}
