/** SecretGrants without number, and many that finalizers keep. Each reconcile compared all of them with each source. */
import assert from "node:assert/strict";
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import type { TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";
import { READ } from "./permissions.ts";

const GRANTS = 10_000;
const IN_DELETION = 2_000;
const BINDINGS = 40;
const SOURCES = 16;
/** More than the limit of a namespace. */
const LEAST = 1_100;
const REPORTED_WITHIN_MS = 60_000;

const TYPE = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretGrant" };
const FINALIZER = "example.com/keep";

const secrets = (bindings: number) =>
  Array.from({ length: bindings }, (_, b) => Array.from({ length: SOURCES }, (_, s) => `s-${b}-${s}`));

/** A binding of fields from each of these sources, which need a grant of their own namespace. */
async function bind(tenant: TestNamespace, name: string, sources: readonly string[]): Promise<void> {
  const fieldOf = (source: string) => ({
    path: `metadata.annotations["grants.example.com/${name}-${source}"]`,
    from: { source, key: "key" },
  });
  await tenant.bind(name, {
    sources: sources.map((each) => ({ secret: { name: each, granted: true } })),
    targets: [
      { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor", fields: sources.map(fieldOf) },
    ],
  });
}

const grantOf = (tenant: TestNamespace, name: string, secret: string, more: object = {}) =>
  tenant.api.create(tenant.path("inlay.dev/v1alpha1", "secretgrants"), {
    ...TYPE,
    metadata: { name, ...more },
    spec: { from: [{ namespace: tenant.namespace }], to: [{ kind: "Secret", name: secret }] },
  });

async function haveReason(tenant: TestNamespace, reason: string): Promise<void> {
  const path = tenant.path("inlay.dev/v1alpha1", "secretbindings");
  await eventually(async () => {
    const { items } = await tenant.api.get(path);
    const reasons = items.map(({ status }: AnyObject) => status?.conditions?.[0]?.reason ?? "none");
    assert.deepEqual([...new Set(reasons)], [reason]);
  }, REPORTED_WITHIN_MS);
}

export const manyGrants: Attack = {
  tenant: `${GRANTS} SecretGrants and ${BINDINGS} bindings that need one for each source`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "reader" });
    await tenant.harbor();
    await mapConcurrent(secrets(sized(BINDINGS, scale)), (names) => bind(tenant, names[0] as string, names));
    const grants = Array.from({ length: Math.max(LEAST, sized(GRANTS, scale)) }, (_, n) => n);
    await mapConcurrent(grants, (n) => grantOf(tenant, `grant-${n}`, `other-${n}`));
  },
  isReported: (tenant) => haveReason(tenant, "LimitExceeded"),
};

export const grantsInDeletion: Attack = {
  tenant: `${IN_DELETION} SecretGrants that finalizers keep`,
  async launch(tenant, scale) {
    await tenant.createAccount();
    await tenant.grant(READ, { role: "reader" });
    const [first = []] = secrets(1);
    await tenant.harbor();
    await mapConcurrent(first, (name) => tenant.secret(name, {}));
    const grants = Array.from({ length: sized(IN_DELETION, scale) }, (_, n) => n);
    const finalizers = [FINALIZER];
    await mapConcurrent(grants, (n) => grantOf(tenant, `g-${n}`, first[n % SOURCES] as string, { finalizers }));
    await tenant.api.delete(tenant.path("inlay.dev/v1alpha1", "secretgrants"));
    const bindings = Array.from({ length: BINDINGS }, (_, n) => n);
    await mapConcurrent(bindings, (n) => bind(tenant, `b-${n}`, first));
  },
  isReported: (tenant) => haveReason(tenant, "NotGranted"),
};
