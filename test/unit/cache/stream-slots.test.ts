/** Room for streams, shared between namespaces. */
import assert from "node:assert/strict";
import { StreamSlots } from "../../../src/cache/stream-slots.ts";

describe("room for streams", () => {
  const limits = { namespace: 10, installation: 40 };
  let slots: StreamSlots;
  let open: string[];
  beforeEach(() => {
    slots = new StreamSlots(limits);
    open = [];
  });
  const take = (namespace: string, count: number) => {
    for (let n = 0; n < count; n++) slots.take(namespace, `${n}`, () => open.push(`${namespace}/${n}`));
  };
  const countOf = (namespace: string) => open.filter((each) => each.startsWith(`${namespace}/`)).length;

  it("is bounded for one namespace", () => {
    take("a", 100);
    assert.equal(countOf("a"), limits.namespace - 2, "a quarter of what it leaves to others");
  });

  it("is left to others by namespaces that take all they can", () => {
    for (let n = 0; n < 5; n++) take(`greedy-${n}`, 100);
    assert.ok(open.length < limits.installation);
    take("small", 1);
    assert.equal(countOf("small"), 1);
  });

  it("goes by turns to those that wait when it is given back", () => {
    take("a", 9);
    assert.equal(countOf("a"), 8);
    slots.release("a", "0", true);
    assert.deepEqual(open.at(-1), "a/8");
    slots.release("a", "nothing that waits", false);
    assert.equal(countOf("a"), 9);
  });

  it("is for no one that gave up waiting", () => {
    take("a", 9);
    slots.release("a", "8", false);
    slots.release("a", "0", true);
    assert.equal(countOf("a"), 8);
  });
});
