/** Which workloads no PodDisruptionBudget keeps from losing all of their pods at once. */
import assert from "node:assert/strict";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { withoutDisruptionBudget } from "../../../../src/rollout/decide/disruption-budgets.ts";
import type { Dependent } from "../../../../src/rollout/types.ts";
import { fakeClient } from "../../fakes.ts";
import { dependentOf, kubeObjectOf } from "../../objects.ts";

const ACCOUNT = serviceAccountIdentity("shop", "inlay");

const workload = (name: string, labels: Record<string, string>, { isMany = true, namespace = "shop" } = {}) =>
  dependentOf({ ref: { name, namespace }, workload: { labels, ...(isMany && { isMany }) } });

/** The names of the workloads without a budget, and the namespaces whose budgets were read. */
async function without(budgets: Record<string, unknown[]>, ...dependents: Dependent[]) {
  const asked: string[] = [];
  const client = fakeClient({
    async *list(_: unknown, __: unknown, namespace: string) {
      asked.push(namespace);
      for (const selector of budgets[namespace] ?? []) yield [kubeObjectOf({ spec: { selector } })];
    },
  });
  const found = await withoutDisruptionBudget(client, ACCOUNT, dependents);
  return { names: found.without.map(({ ref }) => ref.name), asked };
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

  it("counts as having none if the selectors of a namespace take too long to compare", async () => {
    const values = Array.from({ length: 100_000 }, (_, n) => `v${n}`);
    const long = { matchExpressions: [{ key: "app", operator: "In", values: [...values, "last"] }] };
    const many = Array.from({ length: 300 }, (_, n) => workload(`w-${n}`, { app: "last" }));
    const { length } = (await without({ shop: [long] }, ...many)).names;
    assert.ok(length > 50 && length < 250, `${length}`);
  });

  it("causes one request for each namespace, and one of a single replica causes none", async () => {
    const other = workload("other", { app: "web" }, { namespace: "other" });
    const many = await without({ other: [{ matchLabels: { app: "web" } }] }, web, db, other);
    assert.deepEqual(many, { names: ["web", "db"], asked: ["shop", "other"] });
    assert.deepEqual(await without({}, workload("one", { app: "one" }, { isMany: false })), { names: [], asked: [] });
  });

  it("does not count as having none if the budgets can't be read", async () => {
    const refused = new ApiError("LIST /apis/policy/v1", 403, "Forbidden");
    const client = fakeClient({
      // biome-ignore lint/correctness/useYield: it fails before the first page
      async *list() {
        throw refused;
      },
    });
    await assert.rejects(withoutDisruptionBudget(client, ACCOUNT, [web]), { name: "Problem", reason: "Forbidden" });
  });

  it("waits only in its own namespace if the budgets there can't be read", async () => {
    const client = fakeClient({
      async *list(_: unknown, __: unknown, namespace: string) {
        if (namespace === "closed") throw new ApiError("LIST /apis/policy/v1", 403, "Forbidden");
        yield [];
      },
    });
    const closed = workload("closed", { app: "web" }, { namespace: "closed" });
    const { without, unknown } = await withoutDisruptionBudget(client, ACCOUNT, [closed, web]);
    assert.deepEqual([without, [...unknown.keys()]], [[web], ["closed"]]);
  });
});
