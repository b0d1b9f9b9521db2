/**
 * Real clusters of Vault for tests, at port 8200 of loopback addresses, like pods. A cluster is one process with a core for each
 * address, or a process for each address, which a test can kill or stop separately.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { eventually } from "../controller/eventually.ts";
import { startVault, type Vault, type VaultOptions } from "./vault.ts";

export type Hosts = [string, string, string];

/** 127.x.y.11 to .13, in a network that no other test uses at the same time. */
export function loopbackHosts(): Hosts {
  const network = `127.${randomInt(1, 255)}.${randomInt(256)}`;
  return [`${network}.11`, `${network}.12`, `${network}.13`];
}

/**
 * Starts three cores with one storage in memory, in one process. The first one is active. Any of them can step down, and another
 * one becomes active.
 */
export async function startVaultCluster(at: Hosts, options: VaultOptions = {}): Promise<Vault> {
  const vault = await startVault({ ...options, at });
  try {
    await activateFirst(vault, at);
    return vault;
  } catch (error) {
    await vault.stop();
    throw error;
  }
}

/** On a busy machine another core can be the first to get the lock of the storage. It steps down then. */
async function activateFirst(vault: Vault, hosts: Hosts): Promise<void> {
  await eventually(async () => {
    const answers = await Promise.all(hosts.map((host) => vault.askAt(host, "GET", "sys/health")));
    const active = answers.findIndex(({ status }) => status === 200);
    const other = active > 0 ? hosts[active] : undefined;
    if (other !== undefined) await vault.askAt(other, "PUT", "sys/step-down");
    assert.equal(active, 0);
  }, 60_000);
}

/**
 * Starts three processes with integrated storage and one certificate. When the active one ends or stops, the others elect
 * another.
 */
export async function startVaultProcesses(
  hosts: Hosts,
  { names, ...options }: Pick<VaultOptions, "versionMetadata"> & { names: [string, ...string[]] },
): Promise<[Vault, Vault, Vault]> {
  const start = (host: string, first?: Vault) =>
    startVault({
      ...options,
      tls: { names, ...(first && { of: first }) },
      storage: "raft",
      at: [host],
      initialize: first === undefined,
    });
  const first = await start(hosts[0]);
  // It elects itself when it serves.
  await eventually(async () => assert.equal((await first.ask("GET", "sys/health")).status, 200));
  await first.api("POST", "sys/storage/raft/autopilot/configuration", { server_stabilization_time: "1s" });
  const others = await Promise.all([start(hosts[1], first), start(hosts[2], first)]);
  await Promise.all(others.map((each) => each.join(first)));
  return [first, ...others];
}
