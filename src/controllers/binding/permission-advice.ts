/** Finds everything that a binding's account lacks when a request was denied, so that one block of commands grants it. */
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

/** The most namespaces of which it is asked whether they exist. */
const MAX_NAMESPACES = 3;
/** The most commands in a status. More are reported when these permissions are granted. */
const MAX_COMMANDS = 64;

type Services = Pick<BindingDependencies, "vault" | "installation"> & { client: Pick<Client, "may" | "rules" | "get"> };
type Seen = Pick<Observation, "binding" | "actor" | "references" | "observed" | "rollout">;

export class PermissionAdvice {
  readonly #services: Services;
  readonly #missing: MissingPermissions;

  constructor(services: Services) {
    this.#services = services;
    this.#missing = new MissingPermissions(services.client);
  }

  /** Undefined unless one of the problems is a permission that the account lacks. */
  async lacking(seen: Seen, problems: readonly (Problem | undefined)[]): Promise<LackingAccess | undefined> {
    if (!problems.some((each) => each?.reason === "Forbidden")) return undefined;
    const { binding, actor, references, observed, rollout } = seen;
    const { identity } = actor.as;
    const needed = requiredAccess({
      binding,
      account: actor.account,
      references,
      objects: observed.objects,
      lookups: rollout?.references.lookups ?? [],
      hidden: new Set(rollout?.dependents.unknown.map(({ namespace }) => namespace)),
      vault: this.#services.vault,
      isWatched: observed.isWatched,
      problems,
    });
    const missing = await this.#missing.of(identity, needed);
    if (missing.length === 0) return undefined;
    const missingNamespaces = await this.#missingNamespaces(identity, problems);
    const here = missing.filter(({ ref }) => !missingNamespaces.includes(ref.namespace ?? ""));
    const all = grantCommands(identity, here);
    const commands = all.slice(0, MAX_COMMANDS);
    return { commands, isCut: commands.length < all.length, words: inWords(identity, here), missingNamespaces };
  }

  /** Asks as the account, and only if it may read the namespace: others must not learn whether a namespace exists. */
  async #missingNamespaces(identity: Identity, problems: readonly (Problem | undefined)[]): Promise<string[]> {
    const others = problems.flatMap((each) => {
      const namespace = each instanceof AccessDenied ? each.access.ref.namespace : undefined;
      return namespace === undefined || namespace === homeOf(identity) ? [] : [namespace];
    });
    const asked = [...new Set(others)].slice(0, MAX_NAMESPACES);
    const isMissing = await Promise.all(asked.map((namespace) => this.#isMissing(identity, namespace)));
    return asked.filter((_, position) => isMissing[position]);
  }

  async #isMissing(identity: Identity, name: string): Promise<boolean> {
    // The API server decides on a Namespace by the permissions in it.
    const read = { ref: { resource: NAMESPACES, namespace: name, name }, verbs: ["get"] };
    if ((await this.#missing.of(identity, [read])).length > 0) return false;
    try {
      await this.#services.client.get(identity, { resource: NAMESPACES, name });
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
    const { client, installation } = this.#services;
    const isAbout = problem?.reason === "ServiceAccountNotFound" || problem?.reason === "ImpersonationForbidden";
    if (!isAbout || account.name === OPEN_ACCOUNT) return problem;
    const usual = await getAsController(client, { ...account, name: OPEN_ACCOUNT }).catch((error) => {
      if (error instanceof Problem) return undefined;
      throw error;
    });
    const orElse =
      usual === undefined
        ? ""
        : `ServiceAccount ${account.namespace}/${OPEN_ACCOUNT} exists: set serviceAccountName to ${OPEN_ACCOUNT}, or `;
    const { message, reason } =
      problem.reason === "ServiceAccountNotFound"
        ? accountNotFound(as.identity, undefined, orElse)
        : mayNotImpersonate(as.identity, installation.ownNamespace, orElse);
    return new Problem(reason, message, problem.retryPolicy);
  }
}
