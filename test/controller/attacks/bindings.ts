/** Bindings that are nearly as large as the API server accepts, and bindings whose status does not fit. */
import assert from "node:assert/strict";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import type { TestNamespace } from "../test-namespace.ts";
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
function specOf(fields: number) {
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
    assert.match(ready.message, /^the binding has 1,[34]\d\d KiB .*at most 512 KiB .*split it/);
    // A smaller binding is reconciled.
    await tenant.rebind(last, specOf(1));
    await tenant.until(last, "Suspended");
    await tenant.unbind("large-0");
  },
};

const MANY = 120;
const MANY_FIELDS = 25;
/** How many of them have room in 32 MiB. */
const FIT = 81;

export const manyBytes: Attack = {
  tenant: `${MANY} suspended bindings of 0.4 MB`,
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
/** With so many full fields, a binding is a little larger than etcd accepts. */
const FULL_FIELDS = 96;
const STEP = 256;

/** Creates a binding with so few characters left in etcd that a status has no room. Returns its spec. */
async function fillUp(tenant: TestNamespace, name: string): Promise<object> {
  for (let characters = TEMPLATE_CHARACTERS; ; characters -= STEP) {
    const spec = { ...specOf(FULL_FIELDS), requireSame: "none.example.com" };
    const [first] = spec.targets;
    assert.ok(first !== undefined && characters > 0);
    first.fields[0] = { path: "spec.f0", template: "x".repeat(characters) };
    try {
      await tenant.bind(name, spec);
      return spec;
    } catch (error) {
      assert.match(String(error), /request is too large/);
    }
  }
}

export const statusesWithoutRoom: Attack = {
  tenant: `${WITHOUT_ROOM} bindings of 1.57 MB whose status does not fit`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    const spec = await fillUp(tenant, "no-room-10");
    for (let n = 1; n < sized(WITHOUT_ROOM, scale); n++) await tenant.bind(`no-room-${10 + n}`, spec);
  },
  async isReported(tenant) {
    await eventually(async () => {
      const events = (await tenant.events("no-room-10")).filter(({ reason }) => reason === "TooLarge");
      assert.equal(events.length, 1);
      assert.match(
        events[0]?.note ?? "",
        /^the status can't be written: .*larger than the API server stores; make the SecretBinding smaller/,
      );
    }, REPORTED_WITHIN_MS);
    await tenant.unbind("no-room-10");
  },
};
