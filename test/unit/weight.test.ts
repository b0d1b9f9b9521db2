/** That what a target holds is weighed by what is large in it. */
import assert from "node:assert/strict";
import { SecretValue } from "../../src/apimachinery/secret-value.ts";
import type { Prepared } from "../../src/targets/sync.ts";
import { weightOf } from "../../src/weight.ts";

describe("the weight of a target", () => {
  const live = { metadata: { name: "a" }, data: { text: "x".repeat(1_000) } };
  const large = (length: number) => ({ value: new SecretValue("x".repeat(length)) });
  const ready = (...fields: object[]) => ({ record: {}, live, decision: { fields } }) as unknown as Prepared;

  it("is of the object as it was read and of the values to write", () => {
    const alone = weightOf(ready());
    assert.ok(alone > 1_000 && alone < 1_200, `${alone}`);
    const more = weightOf(ready(large(5_000), large(3_000))) - alone;
    assert.ok(more >= 8_000 && more < 8_100, `${more}`);
  });

  it("counts many small parts too", () => {
    const list = { value: new SecretValue(Array(10_000).fill(1)) };
    assert.ok(weightOf(ready(list)) > 100_000);
  });

  it("is of the whole object where that is made", () => {
    const whole = { object: { data: { text: "y".repeat(2_000) } } };
    const made = (before: object | undefined) => weightOf({ record: {}, live: before, whole } as unknown as Prepared);
    assert.ok(made(undefined) >= 2_000 && made(undefined) < 2_200);
    assert.ok(made(live) >= 3_000);
  });

  it("is nothing where nothing is to be written", () => {
    assert.equal(weightOf({ record: {} }), 0);
  });
});
