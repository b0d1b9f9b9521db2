/** ConfigMaps with as many keys as the API server accepts. managedFields list each key, which costs far more parsed than as text. */
import assert from "node:assert/strict";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import type { TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const CONFIG_MAPS = 100;
/** The most sources of a binding. */
const SOURCES = 16;
const BY_NAME = 12 * SOURCES;
const KEYS = 60_000;
const COPIES = 30;
const REPORTED_WITHIN_MS = 60_000;
const AT_ONCE = 2;

const manyKeysOf = (): AnyObject => ({
  data: Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`k${n}`, ""])),
});

/** Creates ConfigMaps with these fields. Names are `large-0` and so on. */
export async function configMaps(tenant: TestNamespace, count: number, fields: object): Promise<string[]> {
  const names = Array.from({ length: count }, (_, n) => `large-${n}`);
  for (let from = 0; from < count; from += AT_ONCE) {
    const create = (name: string) => {
      const metadata = { ...(fields as AnyObject).metadata, name };
      return tenant.api.create(tenant.path("v1", "configmaps"), { ...fields, metadata });
    };
    await Promise.all(names.slice(from, from + AT_ONCE).map(create));
  }
  return names;
}

/** Binds ConfigMaps, some in each binding, to the restart of a workload, for which Inlay reads their values. */
export async function bindAll(tenant: TestNamespace, names: readonly string[]): Promise<void> {
  const labels = { app: "app" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "app" }] } };
  const spec = { replicas: 0, selector: { matchLabels: labels }, template };
  await tenant.api.create(tenant.path("apps/v1", "deployments"), { metadata: { name: "app" }, spec });
  for (let from = 0; from < names.length; from += SOURCES) {
    const sources = names.slice(from, from + SOURCES).map((name) => ({ configMap: { name } }));
    const targets = [{ apiVersion: "apps/v1", kind: "Deployment", name: "app" }];
    await tenant.bind(`large-${from}`, { sources, targets: [], rollout: { targets } });
  }
}

/** Permission to read these ConfigMaps only, so that each needs a stream of its own. */
export async function readByName(tenant: TestNamespace, resourceNames: string[]): Promise<void> {
  await tenant.createAccount();
  const verbs = ["get", "list", "watch"];
  const rules = [{ apiGroups: [""], resources: ["configmaps"], resourceNames, verbs }, ...READ.slice(1)];
  await tenant.grant(rules, { role: "attack" });
}

export const manyKeys: Attack = {
  tenant: `${CONFIG_MAPS} ConfigMaps of ${KEYS} keys`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    const names = await configMaps(tenant, sized(CONFIG_MAPS, scale), manyKeysOf());
    await bindAll(tenant, names.slice(0, 1));
  },
};

export const manyKeysByName: Attack = {
  tenant: `${BY_NAME} ConfigMaps of ${KEYS} keys as sources, each allowed by its name`,
  async launch(tenant, scale) {
    const names = await configMaps(tenant, sized(BY_NAME, scale), manyKeysOf());
    await readByName(tenant, names);
    await bindAll(tenant, names);
  },
  async isReported(tenant) {
    await eventually(async () => {
      const { status } = await tenant.binding("large-0");
      const rolledOut = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
      assert.equal(rolledOut?.reason, "TooLarge");
      assert.match(rolledOut.message, /has 60000 keys, and .*limits\.keysPerSource.*split it/);
    }, REPORTED_WITHIN_MS);
  },
};

export const copiedKeys: Attack = {
  tenant: `${COPIES} copies of a ConfigMap of ${KEYS} keys`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    const writes = { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] };
    await tenant.grant([...READ, writes], { role: "attack" });
    const path = tenant.path("v1", "configmaps");
    await tenant.api.create(path, { ...manyKeysOf(), metadata: { name: "many" } });
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
