/**
 * Finds out which permissions of a binding's account are missing, after a request was denied. It asks as the account, so it learns
 * what the account may know about itself.
 */
import { AccountRules } from "../../cache/account-rules.ts";
import { type AccessRules, isListed } from "../../kube/access-rules.ts";
import { ApiError } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { isOnAll, type Permission } from "../../kube/grant-commands.ts";
import { homeOf, type Identity } from "../../kube/identity.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";

/** How old an answer may be. Bindings of one account that fail at the same time share it. */
const FRESH_MS = 2_000;
/** The most namespaces in which the permissions of one binding are reviewed. */
const MAX_NAMESPACES = 10;
/** The most reviews of single permissions, where the rules of the account don't show them. */
const MAX_REVIEWS = 50;

interface Missing {
  /** Verb by verb. */
  permissions: Permission[];
  /** There may be more: not everything was reviewed. */
  isCut: boolean;
}

export class MissingPermissions {
  readonly #client: Pick<Client, "may" | "rules">;
  readonly #reviews: AccountRules;

  constructor(client: Pick<Client, "may" | "rules">) {
    this.#client = client;
    this.#reviews = new AccountRules(client);
  }

  /**
   * Those of the `needed` permissions that the account lacks. None if that can't be known. An answer that allows what was `denied` since is
   * too old.
   */
  async of(
    identity: Identity,
    needed: readonly Permission[],
    denied: readonly Permission[] = [],
    freshMs = FRESH_MS,
  ): Promise<Missing> {
    const home = homeOf(identity) ?? "";
    const namespaces = [...new Set([home, ...needed.map(({ ref }) => ref.namespace ?? home)])];
    try {
      const rules = new Map<string, AccessRules>();
      await mapConcurrent(namespaces.slice(0, MAX_NAMESPACES), async (namespace) => {
        const place = { identity, namespace };
        this.#reviews.expire(place, freshMs);
        rules.set(namespace, await this.#reviews.of(place));
      });
      const each = needed.flatMap(({ ref, verbs }) => verbs.map((verb): Single => ({ ref, verb })));
      // Many targets and objects may need the same.
      const single = [...new Map(each.map((one) => [keyOf(one), one])).values()];
      const unlisted = single.filter((each) => {
        const of = rules.get(each.ref.namespace ?? home);
        if (of === undefined) return false;
        const { resource } = each.ref;
        return isInCluster(each) || !isListed(of, { ...resource, verb: each.verb, name: nameFor(each) });
      });
      // The rules don't show whether a permission is for all namespaces, and other authorizers may allow more.
      const isUnsure = (each: Single) => isInCluster(each) || rules.get(each.ref.namespace ?? "")?.incomplete;
      const unsure = unlisted.filter(isUnsure);
      const reviewed = new Set(unsure.slice(0, MAX_REVIEWS));
      await mapConcurrent([...reviewed], async (each) => {
        const { ref, verb } = each;
        if (await this.#client.may(identity, verb, ref.resource, ref.namespace, nameFor(each))) reviewed.delete(each);
      });
      const missing = unlisted.filter((each) => !isUnsure(each) || reviewed.has(each));
      const lacks = new Set(missing.map(keyOf));
      const isTooOld = denied.some(({ ref, verbs }) => !verbs.some((verb) => lacks.has(keyOf({ ref, verb }))));
      if (isTooOld && freshMs > 0) return await this.of(identity, needed, denied, 0);
      return {
        permissions: missing.map(({ ref, verb }) => ({ ref, verbs: [verb] })),
        isCut: namespaces.length > MAX_NAMESPACES || unsure.length > MAX_REVIEWS,
      };
    } catch (error) {
      if (error instanceof ApiError) return { permissions: [], isCut: false };
      throw error;
    }
  }
}

interface Single {
  ref: Permission["ref"];
  verb: string;
}

const isInCluster = ({ ref }: Single) => ref.namespace === undefined;

const nameFor = ({ ref: { resource, name }, verb }: Single) => (isOnAll(verb, resource.plural) ? undefined : name);

const keyOf = (each: Single) => {
  const { resource, namespace } = each.ref;
  return JSON.stringify([resource.group, resource.plural, namespace, nameFor(each), each.verb]);
};
