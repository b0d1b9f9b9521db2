/** Roles with as many names as fit into them. Reviews of the rules of the account return all of them, and are repeated while it lacks a permission. */
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import { type Attack, sized } from "./attack.ts";

const ROLES = 130;
const NAMES = 60_000;

export const longRoles: Attack = {
  tenant: `${ROLES} Roles of ${NAMES} names`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    const resourceNames = Array.from({ length: NAMES }, (_, n) => `n${n}`);
    const rbac = tenant.path("rbac.authorization.k8s.io/v1", "");
    const roles = Array.from({ length: sized(ROLES, scale) }, (_, n) => `role-${n}`);
    await mapConcurrent(roles, async (name) => {
      const rules = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"], resourceNames }];
      await tenant.api.create(`${rbac}roles`, { metadata: { name }, rules });
      await tenant.api.create(`${rbac}rolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
        subjects: [{ kind: "ServiceAccount", name: "inlay", namespace: tenant.namespace }],
      });
    });
    for (let n = 0; n < 10; n++)
      await tenant.bind(`b-${n}`, {
        sources: [
          { secret: { name: `n${n}` }, as: "named" },
          { configMap: { name: `denied-${n}` }, as: "denied" },
        ],
        targets: [],
        rollout: { consumersOf: ["named"] },
      });
  },
};
