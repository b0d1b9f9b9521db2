/** The properties of the oracle that comparisons with Crossplane rely on: exact numbers, answers in order, and reasons for refusals. */
import assert from "node:assert/strict";
import { ask, useOracle } from "../../oracle/oracle.ts";

describe("the oracle", () => {
  before(useOracle);

  it("answers in order, with every whole number exact", async () => {
    const numbers = [1, 2n ** 63n - 1n, -(2n ** 63n), 0.5, 9_007_199_254_740_993n];
    const asked = numbers.map((number) => ask("path.get", { object: { a: [number] }, path: "a[0]" }));
    assert.deepEqual(
      await Promise.all(asked),
      numbers.map((value) => ({ result: { value } })),
    );
  });

  it("reports why Go refuses, and continues", async () => {
    const [refused, found] = await Promise.all([
      ask("path.parse", { path: "a..b" }),
      ask("path.parse", { path: "a[0].b" }),
    ]);
    assert.ok(refused.error);
    assert.deepEqual(found.result, [{ key: "a" }, { index: 0 }, { key: "b" }]);
  });

  it("reports an unknown question as a mistake of the test", async () => {
    await assert.rejects(ask("path.unknown", {}), /no operation/);
    await assert.rejects(ask("path.parse", { pat: "a" }), /unknown field/);
  });
});
