/** Whose turn it is. */
import assert from "node:assert/strict";
import { RoundRobinQueue } from "../../../src/workqueue/round-robin-queue.ts";

describe("what waits in turns", () => {
  /** Items of these names, of the group that the first letter is. */
  const waiting = (names: readonly string[], most?: number) => {
    const items = new RoundRobinQueue<string>(most);
    for (const name of names) items.set(name.slice(0, 1), name, name);
    return items;
  };
  const all = (items: RoundRobinQueue<string>) => Array.from({ length: items.size }, () => items.next());

  it("comes in turns, and in its order for each", () => {
    const items = waiting(["a1", "a2", "a3", "b1", "c1", "b2"]);
    assert.deepEqual(all(items), ["a1", "b1", "c1", "a2", "b2", "a3"]);
    assert.deepEqual([items.size, items.next()], [0, undefined]);
  });

  it("goes on with others while those of one may not come, which keep their turn", () => {
    const items = waiting(["a1", "a2", "b1", "b2"]);
    assert.equal(
      items.next((group) => group !== "a"),
      "b1",
    );
    assert.equal(
      items.next(() => false),
      undefined,
    );
    assert.deepEqual(all(items), ["a1", "b2", "a2"]);
  });

  it("waits once, in the place where it came first and in the words that came last", () => {
    const items = new RoundRobinQueue<string>();
    items.set("a", "key", "old");
    items.set("a", "other", "other");
    items.set("a", "key", "new");
    assert.deepEqual(all(items), ["new", "other"]);
  });

  it("is taken out wherever it waits", () => {
    const items = waiting(["a1", "a2", "b1"]);
    for (const [group, key] of [
      ["a", "a2"],
      ["b", "b1"],
      ["b", "b1"],
      ["c", "c1"],
    ] as const)
      items.delete(group, key);
    assert.deepEqual([items.size, all(items)], [1, ["a1"]]);
  });

  it("costs the group that has most what is too much", () => {
    const items = waiting(["a1", "a2", "a3", "a4", "b1", "c1", "d1"], 3);
    assert.deepEqual([items.size, all(items)], [3, ["b1", "c1", "d1"]]);
    items.set("a", "a1", "a1");
    items.clear();
    assert.deepEqual([items.size, items.next()], [0, undefined]);
  });
});
