/** Remembers what each denied binding lacks, so that its retries send no further reviews. */
import type { SecretBinding } from "../../api/binding.ts";
import { refreshOf } from "../../api/refresh.ts";
import type { AccessDenied } from "../../kube/access-error.ts";
import type { LackingAccess } from "../../targets/outcome.ts";

/** How long an answer is used. The user may grant a part of the permissions in the meantime. */
const FRESH_MS = 60_000;

interface Answer {
  /** The generation of the binding, its last request to reconcile now, and its denied requests. */
  question: string;
  lacking: LackingAccess;
  since: number;
}

export class LackingAnswers {
  readonly #answers = new Map<string, Answer>();

  /** The last answer for the same denied requests, and whether it is fresh. */
  get(key: string, question: string): { lacking: LackingAccess; isFresh: boolean } | undefined {
    const known = this.#answers.get(key);
    if (known?.question !== question) return undefined;
    const { lacking, since } = known;
    // A denied request looks the same after the user has created its namespace.
    return { lacking, isFresh: lacking.missingNamespaces.length === 0 && Date.now() - since < FRESH_MS };
  }

  set(key: string, question: string, lacking: LackingAccess): void {
    this.#answers.set(key, { question, lacking, since: Date.now() });
  }

  forget(key: string): void {
    this.#answers.delete(key);
  }
}

/** The same for each retry that is denied the same requests. */
export function questionOf({ metadata }: SecretBinding, denied: readonly AccessDenied[]): string {
  const { uid, generation } = metadata;
  return JSON.stringify([
    uid,
    generation,
    refreshOf({ metadata }) ?? "",
    ...new Set(denied.map(({ what }) => what).sort()),
  ]);
}
