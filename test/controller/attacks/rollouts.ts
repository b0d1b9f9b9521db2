/** Rollouts that look for the consumers of very many objects, and classes that bring very many Secrets to pods. */
import assert from "node:assert/strict";
import type { AnyObject } from "../api.ts";
import { CLASS_GROUP, classVolume, installClasses, newClass } from "../classes.ts";
import { eventually } from "../eventually.ts";
import type { TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const AT_ONCE = 8;
const REPORTED_WITHIN_MS = 60_000;
const SECRETS = 5_000;
/** Bindings that look for them. Each also reads all these Secrets, because they are its targets. */
const LOOKING = 20;
const BINDINGS = 20;
const STEPS = 16;
const WAYS = ["Env", "EnvFrom", "Volume", "Projected"];
const CLASSES = 100;
const WRITTEN = 10_000;

async function each(count: number, work: (n: number) => Promise<unknown>): Promise<void> {
  const left = Array.from({ length: count }, (_, n) => n);
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let n = left.pop(); n !== undefined; n = left.pop()) await work(n);
    }),
  );
}

async function isRolledOutAs(tenant: TestNamespace, reason: string, message: RegExp): Promise<void> {
  await eventually(async () => {
    const { status } = await tenant.binding("consumers-0");
    const rolledOut = status?.conditions?.find(({ type }: AnyObject) => type === "RolledOut");
    assert.equal(rolledOut?.reason, reason, JSON.stringify(status?.conditions));
    assert.match(rolledOut.message, message);
  }, REPORTED_WITHIN_MS);
}

/** Each step looks for other references, so that it shares no lookup. Nothing is written, because there is no such key. */
const MANY_LOOKUPS = {
  sources: [{ secret: { name: "s0" } }],
  targets: [
    {
      apiVersion: "v1",
      kind: "Secret",
      selector: { names: ["s*"] },
      fields: [{ path: "data.x", from: { source: "s0", key: "none" } }],
    },
  ],
  rollout: {
    steps: Array.from({ length: STEPS }, (_, n) => ({
      name: `step-${n}`,
      onFailure: "Continue",
      consumersOf: ["s0"],
      consumersOfTargets: true,
      consumersBy: ["ImagePullSecret", ...WAYS.filter((_, bit) => (n >> bit) % 2 === 1)],
      kinds: ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"],
    })),
  },
};

export const manyLookups: Attack = {
  tenant: `${LOOKING} bindings that look for the consumers of ${SECRETS} Secrets in ${STEPS} steps`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "attack" });
    await each(sized(SECRETS, scale), (n) => tenant.secret(`s${n}`, { key: "value" }));
    await each(LOOKING, (n) => tenant.bind(`consumers-${n}`, MANY_LOOKUPS));
  },
  isReported: (tenant) => isRolledOutAs(tenant, "InvalidBinding", /at most 20,000; list fewer kinds/),
};

export const largeClasses: Attack = {
  tenant: `${CLASSES} SecretProviderClasses that write ${WRITTEN} Secrets, and ${BINDINGS} bindings for the consumers of one`,
  async prepare() {
    await installClasses();
    return undefined;
  },
  async launch(tenant, scale) {
    await tenant.createAccount();
    const classes = { apiGroups: [CLASS_GROUP], resources: ["secretproviderclasses"], verbs: ["list", "watch"] };
    await tenant.grant([...READ, classes], { role: "attack" });
    await tenant.secret("s0", { key: "value" });
    const written = Object.fromEntries(Array.from({ length: WRITTEN }, (_, n) => [`s${n}`, ["key"]]));
    await each(sized(CLASSES, scale), (n) => newClass(tenant, `class-${n}`, written));
    const labels = { app: "mounting" };
    const pods = { containers: [{ name: "app", image: "app" }], volumes: [classVolume("class-0")] };
    await tenant.api.create(tenant.path("apps/v1", "deployments"), {
      metadata: { name: "mounting" },
      spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pods } },
    });
    const binding = { sources: [{ secret: { name: "s0" } }], targets: [], rollout: { consumersOf: ["s0"] } };
    await each(sized(BINDINGS, scale), (n) => tenant.bind(`consumers-${n}`, binding));
  },
  isReported: (tenant, scale) =>
    sized(CLASSES, scale) > 64
      ? isRolledOutAs(tenant, "InvalidBinding", /SecretProviderClasses list more than 1000 Secrets and keys/)
      : isRolledOutAs(
          tenant,
          "TooLarge",
          /Deployment [^ ]*\/mounting refer .*a SecretProviderClass with more than 1000/,
        ),
};
