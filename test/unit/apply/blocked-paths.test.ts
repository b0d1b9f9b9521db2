/** Which of several paths stay, as rules of any kind refuse to lose them. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { blockedPaths } from "../../../src/apply/blocked-paths.ts";

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `spec.f${n}`);

describe("paths that can't all go", () => {
  it("stay where they are needed, and no others do, whatever combinations are refused", async () => {
    const paths = numbered(8);
    const needed = fc.array(fc.subarray(paths, { minLength: 1 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(needed, async (rules) => {
        // Of each rule, one has to stay.
        const canGo = async (some: readonly string[]) =>
          rules.every((rule) => rule.some((path) => !some.includes(path)));
        const stay = await blockedPaths(paths, canGo);
        const gone = paths.filter((path) => !stay.includes(path));
        assert.ok(await canGo(gone));
        for (const path of stay) assert.ok(!(await canGo([...gone, path])), `${path} can go`);
      }),
    );
  });

  it("go after others without which they could not be gone", async () => {
    const paths = numbered(6);
    // Each needs the one after it, and one can't go.
    const canGo = async (some: readonly string[]) =>
      !some.includes("spec.f5") &&
      paths.slice(0, 4).every((path, n) => !some.includes(`spec.f${n + 1}`) || some.includes(path));
    assert.deepEqual(await blockedPaths(paths.toReversed(), canGo), ["spec.f5"]);
  });

  it("are asked about a few times: for one of 64 that is needed, and where nothing is accepted", async () => {
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
