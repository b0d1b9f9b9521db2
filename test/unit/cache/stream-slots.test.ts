/** Slots for streams, shared between namespaces. */
import assert from "node:assert/strict";
import { MAX_PROJECTIONS, ProjectionSlots, streamSlots } from "../../../src/cache/streams.ts";
import type { Slots } from "../../../src/workqueue/slots.ts";

describe("slots for streams", () => {
  const limits = { namespace: 10, installation: 40 };
  let slots: Slots;
  let open: string[];
  beforeEach(() => {
    slots = streamSlots(limits);
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
    slots.release("a", "0");
    assert.deepEqual(open.at(-1), "a/8");
    slots.release("a", "nothing that waits");
    assert.equal(countOf("a"), 9);
  });

  it("are not given to streams that no longer wait", () => {
    take("a", 9);
    slots.release("a", "8");
    slots.release("a", "0");
    assert.equal(countOf("a"), 8);
  });
});

describe("slots for different parts of objects", () => {
  it("are shared by streams with the same parts, limited for each group, and released with the last stream", () => {
    const slots = new ProjectionSlots();
    const open: string[] = [];
    const take = (group: string, projection: number, stream: string) =>
      slots.take(group, `${projection}`, stream, () => open.push(`${group}/${stream}`));
    for (let n = 0; n <= MAX_PROJECTIONS; n++) take("a", n, `${n}`);
    assert.equal(open.length, MAX_PROJECTIONS);
    take("a", 0, "more");
    take("b", MAX_PROJECTIONS, "0");
    assert.deepEqual(open.slice(MAX_PROJECTIONS), ["a/more", "b/0"]);
    take("a", MAX_PROJECTIONS, "last");
    take("a", MAX_PROJECTIONS, "ended");
    slots.release("a", `${MAX_PROJECTIONS}`, "ended");
    slots.release("a", "0", "0");
    assert.equal(open.length, MAX_PROJECTIONS + 2);
    slots.release("a", "0", "more");
    assert.deepEqual(open.slice(MAX_PROJECTIONS + 2), [`a/${MAX_PROJECTIONS}`, "a/last"]);
  });
});
