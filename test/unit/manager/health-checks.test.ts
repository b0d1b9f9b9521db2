/** Readiness and liveness of the controller, and the reasons that it reports. */
import assert from "node:assert/strict";
import type { StreamState } from "../../../src/cache/reflector.ts";
import { notAlive, notReady } from "../../../src/manager/manager.ts";

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
  it("is reported once the bindings are in sync, before there are other streams", () => {
    assert.deepEqual(notReady(undefined, [bindings()], []), []);
    assert.deepEqual(notReady(undefined, [bindings({ phase: "pending" })], []), ["pending: inlay.dev/secretbindings"]);
    const refused = bindings({ phase: "failed", refused: true });
    assert.deepEqual(notReady(undefined, [refused], []), ["failed: inlay.dev/secretbindings"]);
  });

  it("reports the kinds and numbers of silent or pending streams, without names", () => {
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

  it("reports streams that have been interrupted for ten seconds", () => {
    const streams = [stream({ interruptedSeconds: 9.9 }), stream({ interruptedSeconds: 10.1 })];
    assert.deepEqual(notReady(undefined, [bindings({ interruptedSeconds: 11 })], streams), [
      "interrupted: inlay.dev/secretbindings",
      "interrupted: secrets",
    ]);
    const refused = stream({ phase: "failed", refused: true, interruptedSeconds: 10_000 });
    assert.deepEqual(notReady(undefined, [bindings()], [refused]), []);
  });

  it("does not depend on permissions that the account of one binding lacks", () => {
    const refused = stream({ phase: "failed", refused: true, quietSeconds: 10_000 });
    assert.deepEqual(notReady(undefined, [bindings()], [refused]), []);
  });

  it("is reported by a standby, which has no streams, as long as it knows the leader", () => {
    const none = bindings({ phase: "pending", quietSeconds: 10_000 });
    assert.deepEqual(notReady({ mayWrite: false, inTouch: true }, [none], []), []);
    assert.deepEqual(notReady({ mayWrite: false, inTouch: false }, [none], []), [
      "unreachable: coordination.k8s.io/leases",
    ]);
    assert.deepEqual(notReady({ mayWrite: true, inTouch: true }, [none], []), ["pending: inlay.dev/secretbindings"]);
  });
});

describe("liveness", () => {
  it("fails only when a reconcile runs longer than all its requests may", () => {
    assert.deepEqual(notAlive("secretbinding", []), []);
    assert.deepEqual(notAlive("secretbinding", [1, 599]), []);
    assert.deepEqual(notAlive("secretbinding", [1, 601.4]), ["stuck: a reconcile of secretbinding has run for 601 s"]);
  });
});
