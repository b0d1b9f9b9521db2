/** Workloads by what their pods read: which subscribers see them, and who is called when one of them changes. */
import assert from "node:assert/strict";
import { ReloaderView } from "../../../src/api/reloader.ts";
import { isObject } from "../../../src/apimachinery/json.ts";
import { SetsByKey } from "../../../src/apimachinery/maps.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { projectionFor } from "../../../src/cache/cached-object.ts";
import { Informers } from "../../../src/cache/informers.ts";
import { join, notifyOf, type Stream, subscriberOf } from "../../../src/cache/stream.ts";
import { MAX_PROJECTIONS } from "../../../src/cache/streams.ts";
import {
  type CollectionSubscription,
  type ObjectSubscription,
  projectionKey,
  type Subscription,
  subscriptionKey,
} from "../../../src/cache/subscription.ts";
import type { Watcher } from "../../../src/cache/watcher.ts";
import { CONTROLLER, type Identity, serviceAccountIdentity } from "../../../src/kube/identity.ts";
import type { AnyObject } from "../../controller/api.ts";
import { fakeClock, settled, settledWhen } from "../clock.ts";
import { DEPLOYMENTS } from "../resources.ts";
import { FakeApi } from "./api.ts";
import { apiError } from "./list-watch.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const OTHER = serviceAccountIdentity("registry", "other");
const NAMESPACE = `${ACCOUNT} registry/deployments *`;
const TEMPLATE = "spec.template";

/** As in a list of its kind, where only the list has apiVersion and kind. */
function deployment(name: string, version: number, secrets: string[], more: object = {}): KubeObject {
  const envFrom = secrets.map((secret) => ({ secretRef: { name: secret } }));
  const uid = `uid-${name}`;
  return {
    metadata: { name, namespace: "registry", uid, resourceVersion: String(version), generation: 1 },
    spec: { replicas: 2, template: { spec: { containers: [{ name: "web", envFrom }] } } },
    status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2 },
    ...more,
  } as unknown as KubeObject;
}

const all = (more: Partial<CollectionSubscription> = {}): CollectionSubscription => ({
  identity: ACCOUNT,
  resource: DEPLOYMENTS,
  namespace: "registry",
  labels: "",
  names: undefined,
  workload: { template: TEMPLATE },
  ...more,
});
const consumersOf = (name: string, more: Partial<CollectionSubscription> = {}) =>
  all({ consumersOf: { kind: "Secret", name }, ...more });
const one = (name: string, identity: Identity = ACCOUNT): ObjectSubscription => ({
  identity,
  ref: { resource: DEPLOYMENTS, namespace: "registry", name },
  workload: { template: TEMPLATE },
});

describe("informers of workloads", () => {
  let api: FakeApi;
  let informers: Informers;
  let watcher: Watcher;
  let called: string[];
  let causes: string[];
  beforeEach(() => {
    api = new FakeApi();
    called = [];
    causes = [];
    informers = new Informers(api.transport, api.client, () => {});
    watcher = informers.watcher((key, cause) => {
      called.push(key);
      causes.push(cause);
    });
  });
  afterEach(() => informers.stop());
  const clock = fakeClock();

  async function observe(dependent: string, ...dependencies: Subscription[]): Promise<void> {
    watcher.subscribe(dependent, dependencies);
    await settled();
    await settled();
  }
  const namesOf = (dependent: string, collection: CollectionSubscription) =>
    watcher.list(dependent, collection).members.map(({ name }) => name);

  /** Sends the event, and returns which dependents were called. */
  async function calledFor(type: string, object: KubeObject, stream = NAMESPACE): Promise<string[]> {
    called.length = 0;
    api.streams.get(stream)?.send(type, object);
    await settled();
    return called.toSorted();
  }

  it("show the workloads whose pods read an object, with the facts for rollouts", async () => {
    api.rights.add(NAMESPACE);
    api.objects.set("registry/deployments", [deployment("web", 1, ["bucket"]), deployment("db", 2, ["other"])]);
    await observe("a", consumersOf("bucket"), all(), one("db"));
    assert.deepEqual([api.open, namesOf("a", consumersOf("bucket"))], [[NAMESPACE], ["web"]]);
    assert.deepEqual(namesOf("a", all()), ["web", "db"]);
    const [member] = watcher.list("a", consumersOf("bucket")).members;
    assert.deepEqual(member?.version.workload?.references, [{ kind: "Secret", name: "bucket", by: "envFrom" }]);
    const { version } = watcher.get("a", one("db"));
    assert.deepEqual(Object.keys(version ?? {}), ["uid", "resourceVersion", "generation", "workload"]);
  });

  it("show the names beside a missing workload only to an account that may list the kind", async () => {
    const beside = (identity: Identity) => [...watcher.namesBeside("a", one("wbe", identity))].toSorted();
    api.objects.set("registry/deployments", [deployment("web", 1, []), deployment("db", 2, [])]);
    api.rights.add(NAMESPACE).add(`${OTHER} registry/deployments wbe`);
    await observe("a", one("wbe"), one("wbe", OTHER));
    assert.deepEqual(beside(ACCOUNT), ["db", "web"]);
    // The API server sends no other names in a stream of one name.
    assert.deepEqual(api.open.toSorted(), [NAMESPACE, `${OTHER} registry/deployments wbe`].toSorted());
    const other = { ...one("web"), ref: { resource: DEPLOYMENTS, namespace: "other", name: "web" } };
    assert.deepEqual([...watcher.namesBeside("a", other)], []);
  });

  it("know the kind of a workload, although items of a list do not contain it", async () => {
    api.rights.add(NAMESPACE);
    const status = { observedGeneration: 1, replicas: 2, updatedReplicas: 1, availableReplicas: 2 };
    api.objects.set("registry/deployments", [deployment("web", 1, [], { status })]);
    await observe("a", one("web"));
    assert.equal(watcher.get("a", one("web")).version?.workload?.progress.message, "1 of 2 replicas are updated");
  });

  it("show a workload with too many references as a possible consumer of each object, and keep none of them", async () => {
    informers = new Informers(api.transport, api.client, () => {}, { mostReferences: 3 });
    watcher = informers.watcher((key) => called.push(key));
    api.rights.add(NAMESPACE);
    const many = ["a", "b", "c", "d"];
    api.objects.set("registry/deployments", [deployment("web", 1, many), deployment("db", 2, ["a", "b", "c"])]);
    await observe("a", consumersOf("a"));
    await observe("other", consumersOf("other"));
    await observe("elsewhere", consumersOf("a", { namespace: "elsewhere" }));
    assert.deepEqual(
      [namesOf("a", consumersOf("a")), namesOf("other", consumersOf("other"))],
      [["db", "web"], ["web"]],
    );
    const { workload } = watcher.list("other", consumersOf("other")).members[0]?.version ?? {};
    assert.deepEqual([workload?.references, workload?.hasTooManyReferences], [[], true]);
    assert.deepEqual(await calledFor("MODIFIED", deployment("web", 11, ["b"])), ["a", "other"]);
    assert.deepEqual(namesOf("other", consumersOf("other")), []);
  });

  it("show those that are too large in all streams together as possible consumers of each object, without their facts", async () => {
    api.mayRepeat = true;
    api.rights.add(NAMESPACE);
    const many = Array.from({ length: 45_000 }, (_, n) => `${"s".repeat(240)}${n}`);
    api.objects.set("registry/deployments", [deployment("web", 1, many), deployment("db", 2, ["a"])]);
    const second = consumersOf("a", { workload: { template: TEMPLATE, restart: "spec.restartAt" } });
    await observe("first", consumersOf(many[9] as string));
    await observe("second", second);
    const isTooLarge = (dependent: string, collection: CollectionSubscription) =>
      watcher.list(dependent, collection).members.map(({ name, version }) => [name, version.isTooLarge === true]);
    assert.deepEqual(isTooLarge("first", consumersOf(many[9] as string)), [["web", false]]);
    assert.deepEqual(isTooLarge("second", second), [
      ["db", false],
      ["web", true],
    ]);
    assert.deepEqual(await calledFor("MODIFIED", deployment("web", 11, ["b"]), `${NAMESPACE}'`), ["second"]);
    assert.deepEqual(namesOf("second", second), ["db"]);
  });

  it("do not stop for one that can't be read, which is reported and kept without facts", async () => {
    class FailingView extends ReloaderView {
      override annotationsOf(...[own, pods]: Parameters<ReloaderView["annotationsOf"]>) {
        if (isObject(own) && "odd" in own) throw new TypeError("odd");
        return super.annotationsOf(own, pods);
      }
    }
    await informers.stop();
    const unread: string[] = [];
    informers = new Informers(api.transport, api.client, () => {}, {
      view: new FailingView(),
      unread: ({ kind }, { metadata }, error) => unread.push(`${kind} ${metadata.name} ${(error as Error).name}`),
    });
    watcher = informers.watcher((key) => called.push(key));
    api.rights.add(NAMESPACE);
    const odd = deployment("odd", 1, ["a"]);
    const annotated = { ...odd, metadata: { ...odd.metadata, annotations: { odd: "1" } } };
    api.objects.set("registry/deployments", [annotated, deployment("web", 2, ["a"])]);
    await observe("a", all());
    const { members } = watcher.list("a", all());
    assert.deepEqual(
      members.map(({ name, version }) => [name, version.isTooLarge, version.workload !== undefined]),
      [
        ["odd", true, false],
        ["web", undefined, true],
      ],
    );
    assert.deepEqual(unread, ["Deployment odd TypeError"]);
  });

  it("do the work for each object on behalf of the namespace that they serve, and at once for all namespaces", async () => {
    const ran: string[] = [];
    let isHeld = false;
    const run = async (namespace: string, work: () => void) => {
      ran.push(namespace);
      if (!isHeld) work();
    };
    const restarted = async () => {
      await informers.stop();
      informers = new Informers(api.transport, api.client, () => {}, { run });
      watcher = informers.watcher((key) => called.push(key));
    };
    await restarted();
    api.rights.add(NAMESPACE);
    api.objects.set("registry/deployments", [deployment("web", 1, ["a"]), deployment("db", 2, ["a"])]);
    await observe("a", all());
    assert.deepEqual(ran, ["registry", "registry"]);
    isHeld = true;
    assert.deepEqual(await calledFor("MODIFIED", deployment("web", 11, ["b"])), []);
    assert.equal(ran.length, 3);
    await restarted();
    api.rights.add("- deployments *");
    await observe("b", all());
    assert.deepEqual([namesOf("b", all()), ran.length], [["web", "db"], 3]);
  });

  it("look at no subscriber of another namespace for a workload with too many references", () => {
    const looked = new Set<string>();
    const stream = { subscribers: new SetsByKey(), consumers: new SetsByKey() } as unknown as Stream;
    for (const namespace of ["registry", "a", "b", "c"]) {
      const dependency = consumersOf("bucket", { namespace });
      const subscriber = subscriberOf(namespace, dependency, () => called.push(namespace));
      const counted = Object.defineProperty({ ...subscriber }, "dependency", {
        get: () => looked.add(namespace) && dependency,
      });
      join(stream, counted);
    }
    looked.clear();
    const many = projectionFor(all(), undefined, 1)(deployment("web", 1, ["a", "b"]));
    notifyOf(stream, "registry/web", many, undefined, "change");
    assert.deepEqual([called, [...looked]], [["registry"], ["registry"]]);
  });

  it("call dependents of what the pods read before or after the change, and dependents of all workloads", async () => {
    api.rights.add(NAMESPACE);
    api.objects.set("registry/deployments", [deployment("web", 1, ["bucket"])]);
    await observe("bucket", consumersOf("bucket"));
    await observe("other", consumersOf("other"));
    await observe("nothing", consumersOf("nothing"));
    await observe("configMap", all({ consumersOf: { kind: "ConfigMap", name: "bucket" } }));
    await observe("all", all());
    await observe("web", one("web"), consumersOf("bucket"));
    await observe("db", one("db"));
    await observe("globs", consumersOf("other", { names: ["d*"] }));
    assert.deepEqual(await calledFor("MODIFIED", deployment("web", 11, ["other"])), ["all", "bucket", "other", "web"]);
    assert.deepEqual([namesOf("bucket", consumersOf("bucket")), namesOf("other", consumersOf("other"))], [[], ["web"]]);
    assert.deepEqual(await calledFor("ADDED", deployment("db", 12, ["other", "bucket"])), [
      "all",
      "bucket",
      "db",
      "globs",
      "other",
      "web",
    ]);
    assert.deepEqual(namesOf("globs", consumersOf("other", { names: ["d*"] })), ["db"]);
    assert.deepEqual(await calledFor("DELETED", deployment("web", 13, ["other"])), ["all", "other", "web"]);
    assert.deepEqual(namesOf("other", consumersOf("other")), ["db"]);
  });

  it("call no dependent for a change that does not concern the pods", async () => {
    api.rights.add(NAMESPACE);
    const web = (version: number, more: object = {}) => deployment("web", version, ["bucket"], more);
    api.objects.set("registry/deployments", [web(1)]);
    await observe("a", consumersOf("bucket"));
    const { status, metadata } = web(11);
    const heartbeat = { ...(status as object), conditions: [{ type: "Available", lastUpdateTime: "now" }] };
    assert.deepEqual(await calledFor("MODIFIED", web(11, { status: heartbeat })), []);
    // The change is cached all the same.
    assert.equal(watcher.list("a", consumersOf("bucket")).members[0]?.version.resourceVersion, "11");
    const unavailable = { ...(status as object), availableReplicas: 1 };
    assert.deepEqual(await calledFor("MODIFIED", web(12, { status: unavailable })), ["a"]);
    const changed = { status: unavailable, metadata: { ...metadata, resourceVersion: "13", generation: 2 } };
    assert.deepEqual(await calledFor("MODIFIED", web(13, changed)), ["a"]);
    const recreated = { ...changed, metadata: { ...changed.metadata, resourceVersion: "14", uid: "another" } };
    assert.deepEqual(await calledFor("MODIFIED", web(14, recreated)), ["a"]);
  });

  it("report progress with less urgency than other changes", async () => {
    api.rights.add(NAMESPACE);
    const web = deployment("web", 1, ["bucket"]) as KubeObject & Record<"spec" | "status", AnyObject>;
    api.objects.set("registry/deployments", [web]);
    await observe("a", consumersOf("bucket"));
    let version = 1;
    const causeOf = async (change: () => void) => {
      change();
      web.metadata.resourceVersion = String(++version);
      causes.length = 0;
      await calledFor("MODIFIED", structuredClone(web));
      return causes.join();
    };
    const restart = () => {
      web.metadata.generation = 2;
      web.spec.template.metadata = { annotations: { "inlay.dev/rollout": "1-0a1b2c-0123456789" } };
    };
    assert.equal(await causeOf(restart), "resync");
    assert.equal(
      await causeOf(() => Object.assign(web.status, { observedGeneration: 2, updatedReplicas: 1 })),
      "resync",
    );
    assert.equal(await causeOf(() => Object.assign(web.status, { updatedReplicas: 2 })), "resync");
    assert.equal(await causeOf(() => Object.assign(web.spec, { paused: true })), "change");
    assert.equal(await causeOf(() => Object.assign(web.metadata, { uid: "another" })), "change");
    assert.equal(await causeOf(() => Object.assign(web.spec.template, { spec: { containers: [] } })), "change");
  });

  it("call for missed changes once they are in sync again", async () => {
    api.rights.add(NAMESPACE);
    api.objects.set("registry/deployments", [deployment("web", 1, ["bucket"]), deployment("db", 2, ["bucket"])]);
    await observe("a", consumersOf("bucket"));
    await observe("b", consumersOf("other"));
    assert.deepEqual(namesOf("a", consumersOf("bucket")), ["web", "db"]);
    api.objects.set("registry/deployments", [deployment("web", 3, ["other"]), deployment("new", 4, ["bucket"])]);
    called.length = 0;
    api.streams.get(NAMESPACE)?.end(apiError(410, "Expired"));
    await clock.pass(4_000);
    assert.deepEqual(namesOf("a", consumersOf("bucket")), ["new"]);
    assert.deepEqual(namesOf("b", consumersOf("other")), ["web"]);
    assert.deepEqual([...new Set(called)].toSorted(), ["a", "b"]);
  });

  it("are separate from streams of the same kind that show less, or another template", async () => {
    const shared = "- deployments *";
    api.mayRepeat = true;
    api.rights.add(shared).add(NAMESPACE).add(`${OTHER} registry/deployments *`);
    api.objects.set("registry/deployments", [deployment("web", 1, ["bucket"])]);
    await observe("a", all(), consumersOf("bucket"), one("web"));
    await observe("b", all({ identity: OTHER }));
    assert.deepEqual(api.open, [shared]);
    const { workload: _, ...plain } = all();
    await observe("c", plain);
    assert.deepEqual(api.open, [shared, `${shared}'`]);
    const elsewhere = consumersOf("bucket", { workload: { template: "spec.other" } });
    await observe("a");
    await observe("b");
    assert.deepEqual(api.open, [`${shared}'`]);
    await observe("a", elsewhere);
    assert.deepEqual(api.open, [shared, `${shared}'`]);
    assert.deepEqual(Object.keys(watcher.list("c", plain).members[0]?.version ?? {}), [
      "uid",
      "resourceVersion",
      "generation",
    ]);
    assert.deepEqual(namesOf("a", elsewhere), []);
  });

  it("are separate for each set of paths in a workload, which decides what is cached", () => {
    const field = all({ workload: { restart: "spec.restartAt" } });
    const both = all({ workload: { template: TEMPLATE, restart: "spec.restartAt" } });
    const { workload: _, ...plain } = all();
    for (const keyOf of [projectionKey, subscriptionKey])
      assert.equal(new Set([all(), field, both, plain].map(keyOf)).size, 4);
    const kept = (dependency: CollectionSubscription) => {
      const object = deployment("web", 1, ["bucket"]);
      return projectionFor(dependency)({ ...object, spec: { ...(object["spec"] as object), restartAt: "now" } })
        .workload;
    };
    assert.deepEqual([kept(all())?.references.length, kept(all())?.restart], [1, undefined]);
    assert.deepEqual([kept(field)?.references.length, kept(field)?.restart], [0, "now"]);
    assert.deepEqual([kept(both)?.references.length, kept(both)?.restart], [1, "now"]);
  });

  it("of one kind are limited to some different paths for a namespace, and others wait for one that ends", async () => {
    api.mayRepeat = true;
    api.rights.add(NAMESPACE).add(`${OTHER} registry/deployments *`);
    const by = (n: number, identity = ACCOUNT) => all({ identity, workload: { restart: `spec.restart${n}` } });
    for (let n = 0; n < MAX_PROJECTIONS; n++) {
      await observe(`${n}`, by(n));
      await observe(`usual ${n}`, all());
    }
    const last = by(MAX_PROJECTIONS, OTHER);
    await observe("last", last);
    const refused = watcher.list("last", last);
    assert.equal(refused.phase === "failed" && refused.error.reason, "TooManyPaths");
    await observe("0");
    assert.equal(watcher.list("last", last).phase, "synced");
    assert.equal(watcher.list("usual 0", all()).phase, "synced");
  });

  it("are distinguished by the names that they exclude", () => {
    const chosen = [
      {},
      { names: ["a"] },
      { names: ["a", "b"] },
      { names: ["a|b"] },
      { names: ["a"], exceptNames: ["b"] },
      { exceptNames: ["a", "b"] },
      { exceptNames: ["a|b"] },
    ];
    const keys = chosen.map((each) => subscriptionKey(all(each)));
    assert.equal(new Set(keys).size, chosen.length);
    assert.equal(subscriptionKey(all({ exceptNames: ["a", "b"] })), keys[5]);
  });

  it("refuse an invalid path, and keep the present subscriptions", async () => {
    api.rights.add(NAMESPACE);
    await observe("a", all());
    assert.throws(() => watcher.subscribe("a", [all({ workload: { template: "spec..template" } })]), {
      reason: "InvalidPath",
    });
    assert.equal(watcher.list("a", all()).phase, "synced");
  });

  describe("of one name", () => {
    it("are shared by the controller with accounts that may list the kind, and others have their own", async () => {
      api.rights
        .add("- deployments *")
        .add(`${ACCOUNT} registry/deployments web`)
        .add(`${OTHER} registry/deployments *`);
      api.objects.set("registry/deployments", [deployment("web", 1, ["bucket"])]);
      await observe("a", one("web"));
      await observe("b", one("web", OTHER));
      assert.deepEqual(api.open, ["- deployments *", `${ACCOUNT} registry/deployments web`]);
      for (const [dependent, interest] of [
        ["a", one("web")],
        ["b", one("web", OTHER)],
      ] as const)
        assert.equal(watcher.get(dependent, interest).version?.workload?.references.length, 1);
    });

    it("show no content of a workload to an account that may only name it", async () => {
      api.rights.add("- deployments *");
      api.objects.set("registry/deployments", [deployment("web", 1, ["bucket"])]);
      const named: ObjectSubscription = { identity: ACCOUNT, ref: one("web").ref };
      await observe("a", named, one("web"));
      assert.equal(watcher.get("a", named).version?.uid, "uid-web");
      assert.deepEqual(
        [watcher.get("a", one("web")).phase, watcher.get("a", one("web")).version],
        ["failed", undefined],
      );
    });

    it("continue with the account when it may no longer list them, once the shared stream is restarted", async () => {
      const ofName = `${ACCOUNT} registry/deployments web`;
      api.rights.add("- deployments *").add(NAMESPACE);
      await observe("a", one("web"));
      assert.deepEqual(api.open, ["- deployments *"]);
      api.rights.delete(NAMESPACE);
      api.rights.add(ofName);
      await clock.pass(61_000);
      api.streams.get("- deployments *")?.end();
      await clock.pass(4_000);
      assert.deepEqual([api.open, watcher.get("a", one("web")).phase], [[ofName], "synced"]);
    });

    it("of the controller itself cover all of a kind if it may watch that", async () => {
      api.rights.add("- deployments web");
      await observe("a", one("web", CONTROLLER));
      assert.deepEqual(api.open, ["- deployments web"]);
    });
  });

  it("find the consumers of a thousand Secrets among a thousand workloads, and call one for each change", async () => {
    api.rights.add(NAMESPACE);
    const names = Array.from({ length: 1000 }, (_, n) => `s${n}`);
    api.objects.set(
      "registry/deployments",
      names.map((name, n) => deployment(`web-${n}`, n + 1, [name])),
    );
    for (const name of names) watcher.subscribe(name, [consumersOf(name)]);
    await settledWhen(() => names.every((name) => watcher.list(name, consumersOf(name)).phase === "synced"));
    assert.equal(api.open.length, 1);
    for (const [n, name] of names.entries()) assert.deepEqual(namesOf(name, consumersOf(name)), [`web-${n}`]);
    called.length = 0;
    for (const [n, name] of names.entries()) {
      const status = { observedGeneration: 1, replicas: 2, updatedReplicas: 1 };
      api.streams.get(NAMESPACE)?.send("MODIFIED", deployment(`web-${n}`, 2000 + n, [name], { status }));
    }
    await settledWhen(() => called.length >= names.length);
    await settled();
    assert.deepEqual(called, names);
  });
});
