/** How bindings are counted by the VaultConnection that they read through. */
import assert from "node:assert/strict";
import { countByConnection } from "../../../../src/controllers/vault/controller.ts";

function binding(namespace: string, ready: string, ...connections: { name: string; namespace?: string }[]) {
  const data = { mount: "kv", path: "a" };
  const sources = connections.map((connection, at) => ({ name: `s${at}`, vault: { connection, data } }));
  const spec = { sources, targets: [], serviceAccountName: "inlay" };
  return {
    metadata: { namespace, name: "b" },
    spec,
    status: { conditions: [{ type: "Ready", status: ready, reason: "Synced" }] },
  };
}

describe("the readiness of bindings", () => {
  it("is counted by connection, a binding once for each, in its own namespace by default", () => {
    const all = [
      binding("a", "True", { name: "main" }, { name: "main" }),
      binding("a", "False", { name: "main" }, { name: "main", namespace: "vaults" }),
      binding("b", "True", { name: "main" }),
      binding("b", "True"),
    ];
    assert.deepEqual(Object.fromEntries(countByConnection(all)), {
      "a/main": { ready: 1, notReady: 1 },
      "vaults/main": { ready: 0, notReady: 1 },
      "b/main": { ready: 1, notReady: 0 },
    });
  });
});
