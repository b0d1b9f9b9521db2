/** The metrics and their names, which dashboards and alerts use. */
import assert from "node:assert/strict";
import { type MetricSources, Metrics } from "../../../src/observability/metrics.ts";

const QUEUE = { concurrency: 16, depths: { change: 0, resync: 0, retry: 0 }, running: [] as number[] };

/** The queue of a controller without work. */
function started(sources: Partial<MetricSources> = {}, queue = QUEUE) {
  const metrics = new Metrics();
  const controllers = () => [{ name: "secretbinding", queue }];
  metrics.observe({ controllers, watches: () => [], leading: () => undefined, ...sources });
  return { metrics, hooks: metrics.queueHooks("secretbinding") };
}
const WORK = '{name="secretbinding",controller="secretbinding"}';

/** The samples of a scrape, by name and labels. */
async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
}

const namesIn = async (metrics: Metrics) =>
  [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);

describe("the metrics", () => {
  it("have the names that controllers in Go use, and a few of their own", async () => {
    const { metrics } = started();
    metrics.observeRollouts(() => new Map());
    metrics.vault.observeConnections(() => []);
    assert.deepEqual((await namesIn(metrics)).sort(), [
      "controller_runtime_active_workers gauge",
      "controller_runtime_max_concurrent_reconciles gauge",
      "controller_runtime_reconcile_errors_total counter",
      "controller_runtime_reconcile_time_seconds histogram",
      "controller_runtime_reconcile_total counter",
      "inlay_notifications_total counter",
      "inlay_propagation_seconds histogram",
      "inlay_rollout_failures_total counter",
      "inlay_rollout_restarts_total counter",
      "inlay_rollout_seconds histogram",
      "inlay_rollouts_pending gauge",
      "inlay_tenant_limited_total counter",
      "inlay_vault_connections gauge",
      "inlay_vault_logins_total counter",
      "inlay_vault_read_seconds histogram",
      "inlay_vault_requests_total counter",
      "inlay_watch_last_event_age_seconds gauge",
      "inlay_watch_restarts_total counter",
      "inlay_watch_streams gauge",
      "inlay_writes_total counter",
      "leader_election_master_status gauge",
      "workqueue_adds_total counter",
      "workqueue_depth gauge",
      "workqueue_longest_running_processor_seconds gauge",
      "workqueue_queue_duration_seconds histogram",
      "workqueue_retries_total counter",
      "workqueue_unfinished_work_seconds gauge",
      "workqueue_work_duration_seconds histogram",
    ]);
  });

  it("include those of the process when they are served", async () => {
    const { metrics } = started();
    metrics.collectProcess();
    const names = (await namesIn(metrics)).join();
    for (const name of ["process_resident_memory_bytes", "process_cpu_seconds_total", "nodejs_eventloop_lag_seconds"])
      assert.ok(names.includes(name), name);
  });

  it("count the reconciles of the queue by result", async () => {
    const { metrics, hooks } = started();
    for (const result of ["never", "backoff", "after", "error"] as const) {
      hooks.added();
      hooks.started(0.2);
      hooks.ended(2, result);
    }
    hooks.retried();
    const samples = await scrape(metrics);
    for (const result of ["success", "requeue", "requeue_after", "error"]) {
      const name = `controller_runtime_reconcile_total{controller="secretbinding",result="${result}"}`;
      assert.equal(samples.get(name), 1, result);
    }
    assert.equal(samples.get('controller_runtime_reconcile_errors_total{controller="secretbinding"}'), 1);
    assert.equal(samples.get(`workqueue_adds_total${WORK}`), 4);
    assert.equal(samples.get(`workqueue_retries_total${WORK}`), 1);
    assert.equal(samples.get(`workqueue_queue_duration_seconds_sum${WORK}`), 0.8);
    assert.equal(samples.get(`workqueue_work_duration_seconds_sum${WORK}`), 8);
    assert.equal(samples.get('controller_runtime_reconcile_time_seconds_count{controller="secretbinding"}'), 4);
  });

  it("show the present state of queue, streams and lease", async () => {
    const synced = { phase: "synced", resource: "secrets", interruptedSeconds: 0 };
    const watches = () => [
      { ...synced, quietSeconds: 3 },
      { ...synced, quietSeconds: 50 },
      { ...synced, quietSeconds: 40, interruptedSeconds: 2 },
      { ...synced, phase: "failed", quietSeconds: 1_000, interruptedSeconds: 900 },
    ];
    const queue = { ...QUEUE, depths: { change: 2, resync: 7, retry: 1 }, running: [1, 4] };
    const { metrics } = started({ watches, leading: () => true }, queue);
    metrics.observeRollouts(() => new Map([["OutsideWindow", 2]]));
    const samples = await scrape(metrics);
    const own = '{controller="secretbinding"}';
    const depth = (lane: string) =>
      `workqueue_depth{name="secretbinding",controller="secretbinding",priority="${lane}"}`;
    const expected = {
      [depth("change")]: 2,
      [depth("resync")]: 7,
      [depth("retry")]: 1,
      [`workqueue_unfinished_work_seconds${WORK}`]: 5,
      [`workqueue_longest_running_processor_seconds${WORK}`]: 4,
      [`controller_runtime_active_workers${own}`]: 2,
      [`controller_runtime_max_concurrent_reconciles${own}`]: 16,
      'inlay_watch_streams{state="synced"}': 2,
      'inlay_watch_streams{state="failed"}': 1,
      'inlay_watch_streams{state="pending"}': 0,
      'inlay_watch_streams{state="interrupted"}': 1,
      'inlay_watch_last_event_age_seconds{resource="secrets"}': 50,
      'inlay_rollouts_pending{reason="OutsideWindow"}': 2,
      'leader_election_master_status{name="inlay-controller"}': 1,
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(samples.get(name), value, name);
  });

  it("count restarts and writes, and measure the propagation of changes", async () => {
    const { metrics } = started();
    metrics.watchRestarted("secrets", "expired");
    metrics.wrote("apply", "accepted");
    metrics.wrote("apply", "conflict");
    metrics.propagated(0.03);
    const samples = await scrape(metrics);
    assert.equal(samples.get('inlay_watch_restarts_total{resource="secrets",reason="expired"}'), 1);
    assert.equal(samples.get('inlay_writes_total{verb="apply",outcome="accepted"}'), 1);
    assert.equal(samples.get('inlay_writes_total{verb="apply",outcome="conflict"}'), 1);
    assert.equal(samples.get('inlay_propagation_seconds_bucket{le="0.025"}'), 0);
    assert.equal(samples.get('inlay_propagation_seconds_bucket{le="0.05"}'), 1);
  });

  it("count requests to Vault, and show how many VaultConnections are ready", async () => {
    const { metrics } = started();
    const { vault } = metrics;
    vault.requested("data", "200");
    vault.requested("data", "timeout");
    vault.loggedIn("success");
    vault.readSeconds(0.03);
    const connections = ["ready", "not_ready", "ready"] as const;
    vault.observeConnections(() => connections);
    const expected = {
      'inlay_vault_requests_total{operation="data",code="200"}': 1,
      'inlay_vault_requests_total{operation="data",code="timeout"}': 1,
      'inlay_vault_logins_total{outcome="success"}': 1,
      inlay_vault_read_seconds_count: 1,
      'inlay_vault_connections{state="ready"}': 2,
      'inlay_vault_connections{state="not_ready"}': 1,
      'inlay_vault_connections{state="pending"}': 0,
    };
    // Scraped twice, because a gauge must not add up.
    await scrape(metrics);
    const samples = await scrape(metrics);
    for (const [name, value] of Object.entries(expected)) assert.equal(samples.get(name), value, name);
  });
});
