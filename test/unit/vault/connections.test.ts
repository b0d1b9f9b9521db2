/** The states of VaultConnections that sources see, and the changes that they are notified of. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { VaultConnections } from "../../../src/vault/connections.ts";
import type { ConnectionState, VaultConnected } from "../../../src/vault/types.ts";

const connected = {} as VaultConnected;
const ready = (revision: string, labels: Record<string, string> = {}): ConnectionState => ({
  phase: "ready",
  revision,
  connected,
  paths: ["kv/*"],
  usesAccountTokens: true,
  labels,
});
const failed = (message: string): ConnectionState => ({
  phase: "failed",
  labels: {},
  problem: new Problem("ConnectionNotReady", message),
});

describe("the registry of VaultConnections", () => {
  let heard: string[];
  let connections: VaultConnections;
  beforeEach(() => {
    heard = [];
    connections = new VaultConnections();
    connections.listen({
      changed: (key) => heard.push(`changed ${key}`),
      refresh: (key) => heard.push(`refresh ${key}`),
    });
  });
  const phase = (name = "vault") => connections.get({ namespace: "registry", name })?.phase;

  it("reports an unknown connection as pending until all are listed, and then as missing", () => {
    assert.equal(phase("none"), "pending");
    connections.appeared("registry/vault");
    connections.listed();
    assert.equal(phase("none"), undefined);
    assert.equal(phase(), "pending");
    // A requested connection that was pending is still pending.
    assert.deepEqual(heard, ["changed inlay.dev|VaultConnection|registry|none"]);
  });

  it("notifies of a connection that is created, changed and deleted", () => {
    connections.listed();
    connections.appeared("registry/vault");
    connections.set("registry/vault", ready("1"));
    connections.set("registry/vault", ready("2"));
    connections.set("registry/vault", ready("2", { team: "a" }));
    connections.set("registry/vault", failed("a"));
    connections.set("registry/vault", failed("b"));
    connections.delete("registry/vault");
    assert.equal(phase(), undefined);
    assert.deepEqual(heard, Array(7).fill("changed inlay.dev|VaultConnection|registry|vault"));
  });

  it("notifies of nothing if nothing changed", () => {
    connections.set("registry/vault", ready("1", { team: "a" }));
    connections.set("registry/other", failed("a"));
    heard = [];
    connections.appeared("registry/vault");
    connections.set("registry/vault", ready("1", { team: "a" }));
    connections.set("registry/other", failed("a"));
    connections.delete("registry/none");
    connections.listed();
    assert.equal(phase(), "ready");
    assert.deepEqual(heard, []);
  });

  it("passes on a refresh", () => {
    connections.refresh("registry/vault");
    assert.deepEqual(heard, ["refresh inlay.dev|VaultConnection|registry|vault"]);
  });
});
