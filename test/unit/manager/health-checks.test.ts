/** When the controller is ready, when it is alive, and what it says when it is not. */
import assert from "node:assert/strict";
import type { StreamState } from "../../../src/cache/reflector.ts";
import { notAlive, notReady } from "../../../src/manager/health-checks.ts";

const stream = (more: Partial<StreamState> = {}): StreamState => ({
  resource: "secrets",
  phase: "synced",
  refused: false,
  quietSeconds: 1,
  interruptedSeconds: 0,
  ...more,
});
const bindings = (more: Partial<StreamState> = {}) => stream({ resource: "inlay.dev/secretbindings", ...more });

describe("readiness", () => {
  it("is given once the bindings are in step, before there is any other stream", () => {
    assert.deepEqual(notReady(undefined, [bindings()], []), []);
    assert.deepEqual(notReady(undefined, [bindings({ phase: "pending" })], []), ["pending: inlay.dev/secretbindings"]);
    const refused = bindings({ phase: "failed", refused: true });
    assert.deepEqual(notReady(undefined, [refused], []), ["failed: inlay.dev/secretbindings"]);
  });

  it("says which kinds of streams are silent or don't come in, and how many, and no name", () => {
    const streams = [
      stream({ quietSeconds: 119 }),
      stream({ quietSeconds: 121 }),
      stream({ quietSeconds: 300 }),
      stream({ quietSeconds: 31, phase: "failed" }),
      stream({ resource: "goharbor.io/harborclusters", phase: "pending", quietSeconds: 29 }),
      stream({ resource: "goharbor.io/harborclusters", phase: "pending", quietSeconds: 31 }),
    ];
    assert.deepEqual(notReady(undefined, [bindings({ quietSeconds: 200 })], streams), [
      "silent: inlay.dev/secretbindings",
      "silent: secrets (2 watches)",
      "failed: secrets",
      "pending: goharbor.io/harborclusters",
    ]);
  });

  it("says which streams broke and were not to be had again for ten seconds", () => {
    const streams = [stream({ interruptedSeconds: 9.9 }), stream({ interruptedSeconds: 10.1 })];
    assert.deepEqual(notReady(undefined, [bindings({ interruptedSeconds: 11 })], streams), [
      "interrupted: inlay.dev/secretbindings",
      "interrupted: secrets",
    ]);
    const refused = stream({ phase: "failed", refused: true, interruptedSeconds: 10_000 });
    assert.deepEqual(notReady(undefined, [bindings()], [refused]), []);
  });

  it("does not depend on rights that one binding's account lacks", () => {
    const refused = stream({ phase: "failed", refused: true, quietSeconds: 10_000 });
    assert.deepEqual(notReady(undefined, [bindings()], [refused]), []);
  });

  it("is given to a standby, which has no streams, as long as it knows who leads", () => {
    const none = bindings({ phase: "pending", quietSeconds: 10_000 });
    assert.deepEqual(notReady({ mayWrite: false, inTouch: true }, [none], []), []);
    assert.deepEqual(notReady({ mayWrite: false, inTouch: false }, [none], []), [
      "unreachable: coordination.k8s.io/leases",
    ]);
    assert.deepEqual(notReady({ mayWrite: true, inTouch: true }, [none], []), ["pending: inlay.dev/secretbindings"]);
  });
});

describe("liveness", () => {
  it("ends only with a reconcile that runs for longer than all its requests may", () => {
    assert.deepEqual(notAlive("secretbinding", []), []);
    assert.deepEqual(notAlive("secretbinding", [1, 599]), []);
    assert.deepEqual(notAlive("secretbinding", [1, 601.4]), ["stuck: a reconcile of secretbinding has run for 601 s"]);
  });
});
