/** The present state of a binding: as the watch showed it, or as our own last write left it. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../src/api/binding.ts";
import { DEFAULT_LIMITS } from "../../../src/api/limits.ts";
import { isStub } from "../../../src/api/stub.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import { BindingStore } from "../../../src/cache/binding-store.ts";
import { ResourceStore } from "../../../src/cache/resource-store.ts";
import type { ApiError } from "../../../src/kube/api-error.ts";
import { CpuScheduler, finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { fakeClock, settled } from "../clock.ts";
import { bindingOf, targetOf } from "../objects.ts";
import { HARBOR } from "../resources.ts";
import { FakeApi } from "./api.ts";
import { apiError } from "./list-watch.ts";

const STREAM = "- secretbindings *";
const KEY = "registry/harbor-s3";
const AT_ONCE = new CpuScheduler(() => 0);

function binding(resourceVersion: string, uid = "u1"): KubeObject & SecretBinding {
  return { ...bindingOf({ metadata: { uid, resourceVersion } }) };
}

describe("the binding store", () => {
  let api: FakeApi;
  let store: BindingStore;
  let calls: string[];
  beforeEach(() => {
    api = new FakeApi();
    api.rights.add(STREAM);
    calls = [];
    const failed = (_: unknown, { status }: ApiError) => calls.push(`failed ${status}`);
    store = new BindingStore(
      new ResourceStore(api.transport, SECRET_BINDINGS, { failed, restarted: () => {} }),
      AT_ONCE,
    );
    store.listen({
      changed: (key) => calls.push(`changed ${key}`),
      gone: (key, { metadata }) => calls.push(`gone ${key} ${metadata.resourceVersion}`),
    });
  });
  afterEach(() => store.stop());
  // Runs after the hook that stops the store: a timer must end in the clock in which it began.
  const clock = fakeClock();

  async function started(...bindings: KubeObject[]): Promise<void> {
    api.objects.set("registry/secretbindings", bindings);
    store.start();
    await settled();
  }
  async function send(type: string, object: KubeObject): Promise<void> {
    api.streams.get(STREAM)?.send(type, object);
    await settled();
  }
  const version = () => store.get(KEY)?.metadata.resourceVersion;

  it("reports every binding once the first list is complete, and is then in sync", async () => {
    assert.equal(store.state.phase, "pending");
    await started(binding("1"));
    assert.equal(store.state.phase, "synced");
    assert.deepEqual(calls, [`changed ${KEY}`]);
    assert.equal(version(), "1");
  });

  it("keeps a stub of a binding that is too large, which claims nothing, until it is smaller or restored", async () => {
    const naming = (at: string) => ({ ...binding(at), ...bindingOf({ metadata: { resourceVersion: at }, spec }) });
    const spec = { targets: [targetOf()] };
    const large = naming("2");
    large.metadata.labels = { large: "x".repeat(DEFAULT_LIMITS.bindingBytes) };
    const claims = () => {
      const other = bindingOf({ metadata: { name: "other", creationTimestamp: "2027-01-01T00:00:00Z" } });
      return finish(store.competingClaims(other, HARBOR, [["spec.key"]])).length;
    };
    const isKept = () => [isStub(store.get(KEY) ?? {}), store.excessOf(KEY)?.limit, claims()];
    await started(naming("1"));
    assert.deepEqual(isKept(), [false, undefined, 1]);
    await send("MODIFIED", large);
    assert.deepEqual(isKept(), [true, "bindingBytes", 0]);
    // The answer to a write is as large.
    store.wrote({ ...large, metadata: { ...large.metadata, resourceVersion: "3" } });
    assert.deepEqual([version(), isKept()], ["3", [true, "bindingBytes", 0]]);
    assert.equal(store.restore(large), false);
    await send("MODIFIED", naming("4"));
    assert.deepEqual(isKept(), [false, undefined, 1]);
  });

  it("expands the records of a binding once for all listeners", async () => {
    const objects = ["registry/a u1", "registry/b u2"];
    const record = { apiVersion: "v1", kind: "ConfigMap", reason: "Synced", paths: ["data.a"], objects };
    await started({ ...binding("1"), status: { targets: [record] } } as unknown as KubeObject);
    const found = store.get(KEY);
    assert.equal(found?.status?.targets?.length, 2);
    assert.equal(store.get(KEY), found);
    await send("MODIFIED", binding("11"));
    assert.equal(store.get(KEY)?.status, undefined);
  });

  it("records what targets resolve to before the caller continues, also if an earlier update is suspended", async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const waits = gates.map(({ promise }) => promise);
    const cpu: Pick<CpuScheduler, "steps"> = {
      steps: async (_, work) => {
        work.next();
        await waits.shift();
        return finish(work);
      },
    };
    const events = { failed: () => {}, restarted: () => {} };
    store = new BindingStore(new ResourceStore(api.transport, SECRET_BINDINGS, events), cpu);
    await started(binding("1"));
    const other = bindingOf({ metadata: { name: "other", creationTimestamp: "2027-01-01T00:00:00Z" } });
    const named = () => finish(store.competingClaims(other, HARBOR, [["spec"]])).map(({ paths }) => paths.join());
    const seen: string[][] = [];
    const resolved = (path: string) =>
      store.resolved(KEY, [{ ref: HARBOR, paths: [path] }]).then(() => void seen.push(named()));
    void resolved("spec.a");
    void resolved("spec.a");
    await settled();
    assert.deepEqual(seen, []);
    void resolved("spec.b");
    gates[0]?.resolve();
    await settled();
    assert.deepEqual(seen, []);
    gates[1]?.resolve();
    await settled();
    assert.deepEqual(seen, [["spec.b"], ["spec.b"], ["spec.b"]]);
  });

  it("restores a binding that has room again, in the version that the watch shows", async () => {
    const labels = { large: "x".repeat(DEFAULT_LIMITS.bindingBytes - 10_000) };
    const named = (name: string) => {
      const each = binding("1", `uid-${name}`);
      return { ...each, metadata: { ...each.metadata, name, labels, creationTimestamp: `2026-01-01T00:00:0${name}Z` } };
    };
    const [first, second, third] = [named("a"), named("b"), named("c")];
    api.objects.set("registry/secretbindings", [first, second, third]);
    const limits = { ...DEFAULT_LIMITS, bindingBytesPerNamespace: 2 * DEFAULT_LIMITS.bindingBytes };
    const events = { failed: () => {}, restarted: () => {} };
    store = new BindingStore(new ResourceStore(api.transport, SECRET_BINDINGS, events), AT_ONCE, limits);
    store.listen({ changed: (key) => calls.push(key), gone: () => {} });
    store.start();
    await settled();
    const key = "registry/c";
    assert.equal(store.excessOf(key)?.limit, "bindingBytesPerNamespace");
    calls = [];
    await send("DELETED", { ...first, metadata: { ...first.metadata, resourceVersion: "5" } });
    assert.deepEqual([calls.includes(key), store.excessOf(key)], [true, undefined]);
    const other = { ...third, metadata: { ...third.metadata, resourceVersion: "9" } };
    assert.deepEqual([store.restore(other), store.restore(third)], [false, true]);
    assert.equal(isStub(store.get(key) ?? {}), false);
  });

  it("finds a binding by its uid, as long as it exists", async () => {
    await started(binding("1"));
    assert.equal(store.keyOf("u1"), KEY);
    await send("MODIFIED", binding("9"));
    assert.equal(store.keyOf("u1"), KEY);
    await send("DELETED", binding("2"));
    assert.equal(store.keyOf("u1"), undefined);
  });

  it("watches one namespace in an installation for one namespace", async () => {
    const events = { failed: () => {}, restarted: () => {} };
    api.rights.add("- registry/secretbindings *");
    store = new BindingStore(new ResourceStore(api.transport, SECRET_BINDINGS, events, "registry"), AT_ONCE);
    await started(binding("1"));
    assert.deepEqual(api.open, ["- registry/secretbindings *"]);
    assert.equal(version(), "1");
  });

  it("reports the last state of a deleted binding", async () => {
    await started(binding("1"));
    await send("MODIFIED", binding("11"));
    await send("DELETED", binding("12"));
    assert.deepEqual(calls.slice(1), [`changed ${KEY}`, `gone ${KEY} 11`]);
    assert.equal(store.get(KEY), undefined);
  });

  it("reports a binding that was deleted while its stream was refused", async () => {
    await started(binding("1"));
    api.rights.clear();
    api.streams.get(STREAM)?.end(apiError(403));
    await clock.pass(4_000);
    api.objects.clear();
    api.rights.add(STREAM);
    await clock.pass(4_000);
    assert.ok(calls.includes("failed 403"));
    assert.equal(calls.at(-1), `gone ${KEY} 1`);
  });

  it("reports younger bindings that name a field when an older one starts or stops naming it", async () => {
    const target = { apiVersion: "v1", kind: "ConfigMap", name: "a", fields: [{ path: "data.a" }] };
    const at = (name: string, version: string, fields = target.fields) => {
      const { metadata, spec, ...kind } = binding(version, `uid-${name}`);
      return { ...kind, metadata: { ...metadata, name }, spec: { ...spec, targets: [{ ...target, fields }] } };
    };
    await started(at("second", "1") as KubeObject & SecretBinding);
    calls.splice(0);
    const first = (type: string, version: string, path = "data.a") =>
      send(type, at("first", version, [{ path }]) as KubeObject & SecretBinding);
    await first("ADDED", "11", "data.b");
    await first("MODIFIED", "12");
    await first("MODIFIED", "13");
    await first("DELETED", "14");
    store.released("registry/first");
    const [older, younger] = ["changed registry/first", "changed registry/second"];
    assert.deepEqual(calls, [older, older, younger, older, "gone registry/first 13", younger]);
  });

  it("reports the bindings that a change concerns one by one, after nothing during the first list", async () => {
    const most: number[] = [];
    const cpu: Pick<CpuScheduler, "steps"> = {
      steps: async (_, work) => {
        for (;;) {
          const before = calls.length;
          const step = work.next();
          most.push(calls.length - before);
          if (step.done) return step.value;
        }
      },
    };
    const events = { failed: () => {}, restarted: () => {} };
    store = new BindingStore(new ResourceStore(api.transport, SECRET_BINDINGS, events), cpu);
    store.listen({ changed: (key) => calls.push(key), gone: () => {} });
    const naming = (name: string, resourceVersion: string) =>
      bindingOf({
        metadata: { name, uid: `uid-${name}`, resourceVersion },
        spec: { serviceAccountName: name, targets: [targetOf()] },
      }) as unknown as KubeObject;
    const younger = ["b", "c", "d", "e"].map((name) => naming(name, "1"));
    await started(...younger);
    assert.deepEqual([calls.splice(0).length, most], [4, []]);
    await send("ADDED", naming("a", "11"));
    assert.deepEqual([calls.length, Math.max(...most)], [5, 1]);
  });

  it("uses our own write until the watch has caught up with it", async () => {
    await started(binding("9"));
    store.wrote(binding("11"));
    assert.equal(version(), "11");
    await send("MODIFIED", binding("10"));
    assert.equal(version(), "11");
    await send("MODIFIED", binding("12"));
    assert.equal(version(), "12");
    await send("MODIFIED", binding("100"));
    assert.equal(version(), "100");
  });

  it("stores nothing of a deleted binding whose last write was answered after the deletion", async () => {
    await started(binding("1"));
    await send("DELETED", binding("12"));
    store.wrote(binding("13"));
    assert.equal(store.get(KEY), undefined);
    await send("ADDED", binding("12", "u2"));
    assert.equal(store.get(KEY)?.metadata.uid, "u2");
  });

  it("reports if it can't list bindings", async () => {
    api.rights.clear();
    await started();
    assert.deepEqual([calls, store.state.phase === "synced"], [["failed 403"], false]);
  });
});
