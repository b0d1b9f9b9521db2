/** Bindings that fail and recover all the time, and record an event each time. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import { secretText } from "../leak-detector.ts";
import { createNamespace, type TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const BINDINGS = 1_500;
const FLAPS = 20;
const PAUSE_MS = 1_000;
/** An event of another namespace waits for a few of these. */
const WRITTEN_WITHIN_MS = 15_000;

const HARBOR = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor" };

/** Takes a key that all bindings need from their source, or adds it again. */
const flap = (tenant: TestNamespace, n: number) =>
  tenant.api.merge(`${tenant.path("v1", "configmaps")}/flapping`, { data: { key: n % 2 === 0 ? "value" : null } });

export const flappingBindings: Attack = {
  tenant: `${BINDINGS} bindings that fail again and again`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "reader" });
    await tenant.api.create(tenant.path("v1", "configmaps"), {
      metadata: { name: "flapping" },
      data: { key: "value" },
    });
    await tenant.harbor();
    const bindings = Array.from({ length: sized(BINDINGS, scale) }, (_, n) => n);
    await mapConcurrent(bindings, async (n) => {
      const path = `metadata.annotations["flapping.example.com/n${n}"]`;
      await tenant.bind(`b-${n}`, {
        sources: [{ configMap: { name: "flapping" } }],
        targets: [{ ...HARBOR, fields: [{ path, from: { source: "flapping", key: "key" } }] }],
      });
    });
    for (let n = 0; n < FLAPS; n++) {
      await flap(tenant, n);
      await sleep(PAUSE_MS);
    }
  },
  async isReported(tenant) {
    let isOver = false;
    const flapping = (async () => {
      for (let n = 0; !isOver; n++) {
        await flap(tenant, n);
        await sleep(PAUSE_MS);
      }
    })();
    try {
      const other = await createNamespace({ controller: false });
      await other.boundHarbor();
      await other.secret("bucket", { accessKeyID: secretText("access") });
      const path = 'metadata.annotations["flapping.example.com/broken"]';
      await other.bind("broken", {
        sources: [{ secret: { name: "none" } }],
        targets: [{ ...HARBOR, fields: [{ path, from: { source: "none", key: "key" } }] }],
      });
      await eventually(async () => {
        const { items } = await other.api.get(other.path("events.k8s.io/v1", "events"));
        const types = items.map(({ type }: AnyObject) => type);
        assert.ok(types.includes("Normal") && types.includes("Warning"), types.join());
      }, WRITTEN_WITHIN_MS);
    } finally {
      isOver = true;
      await flapping;
    }
  },
};
