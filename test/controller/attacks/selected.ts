/** Bindings that select thousands of objects, name many long paths there, and so compete with each other on every object. */
import assert from "node:assert/strict";
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import type { TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const OBJECTS = 5_000;
const BINDINGS = 20;
/** The most that a binding of this size may select, because it writes at most 50,000 fields. */
const GROUP = 750;
/** The most fields of a target, and characters of a path, that the schema accepts. */
const FIELDS = 64;
const PATH_CHARACTERS = 512;
const EDITS = 5;
const REPORTED_WITHIN_MS = 180_000;

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

const longPath = (end: string) => `data${".a".repeat(Math.floor((PATH_CHARACTERS - `data.${end}`.length) / 2))}.${end}`;

/** Names paths that differ at their end from those of other bindings and edits. */
const specOf = (matchLabels: object, n: number, edit: number) => ({
  sources: [{ secret: { name: "none" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      selector: { matchLabels },
      fields: numbers(FIELDS).map((field) => ({
        path: longPath(`f${field}-${n}-${edit}`),
        from: { source: "none", key: "key" },
      })),
    },
  ],
});

const create = (tenant: TestNamespace, count: number) =>
  mapConcurrent(numbers(count), async (n) => {
    const labels = { selected: "all", group: n < GROUP ? "first" : "others" };
    await tenant.api.create(tenant.path("v1", "configmaps"), { metadata: { name: `selected-${n}`, labels } });
  });

export const selectedClaims: Attack = {
  tenant: `${BINDINGS} bindings with ${FIELDS} long paths for each of ${GROUP} ConfigMaps`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    await create(tenant, sized(OBJECTS, scale));
    await tenant.bind("all", specOf({ selected: "all" }, 0, 0));
    const bindings = numbers(sized(BINDINGS, scale));
    for (const n of bindings) await tenant.bind(`first-${n}`, specOf({ group: "first" }, n, 0));
    for (let edit = 1; edit <= EDITS; edit++)
      for (const n of bindings) await tenant.rebind(`first-${n}`, specOf({ group: "first" }, n, edit));
  },
  async isReported(tenant, scale) {
    await tenant.until("first-0", "SourceNotFound", REPORTED_WITHIN_MS);
    if (sized(OBJECTS, scale) * FIELDS <= 50_000) return;
    const { status } = await tenant.until("all", "InvalidBinding", REPORTED_WITHIN_MS);
    assert.match(JSON.stringify(status), /writes \d+ fields of selected objects.*split the binding/);
  },
};
