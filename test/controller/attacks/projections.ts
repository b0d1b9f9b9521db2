/** Bindings that name very many different fields of the same workloads, each of which would need a watch of its own. */
import assert from "node:assert/strict";
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const DEPLOYMENTS = 300;
/** As many as are kept of each. */
const REFERENCES = 1_000;
const STEPS = 16;
const TARGETS_PER_STEP = 64;
const REPORTED_WITHIN_MS = 60_000;

function fatDeployment(n: number): AnyObject {
  const labels = { app: "fat" };
  const envFrom = Array.from({ length: REFERENCES }, (_, s) => ({
    secretRef: { name: `s-${n}-${s}`, optional: true },
  }));
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "app", envFrom }] } };
  return { metadata: { name: `fat-${n}` }, spec: { replicas: 0, selector: { matchLabels: labels }, template } };
}

const restartPath = (n: number) => `metadata.annotations["projections.example.com/restart-${n}"]`;

export const projections: Attack = {
  tenant: `${STEPS * TARGETS_PER_STEP} different restartPath for ${DEPLOYMENTS} Deployments of ${REFERENCES} envFrom`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    await tenant.secret("s", { key: "value" });
    const path = tenant.path("apps/v1", "deployments");
    const all = Array.from({ length: sized(DEPLOYMENTS, scale) }, (_, n) => n);
    await mapConcurrent(all, (n) => tenant.api.create(path, fatDeployment(n)));
    const steps = Array.from({ length: STEPS }, (_, step) => ({
      name: `step-${step}`,
      targets: Array.from({ length: TARGETS_PER_STEP }, (_, n) => ({
        kind: "Deployment",
        name: "fat-0",
        restartPath: restartPath(step * TARGETS_PER_STEP + n),
      })),
    }));
    await tenant.bind("paths", { sources: [{ secret: { name: "s" } }], targets: [], rollout: { steps } });
  },
  async isReported(tenant) {
    await eventually(async () => {
      const { status } = await tenant.binding("paths");
      const rolledOut = status?.conditions?.find(({ type }: AnyObject) => type === "RolledOut");
      assert.equal(rolledOut?.reason, "TooManyWatches", JSON.stringify(status));
      assert.match(rolledOut.message, /different template or restartPath for Deployment/);
    }, REPORTED_WITHIN_MS);
  },
};
