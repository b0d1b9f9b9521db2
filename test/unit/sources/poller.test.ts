/** When servers are polled, who shares an answer, and who is notified of a change. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { Poll } from "../../../src/sources/poll.ts";
import { Poller } from "../../../src/sources/poller.ts";
import { VaultProblem } from "../../../src/vault/failures.ts";
import { fakeClock, settled } from "../clock.ts";
import { NOT_IN_FILES } from "../fakes.ts";

/** A server whose answers the test decides. */
class Server {
  version = 1;
  size = 1;
  problem: Problem | undefined;
  /** The former answers that each request got, by id. */
  readonly asked: { id: string; last: string | undefined }[] = [];
  readonly held: (() => void)[] = [];
  /** The ids of the polls that a binding requested at once. */
  readonly refreshed: string[] = [];
  isHolding = false;

  poll(id: string, refreshMs = 10_000, more: Partial<Poll<string>> = {}): Poll<string> {
    return {
      id,
      group: "registry/vault",
      unavailable: "VaultUnavailable",
      refreshing: () => this.refreshed.push(id),
      fromFile: NOT_IN_FILES.fromFile,
      ...more,
      refreshMs,
      ask: async (last) => {
        this.asked.push({ id, last: last?.version });
        if (this.isHolding) await new Promise<void>((resolve) => this.held.push(resolve));
        if (this.problem) throw this.problem;
        const version = `v${this.version}`;
        return last?.version === version ? last : { version, content: `content ${version}`, size: this.size };
      },
    };
  }
}

describe("a poller", () => {
  const clock = fakeClock();
  let server: Server;
  let changed: string[];
  let ended: string[];
  let errors: unknown[];
  let poller: Poller;

  const newPoller = (options: { random?: () => number; maxBytes?: number; maxPolls?: number } = {}) =>
    new Poller(
      {
        changed: (key) => changed.push(key),
        refreshed: (key) => ended.push(key),
        onError: (error) => errors.push(error),
      },
      { now: () => Date.now(), random: () => 0.5, ...options },
    );
  beforeEach(() => {
    server = new Server();
    changed = [];
    ended = [];
    errors = [];
    poller = newPoller();
  });
  afterEach(() => {
    poller.stop();
    assert.deepEqual(errors, []);
  });
  const stateOf = (poll: Poll<string>) => {
    const state = poller.stateOf(poll);
    if (state.phase === "synced") return state.answer.content;
    return state.phase === "failed" ? state.problem.reason : state.phase;
  };

  it("requests at most a number of polls for a namespace, and a further one when another ends", async () => {
    poller = newPoller({ maxPolls: 2 });
    const polls = ["a", "b", "c"].map((id) => server.poll(id));
    const other = server.poll("d");
    poller.subscribe("registry/one", polls);
    poller.subscribe("shop/two", [other]);
    await clock.pass(1);
    const states = () => [...polls, other].map(stateOf);
    assert.deepEqual(states(), ["content v1", "content v1", "LimitExceeded", "content v1"]);
    poller.refresh("registry/vault");
    await clock.pass(1);
    assert.equal(server.asked.filter(({ id }) => id === "c").length, 0);
    poller.subscribe("registry/one", polls.slice(1));
    await clock.pass(1);
    assert.deepEqual(states().slice(1), ["content v1", "content v1", "content v1"]);
  });

  it("computes the shortest interval again when the binding that has it ends", async () => {
    poller.subscribe("registry/one", [server.poll("a", 5_000)]);
    poller.subscribe("registry/two", [server.poll("a", 60_000)]);
    await clock.pass(1);
    await clock.pass(5_000);
    assert.equal(server.asked.length, 2);
    poller.subscribe("registry/one", []);
    await clock.pass(5_000);
    await clock.pass(59_000);
    assert.equal(server.asked.length, 3);
    await clock.pass(1_000);
    assert.equal(server.asked.length, 4);
  });

  it("requests an answer once for all bindings, and notifies each when it arrives and when it changes", async () => {
    const poll = server.poll("a");
    poller.subscribe("registry/one", [poll]);
    poller.subscribe("shop/two", [poll]);
    assert.equal(stateOf(poll), "pending");
    await clock.pass(1);
    assert.deepEqual([server.asked.length, changed, stateOf(poll)], [1, ["registry/one", "shop/two"], "content v1"]);
    await clock.pass(10_000);
    assert.deepEqual([server.asked.at(-1)?.last, changed.length], ["v1", 2]);
    server.version = 2;
    await clock.pass(10_000);
    assert.deepEqual([changed.slice(2), stateOf(poll)], [["registry/one", "shop/two"], "content v2"]);
  });

  it("polls at the shortest interval of the present subscribers", async () => {
    poller.subscribe("registry/slow", [server.poll("a", 60_000)]);
    await clock.pass(1);
    poller.subscribe("registry/fast", [server.poll("a", 1_000)]);
    for (let second = 0; second < 5; second++) await clock.pass(1_000);
    assert.equal(server.asked.length, 6);
    poller.subscribe("registry/fast", []);
    await clock.pass(1_000);
    const { length } = server.asked;
    await clock.pass(50_000);
    assert.equal(server.asked.length, length);
    poller.subscribe("registry/slow", []);
    await clock.pass(120_000);
    assert.equal(server.asked.length, length);
  });

  it("varies the interval by a tenth", async () => {
    for (const [random, ms] of [
      [0, 9_000],
      [1, 11_000],
    ] as const) {
      poller.stop();
      poller = newPoller({ random: () => random });
      const { length } = server.asked;
      poller.subscribe("registry/one", [server.poll("a")]);
      await clock.pass(1);
      await clock.pass(ms - 2);
      assert.equal(server.asked.length, length + 1);
      await clock.pass(2);
      assert.equal(server.asked.length, length + 2);
    }
  });

  it("reports a problem once, backs off up to half a minute, and notifies when it is solved", async () => {
    const poll = server.poll("a", 1_000);
    poller.subscribe("registry/one", [poll]);
    await clock.pass(1);
    changed.length = 0;
    server.problem = new Problem("VaultSealed", "the server is sealed");
    await clock.pass(1_000);
    assert.deepEqual([changed, stateOf(poll)], [["registry/one"], "VaultSealed"]);
    const before = server.asked.length;
    for (let second = 0; second < 62; second++) await clock.pass(1_000);
    // After 1, 2, 4, 8, 16 and 30 s.
    assert.deepEqual([server.asked.length - before, changed.length], [6, 1]);
    server.problem = undefined;
    await clock.pass(30_000);
    assert.deepEqual([changed.length, stateOf(poll)], [2, "content v1"]);
    assert.equal(server.asked.at(-1)?.last, "v1", "what is unchanged is not read again");
  });

  it("waits as long as the server demands", async () => {
    const poll = server.poll("a", 1_000);
    server.problem = new VaultProblem("VaultThrottled", "too many requests", 20_000);
    poller.stop();
    poller = newPoller({ random: () => 0 });
    poller.subscribe("registry/one", [poll]);
    await clock.pass(1);
    await clock.pass(19_999);
    // A subscriber with a shorter interval changes nothing.
    poller.subscribe("registry/two", [{ ...poll, refreshMs: 100 }]);
    await settled();
    assert.equal(server.asked.length, 1);
    await clock.pass(1);
    assert.equal(server.asked.length, 2);
  });

  it("lets a binding wait ten seconds for a first answer, and notifies it of a later answer", async () => {
    server.isHolding = true;
    const poll = server.poll("a");
    poller.subscribe("registry/one", [poll]);
    await clock.pass(9_999);
    assert.deepEqual([stateOf(poll), changed], ["pending", []]);
    await clock.pass(1);
    assert.deepEqual([stateOf(poll), changed], ["VaultUnavailable", ["registry/one"]]);
    for (const release of server.held) release();
    await settled();
    assert.deepEqual([stateOf(poll), changed.length], ["content v1", 2]);
  });

  it("polls a server while another one of its connection is silent", async () => {
    server.isHolding = true;
    const silent = Array.from({ length: 20 }, (_, n) => server.poll(`silent ${n}`));
    poller.subscribe("registry/one", silent);
    await clock.pass(1);
    poller.subscribe("registry/two", [server.poll("other", 10_000, { queue: "other server" })]);
    await clock.pass(1);
    assert.equal(server.asked.at(-1)?.id, "other");
  });

  it("polls at once for a changed annotation, and for all of a connection", async () => {
    const polls = [server.poll("a"), server.poll("b")];
    poller.subscribe("registry/one", polls, "first");
    poller.subscribe("registry/two", [server.poll("c")]);
    await clock.pass(1);
    poller.subscribe("registry/one", polls, "first");
    await settled();
    assert.equal(server.asked.length, 3);
    poller.subscribe("registry/one", polls, "second");
    await settled();
    assert.deepEqual(
      server.asked.slice(3).map(({ id }) => id),
      ["a", "b"],
    );
    poller.refresh("registry/vault");
    await settled();
    assert.deepEqual(
      server.asked.slice(5).map(({ id }) => id),
      ["a", "b", "c"],
    );
    poller.refresh("other/vault");
    await settled();
    assert.equal(server.asked.length, 8);
    assert.deepEqual(server.refreshed, ["a", "b"]);
  });

  it("polls again after a request during which a refresh arrived", async () => {
    server.isHolding = true;
    poller.subscribe("registry/one", [server.poll("a")]);
    await clock.pass(1);
    poller.refresh("registry/vault");
    poller.refresh("registry/vault");
    await settled();
    assert.equal(server.asked.length, 1);
    server.isHolding = false;
    for (const release of server.held) release();
    await settled();
    assert.equal(server.asked.length, 2);
  });

  it("reports to a binding that asked for a refresh when all its polls have ended, even with the same answers", async () => {
    const polls = ["a", "b"].map((id) => server.poll(id));
    poller.subscribe("registry/one", polls, "first");
    poller.subscribe("registry/two", polls.slice(0, 1), "first");
    await clock.pass(1);
    assert.deepEqual([poller.isRefreshed("registry/one"), ended], [true, []]);
    server.isHolding = true;
    poller.subscribe("registry/one", polls, "second");
    await settled();
    assert.deepEqual([poller.isRefreshed("registry/one"), poller.isRefreshed("registry/two")], [false, true]);
    server.isHolding = false;
    for (const release of server.held) release();
    await settled();
    assert.deepEqual([poller.isRefreshed("registry/one"), ended, changed.length], [true, ["registry/one"], 3]);
  });

  it("waits for the request after the one during which a binding asked for a refresh", async () => {
    const poll = server.poll("a");
    poller.subscribe("registry/one", [poll], "first");
    await clock.pass(1);
    server.isHolding = true;
    await clock.pass(11_000);
    poller.subscribe("registry/one", [poll], "second");
    for (const release of server.held.splice(0)) release();
    await settled();
    assert.deepEqual([poller.isRefreshed("registry/one"), ended], [false, []]);
    server.isHolding = false;
    for (const release of server.held) release();
    await settled();
    assert.deepEqual([poller.isRefreshed("registry/one"), ended], [true, ["registry/one"]]);
  });

  it("lets namespaces take turns if a server answers slowly", async () => {
    server.isHolding = true;
    const many = Array.from({ length: 20 }, (_, n) => server.poll(`many ${n}`));
    poller.subscribe("loud/binding", many);
    await clock.pass(1);
    poller.subscribe("quiet/binding", [server.poll("few")]);
    await clock.pass(1);
    assert.equal(server.asked.length, 8);
    server.held.shift()?.();
    await settled();
    server.held.shift()?.();
    await settled();
    assert.ok(server.asked.slice(0, 10).some(({ id }) => id === "few"));
  });

  it("ignores an answer that no binding needs, and caches others up to its limit", async () => {
    poller.stop();
    poller = newPoller({ maxBytes: 15 });
    server.size = 10;
    const small = { ...server.poll("small", 10_000, { group: "shop/vault" }) };
    const ask = small.ask;
    small.ask = async (last) => ({ ...(await ask(last)), size: 1 });
    poller.subscribe("shop/small", [small]);
    await clock.pass(1);
    const [a, b] = [server.poll("a"), server.poll("b")];
    poller.subscribe("registry/a", [a]);
    poller.subscribe("registry/b", [b]);
    await clock.pass(1);
    changed.length = 0;
    // The content of a was evicted for that of b, not the content of a smaller connection.
    assert.deepEqual([stateOf(small), stateOf(a), stateOf(b)], ["content v1", "pending", "content v1"]);
    await settled();
    assert.deepEqual([changed, stateOf(a)], [["registry/a"], "content v1"]);
    server.isHolding = true;
    poller.refresh("registry/vault");
    await settled();
    poller.subscribe("registry/a", []);
    changed.length = 0;
    server.version = 2;
    for (const release of server.held) release();
    await settled();
    assert.deepEqual([changed, stateOf(a)], [["registry/b"], "pending"]);
  });

  it("reports an error that is not a Problem as a bug, and continues", async () => {
    const poll = server.poll("a", 1_000);
    const { ask } = poll;
    let isBroken = true;
    const broken: Poll<string> = {
      ...poll,
      ask: (last) => (isBroken ? Promise.reject(new TypeError("x")) : ask(last)),
    };
    poller.subscribe("registry/one", [broken]);
    await clock.pass(1);
    assert.deepEqual([stateOf(poll), errors.splice(0).length], ["VaultUnavailable", 1]);
    isBroken = false;
    await clock.pass(1_000);
    assert.equal(stateOf(poll), "content v1");
  });
});
