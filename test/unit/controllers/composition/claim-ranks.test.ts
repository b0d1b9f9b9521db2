/** Which claims count if a namespace has too many. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { AgeRanks } from "../../../../src/cache/oldest-first.ts";

const claim = fc.record({ key: fc.constantFrom(..."abcdefgh"), createdAt: fc.nat(4) });
type Claim = { key: string; createdAt: number };

describe("of too many claims", () => {
  it("the oldest ones count, and each change names the claim that starts or ceases to count because of it", () => {
    const steps = fc.array(fc.record({ claim, isRemoved: fc.boolean() }));
    const run = (most: number, listed: readonly Claim[], changes: readonly { claim: Claim; isRemoved: boolean }[]) => {
      const ranks = new AgeRanks(most);
      const all = new Map(listed.map((each) => [each.key, each]));
      ranks.reset(all.values());
      const counting = () =>
        [...all.values()]
          .sort((a, b) => a.createdAt - b.createdAt || (a.key < b.key ? -1 : 1))
          .slice(0, most)
          .map(({ key }) => key);
      for (const { claim: each, isRemoved } of changes) {
        const before = counting();
        if (isRemoved) all.delete(each.key);
        else all.set(each.key, each);
        const named = isRemoved ? ranks.remove(each.key) : ranks.add(each);
        const now = counting();
        for (const key of all.keys()) assert.equal(ranks.counts(key), now.includes(key));
        const others = [...all.keys()].filter((key) => key !== each.key && before.includes(key) !== now.includes(key));
        assert.deepEqual(others, others.length > 0 ? [named] : []);
      }
    };
    fc.assert(fc.property(fc.integer({ min: 1, max: 4 }), fc.array(claim), steps, run));
  });
});
