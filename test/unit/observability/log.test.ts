/** The parts of an error that are logged: enough to find it, and no values. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { describeError } from "../../../src/observability/log.ts";

const VALUE = "hunter2";

describe("the logged description of an error", () => {
  it("is the message if the error is one of Inlay's own", () => {
    const error = new ApiError("GET /api/v1/secrets", 500, "InternalError");
    assert.deepEqual(describeError(error), { name: "ApiError", message: "GET /api/v1/secrets: 500 InternalError" });
    assert.deepEqual(describeError(new Problem("Conflict", "let go")), { name: "Problem", message: "let go" });
  });

  it("is the name and the frames of any other error, even if its message looks like a frame", () => {
    for (const message of [VALUE, `${VALUE}\n    at ${VALUE}`, `a\n    at x (${VALUE}:1:2)\n`]) {
      const described = describeError(new TypeError(message));
      assert.equal(described.name, "TypeError");
      assert.match(described.stack?.[0] ?? "", /^at .*log\.test\.ts/);
      assert.ok(!JSON.stringify(described).includes(VALUE));
    }
  });

  const thrown: Record<string, () => unknown> = {
    "JSON that is none": () => JSON.parse(VALUE),
    "JSON that is cut": () => JSON.parse(`{"a": "${VALUE}`),
    "an address that is none": () => new URL(VALUE),
    "a regular expression that is none": () => new RegExp(`(${VALUE}`),
    "a property of what is none": () => (undefined as unknown as Record<string, object>)[VALUE],
    "a call of what is none": () => ({ [VALUE]: 1 as unknown as () => void })[VALUE]?.(),
    "a number that is none": () => BigInt(VALUE),
    "a header that is none": () => new Headers({ [`${VALUE}\n`]: VALUE }),
    "an event without a listener": () => new EventEmitter().emit("error", VALUE),
    "an assertion": () => assert.equal(VALUE, "other"),
    "a clone that can't be": () => structuredClone({ [VALUE]: () => VALUE }),
    "a file that is not there": () => readFileSync(`/nowhere/${VALUE}`),
  };
  for (const [what, act] of Object.entries(thrown)) {
    it(`omits quotes of the engine, and causes: ${what}`, () => {
      assert.throws(act, (error: Error) => {
        const outer = new AggregateError([error, VALUE], VALUE, { cause: error });
        for (const each of [error, outer, Object.assign(new Error("outer", { cause: error }), { value: VALUE })])
          assert.ok(!JSON.stringify(describeError(each)).includes(VALUE), JSON.stringify(describeError(each)));
        return true;
      });
    });
  }

  it("is only the type of a thrown value that is not an error", () => {
    assert.deepEqual(describeError(VALUE), { name: "string" });
    assert.deepEqual(describeError(undefined), { name: "undefined" });
  });
});
