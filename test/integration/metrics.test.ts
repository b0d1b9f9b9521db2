/** Shows which metrics and health the leader and the standby serve, and who may read them. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Agent, request } from "undici";
import { freePorts } from "../control-plane/ports.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Fleet } from "../controller/fleet.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { paste } from "../controller/paste.ts";
import { CONTROLLER, loggedUntilNow } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const OWN = 'controller="secretbinding"';

describe("the health port", function () {
  this.timeout("1m");
  const ports: number[] = [];
  const replicas: ControllerProcess[] = [];
  let fleet: Fleet;
  let begun: number;

  before(async () => {
    await stopSharedController();
    ports.push(...(await freePorts(2)));
    for (const port of ports) {
      const replica = new ControllerProcess(controlPlane(), "--leader-elect", "--health-port", String(port));
      replicas.push(replica);
      await replica.start();
      if (replicas.length === 1) await eventually(() => assert.match(replica.output, /"msg":"leading"/));
    }
    fleet = new Fleet(await createNamespace({ controller: false }), 5);
    begun = performance.now();
    await fleet.launch();
    await fleet.rotate();
    await fleet.inStep();
  });
  after(() => Promise.all(replicas.map((replica) => replica.stop())));

  const ask = async (path: string, port = ports[0]) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, type: answer.headers.get("content-type") ?? "", text: await answer.text() };
  };
  const samples = async (port?: number) => {
    const { text } = await ask("/metrics", port);
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
  };

  it("reports both replicas as live and ready, because the standby can take over", async () => {
    for (const port of ports) {
      await eventually(async () => assert.deepEqual((await ask("/readyz", port)).text, "ok\n"));
      assert.equal((await ask("/livez", port)).status, 200);
    }
  });

  it("reports what the leader did, in the text format of Prometheus", async () => {
    const { status, type, text } = await ask("/metrics");
    assert.equal(status, 200);
    assert.match(type, /^text\/plain; version=0\.0\.4/);
    for (const line of text.split("\n").filter((each) => each !== "")) {
      assert.match(line, /^(# (HELP|TYPE) \S+ .+|[a-zA-Z_:][\w:]*(\{[^{}]*\})? (NaN|[-+]?(Inf|\d[\d.e+-]*)))$/);
    }
    const values = await samples();
    const many = (name: string, least: number) =>
      assert.ok((values.get(name) ?? 0) >= least, `${name} is ${values.get(name)}`);
    many(`controller_runtime_reconcile_total{${OWN},result="success"}`, 10);
    many(`controller_runtime_reconcile_time_seconds_count{${OWN}}`, 10);
    many(`workqueue_adds_total{name="secretbinding",${OWN}}`, 10);
    many('inlay_writes_total{verb="apply",outcome="accepted"}', 10);
    many("inlay_propagation_seconds_count", 5);
    many('inlay_watch_streams{state="synced"}', 4);
    // The reconcile for the last change may still be under way.
    const depth = `workqueue_depth{name="secretbinding",${OWN},priority="change"}`;
    await eventually(async () => assert.equal((await samples()).get(depth), 0));
    assert.equal(values.get('leader_election_master_status{name="inlay-controller"}'), 1);
    const age = values.get('inlay_watch_last_event_age_seconds{resource="inlay.dev/secretbindings"}');
    assert.ok(age !== undefined && age >= 0 && age < (performance.now() - begun) / 1_000, `${age}`);
    assert.ok((values.get("inlay_propagation_seconds_sum") ?? 0) > 0);
    many("process_resident_memory_bytes", 1_000_000);
  });

  it("reports that a standby does nothing", async () => {
    const values = await samples(ports[1]);
    assert.equal(values.get('leader_election_master_status{name="inlay-controller"}'), 0);
    assert.equal(values.get('inlay_watch_streams{state="pending"}'), 0);
    assert.equal(values.get(`controller_runtime_reconcile_total{${OWN},result="success"}`), 0);
    assert.ok(![...values.keys()].some((name) => name.startsWith("inlay_writes_total")));
  });

  it("contains no value and no name of an object, whatever path is requested", async () => {
    for (const path of ["/metrics", "/readyz", "/livez", "/", "/debug", "/metrics?x"]) {
      const { text } = await ask(path);
      assert.deepEqual(foundIn(text), []);
      for (const name of [fleet.team.namespace, ...fleet.names]) assert.ok(!text.includes(name), `${path}: ${name}`);
    }
  });

  it("contains the same number of series after more bindings are created", async () => {
    const before = [...(await samples()).keys()].filter((name) => !name.startsWith("nodejs_"));
    const more = new Fleet(await createNamespace({ controller: false }), 5);
    await more.launch();
    const after = [...(await samples()).keys()].filter((name) => !name.startsWith("nodejs_"));
    assert.deepEqual(after.sort(), before.sort());
  });
});

describe("the metrics port", function () {
  this.timeout("1m");
  const REVIEWS = "authentication.k8s.io/tokenreviews";
  /** The certificate is self-signed, so the client does not verify it. */
  const agent = new Agent({ connections: 32, connect: { rejectUnauthorized: false } });
  let team: TestNamespace;
  let port = 0;
  let replica: ControllerProcess;
  const tokens: string[] = [];

  before(async () => {
    await stopSharedController();
    [port = 0] = await freePorts(1);
    replica = new ControllerProcess(controlPlane(), "--metrics-port", String(port));
    await replica.start();
    team = await createNamespace({ controller: false });
  });
  after(async () => {
    await replica.stop();
    await agent.close();
    for (const token of tokens) assert.ok(!replica.output.includes(token));
  });

  /** Creates an account in the namespace, with a token like the tokens of pods. */
  const account = async (name: string): Promise<string> => {
    const accounts = team.path("v1", "serviceaccounts");
    await team.api.create(accounts, { metadata: { name } });
    const { status } = await team.api.create(`${accounts}/${name}/token`, { spec: {} });
    tokens.push(status.token);
    return status.token;
  };
  /** Runs the command of docs/reference/metrics.md. */
  const allow = async (name: string) => {
    const { namespace } = team;
    const page = await readFile(join(import.meta.dirname, "..", "..", "docs", "reference", "metrics.md"), "utf8");
    const command = /^kubectl create clusterrolebinding inlay-metrics .*$/m.exec(page)?.[0] ?? assert.fail();
    await paste(
      command.replace("inlay-metrics ", `${namespace} `).replace("monitoring:prometheus", `${namespace}:${name}`),
    );
    const user = `system:serviceaccount:${namespace}:${name}`;
    const spec = { user, nonResourceAttributes: { path: "/metrics", verb: "get" } };
    await eventually(async () => {
      const { status } = await team.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", { spec });
      assert.equal(status.allowed, true);
    });
    return () => team.api.delete(`/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/${namespace}`);
  };
  const scrape = async (token?: string, path = "/metrics") => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await request(`https://127.0.0.1:${port}${path}`, { dispatcher: agent, headers });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const reviews = async (mark: number) => {
    await loggedUntilNow(team);
    const isReview = ({ user, resource }: AnyObject) => user === CONTROLLER && resource === REVIEWS;
    return (await auditLog().since(mark)).filter(isReview).length;
  };

  it("shows the metrics only to an account that may get them", async () => {
    const [scraper, other] = [await account("scraper"), await account("other")];
    const forbid = await allow("scraper");
    try {
      for (const token of [undefined, "made-up", `${scraper}x`]) assert.equal((await scrape(token)).status, 401);
      assert.equal((await scrape(other)).status, 403);
      const { status, text } = await scrape(scraper);
      assert.equal(status, 200);
      assert.match(text, /^controller_runtime_reconcile_total\{/m);
      assert.deepEqual(foundIn(text), []);
      for (const path of ["/", "/readyz", "/metrics/x"]) assert.equal((await scrape(scraper, path)).status, 404);
      await assert.rejects(fetch(`http://127.0.0.1:${port}/metrics`), "the port answers plain HTTP");
    } finally {
      await forbid();
    }
  });

  it("asks the API server once about a known token, and limits reviews of unknown tokens, so that a flood does not block a scraper", async () => {
    const scraper = await account("steady");
    const forbid = await allow("steady");
    try {
      assert.equal((await scrape(scraper)).status, 200);
      const mark = await auditLog().mark();
      for (const token of [scraper, "unknown"]) await Promise.all(Array.from({ length: 20 }, () => scrape(token)));
      assert.equal(await reviews(mark), 1);
      const flood = Array.from({ length: 300 }, (_, n) => scrape(`made-up-${n}`));
      assert.equal((await scrape(scraper)).status, 200);
      const statuses = Map.groupBy(await Promise.all(flood), ({ status }) => status);
      assert.deepEqual([...statuses.keys()].sort(), [401, 429]);
      assert.equal(await reviews(mark), 1 + (statuses.get(401)?.length ?? 0));
    } finally {
      await forbid();
    }
  });
});
