/** Shows how Inlay observes Vault servers from outside: sealed, shut down, silent. */
import assert from "node:assert/strict";
import { startVault, type Vault } from "../control-plane/vault.ts";
import { eventually } from "../controller/eventually.ts";
import { VaultSetUp, type VaultTeam } from "../controller/vault-team.ts";
import { TcpProxy } from "../faults/proxy.ts";

const KEYS = ["active", "initialized", "performance_standby", "sealed", "standby"];
const SHUT_DOWN = {
  active: "false",
  initialized: "false",
  performance_standby: "false",
  sealed: "true",
  standby: "false",
};
const RUNS = { ...SHUT_DOWN, active: "true", initialized: "true", sealed: "false" };
const CONFIG_MAP = "health";

describe("the health of a Vault server as a source", function () {
  this.timeout("3m");
  let setUp: VaultSetUp;
  let other: Vault;
  let doors: { first: TcpProxy; second: TcpProxy };
  let team: VaultTeam;

  before(async function () {
    this.timeout("20m");
    setUp = await VaultSetUp.start();
    other = await startVault();
    doors = { first: await TcpProxy.start(setUp.vault.address), second: await TcpProxy.start(other.address) };
    const rules = [
      { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
    ];
    team = await setUp.createTeam(
      { address: doors.first.url, timeout: "1s", auth: undefined, paths: undefined },
      { rules },
    );
    await team.team.bind(CONFIG_MAP, {
      sources: [
        {
          name: "server",
          vault: { connection: { name: "vault" }, refresh: "1s", health: { address: doors.second.url } },
        },
      ],
      targets: [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          name: CONFIG_MAP,
          create: { manifest: {} },
          fields: KEYS.map((key) => ({ path: `data.${key}`, from: { source: "server", key } })),
        },
      ],
    });
  });
  afterEach(() => {
    for (const door of Object.values(doors)) door.resume();
  });
  after(async () => {
    await setUp.stop();
    await other.stop();
    await Promise.all(Object.values(doors).map((door) => door.stop()));
  });

  const shown = async () => (await team.team.api.find(`${team.team.path("v1", "configmaps")}/${CONFIG_MAP}`))?.data;
  const shows = (expected: object, withinMs?: number) =>
    eventually(async () => assert.deepEqual(await shown(), expected), withinMs);

  it("is read without a login", async () => {
    await shows(RUNS);
    await team.untilConnection("Ready");
  });

  it("follows a server that is sealed and unsealed", async () => {
    await other.seal();
    // Vault answers for a sealed server as for a standby.
    await shows({ ...RUNS, active: "false", sealed: "true", standby: "true" });
    await other.unseal();
    await shows(RUNS);
  });

  it("does not change while no server answers, which is reported, and then is that of a server that is shut down", async () => {
    for (const door of Object.values(doors)) door.stall();
    await team.team.until(CONFIG_MAP, "Unreachable", 60_000);
    assert.deepEqual(await shown(), RUNS);
    doors.first.resume();
    await shows(SHUT_DOWN, 60_000);
    await team.team.until(CONFIG_MAP, "Synced");
    doors.second.resume();
    await shows(RUNS, 60_000);
  });

  it("is that of a server that is shut down at once when the server refuses connections", async () => {
    await doors.second.stop();
    // This takes less than the 15 seconds without an answer that Inlay waits.
    await shows(SHUT_DOWN, 10_000);
    await team.team.until(CONFIG_MAP, "Synced");
  });
});
