/** When Inlay writes the status and the finalizer of an object of its own kind, and which problems it reports. */
import assert from "node:assert/strict";
import { FINALIZER, type SecretBinding, type Status, type TargetStatus } from "../../../src/api/binding.ts";
import { DEFAULT_LIMITS } from "../../../src/api/limits.ts";
import { asRecorded } from "../../../src/api/status-records.ts";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import {
  type BindingStatusWriter,
  bindingStatusWriter,
} from "../../../src/controllers/binding/binding-status-writer.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Outdated } from "../../../src/workqueue/work-queue.ts";
import { FakeApiServer } from "../api-server.ts";
import { dependenciesOf } from "../fakes.ts";
import { bindingOf, recordOf, targetOf } from "../objects.ts";

const NAME = "harbor-s3";
const VALUE = "QXZJ0123456789";

const record = (name: string, more: Partial<TargetStatus> = {}) => recordOf({ name, ...more });

const statusWith = (status: "True" | "False" | "Unknown", reason = "Synced", message = "as it should be"): Status => ({
  observedGeneration: 1,
  conditions: [{ type: "Ready", status, reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
  targets: [record("harbor")],
});

describe("the status writer", () => {
  let cluster: FakeApiServer;
  let wrote: string[];
  let events: object[];
  let logged: unknown[];
  let limited: string[];
  let writer: BindingStatusWriter;
  beforeEach(() => {
    cluster = new FakeApiServer();
    cluster.kinds = [SECRET_BINDINGS];
    [wrote, events, logged, limited] = [[], [], [], []];
    const services = dependenciesOf<Parameters<typeof bindingStatusWriter>[0]>({
      client: cluster.client,
      bindings: {
        wrote(stored: Parameters<typeof asRecorded>[0]) {
          wrote.push(stored.metadata.resourceVersion);
          return asRecorded(stored);
        },
      },
      events: { recordOn: (_: object, event: object) => events.push(event) },
      log: { warn: (...line: unknown[]) => logged.push(line) },
      installation: { limits: { ...DEFAULT_LIMITS, bindingBytes: 4_000 } },
      metrics: { limited: (limit: string) => limited.push(limit) },
    });
    writer = bindingStatusWriter(services);
  });

  /** A binding that the API server has in that state. */
  function stored(status?: Status, finalizers?: string[]): SecretBinding {
    const manifest = { spec: { password: VALUE } };
    const targets = [targetOf({ create: { manifest } })];
    const binding = bindingOf({ metadata: { ...(finalizers && { finalizers }) }, spec: { targets }, status });
    cluster.put(SECRET_BINDINGS, binding);
    return binding;
  }
  const there = () => cluster.get(SECRET_BINDINGS, NAME);

  describe("status", () => {
    it("is written if it differs from the stored one, and the store gets the answer", async () => {
      for (const before of [undefined, statusWith("True")]) {
        const written = await writer.writeStatus(stored(before), statusWith("False", "Conflict", "taken"));
        assert.deepEqual(written.status, statusWith("False", "Conflict", "taken"));
        assert.deepEqual([there()?.["status"], wrote], [written.status, [written.metadata.resourceVersion]]);
        wrote.length = 0;
      }
    });

    it("is not written if the stored form is the same", async () => {
      const [a, b] = [record("a", { selected: true }), record("b", { selected: true })];
      const binding = stored({ ...statusWith("True"), targets: [a, record("harbor"), b] });
      // Both are stored with one entry for a and b.
      const status = { ...statusWith("True"), targets: [a, b, record("harbor")] };
      assert.equal(await writer.writeStatus(binding, status), binding);
      assert.deepEqual([cluster.requests, wrote], [[], []]);
    });

    it("has one entry for all selected objects in the same state, and is returned with one record for each", async () => {
      const targets = [record("a", { selected: true }), record("b", { selected: true })];
      const { status } = await writer.writeStatus(stored(), { ...statusWith("True"), targets });
      assert.deepEqual(status?.targets, targets);
      const { namespace: _n, name: _m, ...state } = record("");
      const entry = { ...state, objects: ["registry/a", "registry/b"] };
      assert.deepEqual(there()?.["status"], { ...statusWith("True"), targets: [entry] });
    });

    it("is not written to a binding that changed after it was read, or that is gone, which is no failure", async () => {
      const binding = stored(statusWith("True"));
      const stale = { ...binding, metadata: { ...binding.metadata, resourceVersion: "6" } };
      const gone = { ...binding, metadata: { ...binding.metadata, name: "gone" } };
      for (const each of [stale, gone]) await assert.rejects(writer.writeStatus(each, statusWith("False")), Outdated);
      assert.deepEqual([there(), wrote], [binding, []]);
    });
  });

  describe("a status for which there is no room", () => {
    const isTooLarge = { name: "StatusTooLarge" };
    const statusOf = (message: string) => statusWith("True", "Synced", message);
    const puts = () => cluster.requests.length;

    it("is reported by one event, and written again only if it is smaller, or to another version", async () => {
      for (const [status, text] of [
        [500, "etcdserver: request is too large"],
        [413, "Request entity too large: limit is 3145728"],
      ] as const) {
        cluster.intervene = () => ApiError.fromAnswer("PUT it", status, JSON.stringify({ message: text }));
        const binding = stored();
        for (let n = 0; n < 3; n++) await assert.rejects(writer.writeStatus(binding, statusOf("large")), isTooLarge);
        assert.deepEqual([puts(), events.length, limited], [1, 1, ["statusBytes"]]);
        await assert.rejects(writer.writeStatus(binding, statusOf("small")), isTooLarge);
        assert.deepEqual([puts(), events.length], [1, 1]);
        await assert.rejects(writer.writeStatus(binding, statusOf("s")), isTooLarge);
        assert.deepEqual([puts(), events.length], [2, 1]);
        binding.metadata.resourceVersion = "8";
        await assert.rejects(writer.writeStatus(binding, statusOf("large")), isTooLarge);
        assert.deepEqual([puts(), events.length], [3, 2]);
        cluster.requests.length = events.length = limited.length = 0;
      }
    });

    it("is not sent if Inlay would not keep the binding with it, except for its conditions", async () => {
      const binding = stored(statusWith("True"));
      const targets = Array.from({ length: 50 }, (_, n) => record(`harbor-${n}`));
      await assert.rejects(writer.writeStatus(binding, { ...statusWith("True"), targets }), isTooLarge);
      assert.deepEqual([cluster.requests, events.length], [[], 1]);
      const failed = statusWith("False", "TooLarge", "x".repeat(4_000));
      assert.deepEqual((await writer.writeConditions(binding, failed)).status, failed);
    });
  });

  describe("a problem", () => {
    const failing = statusWith("False", "KeyNotFound", "there is no key a");

    it("is reported by an event and a log line when it begins, with no data of the binding except its name", () => {
      for (const before of [undefined, statusWith("True"), statusWith("Unknown", "Suspended")]) {
        writer.recordEvent(stored(before), failing);
        const [reason, note] = ["KeyNotFound", "there is no key a"];
        assert.deepEqual(events.splice(0), [{ type: "Warning", reason, action: "Sync", note }]);
        assert.deepEqual(logged.splice(0), [[{ binding: `registry/${NAME}`, reason }, note]]);
      }
    });

    it("is reported again if its reason or message changes", () => {
      for (const now of [
        statusWith("False", "NotUtf8", "there is no key a"),
        statusWith("False", "KeyNotFound", "there is no key b"),
      ])
        writer.recordEvent(stored(failing), now);
      assert.deepEqual([events.length, logged.length], [2, 2]);
    });

    it("is not reported while it stays the same, or if there is none, as while the binding waits for its rollout", () => {
      writer.recordEvent(stored(failing), structuredClone(failing));
      writer.recordEvent(stored(failing), statusWith("True"));
      writer.recordEvent(stored(failing), statusWith("Unknown", "Suspended"));
      writer.recordEvent(stored(statusWith("True")), statusWith("False", "RolloutPending", "waiting for the rollout"));
      assert.deepEqual([events, logged], [[], []]);
    });
  });

  describe("the finalizer", () => {
    it("is added, and other finalizers stay", async () => {
      for (const [before, after] of [
        [undefined, [FINALIZER]],
        [["others"], ["others", FINALIZER]],
      ] as const) {
        const binding = await writer.setFinalizer(stored(undefined, before && [...before]), true);
        assert.deepEqual([binding.metadata.finalizers, there()?.metadata.finalizers], [after, after]);
        assert.deepEqual(wrote, [binding.metadata.resourceVersion]);
        wrote.length = 0;
      }
    });

    it("is removed, and other finalizers stay", async () => {
      const binding = await writer.setFinalizer(stored(undefined, [FINALIZER, "others"]), false);
      assert.deepEqual([binding.metadata.finalizers, there()?.metadata.finalizers], [["others"], ["others"]]);
    });

    it("is not written if it is right already", async () => {
      const [held, free] = [stored(undefined, [FINALIZER]), stored()];
      assert.equal(await writer.setFinalizer(held, true), held);
      assert.equal(await writer.setFinalizer(free, false), free);
      assert.deepEqual(cluster.requests, []);
    });

    it("is not added to a binding that changed after it was read", async () => {
      const binding = stored();
      const stale = { ...binding, metadata: { ...binding.metadata, resourceVersion: "6" } };
      await assert.rejects(writer.setFinalizer(stale, true), Outdated);
      assert.deepEqual([there(), wrote], [binding, []]);
    });

    it("is removed once a deleted binding is released, and other finalizers stay", async () => {
      await writer.removeFinalizer(stored(undefined, ["others", FINALIZER]));
      assert.deepEqual(there()?.metadata.finalizers, ["others"]);
    });

    it("need not be removed if the binding is gone, and is not removed from one that changed after it was read", async () => {
      const gone = { ...stored(undefined, [FINALIZER]), metadata: { ...bindingOf().metadata, name: "gone" } };
      await writer.removeFinalizer(gone);
      const stale = stored(undefined, [FINALIZER]);
      await assert.rejects(
        writer.removeFinalizer({ ...stale, metadata: { ...stale.metadata, resourceVersion: "6" } }),
        Outdated,
      );
    });
  });
});
