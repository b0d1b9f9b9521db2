/** When Inlay writes a binding's status and finalizer, and which problems it reports. */
import assert from "node:assert/strict";
import { FINALIZER, type SecretBinding, type Status, type TargetStatus } from "../../../src/api/binding.ts";
import { asRecorded } from "../../../src/api/status-records.ts";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import type { Parts } from "../../../src/parts.ts";
import { Bookkeeping } from "../../../src/targets/record-changes.ts";
import { FakeApiServer } from "../api-server.ts";
import { bindingOf, harbor } from "../bindings.ts";

const NAME = "harbor-s3";
const VALUE = "QXZJ0123456789";

const record = (name: string, more: Partial<TargetStatus> = {}): TargetStatus => ({
  apiVersion: "goharbor.io/v1beta1",
  kind: "HarborCluster",
  namespace: "registry",
  name,
  reason: "Synced",
  ...more,
});

const statusWith = (status: "True" | "False" | "Unknown", reason = "Synced", message = "as it should be"): Status => ({
  observedGeneration: 1,
  conditions: [{ type: "Ready", status, reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
  targets: [record("harbor")],
});

describe("the bookkeeping of a binding", () => {
  let cluster: FakeApiServer;
  let wrote: string[];
  let events: object[];
  let logged: unknown[];
  let book: Bookkeeping;
  beforeEach(() => {
    cluster = new FakeApiServer();
    cluster.kinds = [SECRET_BINDINGS];
    [wrote, events, logged] = [[], [], []];
    const parts: Pick<Parts, "client"> & Record<"bindings" | "events" | "log", object> = {
      client: cluster.client,
      bindings: {
        wrote(stored: Parameters<typeof asRecorded>[0]) {
          wrote.push(stored.metadata.resourceVersion);
          return asRecorded(stored);
        },
      },
      events: { record: (_: SecretBinding, event: object) => events.push(event) },
      log: { warn: (...line: unknown[]) => logged.push(line) },
    };
    book = new Bookkeeping(parts as Parts);
  });

  /** A binding that the API server has in that state. */
  function stored(status?: Status, finalizers?: string[]): SecretBinding {
    const made = bindingOf({ targets: [{ ...harbor(), create: { manifest: { spec: { password: VALUE } } } }] }, status);
    const binding = { ...made, metadata: { ...made.metadata, ...(finalizers && { finalizers }) } };
    cluster.put(SECRET_BINDINGS, binding);
    return binding;
  }
  const there = () => cluster.get(SECRET_BINDINGS, NAME);

  describe("status", () => {
    it("is written if it differs from the stored one, and the store gets the answer", async () => {
      for (const before of [undefined, statusWith("True")]) {
        const written = await book.writeStatus(stored(before), statusWith("False", "Conflict", "taken"));
        assert.deepEqual(written.status, statusWith("False", "Conflict", "taken"));
        assert.deepEqual([there()?.["status"], wrote], [written.status, [written.metadata.resourceVersion]]);
        wrote.length = 0;
      }
    });

    it("is not written if it is stored like the former one", async () => {
      const [a, b] = [record("a", { selected: true }), record("b", { selected: true })];
      const binding = stored({ ...statusWith("True"), targets: [a, record("harbor"), b] });
      // Both are stored with one entry for a and b.
      const status = { ...statusWith("True"), targets: [a, b, record("harbor")] };
      assert.equal(await book.writeStatus(binding, status), binding);
      assert.deepEqual([cluster.requests, wrote], [[], []]);
    });

    it("has one entry for all selected objects in the same state, and is returned with one record for each", async () => {
      const targets = [record("a", { selected: true }), record("b", { selected: true })];
      const { status } = await book.writeStatus(stored(), { ...statusWith("True"), targets });
      assert.deepEqual(status?.targets, targets);
      const { namespace: _n, name: _m, ...state } = record("");
      const entry = { ...state, objects: ["registry/a", "registry/b"] };
      assert.deepEqual(there()?.["status"], { ...statusWith("True"), targets: [entry] });
    });

    it("is not written to a binding that changed after it was read", async () => {
      const binding = stored(statusWith("True"));
      const stale = { ...binding, metadata: { ...binding.metadata, resourceVersion: "6" } };
      await assert.rejects(book.writeStatus(stale, statusWith("False")), { status: 409 });
      assert.deepEqual([there(), wrote], [binding, []]);
    });
  });

  describe("a problem", () => {
    const failing = statusWith("False", "KeyNotFound", "there is no key a");

    it("is reported by an event and a log line when it begins, with nothing of the binding but its name", () => {
      for (const before of [undefined, statusWith("True"), statusWith("Unknown", "Suspended")]) {
        book.tell(stored(before), failing);
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
        book.tell(stored(failing), now);
      assert.deepEqual([events.length, logged.length], [2, 2]);
    });

    it("is not reported while it stays the same, or if there is none", () => {
      book.tell(stored(failing), structuredClone(failing));
      book.tell(stored(failing), statusWith("True"));
      book.tell(stored(failing), statusWith("Unknown", "Suspended"));
      assert.deepEqual([events, logged], [[], []]);
    });
  });

  describe("the finalizer", () => {
    const [removes, retains] = [record("a", { onRelease: "Remove" }), record("b", { onRelease: "Retain" })];

    it("is added if the release of at least one target removes something, and those of others stay", async () => {
      for (const [before, after] of [
        [undefined, [FINALIZER]],
        [["others"], ["others", FINALIZER]],
      ] as const) {
        const binding = await book.withFinalizer(stored(undefined, before && [...before]), [retains, removes]);
        assert.deepEqual([binding.metadata.finalizers, there()?.metadata.finalizers], [after, after]);
        assert.deepEqual(wrote, [binding.metadata.resourceVersion]);
        wrote.length = 0;
      }
    });

    it("is removed if no release removes anything, and those of others stay", async () => {
      for (const records of [[retains, record("c")], []]) {
        const binding = await book.withFinalizer(stored(undefined, [FINALIZER, "others"]), records);
        assert.deepEqual([binding.metadata.finalizers, there()?.metadata.finalizers], [["others"], ["others"]]);
      }
    });

    it("is not written if it is right already", async () => {
      const [held, free] = [stored(undefined, [FINALIZER]), stored()];
      assert.equal(await book.withFinalizer(held, [removes]), held);
      assert.equal(await book.withFinalizer(free, [retains, record("c")]), free);
      assert.equal(await book.withFinalizer(free, []), free);
      assert.deepEqual(cluster.requests, []);
    });

    it("is not added to a binding that changed after it was read", async () => {
      const binding = stored();
      const stale = { ...binding, metadata: { ...binding.metadata, resourceVersion: "6" } };
      await assert.rejects(book.withFinalizer(stale, [removes]), { status: 409 });
      assert.deepEqual([there(), wrote], [binding, []]);
    });

    it("is removed once a deleted binding is released, and those of others stay", async () => {
      await book.letGo(stored(undefined, ["others", FINALIZER]));
      assert.deepEqual(there()?.metadata.finalizers, ["others"]);
    });

    it("needs no removal if the binding is gone, and is not removed from one that changed after it was read", async () => {
      const gone = { ...stored(undefined, [FINALIZER]), metadata: { ...bindingOf().metadata, name: "gone" } };
      await book.letGo(gone);
      const stale = stored(undefined, [FINALIZER]);
      await assert.rejects(book.letGo({ ...stale, metadata: { ...stale.metadata, resourceVersion: "6" } }), {
        status: 409,
      });
    });
  });
});
