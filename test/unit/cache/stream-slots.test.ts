/** Slots for streams, shared between namespaces. */
import assert from "node:assert/strict";
import { StreamSlots } from "../../../src/cache/stream-slots.ts";

describe("slots for streams", () => {
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

  it("are limited for one namespace", () => {
    take("a", 100);
    assert.equal(countOf("a"), limits.namespace - 2, "a quarter of what it leaves to others");
  });

  it("stay free for others when namespaces take as many as they can", () => {
    for (let n = 0; n < 5; n++) take(`greedy-${n}`, 100);
    assert.ok(open.length < limits.installation);
    take("small", 1);
    assert.equal(countOf("small"), 1);
  });

  it("go to waiting namespaces in turns when they are released", () => {
    take("a", 9);
    assert.equal(countOf("a"), 8);
    slots.release("a", "0", true);
    assert.deepEqual(open.at(-1), "a/8");
    slots.release("a", "nothing that waits", false);
    assert.equal(countOf("a"), 9);
  });

  it("are not given to streams that no longer wait", () => {
    take("a", 9);
    slots.release("a", "8", false);
    slots.release("a", "0", true);
    assert.equal(countOf("a"), 8);
  });
});
