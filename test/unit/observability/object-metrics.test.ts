/** The counts of bindings, compositions and connections, and their bounds. */
import assert from "node:assert/strict";
import { Registry } from "prom-client";
import { MAX_NAMED, ObjectMetrics, OTHERS, type Readiness } from "../../../src/observability/metrics.ts";

const SYNCED = { status: "True", reason: "Synced" };

/** The samples of one scrape, without comments. */
async function scrape(observe: (metrics: ObjectMetrics) => void): Promise<string[]> {
  const registry = new Registry();
  observe(new ObjectMetrics(registry));
  return (await registry.metrics()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

/** Connections of one namespace; the first is the oldest. */
const connections = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    labels: { connection_namespace: "vaults", connection: `c${at}` },
    createdAt: new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString(),
    ready: 2,
    notReady: 1,
  }));

describe("the metrics of objects", () => {
  it("count bindings by their condition Ready", async () => {
    const all: Readiness[] = [SYNCED, SYNCED, { status: "False", reason: "KeyNotFound" }, undefined];
    assert.deepEqual(await scrape((metrics) => metrics.observeBindings(() => all)), [
      'inlay_bindings{ready="True",reason="Synced"} 2',
      'inlay_bindings{ready="False",reason="KeyNotFound"} 1',
      'inlay_bindings{ready="Unknown",reason="Pending"} 1',
    ]);
  });

  it("show no text that a user wrote into the status", async () => {
    const all = Array.from({ length: 50 }, (_, at) => ({
      status: at % 2 ? "False" : "made-up",
      reason: `made-up-${at}`,
    }));
    const samples = await scrape((metrics) => metrics.observeBindings(() => all));
    assert.deepEqual(samples, ['inlay_bindings{ready="Unknown",reason="Other"} 50']);
  });

  it("count the bindings of each composition, and the compositions by their condition Ready", async () => {
    const harbor = { labels: { composition: "harbor" }, createdAt: "", ready: 3, notReady: 1 };
    const all = [{ ...harbor, is: { status: "False", reason: "BindingsNotReady" } }];
    assert.deepEqual(await scrape((metrics) => metrics.observeCompositions(() => all)), [
      'inlay_compositions{ready="False",reason="BindingsNotReady"} 1',
      'inlay_composition_bindings{composition="harbor",state="ready"} 3',
      'inlay_composition_bindings{composition="harbor",state="not_ready"} 1',
    ]);
  });

  it(`name the ${MAX_NAMED} oldest connections, and count all others together`, async () => {
    const samples = await scrape((metrics) => metrics.observeConnections(() => connections(5_000).reverse()));
    assert.equal(samples.length, 2 * (MAX_NAMED + 1));
    assert.ok(
      samples.includes(
        'inlay_vault_connection_bindings{connection_namespace="vaults",connection="c99",state="ready"} 2',
      ),
    );
    assert.ok(!samples.some((each) => each.includes('connection="c100"')));
    const others = `inlay_vault_connection_bindings{connection_namespace="${OTHERS}",connection="${OTHERS}",state="ready"} 9800`;
    assert.ok(samples.includes(others));
  });
});
