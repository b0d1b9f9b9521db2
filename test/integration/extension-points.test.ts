/**
 * The parts of a new store and of a new controller. This test has one of each, in Inlay's own manager. The store
 * is polled, and the kind of the controller is cluster-scoped. Besides CRD, policy and docs, a shipped source is a new file
 * in src/sources/ and a line in registry.ts. A shipped controller is new files in src/controllers/, a line in
 * start-controller.ts, and its kind in resources.ts.
 */
import assert from "node:assert/strict";
import { explain } from "../../src/explain/explain.ts";
import { Reader } from "../../src/explain/reading.ts";
import { loadCredentials } from "../../src/kube/credentials.ts";
import { Discovery } from "../../src/kube/discovery.ts";
import { Transport } from "../../src/kube/transport.ts";
import { SOURCE_KINDS } from "../../src/sources/registry.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { createObject, installKind, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";
import { bindingOf, clusterThings, FINALIZER } from "../extension/cluster-thing.ts";
import { CounterServer, counterKind, INTERVAL_MS, SHORTEST_INTERVAL_MS } from "../extension/counter.ts";
import { ExtendedManager, USER } from "../extension/extended-manager.ts";

const OWN = 'controller="clusterthing"';
const BINDINGS = 'controller="secretbinding"';

describe("the extension points", function () {
  this.timeout("1m");
  let api: Api;
  let server: CounterServer;
  let manager: ExtendedManager;
  let began: number;

  before(async () => {
    await stopSharedController();
    api = new Api(controlPlane());
    began = await auditLog().mark();
    server = await CounterServer.start();
    SOURCE_KINDS.push(counterKind(server.url));
    manager = await ExtendedManager.start();
  });
  after(async () => {
    manager.things.release();
    await manager.stop();
    await manager.remove();
    SOURCE_KINDS.pop();
    server.stop();
  });

  const ownRequests = async (team: Pick<TestNamespace, "api" | "namespace">, mark: number) => {
    await loggedUntilNow(team);
    return (await auditLog().since(mark)).filter(({ user }) => user === USER);
  };
  const watched = async () => {
    await loggedUntilNow({ api, namespace: "default" });
    const all = (await auditLog().watchesSince(began)).filter(({ user }) => user === USER);
    return { all, open: all.filter(({ open }) => open) };
  };

  describe("a controller that is added to the manager", () => {
    const thingPath = (name: string) => objectPath(clusterThings, undefined, name);
    const createThing = (team: TestNamespace, name: string, spec: object = {}) =>
      createObject(api, clusterThings, name, { namespace: team.namespace, secret: "bucket", key: "access", ...spec });
    const until = (name: string, reason: string): Promise<AnyObject> =>
      eventually(async () => {
        const thing = await api.get(thingPath(name));
        const [ready] = thing.status?.conditions ?? [];
        assert.equal(ready?.reason, reason, JSON.stringify(thing.status));
        assert.equal(ready.observedGeneration, thing.metadata.generation);
        return thing;
      });
    const remove = async (...names: string[]) => {
      await Promise.all(names.map((name) => api.delete(thingPath(name))));
      for (const name of names) await eventually(async () => assert.equal(await api.find(thingPath(name)), undefined));
    };
    /** A namespace with a Secret and a HarborCluster. */
    const newTeam = async () => {
      const team = await createNamespace({ controller: false });
      const [access, other] = [secretText("access"), secretText("other")];
      await team.secret("bucket", { access, other });
      await team.harbor();
      return { team, access, other };
    };

    it("is shown while another replica leads, and does nothing", async () => {
      // The replica is ready once it has read the Lease.
      for (const path of ["/livez", "/readyz"])
        await eventually(async () => assert.deepEqual(await manager.page(path), { status: 200, text: "ok\n" }));
      const { text } = await manager.page("/metrics");
      for (const name of ["clusterthing", "secretbinding", "reloader"]) {
        const labels = `name="${name}",controller="${name}"`;
        for (const line of [
          `workqueue_depth{${labels},priority="change"} 0`,
          `workqueue_adds_total{${labels}} 0`,
          `controller_runtime_active_workers{controller="${name}"} 0`,
          `controller_runtime_reconcile_total{controller="${name}",result="success"} 0`,
        ])
          assert.ok(text.includes(`\n${line}\n`), line);
      }
      assert.deepEqual((await watched()).all, []);
    });

    it("keeps the replica unready while its kind is not served", async () => {
      await manager.lead();
      await eventually(async () =>
        assert.deepEqual(await manager.page("/readyz"), {
          status: 503,
          text: "failed: test.inlay.dev/clusterthings\n",
        }),
      );
      await installKind(api, clusterThings);
      await eventually(async () => assert.deepEqual(await manager.page("/readyz"), { status: 200, text: "ok\n" }));
      const age = 'inlay_watch_last_event_age_seconds{resource="test.inlay.dev/clusterthings"}';
      assert.ok((await manager.page("/metrics")).text.includes(age));
    });

    it("creates a binding for a cluster-scoped object, and writes one status", async () => {
      const { team, access } = await newTeam();
      const mark = await auditLog().mark();
      const { metadata } = await createThing(team, "one");
      const { metadata: now } = await until("one", "Ready");
      await eventually(async () => assert.equal((await team.s3()).accesskey, access));
      const binding = await team.binding(bindingOf("one"));
      assert.deepEqual(
        binding.metadata.ownerReferences.map(({ kind, uid }: AnyObject) => `${kind} ${uid}`),
        [`ClusterThing ${metadata.uid}`],
      );
      assert.deepEqual(now.finalizers, [FINALIZER]);
      // Its watch shows a later object after all events of this one.
      await createThing(team, "later");
      await until("later", "Ready");
      const writes = (await ownRequests(team, mark)).filter(
        ({ verb, name }) => ["create", "update", "patch", "delete"].includes(verb) && name === "one",
      );
      assert.deepEqual(
        writes.map(({ verb, resource, code }) => `${verb} ${resource} ${code}`),
        ["patch test.inlay.dev/clusterthings 200", "update test.inlay.dev/clusterthings/status 200"],
      );
      assert.ok((await manager.metric("controller_runtime_reconcile_total", `${OWN},result="success"`)) > 0);
      assert.equal(await manager.metric("controller_runtime_reconcile_errors_total", OWN), 0);
      await remove("one", "later");
    });

    it("follows a change of the object, and repairs a binding that is edited or deleted", async () => {
      const { team, access, other } = await newTeam();
      await createThing(team, "two");
      await eventually(async () => assert.equal((await team.s3()).accesskey, access));
      const keyOf = ({ spec }: AnyObject) => spec.targets[0].fields[0].from.key;
      await api.merge(thingPath("two"), { spec: { key: "other" } });
      await eventually(async () => assert.equal((await team.s3()).accesskey, other));
      await until("two", "Ready");
      const { metadata, spec } = await team.binding(bindingOf("two"));
      assert.equal(keyOf({ spec }), "other");
      const targets = structuredClone(spec.targets);
      targets[0].fields[0].from.key = "access";
      const { metadata: edited } = await team.rebind(bindingOf("two"), { targets });
      assert.ok(edited.generation > metadata.generation);
      await eventually(async () => assert.equal(keyOf(await team.binding(bindingOf("two"))), "other"));
      const { metadata: repaired } = await team.binding(bindingOf("two"));
      await api.delete(team.bindingPath(bindingOf("two")));
      await eventually(async () => {
        const again = await team.binding(bindingOf("two"));
        assert.notEqual(again.metadata.uid, repaired.uid);
        assert.equal(keyOf(again), "other");
      });
      await remove("two");
    });

    it("deletes the binding of a deleted object before it releases the object, and no other binding", async () => {
      const { team } = await newTeam();
      for (const name of ["three", "four"]) {
        await createThing(team, name);
        await until(name, "Ready");
      }
      const mark = await auditLog().mark();
      await remove("three");
      assert.equal(await api.find(team.bindingPath(bindingOf("three"))), undefined);
      assert.ok(await api.find(team.bindingPath(bindingOf("four"))));
      const isFinalizer = (verb: string, resource: string) =>
        verb === "patch" && resource === "inlay.dev/secretbindings";
      const ended = (await ownRequests(team, mark)).filter(
        ({ verb, code, resource }) =>
          ["delete", "patch"].includes(verb) &&
          code < 300 &&
          !resource.includes("harbor") &&
          !isFinalizer(verb, resource),
      );
      assert.deepEqual(
        ended.map(({ verb, resource, name }) => `${verb} ${resource} ${name}`),
        [`delete inlay.dev/secretbindings ${bindingOf("three")}`, "patch test.inlay.dev/clusterthings three"],
      );
      await remove("four");
    });

    it("reports on a cluster-scoped object why its binding can't be created, as a condition and as events", async () => {
      const { team } = await newTeam();
      await createThing(team, "denied", { account: "unknown" });
      const { metadata } = await until("denied", "Rejected");
      await eventually(async () => {
        const { items } = await api.get("/apis/events.k8s.io/v1/namespaces/default/events");
        const own = items.filter(({ regarding }: AnyObject) => regarding.uid === metadata.uid);
        assert.deepEqual(
          own.map(({ reason, regarding }: AnyObject) => [reason, regarding.kind, regarding.namespace]).sort(),
          [
            ["BindingNotMade", "ClusterThing", undefined],
            ["Rejected", "ClusterThing", undefined],
          ],
        );
      });
      await api.merge(thingPath("denied"), { spec: { account: "inlay" } });
      await until("denied", "Ready");
      await remove("denied");
    });

    it("reconciles one key after the other, and a key waits for no other key", async () => {
      const { team } = await newTeam();
      manager.things.hold("held");
      await createThing(team, "held");
      await eventually(async () => assert.equal(await manager.metric("controller_runtime_active_workers", OWN), 1));
      const names = Array.from({ length: 8 }, (_, i) => `beside-${i}`);
      await Promise.all(names.map((name) => createThing(team, name)));
      for (const name of names) await until(name, "Ready");
      assert.equal((await api.get(thingPath("held"))).metadata.finalizers, undefined);
      manager.things.release();
      await until("held", "Ready");
      await remove("held", ...names);
    });

    it("is named in /livez when it is stuck", async () => {
      const queue = manager.things.queue;
      // Ten minutes are too long for a test.
      Object.defineProperty(queue, "running", { get: () => [601], configurable: true });
      try {
        const text = "stuck: a reconcile of clusterthing has run for 601 s\n";
        assert.deepEqual(await manager.page("/livez"), { status: 503, text });
      } finally {
        Reflect.deleteProperty(queue, "running");
      }
      assert.deepEqual(await manager.page("/livez"), { status: 200, text: "ok\n" });
    });
  });

  describe("a store", () => {
    let team: TestNamespace;
    let shop: Workloads;

    const counterSpec = (name: string, more: object = {}) => ({
      acknowledge: ["ReadableCopies"],
      sources: [{ name: "visits", counter: { name } }],
      targets: [harborTarget({ accesskey: { from: { source: "visits", key: "value" } } })],
      ...more,
    });
    const holds = (value: string) =>
      eventually(async () => assert.equal((await team.s3()).accesskey, value), 5 * INTERVAL_MS);

    before(async () => {
      team = await createNamespace({ controller: false, rules: rolloutRules });
      shop = new Workloads(team);
      await team.harbor();
      await shop.deploy({ web: {} });
    });

    it("writes its value into a field, and the next value when the server has it, without a watch", async () => {
      const value = server.next();
      await team.bind("plain", counterSpec("plain"));
      await holds(value);
      await team.until("plain", "Synced");
      for (let count = 0; count < 2; count++) await holds(server.next());
      const own = (await watched()).all.filter(({ namespace }) => namespace === team.namespace);
      assert.deepEqual([...new Set(own.map(({ resource }) => resource))], ["goharbor.io/harborclusters"]);
    });

    it("is not polled before it is due, however often its bindings are reconciled", async () => {
      const polls = () => server.polls.get("plain")?.length ?? 0;
      const reconciles = () => manager.metric("controller_runtime_reconcile_total", BINDINGS);
      await holds(server.next());
      await team.bind("beside", counterSpec("plain", { targets: [], rollout: ROLLOUT }));
      await shop.rolledOut("beside", 0);
      const [polled, since] = [polls(), performance.now()];
      for (let edit = 0; edit < 20; edit++) {
        const before = await reconciles();
        await api.merge(team.bindingPath("plain"), { metadata: { annotations: { edit: `${edit}` } } });
        await eventually(async () => assert.ok((await reconciles()) > before));
      }
      const intervals = (performance.now() - since) / SHORTEST_INTERVAL_MS;
      assert.ok(polls() - polled <= intervals + 1, `${polls() - polled} polls in ${intervals} intervals`);
      await team.unbind("beside");
    });

    it("is part of the digests of a rollout", async () => {
      await team.unbind("plain");
      await team.bind("rolls", counterSpec("rolls", { rollout: ROLLOUT }));
      const first = await shop.rolledOut("rolls", 0);
      await holds(server.next());
      const second = await shop.rolledOut("rolls", 1);
      const digestOf = ({ status }: AnyObject) => status.rollout.digests["visits/value"];
      assert.ok(digestOf(first) && digestOf(second));
      assert.notEqual(digestOf(second), digestOf(first));
      assert.deepEqual(await shop.restarts(), { web: 1 });
    });

    it("reports why it can't be read, keeps what was written, and recovers", async () => {
      await holds(server.next());
      const { accesskey } = await team.s3();
      server.status = 503;
      const { status } = await team.until("rolls", "Unavailable");
      const [{ message }] = status.conditions;
      assert.match(message, /the server of counter rolls answered 503; check the server\. Inlay retries/);
      assert.equal((await team.s3()).accesskey, accesskey);
      const next = server.next();
      server.status = 200;
      await holds(next);
      await team.until("rolls", "Synced");
    });

    it("is explained by its store", async () => {
      const transport = new Transport(await loadCredentials(controlPlane().kubeconfigFile));
      const tools = { reader: new Reader(transport), discovery: new Discovery(transport) };
      const { sources, advice } = await explain(tools, team.namespace, "rolls");
      await transport.close();
      assert.deepEqual(
        sources.map(({ source, kind, name, store }) => ({ source, kind, name, store })),
        [{ source: "visits", kind: "Counter", name: "rolls", store: { product: "Counters", reads: "counter rolls" } }],
      );
      assert.equal(advice.reason, "Synced");
    });

    it("is not polled for a binding that is suspended or deleted", async () => {
      await team.rebind("rolls", { suspend: true });
      await team.until("rolls", "Suspended");
      const polled = server.polls.get("rolls")?.length;
      await team.bind("last", counterSpec("last", { targets: [harborTarget({ endpoint: { from: FROM } })] }));
      const polls = () => server.polls.get("last")?.length ?? 0;
      await eventually(() => assert.ok(polls() > 2));
      assert.equal(server.polls.get("rolls")?.length, polled);
      await team.unbind("rolls");
      await team.unbind("last");
      // On a busy machine, a request arrives later than it is sent, and the next one does not.
      assert.ok(server.shortestGapMs >= SHORTEST_INTERVAL_MS / 2, `${server.shortestGapMs} ms`);
    });
  });

  describe("a manager that is stopped", () => {
    it("waits for the running reconcile, releases the lease, and ends every watch", async () => {
      const team = await createNamespace({ controller: false });
      manager.things.hold("last");
      await createObject(api, clusterThings, "last", { namespace: team.namespace, secret: "bucket", key: "access" });
      await eventually(async () => assert.equal(await manager.metric("controller_runtime_active_workers", OWN), 1));
      let hasStopped = false;
      const stopped = manager.stop().then(() => {
        hasStopped = true;
      });
      assert.equal((await api.get(objectPath(clusterThings, undefined, "last"))).metadata.finalizers, undefined);
      assert.equal((await manager.page("/readyz")).status, 200);
      assert.ok((await manager.lease).holderIdentity);
      assert.ok(!hasStopped);
      manager.things.release();
      await stopped;
      const { metadata } = await api.get(objectPath(clusterThings, undefined, "last"));
      assert.deepEqual(metadata.finalizers, [FINALIZER]);
      assert.ok(await api.find(team.bindingPath(bindingOf("last"))));
      assert.equal((await manager.lease).holderIdentity, undefined);
      await eventually(async () => assert.deepEqual((await watched()).open, []));
      await api.merge(objectPath(clusterThings, undefined, "last"), { metadata: { finalizers: null } });
    });
  });
});

const FROM = { source: "visits", key: "value" };
const ROLLOUT = { targets: [{ kind: "Deployment", name: "web" }] };
