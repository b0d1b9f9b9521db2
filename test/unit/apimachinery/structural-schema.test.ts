/** The rules of a structural schema other than types: required fields, and one of several fields. */
import assert from "node:assert/strict";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { missingFields, valuesIn, wrongChoices } from "../../../src/apimachinery/structural-schema.ts";

const source: OpenApiSchema = {
  type: "object",
  required: ["name"],
  oneOf: [{ required: ["secret"] }, { required: ["object"] }],
  properties: { secret: { type: "object", minProperties: 1 }, object: { type: "object" } },
};
const schema: OpenApiSchema = {
  type: "object",
  required: ["sources"],
  properties: { sources: { type: "array", items: source } },
};

describe("a structural schema", () => {
  const sources = [{ name: "right", secret: { a: 1 } }, { name: "none" }, { secret: {}, object: {} }];

  it("names each missing required field, in lists too", () => {
    assert.deepEqual(missingFields(valuesIn(schema, {})), ["sources"]);
    assert.deepEqual(missingFields(valuesIn(schema, { sources })), ["sources[2].name"]);
  });

  it("names each object with too few fields, or with not exactly one of several", () => {
    const paths = wrongChoices(valuesIn(schema, { sources })).map(({ path }) => path);
    assert.deepEqual(paths, ["sources[1]", "sources[2]", "sources[2].secret"]);
  });

  it("names each list with too many elements that is merged by keys", () => {
    const list: OpenApiSchema = { type: "array", maxItems: 1, "x-kubernetes-list-type": "map", items: source };
    const object: OpenApiSchema = { type: "object", properties: { list } };
    const found = wrongChoices(valuesIn(object, { list: [sources[0] ?? {}, sources[0] ?? {}] }));
    assert.deepEqual(found, [{ path: "list", rule: "must have at most 1 elements" }]);
  });
});
