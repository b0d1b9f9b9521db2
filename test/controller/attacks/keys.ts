/** ConfigMaps with as many keys as the API server accepts. managedFields list each key, which costs far more parsed than as text. */

import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const CONFIG_MAPS = 100;
const KEYS = 60_000;

export const manyKeys: Attack = {
  tenant: `${CONFIG_MAPS} ConfigMaps of ${KEYS} keys`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    const data = Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`k${n}`, ""]));
    for (let n = 0; n < sized(CONFIG_MAPS, scale); n++)
      await tenant.api.create(tenant.path("v1", "configmaps"), { metadata: { name: `many-${n}` }, data });
    await tenant.bind("keys", {
      sources: [{ configMap: { name: "many-0" }, as: "many" }],
      targets: [],
      rollout: { consumersOf: ["many"] },
    });
  },
};
