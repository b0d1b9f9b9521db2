/** Failures of Vault, its network, its logins and the controller. No value is lost, and none is written twice. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";
import { accessKeySpec, harborTarget } from "../controller/test-namespace.ts";
import { VaultSetUp, type VaultTeam } from "../controller/vault-team.ts";
import { TcpProxy } from "./proxy.ts";

const COUNT = 12;
const ENTRIES = Array.from({ length: COUNT }, (_, n) => `path-${n}`);
/** The backoff of a failing poll is at most half a minute. */
const HEALED_WITHIN_MS = 60_000;

/** The bindings of one namespace. Each reads its own path and writes its own HarborCluster. */
class VaultFleet {
  readonly team: VaultTeam;
  /** The current access key of each path. */
  readonly keys = new Map<string, string>();

  constructor(team: VaultTeam) {
    this.team = team;
  }

  async launch(): Promise<void> {
    await this.rotate();
    await Promise.all(
      ENTRIES.map(async (entry) => {
        await this.team.team.harbor(entry);
        await this.team.team.bind(entry, {
          acknowledge: ["ReadableCopies"],
          sources: [this.team.source(this.team.data(entry))],
          targets: [{ ...harborTarget({ accesskey: { from: { source: "s3", key: "accessKey" } } }), name: entry }],
        });
      }),
    );
    await this.inStep();
  }

  /** Writes a new access key to each path. */
  async rotate(): Promise<void> {
    await Promise.all(ENTRIES.map(async (entry) => this.keys.set(entry, await this.team.rotate(entry))));
  }

  async inStep(withinMs = HEALED_WITHIN_MS): Promise<void> {
    await eventually(async () => {
      for (const entry of ENTRIES)
        assert.ok((await this.team.team.s3(entry)).accesskey === this.keys.get(entry), `${entry} is behind`);
    }, withinMs);
    await this.say("Synced", withinMs);
  }

  async say(reason: string, withinMs = HEALED_WITHIN_MS): Promise<void> {
    await Promise.all(ENTRIES.map((entry) => this.team.team.until(entry, reason, withinMs)));
  }

  async generations(): Promise<number[]> {
    const path = this.team.team.path("goharbor.io/v1beta1", "harborclusters");
    const { items } = await this.team.team.api.get(path);
    const all = new Map<string, number>(
      items.map(({ metadata }: { metadata: { name: string; generation: number } }) => [
        metadata.name,
        metadata.generation,
      ]),
    );
    return ENTRIES.map((entry) => all.get(entry) ?? 0);
  }

  /** Each target is written once for what `act` does. */
  async writesOnce(act: () => Promise<unknown>): Promise<void> {
    const before = await this.generations();
    await act();
    await this.inStep();
    const after = await this.generations();
    assert.deepEqual(
      after,
      before.map((generation) => generation + 1),
    );
  }
}

describe("a failure of Vault", function () {
  this.timeout("4m");
  let setUp: VaultSetUp;
  let proxy: TcpProxy;
  let fleet: VaultFleet;

  before(async function () {
    this.timeout("20m");
    setUp = await VaultSetUp.start({ storage: "file" });
    proxy = await TcpProxy.start(setUp.vault.address);
    fleet = new VaultFleet(await setUp.createTeam({ address: proxy.url, timeout: "2s" }));
    await fleet.launch();
  });
  afterEach(() => proxy.resume());
  after(async () => {
    await setUp.stop();
    await proxy.stop();
  });

  const accessKeys = async () =>
    Promise.all(ENTRIES.map(async (entry) => (await fleet.team.team.s3(entry)).accesskey as string));
  const keepsWhile = async (act: () => Promise<unknown>) => {
    const before = await accessKeys();
    await act();
    assert.ok(
      (await accessKeys()).every((each, n) => each === before[n]),
      "what was written stays",
    );
  };

  it("by a seal under load is reported, and each value is written once after the unseal", async () => {
    await keepsWhile(async () => {
      await setUp.vault.seal();
      await fleet.say("VaultSealed");
      await fleet.team.untilConnection("VaultSealed");
    });
    await setUp.vault.unseal();
    await fleet.writesOnce(() => fleet.rotate());
    await fleet.team.untilConnection("Ready");
  });

  it("by a crash is reported, and each value is written once when Vault runs again", async () => {
    await keepsWhile(async () => {
      await setUp.vault.kill();
      await fleet.say("VaultUnavailable");
      await setUp.vault.restart();
      await fleet.say("VaultSealed");
    });
    await setUp.vault.unseal();
    await fleet.writesOnce(() => fleet.rotate());
  });

  it("by a silent network is reported, and each value is written once when the network is back", async () => {
    await fleet.writesOnce(async () => {
      proxy.stall();
      await keepsWhile(async () => {
        await fleet.rotate();
        await fleet.say("VaultUnavailable");
        await fleet.team.untilConnection("VaultUnavailable");
      });
      proxy.resume();
    });
  });

  it("by cut connections loses no value", async () => {
    await fleet.writesOnce(async () => {
      assert.ok(proxy.cut() > 0);
      await fleet.rotate();
      // The polls have opened other connections by then.
      await eventually(() => assert.ok(proxy.cut() > 0));
    });
  });

  it("by revoked tokens makes Inlay log in again at once", async () => {
    await fleet.writesOnce(async () => {
      await setUp.vault.api("PUT", "sys/leases/revoke-prefix/auth/kubernetes/login", {});
      await fleet.rotate();
    });
  });

  it("by a deleted role is reported, and ends when the role is back", async () => {
    const role = `auth/kubernetes/role/inlay-${fleet.team.namespace}`;
    await keepsWhile(async () => {
      await setUp.vault.api("DELETE", role);
      await setUp.vault.api("PUT", "sys/leases/revoke-prefix/auth/kubernetes/login", {});
      await fleet.say("VaultDenied");
    });
    await setUp.allow(fleet.team.namespace);
    await fleet.writesOnce(() => fleet.rotate());
  });

  it("while the controller was down during a change changes nothing, and a restart writes nothing", async () => {
    await fleet.writesOnce(async () => {
      await setUp.controller.stop("SIGKILL");
      await fleet.rotate();
      await setUp.controller.start();
    });
    await setUp.controller.idle();
    const mark = await auditLog().mark();
    await setUp.controller.stop();
    await setUp.controller.start();
    // The writes after the first answers.
    const last = secretText("access");
    fleet.keys.set("path-0", last);
    await fleet.team.put("path-0", { accessKey: last });
    await fleet.inStep();
    const writes = (await auditLog().since(mark)).filter(
      ({ verb, namespace, resource, name }) =>
        namespace === fleet.team.namespace &&
        ["create", "update", "patch", "delete"].includes(verb) &&
        /harborclusters|secretbindings|vaultconnections/.test(resource) &&
        name !== "path-0",
    );
    assert.deepEqual(writes, []);
  });

  it("keeps the controller ready, and other bindings working", async () => {
    proxy.stall();
    try {
      await fleet.say("VaultUnavailable");
      assert.equal(await setUp.controller.page("/readyz"), "ok\n");
      const accessKey = secretText("access");
      await fleet.team.team.secret("bucket", { accessKeyID: accessKey });
      await fleet.team.team.bind("harbor-s3", accessKeySpec());
      await fleet.team.holds(accessKey);
    } finally {
      proxy.resume();
    }
    await fleet.say("Synced");
  });
});
