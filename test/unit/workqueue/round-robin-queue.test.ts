/** Which group of a queue has its turn. */
import assert from "node:assert/strict";
import { RoundRobinQueue } from "../../../src/workqueue/round-robin-queue.ts";

describe("a queue of groups", () => {
  /** Items of these names, of the group that the first letter names. */
  const waiting = (names: readonly string[], most?: number) => {
    const items = new RoundRobinQueue<string>(most);
    for (const name of names) items.set(name.slice(0, 1), name, name);
    return items;
  };
  const all = (items: RoundRobinQueue<string>) => Array.from({ length: items.size }, () => items.next());

  it("takes turns between groups, and keeps the order in each", () => {
    const items = waiting(["a1", "a2", "a3", "b1", "c1", "b2"]);
    assert.deepEqual(all(items), ["a1", "b1", "c1", "a2", "b2", "a3"]);
    assert.deepEqual([items.size, items.next()], [0, undefined]);
  });

  it("continues with other groups while those of one may not run, and keeps their turn", () => {
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

  it("keeps one item for a key, in its first position and with its last value", () => {
    const items = new RoundRobinQueue<string>();
    items.set("a", "key", "old");
    items.set("a", "other", "other");
    items.set("a", "key", "new");
    assert.deepEqual(all(items), ["new", "other"]);
  });

  it("deletes an item in any position", () => {
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

  it("drops items of the largest group if there are too many", () => {
    const items = waiting(["a1", "a2", "a3", "a4", "b1", "c1", "d1"], 3);
    assert.deepEqual([items.size, all(items)], [3, ["b1", "c1", "d1"]]);
    items.set("a", "a1", "a1");
    items.clear();
    assert.deepEqual([items.size, items.next()], [0, undefined]);
  });
});
