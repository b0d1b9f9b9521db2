/** Whose turn it is to be told of. */
import assert from "node:assert/strict";
import { Backlog } from "../../../src/report/backlog.ts";

describe("what waits to be told", () => {
  const all = (backlog: Backlog<string>) => Array.from({ length: backlog.size }, () => backlog.next());

  it("comes in turns, and in its order for each", () => {
    const backlog = new Backlog<string>(10);
    for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) backlog.add(item.slice(0, 1), item, item);
    assert.deepEqual(all(backlog), ["a1", "b1", "c1", "a2", "b2", "a3"]);
    assert.equal(backlog.next(), undefined);
  });

  it("waits once, in the place where it came first and in the words that came last", () => {
    const backlog = new Backlog<string>(10);
    backlog.add("a", "key", "old");
    backlog.add("a", "other", "other");
    backlog.add("a", "key", "new");
    assert.deepEqual(all(backlog), ["new", "other"]);
  });

  it("costs those of whom most waits what is too much", () => {
    const backlog = new Backlog<string>(3);
    for (const item of ["a1", "a2", "a3", "a4", "b1", "c1", "d1"]) backlog.add(item.slice(0, 1), item, item);
    assert.deepEqual([backlog.size, all(backlog)], [3, ["b1", "c1", "d1"]]);
    backlog.add("a", "a1", "a1");
    backlog.clear();
    assert.deepEqual([backlog.size, backlog.next()], [0, undefined]);
  });
});
