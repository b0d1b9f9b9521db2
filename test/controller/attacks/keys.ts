/** ConfigMaps with as many keys as the API server accepts. managedFields list each key, which costs far more parsed than as text. */

import assert from "node:assert/strict";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const CONFIG_MAPS = 100;
const KEYS = 60_000;
const REPORTED_WITHIN_MS = 60_000;

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

const COPIES = 30;

export const copiedKeys: Attack = {
  tenant: `${COPIES} copies of a ConfigMap of ${KEYS} keys`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    const writes = { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] };
    await tenant.grant([...READ, writes], { role: "attack" });
    const path = tenant.path("v1", "configmaps");
    const data = Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`k${n}`, ""]));
    await tenant.api.create(path, { metadata: { name: "many" }, data });
    await tenant.api.create(path, { metadata: { name: "to" } });
    for (let n = 0; n < sized(COPIES, scale); n++)
      await tenant.bind(`copy-${n}`, {
        sources: [{ configMap: { name: "many" } }],
        targets: [
          { apiVersion: "v1", kind: "ConfigMap", name: "to", fields: [{ path: "data", from: { source: "many" } }] },
        ],
        rollout: { consumersOf: ["many"] },
      });
  },
  async isReported(tenant) {
    const { status } = await tenant.until("copy-0", "TooLarge", REPORTED_WITHIN_MS);
    assert.match(status.conditions[0].message, /has 60000 keys, and .*limits\.keysPerSource.*split it/);
  },
};
