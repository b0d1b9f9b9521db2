/** The size of a prepared target, by what is large in it. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { sizeOfPrepared } from "../../../src/targets/prepared.ts";
import { kubeObjectOf } from "../objects.ts";

type Prepared = Parameters<typeof sizeOfPrepared>[0];

describe("the size of a prepared target", () => {
  const live = kubeObjectOf({ data: { text: "x".repeat(1_000) } });
  const ready = (...values: JsonValue[]) => {
    const fields = values.map((value) => ({ path: FieldPath.parse("spec.a"), value: new SecretValue(value) }));
    return { record: {}, live, decision: { fields } } as object as Prepared;
  };

  it("is the size of the object that was read and of the values to write", () => {
    const alone = sizeOfPrepared(ready());
    assert.ok(alone > 1_000 && alone < 1_500, `${alone}`);
    const more = sizeOfPrepared(ready("x".repeat(5_000), "x".repeat(3_000))) - alone;
    assert.ok(more >= 8_000 && more < 8_100, `${more}`);
  });

  it("counts many small parts too", () => {
    assert.ok(sizeOfPrepared(ready(Array(10_000).fill(1))) > 100_000);
  });

  it("is the size of the whole object if the binding creates it", () => {
    const whole = { object: { data: { text: "y".repeat(2_000) } } };
    const created = (before: object | undefined) =>
      sizeOfPrepared({ record: {}, live: before, whole } as object as Prepared);
    assert.ok(created(undefined) >= 2_000 && created(undefined) < 2_200);
    assert.ok(created(live) >= 3_000);
  });

  it("is nothing where nothing is to be written", () => assert.equal(sizeOfPrepared({ record: {} }), 0));
});
