/** Claims of a composition that a platform has: how many there are, and how large their fields are, is up to the tenant. */
import assert from "node:assert/strict";
import { controlPlane } from "../../control-plane/shared.ts";
import { type AnyObject, Api } from "../api.ts";
import { compose, compositionPath, installCompositions, READS_SECRETS, removeCompositions } from "../compositions.ts";
import { eventually } from "../eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../kinds.ts";
import type { TestNamespace } from "../test-namespace.ts";
import { type Attack, sized } from "./attack.ts";

const SERVICES: Kind = {
  group: "claims.example.com",
  kind: "Service",
  plural: "services",
  spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
};
const AT_ONCE = 8;
const REPORTED_WITHIN_MS = 60_000;
const CLAIMS = 60;
const TARGETS = 20_000;
const LARGE_CLAIMS = 400;
const TEXT_LENGTH = 1_000_000;
/** More than the default of limits.claimsPerNamespace. */
const MANY_CLAIMS = 10_200;
const KINDS = { Deployment: "Deployment" };

const isListed = (map: object) => [{ type: "map", map }];

/** Restarts the workloads that a claim lists, when its Secret changes, and copies the claim's text. */
const BINDINGS = [
  {
    name: "restarts",
    base: { spec: { sources: [{ name: "bucket", secret: { name: "bucket" } }], targets: [], rollout: {} } },
    patches: [
      {
        fromFieldPath: "spec.workloads",
        toFieldPath: "spec.rollout.targets",
        transforms: [
          {
            type: "forEach",
            forEach: {
              fields: [
                { fromFieldPath: "name" },
                { fromFieldPath: "kind", transforms: isListed(KINDS) },
                { fromFieldPath: "kind", toFieldPath: "apiVersion", transforms: isListed({ Deployment: "apps/v1" }) },
              ],
            },
          },
        ],
      },
      { fromFieldPath: "spec.note", toFieldPath: "metadata.annotations[example.com/note]" },
    ],
  },
];

/** Tenants for whom the kind and the account of compositions are installed. */
let tenants = 0;

const platform: Pick<Attack, "prepare" | "end"> = {
  async prepare(tenant) {
    const api = new Api(controlPlane());
    if (tenants++ === 0) {
      await installKind(api, SERVICES);
      await installCompositions([mayWrite(SERVICES), READS_SECRETS]);
    }
    await compose(tenant, "services", {
      for: { apiVersion: apiVersionOf(SERVICES), kind: "Service", namespaceSelector: { names: [tenant.namespace] } },
      bindings: BINDINGS,
    });
    return undefined;
  },
  async end({ api, namespace }) {
    if (--tenants === 0) await removeCompositions();
    await api.remove(objectPath(SERVICES, namespace));
  },
};

async function claim({ api, namespace }: TestNamespace, count: number, spec: object): Promise<void> {
  const names = Array.from({ length: count }, (_, n) => `claim-${n}`);
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop())
        await createObject(api, SERVICES, name, spec, namespace);
    }),
  );
}

export const manyTargets: Attack = {
  tenant: `${CLAIMS} claims that list ${TARGETS} workloads to restart`,
  ...platform,
  async launch(tenant, scale) {
    const workloads = Array.from({ length: TARGETS }, (_, n) => ({ kind: "Deployment", name: `w-${n}` }));
    await claim(tenant, sized(CLAIMS, scale), { workloads });
  },
  isReported: (tenant) => untilReported(tenant, "InvalidValue"),
};

export const largeClaims: Attack = {
  tenant: `${LARGE_CLAIMS} claims with a text of ${TEXT_LENGTH} characters`,
  ...platform,
  async launch(tenant, scale) {
    await claim(tenant, sized(LARGE_CLAIMS, scale), { workloads: [], note: "x".repeat(TEXT_LENGTH) });
  },
  isReported: (tenant) => untilReported(tenant, "TooLarge"),
};

export const manyClaims: Attack = {
  tenant: `${MANY_CLAIMS} claims in one namespace`,
  ...platform,
  async launch(tenant, scale) {
    await claim(tenant, sized(MANY_CLAIMS, scale), { workloads: [] });
  },
  async isReported(tenant, scale) {
    if (scale >= 1) await untilReported(tenant, "LimitExceeded");
  },
};

/** Waits until the status of the composition, and an event on a claim, have that reason. */
async function untilReported(tenant: TestNamespace, reason: string): Promise<void> {
  await eventually(async () => {
    const { status } = await tenant.api.get(compositionPath(tenant, "services"));
    assert.ok(
      status?.problems?.some((each: AnyObject) => each.reason === reason),
      JSON.stringify(status),
    );
    const { items } = await tenant.api.get(tenant.path("events.k8s.io/v1", "events"));
    assert.ok(items.some((each: AnyObject) => each.reason === reason && each.regarding.kind === SERVICES.kind));
  }, REPORTED_WITHIN_MS);
}
