/** Workloads whose pods refer to very many objects. */
import assert from "node:assert/strict";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import { installReloader, removeReloader } from "../reloader.ts";
import type { TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const DEPLOYMENTS = 60;
const REFERENCES = 20_000;
const REPORTED_WITHIN_MS = 60_000;

/** No controller of the cluster creates their pods. */
async function deploy(tenant: TestNamespace, scale: number, annotations: Record<string, string> = {}): Promise<void> {
  const envFrom = Array.from({ length: REFERENCES }, (_, n) => ({ secretRef: { name: `s${n}`, optional: true } }));
  const labels = { app: "many" };
  const containers = [{ name: "app", image: "app", envFrom }];
  const spec = {
    replicas: 0,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers } },
  };
  const path = tenant.path("apps/v1", "deployments");
  for (let n = 0; n < sized(DEPLOYMENTS, scale); n++)
    await tenant.api.create(path, { metadata: { name: `many-${n}`, annotations }, spec });
}

const CONSUMED = { sources: [{ secret: { name: "s0" } }], targets: [], rollout: { consumersOf: ["s0"] } };

export const consumersOfMany: Attack = {
  tenant: `${DEPLOYMENTS} Deployments of ${REFERENCES} envFrom, and a binding for their consumers`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    await tenant.secret("s0", { key: "value" });
    await tenant.bind("consumers", CONSUMED);
    await deploy(tenant, scale);
  },
  async isReported(tenant) {
    await eventually(async () => {
      const { status } = await tenant.binding("consumers");
      const rolledOut = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
      assert.equal(rolledOut?.reason, "TooLarge", JSON.stringify(status));
      assert.match(
        rolledOut.message,
        /Deployment [^ ]*\/many-0.*limits\.referencesPerWorkload.*spec\.rollout\.targets/,
      );
    }, REPORTED_WITHIN_MS);
  },
};

export const annotatedMany: Attack = {
  tenant: `${DEPLOYMENTS} Deployments of ${REFERENCES} envFrom with Reloader's annotation`,
  async prepare(tenant) {
    await installReloader();
    return { reloader: { namespaces: [tenant.namespace] } };
  },
  launch: (tenant, scale) => deploy(tenant, scale, { "reloader.stakater.com/auto": "true" }),
  async isReported(tenant) {
    await eventually(async () => {
      const events = await tenant.events("many-0");
      assert.ok(
        events.some(({ reason }) => reason === "TooLarge"),
        JSON.stringify(events),
      );
    }, REPORTED_WITHIN_MS);
  },
  end: removeReloader,
};
