/**
 * The dashboard and the alerts, on the metrics of a controller that has done real work: each metric, label and value exists, and each
 * alert fires once. Prometheus' own code parses and evaluates the expressions.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { freePorts } from "../control-plane/ports.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Fleet } from "../controller/fleet.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { configFile, installReloader, removeReloader } from "../controller/reloader.ts";
import { accessKeySpec, createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { checkRules, evaluate, type Scrape, type Selector, selectorsOf, usePromql } from "../promql/promql.ts";

interface Alert {
  alert: string;
  expr: string;
  for?: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}
interface Panel {
  title: string;
  type: string;
  targets?: { expr: string; legendFormat: string }[];
}

const root = join(import.meta.dirname, "..", "..");
const read = (...path: string[]) => readFile(join(root, ...path), "utf8");
/** Prometheus adds these labels to each series of a target. */
const OF_TARGET = ["job", "instance", "namespace", "pod"];
const STEP = 60;
const HOUR = 3_600;
/** The scrapes begin late enough for every time that an alert looks back. */
const START = 1_800_000_000;

/** What a page of metrics has: names with the values of each label. */
function seriesOf(page: string): Map<string, Map<string, Set<string>>> {
  const found = new Map<string, Map<string, Set<string>>>();
  for (const [, name = "", labels = ""] of page.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/gm)) {
    const own = found.get(name) ?? new Map<string, Set<string>>();
    found.set(name, own);
    for (const [, label = "", value = ""] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      own.set(label, (own.get(label) ?? new Set()).add(value));
  }
  // A counter with labels has no series before it counts, but its type is known.
  for (const [, name = ""] of page.matchAll(/^# TYPE (\S+) /gm)) if (!found.has(name)) found.set(name, new Map());
  return found;
}

describe("the dashboard and the alerts", function () {
  this.timeout("2m");
  let replica: ControllerProcess;
  let team: TestNamespace;
  let alerts: Alert[];
  /** The page of a controller whose bindings are in sync, and of one with a binding and connections that are not. */
  let healthy: string;
  let troubled: string;
  let debug: string;

  /** Reasons have a page of their own. */
  const reasons = new Set(["True", "False", "Unknown"]);

  before(async () => {
    for (const page of ["troubleshooting.md", "reference/rollouts.md"])
      for (const [, reason = ""] of (await read("docs", page)).matchAll(/^(?:### |\| `)(\w+)/gm)) reasons.add(reason);
    const rules = await read("deploy", "chart", "files", "alerts.yaml");
    alerts = (parse(rules) as { groups: { rules: Alert[] }[] }).groups.flatMap((group) => group.rules);
    await usePromql();
    await installReloader();
    const [metricsPort, debugPort] = await freePorts(2);
    const ports = ["--metrics-port", `${metricsPort}`, "--debug-port", `${debugPort}`];
    replica = new ControllerProcess(
      controlPlane(),
      "--leader-elect",
      "--config",
      await configFile({ namespaces: ["*"] }),
      ...ports,
    );
    await replica.start();
    team = await createNamespace({ controller: false });
    const fleet = new Fleet(team, 3);
    await fleet.launch();
    await fleet.rotate();
    await fleet.inStep();
    // The metrics count the bindings as the controller last observed them, which includes its own last write a moment later.
    await eventually(async () => {
      await replica.idle();
      healthy = await replica.page("/metrics");
      assert.doesNotMatch(healthy, /^inlay_bindings\{ready="(?:False|Unknown)".*\} [1-9]/m);
    });
    await team.bind("lacks", { ...accessKeySpec(), sources: [{ name: "bucket", secret: { name: "missing" } }] });
    const spec = { address: "https://vault.example.com:8200", auth: { kubernetes: { role: "r" } }, paths: ["kv/*"] };
    const kind = { apiVersion: "inlay.dev/v1alpha1", kind: "VaultConnection" };
    await team.api.create(team.path("inlay.dev/v1alpha1", "vaultconnections"), {
      ...kind,
      metadata: { name: "main" },
      spec,
    });
    await eventually(async () => {
      troubled = await replica.page("/metrics");
      assert.match(troubled, /^inlay_bindings\{ready="False",reason="SourceNotFound"\} 1$/m);
      assert.match(troubled, /^inlay_vault_connections\{state="not_ready"\} 1$/m);
    });
    debug = await (await fetch(`http://127.0.0.1:${debugPort}/debug`)).text();
  });
  after(async () => {
    await replica.stop();
    await removeReloader();
  });

  /** What is wrong with the selectors of expressions: names, labels and values that no scrape and no list in the documentation has. */
  async function unknownIn(expressions: readonly string[]): Promise<string[]> {
    const documented = await read("docs", "reference", "metrics.md");
    const live = seriesOf(troubled);
    const wrongIn = ({ metric, matchers, grouping }: Selector): string[] => {
      if (metric === "up") return [];
      const own = live.get(metric);
      if (own === undefined) return [`${metric} does not exist`];
      const base = metric.replace(/_(bucket|count|sum)$/, "");
      const row = documented.split("\n").find((line) => line.startsWith("|") && line.includes(`\`${base}\``)) ?? "";
      const isLabel = (name: string) =>
        own.has(name) ||
        row
          .split("|")[2]
          ?.split(",")
          .some((each) => each.trim() === name);
      const labels = [...grouping, ...matchers.map(({ name }) => name)].filter((name) => !OF_TARGET.includes(name));
      const values = matchers.flatMap(({ name, value }) =>
        OF_TARGET.includes(name) ? [] : value.split("|").map((each) => ({ name, each })),
      );
      return [
        ...labels.filter((name) => !isLabel(name) && name !== "le").map((name) => `${metric} has no label ${name}`),
        ...values
          .filter(
            ({ name, each }) => !own.get(name)?.has(each) && !row.includes(`\`${each}\``) && !isReason(name, each),
          )
          .map(({ name, each }) => `${metric}: ${name} is never ${each}`),
      ];
    };
    const all = await selectorsOf(expressions);
    return all.flatMap(({ result, error }, at) => result?.flatMap(wrongIn) ?? [`${error}: ${expressions[at]}`]);
  }
  const isReason = (label: string, value: string) => ["reason", "ready"].includes(label) && reasons.has(value);

  it("show only metrics, labels and values that exist, in every panel", async () => {
    const { panels, schemaVersion, templating } = JSON.parse(await read("deploy", "chart", "files", "dashboard.json"));
    assert.ok(schemaVersion >= 41);
    const variables: string[] = templating.list.map(({ name }: { name: string }) => name);
    const targets = (panels as Panel[]).flatMap(({ targets = [], title }) =>
      targets.map((each) => ({ ...each, title })),
    );
    assert.ok(targets.length > 40);
    const expressions = targets.map(({ expr }) =>
      expr.replaceAll("$__rate_interval", "5m").replaceAll("$namespace", ".*"),
    );
    for (const [at, expr] of expressions.entries()) assert.doesNotMatch(expr, /\$/, targets[at]?.title);
    assert.deepEqual(variables, ["datasource", "namespace"]);
    assert.deepEqual(await unknownIn(expressions), []);
    // A legend shows only labels that the expression keeps.
    const selected = await selectorsOf(expressions);
    for (const [at, { legendFormat, expr }] of targets.entries())
      for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        const isKept = (selected[at]?.result ?? []).some(({ grouping }) => grouping.includes(label));
        assert.ok(isKept || (OF_TARGET.includes(label) && !/\bby\b/.test(expr)), `${expr}: ${label}`);
      }
  });

  it("reports a metric, a label and a value that do not exist", async () => {
    const wrong = ["inlay_nothing", "sum by (colour) (inlay_bindings)", 'inlay_watch_streams{state="gone"}', "sum("];
    const found = await unknownIn(wrong);
    assert.deepEqual(found.slice(0, 3), [
      "inlay_nothing does not exist",
      "inlay_bindings has no label colour",
      "inlay_watch_streams: state is never gone",
    ]);
    assert.match(found[3] ?? "", /parse error/);
  });

  it("are rules that Prometheus loads, each with a severity, texts and a runbook that exists", async () => {
    const { result, error } = (await checkRules(await read("deploy", "chart", "files", "alerts.yaml"))) ?? {};
    assert.equal(error, undefined);
    assert.equal(result, alerts.length);
    const headings = [...(await read("docs", "runbooks.md")).matchAll(/^### (\w+)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(
      alerts.map(({ alert }) => alert),
      headings,
    );
    for (const { alert, labels, annotations } of alerts) {
      assert.match(labels["severity"] ?? "", /^(critical|warning|info)$/);
      assert.ok(annotations["summary"] && annotations["description"], alert);
      assert.equal(annotations["runbook_url"], `docs/runbooks.md#${alert.toLowerCase()}`);
    }
    assert.deepEqual(await unknownIn(alerts.map(({ expr }) => expr)), []);
  });

  /** The page with another value of series that it has, or with series that it may have. */
  const withSeries = (page: string, changes: Record<string, number>): string => {
    const known = seriesOf(page);
    const kept = page
      .split("\n")
      .filter((line) => !Object.keys(changes).some((series) => line.startsWith(`${series} `)));
    for (const series of Object.keys(changes)) assert.ok(known.has(series.split("{")[0] ?? ""), series);
    return [...kept, ...Object.entries(changes).map(([series, value]) => `${series} ${value}`), ""].join("\n");
  };

  /** When each alert fires, in seconds since the first scrape: its expression had a value at each step for the time of `for`. */
  async function firesAt(
    cases: readonly { alert: Alert; scrapes: readonly Scrape[] }[],
  ): Promise<(number | undefined)[]> {
    const end = START + 2 * HOUR;
    const all = await evaluate(
      cases.map(({ alert, scrapes }) => ({ expr: alert.expr, scrapes, start: START, end, step: STEP })),
    );
    return all.map(({ result = [], error }, nth) => {
      assert.equal(error, undefined);
      const wait = secondsOf(cases[nth]?.alert.for);
      const firsts = result.flatMap(({ times }) => {
        let since = Number.NaN;
        for (const [at, time] of times.entries()) {
          if (at === 0 || time - (times[at - 1] ?? 0) > STEP) since = time;
          if (time - since >= wait) return [time - START];
        }
        return [];
      });
      return firsts.length === 0 ? undefined : Math.min(...firsts);
    });
  }

  /** The lines of a page about the metrics of an expression, and one more, because a page without lines counts as down. */
  const linesFor = ({ expr }: Alert, page: string): string => {
    const names = new Set([...expr.matchAll(/[a-z_]\w+/g)].map(([name]) => name).concat("process_start_time_seconds"));
    return `${page
      .split("\n")
      .filter((line) => names.has(/^(?:# TYPE )?(\w+)/.exec(line)?.[1] ?? ""))
      .join("\n")}\n`;
  };

  /** The scrapes of two hours. `page` gets the number of the scrape. */
  const scrapesOf = (page: (at: number) => string): Scrape[] =>
    Array.from({ length: (2 * HOUR) / STEP + 1 }, (_, at) => ({
      at: START + at * STEP,
      instance: "pod",
      text: page(at),
    }));

  /** The page is a fixed text, so a certificate that expires in a year seen from now is moved to the time of the scrapes. */
  const EXPIRY = "inlay_metrics_certificate_expiry_timestamp_seconds";
  const valid = (page: string) => withSeries(page, { [EXPIRY]: START + 300 * 24 * HOUR });

  it("are silent while all is well", async () => {
    const all = alerts.map((alert) => {
      const page = linesFor(alert, valid(healthy));
      return { alert, scrapes: scrapesOf(() => page) };
    });
    const fired = await firesAt(all);
    assert.deepEqual(
      alerts.filter((_, at) => fired[at] !== undefined).map(({ alert }) => alert),
      [],
    );
  });

  it("are silent while a rollout continues, or waits as its binding or the configuration says", async () => {
    const waits = ["RollingOut", "Debounce", "MinInterval", "MaxConcurrent", "OutsideWindow", "Suspended"];
    const series = Object.fromEntries(waits.map((reason) => [`inlay_rollouts_pending{reason="${reason}"}`, 1]));
    const alert = alerts.find((each) => each.alert === "InlayRolloutStuck") ?? assert.fail();
    const page = withSeries(linesFor(alert, healthy), series);
    assert.deepEqual(await firesAt([{ alert, scrapes: scrapesOf(() => page) }]), [undefined]);
  });

  /** The series of each alert. Those without series are in that state for real. A function gets the number of the scrape. */
  const TROUBLE: Record<string, Record<string, number | ((at: number) => number)> | "live" | "down"> = {
    InlayDown: "down",
    InlayAbsent: "down",
    InlayNoLeader: { 'leader_election_master_status{name="inlay-controller"}': 0 },
    InlayInstallationIncomplete: { 'inlay_installation_problems{check="policies"}': 2 },
    InlayReconcileErrors: { 'controller_runtime_reconcile_errors_total{controller="secretbinding"}': (at) => at },
    InlayReconcileStuck: {
      'workqueue_longest_running_processor_seconds{name="secretbinding",controller="secretbinding"}': (at) => at * STEP,
    },
    InlayQueueBacklog: { 'workqueue_depth{name="secretbinding",controller="secretbinding",priority="change"}': 40 },
    InlaySlowPropagation: {
      'inlay_propagation_seconds_bucket{le="60"}': (at) => 10 * at,
      'inlay_propagation_seconds_bucket{le="300"}': (at) => 100 * at,
      'inlay_propagation_seconds_bucket{le="+Inf"}': (at) => 100 * at,
    },
    InlayWatchSilent: { 'inlay_watch_last_event_age_seconds{resource="inlay.dev/secretbindings"}': (at) => at * STEP },
    InlayWatchesNotOpen: { 'inlay_watch_streams{state="waiting"}': 3 },
    InlayWritesFail: { 'inlay_writes_total{verb="apply",outcome="no_answer"}': (at) => at },
    InlayCertificateExpires: { [EXPIRY]: START + 6 * 24 * HOUR },
    InlayBindingsNotReady: "live",
    InlayBindingsPending: { 'inlay_bindings{ready="Unknown",reason="Pending"}': 3 },
    InlayCompositionRefused: { 'inlay_compositions{ready="False",reason="InvalidComposition"}': 1 },
    InlayCompositionNotReady: { 'inlay_composition_bindings{composition="harbor",state="not_ready"}': 1 },
    InlayReloaderListsRefused: { 'inlay_reloader_refused_lists{resource="apps/deployments"}': 2 },
    InlayVaultNotReady: "live",
    InlayVaultLoginsFail: { 'inlay_vault_logins_total{outcome="failure"}': (at) => at },
    // A refused restart.
    InlayRolloutStuck: { 'inlay_rollouts_pending{reason="Forbidden"}': 1 },
    InlayRolloutsFail: { inlay_rollout_failures_total: (at) => (at < 10 ? 0 : 1) },
    InlayRestartsALot: { inlay_rollout_restarts_total: (at) => 10 * at },
    InlayNotificationsLost: { 'inlay_notifications_total{receiver="ops",result="failed"}': (at) => (at < 10 ? 0 : 1) },
    InlayTenantLimited: { 'inlay_tenant_limited_total{limit="bindingBytes"}': (at) => (at < 10 ? 0 : 1) },
    InlayTenantThrottled: { 'inlay_tenant_limited_total{limit="processor"}': (at) => 100 * at },
  };

  it("fire once in the state that they are for, and not before their time", async () => {
    assert.deepEqual(
      Object.keys(TROUBLE),
      alerts.map(({ alert }) => alert),
    );
    const all = alerts.map((alert) => {
      const trouble = TROUBLE[alert.alert] ?? assert.fail(alert.alert);
      const page = linesFor(alert, valid(trouble === "live" ? troubled : healthy));
      const pageAt = (at: number): string => {
        if (trouble === "down") return "";
        if (trouble === "live") return page;
        const values = Object.entries(trouble).map(([series, value]) => [
          series,
          typeof value === "number" ? value : value(at),
        ]);
        return withSeries(page, Object.fromEntries(values));
      };
      return { alert, scrapes: scrapesOf(pageAt) };
    });
    for (const [at, fired] of (await firesAt(all)).entries()) {
      const { alert } = all[at] ?? assert.fail();
      assert.ok(fired !== undefined, `${alert.alert} does not fire`);
      assert.ok(fired >= secondsOf(alert.for), `${alert.alert} fires after ${fired} s`);
    }
  });

  it("are beside a debug state that shows the bindings, the queue and the watches, and no value", () => {
    assert.deepEqual(foundIn(debug), []);
    const state = JSON.parse(debug);
    assert.equal(state.leading, true);
    const own = state.controllers.find(({ name }: { name: string }) => name === "secretbinding");
    const bindings = new Map<string, Record<string, unknown>>(
      own.bindings.map((each: { key: string }) => [each.key, each]),
    );
    assert.equal(bindings.get(`${team.namespace}/harbor-0`)?.["reason"], "Synced");
    assert.match(String(bindings.get(`${team.namespace}/harbor-0`)?.["upToDateFor"]), /^[0-9a-f]{12}$/);
    assert.equal(bindings.get(`${team.namespace}/lacks`)?.["reason"], "SourceNotFound");
    assert.equal(own.queue.concurrency, 32);
    assert.ok(
      state.watches.some(
        ({ phase, stream }: Record<string, string>) => phase === "synced" && stream?.includes(team.namespace),
      ),
    );
    assert.ok(state.memory.rss > 1_000_000);
  });
});

function secondsOf(duration = "0s"): number {
  const [, number = "0", unit = "s"] = /^(\d+)([smh])$/.exec(duration) ?? [];
  return Number(number) * ({ s: 1, m: 60, h: HOUR }[unit] ?? 1);
}
