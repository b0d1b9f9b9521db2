/** VaultConnections to a server that accepts connections and never answers. Each had a TLS context and checks of its own. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import type { AnyObject } from "../api.ts";
import { eventually } from "../eventually.ts";
import { type Attack, sized } from "./attack.ts";

const CONNECTIONS = 12_000;
const LIMIT = 100;
/** How many are created at a time. */
const LANES = 4;
/** Checks of a silent server end after its timeout, and statuses beyond the limit are written at a limited rate. */
const REPORTED_WITHIN_MS = 60_000;

const sockets = new Set<Socket>();
const silent = createServer((socket) => {
  sockets.add(socket);
  socket.on("error", () => {}).on("close", () => sockets.delete(socket));
});

const TYPE = { apiVersion: "inlay.dev/v1alpha1", kind: "VaultConnection" };
const nameOf = (n: number) => `vault-${String(n).padStart(5, "0")}`;

export const manyConnections: Attack = {
  tenant: `${CONNECTIONS} VaultConnections to a server that never answers`,
  async prepare() {
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    return { vault: { addresses: [addressOf()] } };
  },
  async launch(tenant, scale) {
    const path = tenant.path("inlay.dev/v1alpha1", "vaultconnections");
    const create = (n: number) =>
      tenant.api.create(path, { ...TYPE, metadata: { name: nameOf(n) }, spec: { address: addressOf() } });
    const all = Array.from({ length: sized(CONNECTIONS, scale) }, (_, n) => n);
    // The oldest ones are those with the first names, also where several have the same second.
    const lanes = Array.from({ length: LANES }, (_, lane) => all.filter((n) => n % LANES === lane));
    await Promise.all(
      lanes.map(async (lane) => {
        for (const n of lane) await create(n);
      }),
    );
  },
  async isReported(tenant) {
    const path = tenant.path("inlay.dev/v1alpha1", "vaultconnections");
    await eventually(async () => {
      const { items } = await tenant.api.get(path);
      const reasons = items.map(({ status }: AnyObject) => status?.conditions?.[0]?.reason);
      const count = (reason: string) => reasons.filter((each: string) => each === reason).length;
      assert.equal(count("VaultUnavailable"), LIMIT);
      assert.ok(count("LimitExceeded") > 0);
    }, REPORTED_WITHIN_MS);
  },
  async end() {
    silent.close();
    for (const socket of sockets) socket.destroy();
  },
};

function addressOf(): string {
  const { port } = silent.address() as AddressInfo;
  return `https://127.0.0.1:${port}`;
}
