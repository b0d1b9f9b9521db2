/** Bindings that are nearly as large as the API server accepts, and bindings whose status does not fit. */
import assert from "node:assert/strict";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const LARGE = 280;
/** The most that the schema accepts of a template, and of the fields of a target. */
const TEMPLATE_CHARACTERS = 16 * 1024;
const FIELDS = 64;
const LARGE_FIELDS = 87;
const REPORTED_WITHIN_MS = 180_000;

const TARGET = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" };

const textField = (n: number) => ({ path: `spec.f${n}`, template: "x".repeat(TEMPLATE_CHARACTERS) });

/** A spec of so many fields of 16 KiB. */
function specOf(fields: number): object {
  const all = Array.from({ length: fields }, (_, n) => textField(n));
  const targets = Array.from({ length: Math.ceil(fields / FIELDS) }, (_, n) => ({
    ...TARGET,
    name: `harbor-${n}`,
    fields: all.slice(n * FIELDS, (n + 1) * FIELDS),
  }));
  return { suspend: true, sources: [{ secret: { name: "none" } }], targets };
}

export const largeBindings: Attack = {
  tenant: `${LARGE} suspended bindings of 1.4 MB`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    const spec = specOf(LARGE_FIELDS);
    for (let n = 0; n < sized(LARGE, scale); n++) await tenant.bind(`large-${n}`, spec);
  },
  async isReported(tenant, scale) {
    const last = `large-${sized(LARGE, scale) - 1}`;
    const { status } = await tenant.until(last, "TooLarge", REPORTED_WITHIN_MS);
    const ready = status.conditions.find(({ type }: AnyObject) => type === "Ready");
    assert.match(ready.message, /^the binding has 1,4\d\d KiB .*at most 1,024 KiB .*split it/);
    // A smaller binding is reconciled.
    await tenant.rebind(last, specOf(1));
    await tenant.until(last, "Suspended");
    await tenant.unbind("large-0");
  },
};

const MANY = 80;
const MANY_FIELDS = 50;
/** How many of them have room in 32 MiB. */
const FIT = 40;

export const manyBytes: Attack = {
  tenant: `${MANY} suspended bindings of 0.8 MB`,
  async launch(tenant) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    const spec = specOf(MANY_FIELDS);
    for (let n = 0; n < MANY; n++) await tenant.bind(`many-${n}`, spec);
  },
  async isReported(tenant) {
    await eventually(async () => {
      const { items } = await tenant.api.get(tenant.path("inlay.dev/v1alpha1", "secretbindings"));
      const reasons = items.map(({ status }: AnyObject) => status?.conditions?.[0]?.reason);
      const count = (reason: string) => reasons.filter((each: string) => each === reason).length;
      assert.deepEqual([count("Suspended"), count("TooLarge")], [FIT, MANY - FIT]);
    }, REPORTED_WITHIN_MS);
  },
};

const WITHOUT_ROOM = 20;
/** Together with the templates of the binding, the paths of so many keys exceed the limit. */
const KEYS = 20_000;
const TEMPLATES = 55;

export const statusesWithoutRoom: Attack = {
  tenant: `${WITHOUT_ROOM} bindings whose status does not fit`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    const writes = { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] };
    await tenant.grant([...READ, writes], { role: "attack" });
    const path = tenant.path("v1", "configmaps");
    const data = Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`key-${n}`, ""]));
    await tenant.api.create(path, { metadata: { name: "from" }, data });
    for (let n = 0; n < sized(WITHOUT_ROOM, scale); n++) {
      await tenant.api.create(path, { metadata: { name: `to-${n}` } });
      const to = { apiVersion: "v1", kind: "ConfigMap", name: `to-${n}` };
      const fields = Array.from({ length: TEMPLATES }, (_, at) => ({ ...textField(at), path: `data.t${at}` }));
      await tenant.bind(`no-room-${n}`, {
        sources: [{ configMap: { name: "from" } }],
        targets: [
          { ...to, fields: [{ path: "data", from: { source: "from" } }] },
          { ...to, name: "none", fields },
        ],
      });
    }
  },
  async isReported(tenant) {
    const { status } = await tenant.until("no-room-0", "TooLarge", REPORTED_WITHIN_MS);
    assert.match(status.conditions[0].message, /^the status can't be written: with it, the binding has 1,\d\d\d KiB/);
    assert.ok((await tenant.events("no-room-0")).some(({ reason }) => reason === "TooLarge"));
    // Nothing is written that the status does not announce.
    const { data = {} } = await tenant.api.get(`${tenant.path("v1", "configmaps")}/to-0`);
    assert.deepEqual(data, {});
  },
};
