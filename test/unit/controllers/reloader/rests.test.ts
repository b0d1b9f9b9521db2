/** A namespace rests after its own work, and not after it has waited. */
import assert from "node:assert/strict";
import { OwnTime, Rests } from "../../../../src/controllers/reloader/controller.ts";

const NAMESPACE = "shop";

function work(ms: number): void {
  const used = () => process.threadCpuUsage().user + process.threadCpuUsage().system;
  const end = used() + ms * 1_000;
  while (used() < end);
}

describe("the time of a reconcile", () => {
  it("is the processor time of its own work, without what it awaits and without the work of other processes", async () => {
    const own = new OwnTime();
    work(5);
    await own.wait(
      new Promise<void>((resolve) => {
        setImmediate(() => {
          work(200);
          resolve();
        });
      }),
    );
    // The thread sleeps as if another process had the processor.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    work(5);
    assert.ok(own.ms >= 10 && own.ms < 200, `${own.ms}`);
  });
});

describe("the rest of a namespace", () => {
  const rests = new Rests();
  const leftAfter = (ms: number) => {
    rests.forget(NAMESPACE);
    rests.worked(NAMESPACE, { ms });
    return rests.leftMs(NAMESPACE);
  };

  it("is ten times as long as the work, and 5 s at most", () => {
    assert.ok(leftAfter(100) > 900 && leftAfter(100) <= 1_000);
    assert.ok(leftAfter(10_000) > 4_900 && leftAfter(10_000) <= 5_000);
  });

  it("is none after short work, or when the namespace is forgotten", () => {
    assert.ok(leftAfter(20) <= 0);
    leftAfter(100);
    rests.forget(NAMESPACE);
    assert.ok(rests.leftMs(NAMESPACE) <= 0);
  });
});
