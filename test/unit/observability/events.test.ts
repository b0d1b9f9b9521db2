/** Which events are written, at which rate, and that a reconcile never waits for an event. */
import assert from "node:assert/strict";
import type { Resource } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { Identity } from "../../../src/kube/identity.ts";
import { EventRecorder } from "../../../src/observability/events.ts";
import { fakeClock, settled } from "../clock.ts";
import { fakeClient } from "../fakes.ts";
import { bindingOf } from "../objects.ts";

interface WrittenEvent {
  metadata: { name: string; namespace: string };
  eventTime: string;
  note: string;
  regarding: object;
  reason: string;
}

interface Writing {
  event: WrittenEvent;
  end(error?: Error): void;
}

const binding = bindingOf({ metadata: { uid: "u1" } });

const happening = (note = "wrote spec.a") => ({ type: "Normal", reason: "Written", action: "Sync", note }) as const;

/** A recorder whose client completes a write only when the test says how. */
function recorder() {
  const underWay: Writing[] = [];
  const written: { identity: Identity; resource: Resource; namespace: string; event: WrittenEvent }[] = [];
  const client = fakeClient({
    create: (identity: Identity, resource: Resource, namespace: string, event: WrittenEvent) => {
      written.push({ identity, resource, namespace, event });
      const { promise, resolve, reject } = Promise.withResolvers<WrittenEvent>();
      const writing: Writing = { event, end: (error) => (error ? reject(error) : resolve(event)) };
      underWay.push(writing);
      return promise.finally(() => underWay.splice(underWay.indexOf(writing), 1));
    },
  });
  let count = 0;
  const events = new EventRecorder(client, "inlay-0", () => {
    count++;
  });
  const endAll = async (error?: Error) => {
    for (const writing of [...underWay]) writing.end(error);
    await settled();
  };
  return { events, underWay, written, endAll, dropped: () => count };
}

describe("an event", () => {
  const clock = fakeClock();

  it("refers to the binding, is in its namespace, and is written by the controller", async () => {
    const { events, written, endAll } = recorder();
    events.record(binding, happening());
    const [one] = written;
    assert.ok(one);
    const { identity, resource, namespace, event } = one;
    assert.deepEqual([identity, resource.group, namespace], ["", "events.k8s.io", "registry"]);
    const { metadata, ...rest } = event;
    assert.match(metadata.name, /^harbor-s3\.[0-9a-f]{16}$/);
    assert.deepEqual(rest, {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "inlay.dev/controller",
      reportingInstance: "inlay-0",
      action: "Sync",
      reason: "Written",
      regarding: {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "SecretBinding",
        namespace: "registry",
        name: "harbor-s3",
        uid: "u1",
        resourceVersion: "7",
      },
      note: "wrote spec.a",
      type: "Normal",
    });
    await endAll();
  });

  it("has a unique name of limited length", async () => {
    const { events, written, endAll } = recorder();
    const long = bindingOf({ metadata: { name: "x".repeat(253) } });
    events.record(long, happening());
    events.record(long, happening());
    const names = written.map(({ event }) => event.metadata.name);
    assert.equal(new Set(names).size, 2);
    assert.ok(names.every((name) => name.length <= 253));
    await endAll();
  });

  it("has a note of limited size in bytes", async () => {
    const { events, written, endAll } = recorder();
    for (const note of ["x".repeat(3_000), "ä".repeat(3_000), "a\u{1f511}".repeat(1_000)]) {
      events.record(binding, happening(note));
      await endAll();
    }
    for (const { event } of written) {
      const bytes = Buffer.byteLength(event.note);
      assert.ok(bytes <= 1024 && bytes > 990, `${bytes} bytes`);
    }
  });

  it("is written in order, at most two at the same time", async () => {
    const { events, underWay, written, endAll } = recorder();
    for (let i = 0; i < 5; i++) events.record(binding, happening(`${i}`));
    const counts: number[] = [];
    while (underWay.length > 0) {
      counts.push(underWay.length);
      await endAll();
    }
    assert.deepEqual(counts, [2, 2, 1]);
    assert.deepEqual(
      written.map(({ event }) => event.note),
      ["0", "1", "2", "3", "4"],
    );
  });

  it("is limited to twenty a second after a burst of thirty", async () => {
    const { events, underWay, written, endAll } = recorder();
    const all = async () => {
      while (underWay.length > 0) await endAll();
      return written.length;
    };
    for (let i = 0; i < 100; i++) events.record(binding, happening(`${i}`));
    assert.equal(await all(), 30);
    for (const count of [50, 70]) {
      for (let tick = 0; tick < 20; tick++) {
        await clock.pass(50);
        await all();
      }
      assert.equal(written.length, count);
    }
    const stop = events.stop();
    assert.equal(await all(), 100);
    await stop;
  });

  it("may be part of a burst again after some quiet seconds", async () => {
    const { events, underWay, written, endAll } = recorder();
    for (let round = 1; round <= 3; round++) {
      for (let i = 0; i < 30; i++) events.record(binding, happening(`${i}`));
      while (underWay.length > 0) await endAll();
      assert.equal(written.length, round * 30);
      for (let tick = 0; tick < 60; tick++) await clock.pass(50);
    }
  });

  it("is written earlier if it is a warning", async () => {
    const { events, underWay, written, endAll } = recorder();
    for (let i = 0; i < 4; i++) events.record(binding, happening(`${i}`));
    events.record(binding, { ...happening("careful"), type: "Warning" });
    while (underWay.length > 0) await endAll();
    assert.deepEqual(
      written.map(({ event }) => event.note),
      ["0", "1", "careful", "2", "3"],
    );
  });

  it("is not queued twice", async () => {
    const { events, underWay, written, endAll } = recorder();
    const other = bindingOf({ metadata: { uid: "u2" } });
    for (const note of ["a", "b", "c", "c", "d", "c"]) events.record(binding, happening(note));
    events.record(other, happening("c"));
    while (underWay.length > 0) await endAll();
    assert.deepEqual(
      written.map(({ event }) => event.note),
      ["a", "b", "c", "c", "d"],
    );
  });

  it("is dropped if it can't be written, and the next one follows", async () => {
    const { events, written, endAll } = recorder();
    events.record(binding, happening("lost"));
    await endAll(new ApiError("POST /x", 403, "Forbidden"));
    events.record(binding, happening("next"));
    await endAll();
    await events.stop();
    assert.deepEqual(
      written.map(({ event }) => event.note),
      ["lost", "next"],
    );
  });

  it("is dropped and counted if five hundred of its namespace are queued", async () => {
    const { events, underWay, written, endAll, dropped } = recorder();
    for (let i = 0; i < 1_000; i++) events.record(binding, happening(`${i}`));
    const other = bindingOf({ metadata: { namespace: "victim", uid: "u2" } });
    events.record(other, happening());
    const stop = events.stop();
    while (underWay.length > 0) await endAll();
    await stop;
    assert.deepEqual([written.length, dropped()], [503, 498]);
  });

  it("is written soon beside a namespace with thousands of warnings, whatever its type", async () => {
    const { events, underWay, written, endAll } = recorder();
    for (let i = 0; i < 2_000; i++)
      events.record(bindingOf({ metadata: { uid: `u${i}` } }), { ...happening(`${i}`), type: "Warning" });
    const victim = bindingOf({ metadata: { namespace: "victim", uid: "v" } });
    events.record(victim, happening("mine"));
    events.record(victim, { ...happening("careful"), type: "Warning" });
    for (let turn = 0; turn < 4; turn++) await endAll();
    const notes = written.map(({ event }) => event.note);
    assert.ok(notes.includes("mine") && notes.includes("careful"), notes.join());
    const stop = events.stop(0);
    while (underWay.length > 0) await endAll();
    await stop;
  });

  it("of one object does not delay those of others in its namespace", async () => {
    const { events, underWay, written, endAll } = recorder();
    for (let i = 0; i < 400; i++) events.record(binding, happening(`${i}`));
    events.record(bindingOf({ metadata: { uid: "u2" } }), happening("other"));
    await endAll();
    await endAll();
    assert.ok(written.some(({ event }) => event.note === "other"));
    const stop = events.stop();
    while (underWay.length > 0) await endAll();
    await stop;
  });

  it("is written before the recorder stops", async () => {
    const { events, underWay, written, endAll } = recorder();
    for (let i = 0; i < 3; i++) events.record(binding, happening());
    let stopped = false;
    const stop = events.stop().then(() => {
      stopped = true;
    });
    await endAll();
    assert.deepEqual([stopped, underWay.length], [false, 1]);
    await endAll();
    await stop;
    assert.equal(written.length, 3);
  });

  it("does not delay the stop for long when the API server is slow", async () => {
    const { events, written, endAll } = recorder();
    for (let i = 0; i < 100; i++) events.record(binding, happening(`${i}`));
    const stop = events.stop();
    await clock.pass(5_000);
    await endAll();
    await stop;
    assert.equal(written.length, 2);
  });
});
