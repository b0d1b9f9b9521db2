/** Which of several paths stay because rules of any kind refuse their removal. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { blockedPaths } from "../../../src/apply/release.ts";

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `spec.f${n}`);

describe("paths that can't all be removed", () => {
  it("stay if they are required, and no others do, for any rules", async () => {
    const paths = numbered(8);
    const needed = fc.array(fc.subarray(paths, { minLength: 1 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(needed, async (rules) => {
        // One path of each rule must stay.
        const canGo = async (some: readonly string[]) =>
          rules.every((rule) => rule.some((path) => !some.includes(path)));
        const stay = await blockedPaths(paths, canGo);
        const gone = paths.filter((path) => !stay.includes(path));
        assert.ok(await canGo(gone));
        for (const path of stay) assert.ok(!(await canGo([...gone, path])), `${path} can go`);
      }),
    );
  });

  it("are removed after others that need them", async () => {
    const paths = numbered(6);
    // Each path requires the next one, and one can't be removed.
    const canGo = async (some: readonly string[]) =>
      !some.includes("spec.f5") &&
      paths.slice(0, 4).every((path, n) => !some.includes(`spec.f${n + 1}`) || some.includes(path));
    assert.deepEqual(await blockedPaths(paths.toReversed(), canGo), ["spec.f5"]);
  });

  it("take few dry runs: for one required of 64, and if nothing is accepted", async () => {
    const asked = async (canGo: (some: readonly string[]) => boolean, paths = numbered(64)) => {
      let count = 0;
      const stay = await blockedPaths(paths, async (some) => {
        count++;
        return canGo(some);
      });
      return [stay.length, count];
    };
    assert.deepEqual(await asked((some) => !some.includes("spec.f20")), [1, 14]);
    assert.deepEqual(await asked(() => false), [64, 1]);
    assert.deepEqual(await asked((some) => some.length === 0, numbered(1000)), [1000, 256]);
    assert.deepEqual(await asked(() => false, numbered(1)), [1, 0]);
  });
});
