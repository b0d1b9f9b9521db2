/** Finds everything that a binding's account lacks when a request was denied, so that one block of commands grants it. */

import type { SecretBinding } from "../../api/binding.ts";
import { refreshOf } from "../../api/refresh.ts";
import { Answers } from "../../apimachinery/answers.ts";
import type { ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { NAMESPACES } from "../../apimachinery/resources.ts";
import { AccessDenied, accountNotFound, mayNotImpersonate, OPEN_ACCOUNT } from "../../kube/access-error.ts";
import { ApiError, isNotFound } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getAsController } from "../../kube/get.ts";
import { grantCommands, inWords } from "../../kube/grant-commands.ts";
import { homeOf, type Identity } from "../../kube/identity.ts";
import type { Actor } from "../../targets/actor.ts";
import type { LackingAccess } from "../../targets/outcome.ts";
import type { BindingDependencies, Observation } from "./dependencies.ts";
import { MissingPermissions } from "./missing-permissions.ts";
import { requiredAccess } from "./required-access.ts";

/** How long an answer is used. The user may grant a part of the permissions in the meantime. */
const FRESH_MS = 60_000;

interface Answer {
  /** The generation of the binding, its last request to reconcile now, and its denied requests. */
  question: string;
  lacking: LackingAccess;
  since: number;
}

/** Remembers what each denied binding lacks, so that its retries send no further reviews. */
class LackingAnswers {
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
function questionOf({ metadata }: SecretBinding, denied: readonly AccessDenied[]): string {
  const { uid, generation } = metadata;
  return JSON.stringify([
    uid,
    generation,
    refreshOf({ metadata }) ?? "",
    ...new Set(denied.map(({ what }) => what).sort()),
  ]);
}

const REQUESTS_A_SECOND = 10;
/** Enough for dozens of usual bindings that fail together. */
const BURST = 100;
const AT_A_TIME = 4;

/** Limits requests that only improve a message: their rate, and how much work sends them at a time. Nothing waits for its turn. */
class ReviewBudget {
  #left = BURST;
  #since = Date.now();
  #running = 0;

  /** Undefined if it is not the turn of the work. The requests of work that has begun may exceed the rate, and later work waits for that. */
  async run<T>(work: () => Promise<T>): Promise<{ result: T } | undefined> {
    const now = Date.now();
    this.#left = Math.min(BURST, this.#left + (Math.max(0, now - this.#since) / 1_000) * REQUESTS_A_SECOND);
    this.#since = now;
    if (this.#left < 1 || this.#running >= AT_A_TIME) return undefined;
    this.#running++;
    try {
      return { result: await work() };
    } finally {
      this.#running--;
    }
  }

  /** Counts one request. */
  spend(): void {
    this.#left--;
  }
}

/** The most namespaces of which it is asked whether they exist. */
const MAX_NAMESPACES = 3;
/** The most commands in a status, and their length in characters. More are reported when these permissions are granted. */
const MAX_COMMANDS = 64;
const MAX_LENGTH = 16 * 1024;
/** How long it is remembered whether a namespace has the account `inlay`. */
const ACCOUNT_FRESH_MS = 5_000;
const MAX_ACCOUNTS = 1_000;

type Reviewer = Pick<Client, "may" | "rules" | "get">;
type Services = Pick<BindingDependencies, "connections" | "installation"> & { client: Reviewer };
type Seen = Pick<Observation, "key" | "binding" | "actor" | "compiled" | "observed" | "rollout">;

export class PermissionAdvice {
  readonly #services: Services;
  /** Its requests count against the budget. */
  readonly #reviewer: Reviewer;
  readonly #missing: MissingPermissions;
  readonly #budget = new ReviewBudget();
  readonly #answers = new LackingAnswers();
  /** Whether a namespace has the account `inlay`. */
  readonly #accounts = new Answers<string, boolean>(MAX_ACCOUNTS, ACCOUNT_FRESH_MS);

  constructor(services: Services) {
    this.#services = services;
    this.#reviewer = counted(services.client, this.#budget);
    this.#missing = new MissingPermissions(this.#reviewer);
  }

  /**
   * Undefined unless one of the problems is a permission that the account lacks. Retries of a binding get the answer for its first
   * denied request. If many bindings are denied, some get it with a later retry.
   */
  async lacking(seen: Seen, problems: readonly (Problem | undefined)[]): Promise<LackingAccess | undefined> {
    const { key, binding } = seen;
    const denied = problems.filter((each) => each instanceof AccessDenied);
    if (denied.length === 0) return void this.#answers.forget(key);
    const question = questionOf(binding, denied);
    const known = this.#answers.get(key, question);
    if (known?.isFresh) return known.lacking;
    const answer = await this.#budget.run(() => this.#ask(seen, denied));
    if (answer === undefined) return known?.lacking;
    if (answer.result !== undefined) this.#answers.set(key, question, answer.result);
    return answer.result;
  }

  /** For a binding that is no longer reconciled. */
  forget(key: string): void {
    this.#answers.forget(key);
  }

  async #ask({ binding, actor, compiled, observed, rollout }: Seen, denied: readonly AccessDenied[]) {
    const { identity } = actor.as;
    const needed = requiredAccess({
      binding,
      account: actor.account,
      references: compiled.references,
      objects: observed.objects,
      collections: compiled.selection.collections,
      lookups: rollout?.references.lookups ?? [],
      connections: this.#services.connections,
      problems: denied,
    });
    const missing = await this.#missing.of(
      identity,
      needed,
      denied.map(({ access }) => access),
    );
    if (missing.permissions.length === 0) return undefined;
    const missingNamespaces = await this.#missingNamespaces(identity, denied);
    const here = missing.permissions.filter(({ ref }) => !missingNamespaces.includes(ref.namespace ?? ""));
    const all = grantCommands(identity, here);
    const commands = fitting(all);
    const isCut = missing.isCut || commands.length < all.length;
    return { commands, isCut, words: inWords(identity, here), missingNamespaces };
  }

  /** Asks as the account, and only if it may read the namespace: others must not learn whether a namespace exists. */
  async #missingNamespaces(identity: Identity, denied: readonly AccessDenied[]): Promise<string[]> {
    const others = denied.flatMap(({ access: { ref } }) =>
      ref.namespace === undefined || ref.namespace === homeOf(identity) ? [] : [ref.namespace],
    );
    const asked = [...new Set(others)].slice(0, MAX_NAMESPACES);
    const isMissing = await Promise.all(asked.map((namespace) => this.#isMissing(identity, namespace)));
    return asked.filter((_, position) => isMissing[position]);
  }

  async #isMissing(identity: Identity, name: string): Promise<boolean> {
    // The API server decides on a Namespace by the permissions in it.
    const read = { ref: { resource: NAMESPACES, namespace: name, name }, verbs: ["get"] };
    if ((await this.#missing.of(identity, [read])).permissions.length > 0) return false;
    try {
      await this.#reviewer.get(identity, { resource: NAMESPACES, name });
      return false;
    } catch (error) {
      if (error instanceof ApiError) return isNotFound(error);
      throw error;
    }
  }

  /**
   * Why the account can't be used, with a command. Names the account `inlay` if the binding uses another one and that one exists: the
   * controller may read no other account.
   */
  async account({ as, account }: Actor, problem: Problem | undefined): Promise<Problem | undefined> {
    const { installation } = this.#services;
    const isAbout = problem?.reason === "ServiceAccountNotFound" || problem?.reason === "ImpersonationForbidden";
    if (!isAbout || account.name === OPEN_ACCOUNT) return problem;
    const orElse = (await this.#hasUsual(account))
      ? `ServiceAccount ${account.namespace}/${OPEN_ACCOUNT} exists: set serviceAccountName to ${OPEN_ACCOUNT}, or `
      : "";
    const { message, reason } =
      problem.reason === "ServiceAccountNotFound"
        ? accountNotFound(as.identity, undefined, orElse)
        : mayNotImpersonate(as.identity, installation.ownNamespace, orElse);
    return new Problem(reason, message, problem.retryPolicy);
  }

  /** Whether the namespace of an account has the account `inlay` too. */
  #hasUsual(account: ObjectRef): Promise<boolean> {
    const { namespace = "" } = account;
    return this.#accounts.get(namespace, ACCOUNT_FRESH_MS, () =>
      getAsController(this.#services.client, { ...account, name: OPEN_ACCOUNT }).then(
        (found) => found !== undefined,
        (error) => {
          if (error instanceof Problem) return false;
          throw error;
        },
      ),
    );
  }
}

/** The first commands that a status has room for. */
function fitting(commands: readonly string[]): string[] {
  const first = commands.slice(0, MAX_COMMANDS);
  while (first.join("\n").length > MAX_LENGTH) first.pop();
  return first;
}

function counted(client: Reviewer, budget: ReviewBudget): Reviewer {
  const spent = <A extends unknown[], R>(send: (...args: A) => R) => {
    return (...args: A): R => {
      budget.spend();
      return send(...args);
    };
  };
  return {
    may: spent((...args) => client.may(...args)),
    rules: spent((...args) => client.rules(...args)),
    get: spent((...args) => client.get(...args)),
  };
}
