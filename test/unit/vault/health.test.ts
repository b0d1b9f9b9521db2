/** The reported health of servers: by their own answer, and without an answer. */
import assert from "node:assert/strict";
import { VaultAddresses } from "../../../src/api/vault-addresses.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { ServerHealth } from "../../../src/vault/health.ts";
import { VaultReply, type VaultRequest } from "../../../src/vault/http.ts";
import { type FailureKind, HttpFailure } from "../../../src/vault/http-failure.ts";
import type { VaultAnswer } from "../../../src/vault/types.ts";
import { fakeClock, settled } from "../clock.ts";
import { textsIn } from "./server.ts";

const OWN = "https://vault.vault.svc:8200";
const [FIRST, SECOND] = ["https://vault-0.vault.svc:8200", "https://vault-1.vault.svc:8200"];
const SHUT_DOWN = {
  initialized: "false",
  sealed: "true",
  standby: "false",
  performance_standby: "false",
  active: "false",
};

describe("the health of a Vault server", () => {
  const clock = fakeClock();
  /** By address; servers that are not listed are active. */
  let answers: Map<string, VaultReply | FailureKind>;
  let asked: string[];
  let health: ServerHealth;

  beforeEach(() => {
    answers = new Map();
    asked = [];
    const send = async ({ server }: VaultRequest) => {
      const { origin = "" } = server ?? {};
      asked.push(origin);
      const answer = answers.get(origin) ?? reply({});
      if (typeof answer === "string") throw new HttpFailure(answer);
      return answer;
    };
    const addresses = new VaultAddresses(["*.vault.svc:8200", "*.vault.svc:443"]);
    const settings = { address: new URL(OWN), timeoutMs: 5_000 };
    health = new ServerHealth(settings, { send }, addresses, () => Date.now());
  });

  function reply(fields: Record<string, unknown>, status = 200): VaultReply {
    const active = { initialized: true, sealed: false, standby: false, performance_standby: false, version: "1.21.4" };
    return new VaultReply(status, JSON.stringify({ ...active, ...fields }));
  }
  const read = async (address?: string) => textsIn((await health.read(address, undefined)).content?.data);
  /** For a read that waits before its second request. */
  const secondLater = async <T>(read: Promise<T>): Promise<T> => {
    read.catch(() => {});
    await clock.pass(1_000);
    return read;
  };
  const failsAs = (read: Promise<unknown>, reason: string, says: RegExp) =>
    assert.rejects(read, (error) => {
      assert.ok(error instanceof Problem, String(error));
      assert.deepEqual([error.reason, says.test(error.message)], [reason, true], error.message);
      return true;
    });

  const states: [what: string, fields: Record<string, unknown>, status: number, values: Record<string, string>][] = [
    ["active", {}, 200, { active: "true", standby: "false", sealed: "false", initialized: "true" }],
    ["a standby", { standby: true }, 429, { active: "false", standby: "true" }],
    [
      "a performance standby",
      { standby: true, performance_standby: true },
      473,
      { active: "false", performance_standby: "true" },
    ],
    ["a DR secondary", { replication_dr_mode: "secondary" }, 472, { active: "false", standby: "false" }],
    ["sealed", { sealed: true, standby: true }, 503, { active: "false", sealed: "true", initialized: "true" }],
    ["not initialized", { initialized: false, sealed: true }, 501, { active: "false", initialized: "false" }],
    ["a standby that lost its active server", { standby: true }, 474, { active: "false", standby: "true" }],
    [
      "a server that its cluster removed",
      { removed_from_cluster: true },
      530,
      { active: "false", initialized: "true" },
    ],
    ["an OpenBao", { performance_standby: undefined }, 200, { active: "true", performance_standby: "false" }],
  ];
  for (const [what, fields, status, values] of states) {
    it(`is that of ${what}`, async () => {
      answers.set(OWN, reply(fields, status));
      const found = await read();
      assert.deepEqual({ ...found, ...values }, found);
      assert.equal(found?.["version"], "1.21.4");
    });
  }

  it("is the same answer while nothing changed", async () => {
    const first = await health.read(undefined, undefined);
    assert.equal(await health.read(undefined, first), first);
    answers.set(OWN, reply({ sealed: true }, 503));
    assert.notEqual((await health.read(undefined, first)).version, first.version);
  });

  it("is shut down once a server refuses twice, a second apart", async () => {
    answers.set(FIRST, "refused");
    const reading = read(FIRST);
    await settled();
    assert.deepEqual(asked, [FIRST]);
    assert.deepEqual(await secondLater(reading), SHUT_DOWN);
    assert.deepEqual(await read(FIRST), SHUT_DOWN);
    assert.equal(asked.length, 3);
    answers.delete(FIRST);
    assert.equal((await read(FIRST))?.["active"], "true");
  });

  it("is not reported while all of several servers refuse, and is reported for each once one answers", async () => {
    const last = new Map<string, VaultAnswer>();
    for (const each of [FIRST, SECOND]) last.set(each, await health.read(each, undefined));
    for (const each of [OWN, FIRST, SECOND]) answers.set(each, "refused");
    for (const each of [FIRST, SECOND, FIRST]) {
      const reading = health.read(each, last.get(each));
      await failsAs(secondLater(reading), "Unreachable", /network may be at fault/);
    }
    answers.delete(SECOND);
    assert.deepEqual(await read(FIRST), SHUT_DOWN);
    assert.equal((await health.read(SECOND, last.get(SECOND))).version, last.get(SECOND)?.version);
    answers.set(SECOND, "refused");
    answers.delete(OWN);
    assert.deepEqual(await read(FIRST), SHUT_DOWN, "the server of the connection answers");
  });

  it("is reported for the only server that bindings read, if the connection's address is another", async () => {
    for (const each of [OWN, FIRST, SECOND]) answers.set(each, "refused");
    await failsAs(health.own(), "VaultUnavailable", /vault\.vault\.svc/);
    assert.deepEqual(await secondLater(read(FIRST)), SHUT_DOWN);
    await failsAs(secondLater(read(SECOND)), "Unreachable", /network may be at fault/);
    await clock.pass(10 * 60_000);
    assert.deepEqual(await read(FIRST), SHUT_DOWN);
  });

  it("is the server's own answer if it refuses only once", async () => {
    answers.set(FIRST, "refused");
    const reading = read(FIRST);
    await settled();
    answers.delete(FIRST);
    assert.equal((await secondLater(reading))?.["active"], "true");
  });

  for (const kind of ["timeout", "unreachable", "name", "broken"] as const) {
    it(`is shut down after 15 seconds of silence (${kind}) if another server answers`, async () => {
      const last = await health.read(FIRST, undefined);
      answers.set(FIRST, kind);
      const unclear = { ...last, refreshMs: 5_000 };
      assert.deepEqual(await health.read(FIRST, last), unclear);
      await failsAs(health.read(FIRST, undefined), "Unreachable", /no server of the connection answers/);
      await clock.pass(14_000);
      assert.deepEqual(await health.read(FIRST, unclear), unclear);
      await clock.pass(1_000);
      asked.splice(0);
      const answer = await health.read(FIRST, last);
      assert.deepEqual(textsIn(answer.content?.data), SHUT_DOWN);
      assert.deepEqual(asked, [FIRST, OWN]);
      answers.delete(FIRST);
      assert.equal((await health.read(FIRST, answer)).version, last.version);
    });
  }

  it("is not reported if all servers are silent", async () => {
    const last = await health.read(FIRST, undefined);
    await health.read(SECOND, undefined);
    for (const each of [OWN, FIRST, SECOND]) answers.set(each, "timeout");
    await health.read(FIRST, last);
    await clock.pass(60_000);
    asked.splice(0);
    await failsAs(
      health.read(FIRST, last),
      "Unreachable",
      /^health of vault-0\.vault\.svc:8200: .+ network may be at fault/,
    );
    assert.deepEqual(new Set(asked), new Set([FIRST, SECOND, OWN]));
    answers.delete(SECOND);
    assert.deepEqual(textsIn((await health.read(FIRST, last)).content?.data), SHUT_DOWN);
  });

  it("is the server's own answer again after a shorter silence, which is then forgotten", async () => {
    const last = await health.read(FIRST, undefined);
    answers.set(FIRST, "timeout");
    const unclear = await health.read(FIRST, last);
    answers.delete(FIRST);
    await clock.pass(60_000);
    assert.deepEqual(await health.read(FIRST, unclear), last, "it is asked as usual again");
    answers.set(FIRST, "timeout");
    assert.deepEqual(await health.read(FIRST, last), { ...last, refreshMs: 5_000 });
  });

  it("is not reported by a proxy, nor by a server that is not trusted", async () => {
    const last = await health.read(FIRST, undefined);
    for (const [answer, reason, says] of [
      [new VaultReply(503, "<html>"), "VaultUnavailable", /not from Vault/],
      [new VaultReply(502, "<html>"), "VaultUnavailable", /^health of (\S+): \1 answered with status 502/],
      [new VaultReply(307, ""), "VaultUnavailable", /status 307/],
      [new VaultReply(200, "{}"), "VaultUnavailable", /not from Vault/],
      ["tls", "VaultUntrusted", /is not trusted/],
    ] as const) {
      answers.set(FIRST, answer);
      await failsAs(health.read(FIRST, last), reason, says);
      await clock.pass(60_000);
    }
  });

  it("is requested only from allowed servers with valid addresses", async () => {
    await failsAs(read("https://vault.example.com"), "ForbiddenAddress", /: - vault\.example\.com:443$/);
    await failsAs(read("http://vault-0.vault.svc:8200"), "ForbiddenAddress", /: - http:\/\/vault-0/);
    for (const address of ["vault", "file:///etc/passwd", ""]) {
      await failsAs(read(address), "InvalidBinding", /^vault\.health\.address: /);
    }
    assert.deepEqual(asked, []);
  });
});
