/** Which objects of a namespace are the oldest ones. */
import assert from "node:assert/strict";
import { OldestFirst } from "../../../src/cache/oldest-first.ts";

const made = (name: string, second: number, namespace = "registry") => ({
  name,
  namespace,
  creationTimestamp: `2026-01-01T00:00:0${second}Z`,
});

describe("the oldest objects of a namespace", () => {
  it("count in any order of arrival, and each change names the object that it concerns", () => {
    const order = new OldestFirst(2);
    const [a, b, c, d] = [made("z", 1), made("b", 2), made("c", 2), made("a", 3)];
    assert.deepEqual([order.add(d), order.add(c), order.add(c)], [undefined, undefined, undefined]);
    assert.equal(order.add(b), "registry/a");
    assert.equal(order.add(a), "registry/c");
    assert.equal(order.add(made("other", 9, "apps")), undefined);
    assert.deepEqual(
      [a, b, c, d, made("other", 9, "apps")].map((each) => order.numberBeyond(each)),
      [undefined, undefined, 3, 4, undefined],
    );
    assert.equal(order.delete(d), undefined);
    assert.equal(order.delete(a), "registry/c");
    assert.equal(order.numberBeyond(c), undefined);
  });

  it("are found among ten thousand in few steps", () => {
    const order = new OldestFirst(100);
    const names = Array.from({ length: 10_000 }, (_, n) => `vault-${n}`);
    for (const name of names.toReversed()) order.add(made(name, 1));
    const counted = names.filter((name) => order.numberBeyond(made(name, 1)) === undefined);
    assert.deepEqual(counted.toSorted(), names.toSorted().slice(0, 100));
  });
});
