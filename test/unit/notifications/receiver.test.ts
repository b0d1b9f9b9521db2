/** When and in which order notifications are sent to a receiver, how they are retried, and which are dropped. */
import assert from "node:assert/strict";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { type PostResult, Receiver } from "../../../src/notifications/notifier.ts";
import { fakeClock } from "../clock.ts";
import { failureOf, notificationOf, rulesOf } from "./notifications.ts";

const OPEN = new SecretValue(new URL("https://example.com/hook"));
const sent: PostResult = { outcome: "sent" };
const busy: PostResult = { outcome: "retry", why: "the receiver answered with status 503" };

function receiving(more: Parameters<typeof rulesOf>[0] = {}) {
  const bodies: { event: string; workload?: { name: string }; notifications?: unknown[] }[] = [];
  const results: Record<string, number> = {};
  const logged: string[] = [];
  const world = {
    answer: (): Promise<PostResult> | PostResult => sent,
    url: OPEN as SecretValue<URL> | string,
    bodies,
    results,
    logged,
    names: () => bodies.map(({ workload, notifications }) => workload?.name ?? `${notifications?.length} of them`),
  };
  const log = (_: object, text: string) => void logged.push(text);
  const receiver = new Receiver(rulesOf(more), {
    url: async () => world.url,
    post: async (_, body) => {
      bodies.push(JSON.parse(body));
      return world.answer();
    },
    delivered: (result, count) => {
      results[result] = (results[result] ?? 0) + count;
    },
    log: { warn: log, error: log },
  });
  return { receiver, world };
}

describe("a receiver of notifications", () => {
  const { pass } = fakeClock();

  it("gets them in order, one message a second at most", async () => {
    const { receiver, world } = receiving();
    for (const name of ["a", "b", "c"]) receiver.offer(notificationOf(name));
    await pass(0);
    assert.deepEqual(world.names(), ["a"]);
    await pass(999);
    assert.deepEqual(world.names(), ["a"]);
    await pass(1);
    await pass(1_000);
    assert.deepEqual(world.names(), ["a", "b", "c"]);
    // The next message waits a second too.
    receiver.offer(notificationOf("d"));
    await pass(0);
    assert.deepEqual(world.results, { sent: 3 });
    await pass(1_000);
    assert.deepEqual(world.results, { sent: 4 });
  });

  it("gets a burst as one message", async () => {
    const { receiver, world } = receiving();
    receiver.offer(notificationOf("first"));
    await pass(0);
    for (let n = 0; n < 21; n++) receiver.offer(n === 7 ? failureOf(`w${n}`) : notificationOf(`w${n}`));
    await pass(1_000);
    assert.deepEqual(world.names(), ["first", "21 of them"]);
    assert.deepEqual(world.results, { sent: 22 });
  });

  it("gets only its events and the namespaces of its workloads", async () => {
    const { receiver, world } = receiving({ events: ["RestartFailed"], namespaces: ["sh*"] });
    receiver.offer(notificationOf("restarted"));
    receiver.offer(failureOf("failed"));
    const { workload } = failureOf("elsewhere");
    receiver.offer(failureOf("elsewhere", { workload: { ...workload, namespace: "prod" } }));
    await pass(10_000);
    assert.deepEqual(world.names(), ["failed"]);
  });

  it("gets a failed message again with growing pauses, before the next one", async () => {
    const { receiver, world } = receiving();
    world.answer = () => busy;
    for (const name of ["a", "b"]) receiver.offer(notificationOf(name));
    await pass(0);
    for (const ms of [1_000, 2_000, 4_000]) {
      const { length } = world.bodies;
      await pass(ms - 1);
      assert.equal(world.bodies.length, length);
      await pass(1);
      assert.equal(world.bodies.length, length + 1);
    }
    world.answer = () => sent;
    await pass(8_000);
    await pass(1_000);
    assert.deepEqual(world.names(), ["a", "a", "a", "a", "a", "b"]);
    assert.deepEqual(world.logged, ["notification not sent; retrying with backoff"]);
  });

  it("is retried after Retry-After, or after two minutes if that is longer", async () => {
    for (const [afterMs, waits] of [
      [20_000, 20_000],
      [7_200_000, 120_000],
    ] as const) {
      const { receiver, world } = receiving();
      world.answer = () =>
        world.bodies.length === 1 ? { outcome: "retry", why: "the receiver answered with status 429", afterMs } : sent;
      receiver.offer(notificationOf("a"));
      await pass(0);
      await pass(waits - 1);
      assert.equal(world.bodies.length, 1);
      await pass(1);
      assert.deepEqual(world.results, { sent: 1 });
    }
  });

  it("loses a message that it rejects, and one that fails for minutes", async () => {
    const { receiver, world } = receiving();
    world.answer = () => ({ outcome: "rejected", why: "the receiver answered with status 404" });
    receiver.offer(notificationOf("a"));
    await pass(0);
    assert.deepEqual([world.results, world.bodies.length], [{ rejected: 1 }, 1]);
    world.answer = () => busy;
    receiver.offer(notificationOf("b"));
    for (let n = 0; n < 14; n++) await pass(30_000);
    assert.deepEqual(world.results, { rejected: 1 });
    await pass(30_000);
    assert.deepEqual([world.results, world.bodies.length], [{ rejected: 1, failed: 1 }, 16]);
    assert.match(world.logged.at(-1) ?? "", /not sent; dropping it/);
  });

  it("gets queued messages once its URL exists", async () => {
    const { receiver, world } = receiving();
    world.url = "there is no Secret inlay-system/inlay-notifications";
    receiver.offer(notificationOf("a"));
    await pass(0);
    world.url = OPEN;
    await pass(1_000);
    assert.deepEqual(world.results, { sent: 1 });
  });

  it("keeps the newest thousand queued notifications, and logs that once", async () => {
    const { receiver, world } = receiving();
    world.answer = () => new Promise(() => {});
    receiver.offer(notificationOf("silent"));
    await pass(0);
    for (let n = 0; n < 1_500; n++) receiver.offer(notificationOf(`w${n}`));
    assert.deepEqual(world.results, { dropped: 500 });
    assert.deepEqual(world.logged, ["more than 1000 notifications are queued; dropping the oldest"]);
  });

  it("gets all queued notifications in one message when the controller stops, without a pause", async () => {
    const { receiver, world } = receiving();
    for (const name of ["a", "b", "c"]) receiver.offer(notificationOf(name));
    await pass(0);
    await receiver.stop(1_000);
    assert.deepEqual(world.names(), ["a", "2 of them"]);
    assert.deepEqual(world.results, { sent: 3 });
    receiver.offer(notificationOf("late"));
    assert.deepEqual(world.results, { sent: 3, dropped: 1 });
  });

  it("delays the stop of the controller only for a limited time", async () => {
    const { receiver, world } = receiving();
    world.answer = () => new Promise(() => {});
    receiver.offer(notificationOf("a"));
    await pass(0);
    const stopped = receiver.stop(500);
    await pass(500);
    await stopped;
  });
});
