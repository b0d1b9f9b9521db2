/** Which workloads no PodDisruptionBudget keeps from losing all of their pods at once. */
import assert from "node:assert/strict";
import type { Dependent } from "../../../../src/api/rollout.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { Client } from "../../../../src/kube/client.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { unbudgeted } from "../../../../src/rollout/decide/disruption-budgets.ts";

const ACCOUNT = serviceAccountIdentity("shop", "inlay");

const workload = (name: string, labels: Record<string, string>, { isMany = true, namespace = "shop" } = {}) =>
  ({ ref: { name, namespace }, workload: { labels, ...(isMany && { isMany }) } }) as unknown as Dependent;

/** The names of those without, and the namespaces that were asked. */
async function without(budgets: Record<string, unknown[]>, ...dependents: Dependent[]) {
  const asked: string[] = [];
  const client = {
    async *list(_: unknown, __: unknown, namespace: string) {
      asked.push(namespace);
      for (const selector of budgets[namespace] ?? []) yield [{ spec: { selector } }];
    },
  } as unknown as Client;
  const found = await unbudgeted(client, ACCOUNT, dependents);
  return { names: found.map(({ ref }) => ref.name), asked };
}

describe("a workload of more than one replica", () => {
  const [web, db] = [workload("web", { app: "web" }), workload("db", { app: "db", tier: "data" })];

  it("has a budget if one selects its pods, by labels or expressions, also by an empty selector", async () => {
    const tier = { matchExpressions: [{ key: "tier", operator: "Exists" }] };
    const names = async (...selectors: unknown[]) => (await without({ shop: selectors }, web, db)).names;
    assert.deepEqual(await names(), ["web", "db"]);
    assert.deepEqual(await names({ matchLabels: { app: "web" } }), ["db"]);
    assert.deepEqual(await names(tier), ["web"]);
    assert.deepEqual(await names({ matchLabels: { app: "web" } }, tier), []);
    assert.deepEqual(await names({}), []);
    assert.deepEqual(await names(undefined), ["web", "db"]);
  });

  it("is asked about once for each namespace, and one of a single replica not at all", async () => {
    const other = workload("other", { app: "web" }, { namespace: "other" });
    const many = await without({ other: [{ matchLabels: { app: "web" } }] }, web, db, other);
    assert.deepEqual(many, { names: ["web", "db"], asked: ["shop", "other"] });
    assert.deepEqual(await without({}, workload("one", { app: "one" }, { isMany: false })), { names: [], asked: [] });
  });

  it("is not taken to be without where that can't be known", async () => {
    const refused = new ApiError("LIST /apis/policy/v1", 403, "Forbidden");
    const client = {
      // biome-ignore lint/correctness/useYield: it fails before the first page
      async *list() {
        throw refused;
      },
    } as unknown as Client;
    await assert.rejects(unbudgeted(client, ACCOUNT, [web]), { name: "Problem", reason: "Forbidden" });
  });
});
