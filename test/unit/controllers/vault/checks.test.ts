/** When the server of a VaultConnection is checked, and when its controller is notified of the result. */
import assert from "node:assert/strict";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { Checks } from "../../../../src/controllers/vault/checks.ts";
import type { ConnectionCheck } from "../../../../src/vault/connection.ts";
import { fakeClock, settled } from "../../clock.ts";

const KEY = "registry/vault";
const sealed = { problem: new Problem("VaultSealed", "the server is sealed") };

/** A server whose checks the test answers. */
class Server {
  checks = 0;
  isUsed = true;
  answer: () => Promise<ConnectionCheck> = async () => ({ version: "1.21.4" });
  check(): Promise<ConnectionCheck> {
    this.checks++;
    return this.answer();
  }
}

describe("checks of VaultConnections", () => {
  const clock = fakeClock();
  let changes: number;
  let recovered: number;
  let errors: unknown[];
  let checks: Checks;
  let server: Server;
  /** Passes the time between the turns of two checks. */
  const turn = () => clock.pass(20);
  beforeEach(() => {
    [changes, recovered, errors, server] = [0, 0, [], new Server()];
    const hooks = {
      changed: () => {
        changes++;
      },
      recovered: () => {
        recovered++;
      },
      failed: (_: string, error: unknown) => errors.push(error),
    };
    checks = new Checks(hooks, () => Date.now());
  });

  it("run at once, and every minute while the server is ready, which is reported once", async () => {
    checks.start(KEY, server);
    assert.equal(checks.resultOf(KEY), undefined);
    await settled();
    assert.deepEqual(checks.resultOf(KEY), { version: "1.21.4" });
    await clock.pass(53_000);
    assert.equal(server.checks, 1);
    await clock.pass(14_000);
    assert.equal(server.checks, 2);
    assert.equal(changes, 1);
  });

  it("share a rate, of which namespaces take turns", async () => {
    const names = ["crowd/a", "crowd/b", "crowd/c", "crowd/d", "registry/vault"];
    const servers = new Map(names.map((key) => [key, new Server()]));
    for (const [key, each] of servers) checks.start(key, each);
    const checked = () => names.filter((key) => servers.get(key)?.checks === 1);
    await settled();
    assert.deepEqual(checked(), ["crowd/a"]);
    await clock.pass(20);
    await clock.pass(20);
    assert.deepEqual(checked(), ["crowd/a", "crowd/b", "registry/vault"]);
    checks.stop("crowd/c");
    await clock.pass(20);
    await clock.pass(20);
    assert.deepEqual(checked(), ["crowd/a", "crowd/b", "crowd/d", "registry/vault"]);
  });

  it("are rare while no binding uses the connection, and run at its first use", async () => {
    server.isUsed = false;
    checks.start(KEY, server);
    await clock.pass(9 * 60_000 - 1);
    assert.equal(server.checks, 1);
    checks.used(KEY);
    await settled();
    assert.equal(server.checks, 2);
    await clock.pass(11 * 60_000);
    assert.equal(server.checks, 3);
  });

  it("that are requested are reported when they end, although the result is the same", async () => {
    checks.start(KEY, server);
    await turn();
    let answer = () => {};
    server.answer = () =>
      new Promise((resolve) => {
        answer = () => resolve({ version: "1.21.4" });
      });
    checks.now(KEY);
    await settled();
    const first = answer;
    checks.now(KEY);
    first();
    await settled();
    assert.deepEqual([checks.isAwaited(KEY), changes], [true, 1]);
    await turn();
    answer();
    await settled();
    assert.deepEqual([checks.isAwaited(KEY), changes, server.checks], [false, 2, 3]);
  });

  it("run sooner while the server is not ready, with pauses that grow to about 30 s", async () => {
    server.answer = async () => sealed;
    checks.start(KEY, server);
    await settled();
    for (const [pause, least] of [
      [1_250, 2],
      [2_500, 3],
      [5_000, 4],
    ] as const) {
      await clock.pass(pause);
      assert.ok(server.checks >= least, `${server.checks}`);
    }
    await clock.pass(600_000);
    const before = server.checks;
    await clock.pass(37_500);
    assert.ok(server.checks > before);
    assert.equal(changes, 1, "the problem is the same all the time");
    server.answer = async () => ({ version: "1.21.4" });
    await clock.pass(37_500);
    assert.deepEqual(checks.resultOf(KEY), { version: "1.21.4" });
    assert.deepEqual([changes, recovered], [2, 1]);
  });

  it("run when reads fail, and rarely while they find no problem", async () => {
    checks.start(KEY, server);
    await settled();
    await clock.pass(10_000);
    for (let reads = 0; reads < 100; reads++) checks.doubt(KEY);
    await settled();
    assert.equal(server.checks, 2);
    await clock.pass(5_000);
    server.answer = async () => sealed;
    checks.doubt(KEY);
    await settled();
    assert.deepEqual([server.checks, checks.resultOf(KEY), changes, recovered], [3, sealed, 2, 0]);
    checks.doubt(KEY);
    await settled();
    assert.equal(server.checks, 3, "the backoff goes on");
  });

  it("run no sooner than a server that limits requests permits", async () => {
    const throttled = Object.assign(new Problem("VaultThrottled", "too many requests"), { retryAfterMs: 120_000 });
    server.answer = async () => ({ problem: throttled });
    checks.start(KEY, server);
    await clock.pass(119_000);
    assert.equal(server.checks, 1);
    await clock.pass(1_000);
    assert.equal(server.checks, 2);
  });

  it("that throw have a result too, and an unexpected error is passed on", async () => {
    server.answer = () => Promise.reject(sealed.problem);
    checks.start(KEY, server);
    await turn();
    assert.equal(checks.resultOf(KEY)?.problem, sealed.problem);
    const bug = new TypeError("a bug");
    server.answer = () => Promise.reject(bug);
    checks.now(KEY);
    await settled();
    assert.equal(checks.resultOf(KEY)?.problem?.reason, "VaultUnavailable");
    assert.deepEqual(errors, [bug]);
  });

  it("run at once when requested, and once more if one was running", async () => {
    checks.start(KEY, server);
    await turn();
    const { promise, resolve } = Promise.withResolvers<ConnectionCheck>();
    server.answer = () => promise;
    checks.now(KEY);
    await settled();
    checks.now(KEY);
    checks.now(KEY);
    await settled();
    assert.equal(server.checks, 2);
    resolve({ version: "1.21.4" });
    await turn();
    await turn();
    assert.equal(server.checks, 3);
    checks.now("registry/none");
  });

  it("of a replaced or deleted connection report nothing", async () => {
    const { promise, resolve } = Promise.withResolvers<ConnectionCheck>();
    server.answer = () => promise;
    checks.start(KEY, server);
    await settled();
    const next = new Server();
    checks.start(KEY, next);
    await turn();
    assert.equal(changes, 1);
    resolve(sealed);
    await settled();
    assert.deepEqual(checks.resultOf(KEY), { version: "1.21.4" });
    checks.stopAll();
    await clock.pass(600_000);
    assert.deepEqual([server.checks, next.checks, changes], [1, 1, 1]);
    assert.equal(checks.resultOf(KEY), undefined);
  });
});
