/** When the measurement of a change begins and ends. */
import assert from "node:assert/strict";
import { Propagation } from "../../../src/observability/propagation.ts";

describe("the propagation of a change", () => {
  let now = 0;
  let measured: number[];
  let propagation: Propagation;
  beforeEach(() => {
    measured = [];
    propagation = new Propagation(
      (seconds) => measured.push(seconds),
      () => now,
    );
  });

  const reconcile = (work: () => void, failed = false) =>
    propagation.during(
      "registry/harbor-s3",
      async () => work(),
      () => failed,
    );
  const changed = () => propagation.changed("registry/harbor-s3");
  const wrote = () => propagation.wrote("registry/harbor-s3");

  it("is measured from the first event to the accepted write, once", async () => {
    now = 1_000;
    changed();
    now = 3_000;
    changed();
    await reconcile(() => {
      now = 4_500;
      wrote();
      wrote();
    });
    assert.deepEqual(measured, [3.5]);
  });

  it("is not measured for writes without an event, such as after a start", async () => {
    await reconcile(wrote);
    assert.deepEqual(measured, []);
  });

  it("is not measured if nothing had to be written", async () => {
    changed();
    await reconcile(() => {});
    now += 60_000;
    await reconcile(wrote);
    assert.deepEqual(measured, []);
  });

  it("continues through failed attempts", async () => {
    now = 0;
    changed();
    await reconcile(() => {}, true);
    await assert.rejects(
      reconcile(() => {
        throw new Error("a bug");
      }),
    );
    now = 20_000;
    await reconcile(wrote);
    assert.deepEqual(measured, [20]);
  });

  it("ends with a write, even if another target of the binding failed", async () => {
    changed();
    await reconcile(wrote, true);
    now += 60_000;
    await reconcile(wrote);
    assert.equal(measured.length, 1);
  });

  it("begins again for a change during a reconcile", async () => {
    now = 0;
    changed();
    await reconcile(() => {
      now = 1_000;
      changed();
      now = 2_000;
      wrote();
    });
    now = 5_000;
    await reconcile(wrote);
    assert.deepEqual(measured, [2, 4]);
  });
});
