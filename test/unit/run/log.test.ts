/** What of an error reaches the log: enough to find it, and no value. */
import assert from "node:assert/strict";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Problem } from "../../../src/model/problem.ts";
import { describeError } from "../../../src/run/log.ts";

const VALUE = "hunter2";

describe("what is logged of an error", () => {
  it("is the message where it is one of the catalogue", () => {
    const error = new ApiError("GET /api/v1/secrets", 500, "InternalError");
    assert.deepEqual(describeError(error), { name: "ApiError", message: "GET /api/v1/secrets: 500 InternalError" });
    assert.deepEqual(describeError(new Problem("Conflict", "let go")), { name: "Problem", message: "let go" });
  });

  it("is the name and the frames of any other, even if its message looks like a frame", () => {
    for (const message of [VALUE, `${VALUE}\n    at ${VALUE}`, `a\n    at x (${VALUE}:1:2)\n`]) {
      const described = describeError(new TypeError(message));
      assert.equal(described.name, "TypeError");
      assert.match(described.stack?.[0] ?? "", /^at .*log\.test\.ts/);
      assert.ok(!JSON.stringify(described).includes(VALUE));
    }
  });

  it("is no more than the type of what is thrown and is no error", () => {
    assert.deepEqual(describeError(VALUE), { name: "string" });
    assert.deepEqual(describeError(undefined), { name: "undefined" });
  });
});
