/** When the server of a VaultConnection is checked, and when its controller hears of the result. */
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

  it("are made at once, and every minute while the server is ready, which is reported once", async () => {
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

  it("come sooner while the server is not ready, each with a longer pause, half a minute or so at most", async () => {
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

  it("are made when reads fail, and seldom while they find nothing wrong", async () => {
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

  it("come no sooner than a server that limits requests says", async () => {
    const throttled = Object.assign(new Problem("VaultThrottled", "too many requests"), { retryAfterMs: 120_000 });
    server.answer = async () => ({ problem: throttled });
    checks.start(KEY, server);
    await clock.pass(119_000);
    assert.equal(server.checks, 1);
    await clock.pass(1_000);
    assert.equal(server.checks, 2);
  });

  it("that throw are results too, and an unexpected error is handed on", async () => {
    server.answer = () => Promise.reject(sealed.problem);
    checks.start(KEY, server);
    await settled();
    assert.equal(checks.resultOf(KEY)?.problem, sealed.problem);
    const bug = new TypeError("a bug");
    server.answer = () => Promise.reject(bug);
    checks.now(KEY);
    await settled();
    assert.equal(checks.resultOf(KEY)?.problem?.reason, "VaultUnavailable");
    assert.deepEqual(errors, [bug]);
  });

  it("are made at once when asked for, and once more where one ran already", async () => {
    checks.start(KEY, server);
    await settled();
    const { promise, resolve } = Promise.withResolvers<ConnectionCheck>();
    server.answer = () => promise;
    checks.now(KEY);
    checks.now(KEY);
    checks.now(KEY);
    await settled();
    assert.equal(server.checks, 2);
    resolve({ version: "1.21.4" });
    await clock.pass(1);
    assert.equal(server.checks, 3);
    checks.now("registry/none");
  });

  it("of a connection that was replaced or is gone say nothing", async () => {
    const { promise, resolve } = Promise.withResolvers<ConnectionCheck>();
    server.answer = () => promise;
    checks.start(KEY, server);
    const next = new Server();
    checks.start(KEY, next);
    await settled();
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
