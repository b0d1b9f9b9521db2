/** Which requests to servers begin when servers and namespaces are at their limits. */
import assert from "node:assert/strict";
import { Turns } from "../../../src/workqueue/turns.ts";
import { fakeClock, settled } from "../clock.ts";

describe("turns at servers", () => {
  const clock = fakeClock();
  let begun: string[];
  let ends: Map<string, () => void>;
  let turns: Turns;
  const start = (perNamespace?: { running: number; perSecond: number; burst: number }) => {
    [begun, ends] = [[], new Map()];
    turns = new Turns({ perServer: 2, ...(perNamespace && { perNamespace }) }, () => Date.now());
  };
  const take = (server: string, namespace: string, key: string) =>
    turns.take(server, namespace, key, () => {
      begun.push(key);
      return new Promise((resolve) => ends.set(key, resolve));
    });
  const end = async (key: string) => {
    ends.get(key)?.();
    await settled();
  };

  it("are limited for each server, and namespaces take turns", async () => {
    start();
    for (const key of ["a1", "a2", "a3", "a4"]) take("vault", "a", key);
    take("vault", "b", "b1");
    take("other", "a", "o1");
    assert.deepEqual(begun, ["a1", "a2", "o1"]);
    await end("a1");
    await end("a2");
    assert.deepEqual(begun.slice(3).toSorted(), ["a3", "b1"]);
  });

  it("are limited for each namespace over all its servers, which leaves the slots of a server to others", async () => {
    start({ running: 2, perSecond: 1_000, burst: 100 });
    for (const n of [1, 2, 3, 4]) take(`server-${n}`, "a", `a${n}`);
    take("server-3", "b", "b3");
    assert.deepEqual(begun, ["a1", "a2", "b3"]);
    await end("a1");
    await end("a2");
    assert.deepEqual(begun.slice(3).toSorted(), ["a3", "a4"]);
  });

  it("begin at the rate of their namespace after a burst", async () => {
    start({ running: 100, perSecond: 10, burst: 3 });
    for (let n = 1; n <= 6; n++) take(`server-${n}`, "a", `a${n}`);
    take("server-6", "b", "b1");
    assert.deepEqual(begun, ["a1", "a2", "a3", "b1"]);
    await clock.pass(100);
    assert.equal(begun.length, 5);
    await clock.pass(200);
    await clock.pass(100);
    assert.deepEqual(begun.slice(4), ["a4", "a5", "a6"]);
  });
});
