/**
 * A user whose requests an admission policy checks: gives the user permissions in a namespace, and tries to write objects of one
 * kind.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "./api.ts";
import { eventually } from "./eventually.ts";
import { createNamespace, type Rule, type TestNamespace } from "./test-namespace.ts";

export const RBAC = "rbac.authorization.k8s.io";

/** `user` writes objects of the group inlay.dev, by their plural, in the namespace that `team` returns. */
export function policyAuthor(user: string, plural: string, team: () => TestNamespace) {
  let count = 0;
  const author = () => new Api(controlPlane(), user);
  const collection = () => team().path("inlay.dev/v1alpha1", plural);
  const bound = (kind: "Role" | "ClusterRole", name: string) => ({
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: "User", name: user, apiGroup: RBAC }],
  });
  const bindRole = (kind: "Role" | "ClusterRole", name: string): Promise<AnyObject> =>
    team().api.create(team().path(`${RBAC}/v1`, "rolebindings"), {
      metadata: { generateName: "author-" },
      ...bound(kind, name),
    });
  return {
    author,
    collection,
    /** The subjects and roleRef of a binding of a role to the user. */
    bound,
    bindRole,
    /** Gives the user a Role of this namespace. */
    give: async (...rules: Rule[]) => {
      const name = `author-${++count}`;
      await team().api.create(team().path(`${RBAC}/v1`, "roles"), { metadata: { name }, rules });
      await bindRole("Role", name);
    },
    /** What the API server would store for an admin. */
    accepted: (object: object): Promise<AnyObject> =>
      team().api.dryRun.create(`${collection()}?fieldValidation=Strict`, object),
    /** Permissions and policies take effect a moment after they are written. */
    lets: (object: object) => eventually(() => author().dryRun.create(collection(), object)),
    /** Returns the text of the policy's refusal. Retries while the user lacks the permission for such objects. */
    refuses: (object: object, saying: RegExp) =>
      eventually(async () => {
        const refusal = await author()
          .dryRun.create(collection(), object)
          .then(
            () => assert.fail("it was accepted"),
            ({ message }: Error) => message,
          );
        assert.match(refusal, saying);
        return refusal;
      }),
  };
}

/** A namespace without an account, in which no user has rights. */
export const namespaceWithoutRights = () => createNamespace({ account: false, rules: [], controller: false });
