/** What a binding says now: as the watch brought it, or as our own last write left it. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../src/api/binding.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import { BindingStore } from "../../../src/cache/binding-store.ts";
import { ResourceStore } from "../../../src/cache/resource-store.ts";
import type { ApiError } from "../../../src/kube/api-error.ts";
import { fakeClock, settled } from "../clock.ts";
import { bindingOf } from "../objects.ts";
import { FakeApi } from "./api.ts";
import { apiError } from "./list-watch.ts";

const STREAM = "- secretbindings *";
const KEY = "registry/harbor-s3";

function binding(resourceVersion: string, uid = "u1"): KubeObject & SecretBinding {
  return { ...bindingOf({ metadata: { uid, resourceVersion } }) };
}

describe("the binding store", () => {
  let api: FakeApi;
  let store: BindingStore;
  let told: string[];
  beforeEach(() => {
    api = new FakeApi();
    api.rights.add(STREAM);
    told = [];
    const failed = (_: unknown, { status }: ApiError) => told.push(`failed ${status}`);
    store = new BindingStore(new ResourceStore(api.transport, SECRET_BINDINGS, { failed, restarted: () => {} }));
    store.listen({
      changed: (key) => told.push(`changed ${key}`),
      gone: (key, { metadata }) => told.push(`gone ${key} ${metadata.resourceVersion}`),
    });
  });
  afterEach(() => store.stop());
  // After the hook that stops the store: a timer must end in the time in which it began.
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

  it("tells of every binding once the first list is in, and is in step then", async () => {
    assert.equal(store.state.phase, "pending");
    await started(binding("1"));
    assert.equal(store.state.phase, "synced");
    assert.deepEqual(told, [`changed ${KEY}`]);
    assert.equal(version(), "1");
  });

  it("finds a binding by its uid, as long as it is there", async () => {
    await started(binding("1"));
    assert.equal(store.keyOf("u1"), KEY);
    await send("DELETED", binding("2"));
    assert.equal(store.keyOf("u1"), undefined);
  });

  it("watches one namespace where Inlay is installed for one", async () => {
    const events = { failed: () => {}, restarted: () => {} };
    api.rights.add("- registry/secretbindings *");
    store = new BindingStore(new ResourceStore(api.transport, SECRET_BINDINGS, events, "registry"));
    await started(binding("1"));
    assert.deepEqual(api.open, ["- registry/secretbindings *"]);
    assert.equal(version(), "1");
  });

  it("tells how a binding last was when it is gone", async () => {
    await started(binding("1"));
    await send("MODIFIED", binding("11"));
    await send("DELETED", binding("12"));
    assert.deepEqual(told.slice(1), [`changed ${KEY}`, `gone ${KEY} 11`]);
    assert.equal(store.get(KEY), undefined);
  });

  it("tells of a binding that was deleted while its stream was refused", async () => {
    await started(binding("1"));
    api.rights.clear();
    api.streams.get(STREAM)?.end(apiError(403));
    await clock.pass(4_000);
    api.objects.clear();
    api.rights.add(STREAM);
    await clock.pass(4_000);
    assert.ok(told.includes("failed 403"));
    assert.equal(told.at(-1), `gone ${KEY} 1`);
  });

  it("tells of the younger ones who name a field when an older one comes to it, or goes", async () => {
    const target = { apiVersion: "v1", kind: "ConfigMap", name: "a", fields: [{ path: "data.a" }] };
    const at = (name: string, version: string, fields = target.fields) => {
      const { metadata, spec, ...kind } = binding(version, `uid-${name}`);
      return { ...kind, metadata: { ...metadata, name }, spec: { ...spec, targets: [{ ...target, fields }] } };
    };
    await started(at("second", "1") as KubeObject & SecretBinding);
    told.splice(0);
    const first = (type: string, version: string, path = "data.a") =>
      send(type, at("first", version, [{ path }]) as KubeObject & SecretBinding);
    await first("ADDED", "11", "data.b");
    await first("MODIFIED", "12");
    await first("MODIFIED", "13");
    await first("DELETED", "14");
    store.released("registry/first");
    const [older, younger] = ["changed registry/first", "changed registry/second"];
    assert.deepEqual(told, [older, older, younger, older, "gone registry/first 13", younger]);
  });

  it("holds our own write until the watch has caught up with it", async () => {
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

  it("holds nothing of a binding whose last write was answered after it was gone", async () => {
    await started(binding("1"));
    await send("DELETED", binding("12"));
    store.wrote(binding("13"));
    assert.equal(store.get(KEY), undefined);
    await send("ADDED", binding("12", "u2"));
    assert.equal(store.get(KEY)?.metadata.uid, "u2");
  });

  it("says when it can't see bindings at all", async () => {
    api.rights.clear();
    await started();
    assert.deepEqual([told, store.state.phase === "synced"], [["failed 403"], false]);
  });
});
