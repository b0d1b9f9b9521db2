/** Merges of a value with an existing one by each policy, compared with Crossplane. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Segment } from "../../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../../../../src/apimachinery/objects.ts";
import { attemptSync, type Problem } from "../../../../src/apimachinery/problem.ts";
import { copyJson, type MergePolicy, mergeValue } from "../../../../src/composition/patches/merge.ts";
import { parseCompositePath } from "../../../../src/composition/patches/path.ts";
import { ask, useOracle } from "../../../oracle/oracle.ts";
import { object, path, value } from "./arbitraries.ts";

const KEEP: MergePolicy = { overwrites: false, appends: false };
const FORCE_APPEND: MergePolicy = { overwrites: true, appends: true };
const policy = fc.option(fc.record({ overwrites: fc.boolean(), appends: fc.boolean() }), { nil: undefined });

function merged(from: JsonObject, text: string, given: JsonValue, how: MergePolicy | undefined): JsonObject | Problem {
  const into = copyJson(from) as JsonObject;
  const segments = parseCompositePath(text).segments as readonly Segment[];
  return attemptSync(() => mergeValue(into, segments, copyJson(given), how)) ?? into;
}

const isEmptyList = (given: JsonValue | undefined) => Array.isArray(given) && given.length === 0;

describe("a merge", () => {
  before(useOracle);

  const compare = async (from: JsonObject, text: string, given: JsonValue, how: MergePolicy | undefined) => {
    const options = how && { keepMapValues: !how.overwrites, appendSlice: how.appends };
    const asked = { object: from, path: text, value: given, ...(options && { options }) };
    const { result } = await ask("path.merge", asked);
    const ours = merged(from, text, given, how);
    if (result === undefined) assert.equal((ours as Problem).reason, "InvalidValue");
    else assert.deepEqual({ object: ours }, result);
  };

  it("gives Crossplane's result, by each policy", async () => {
    // Objects and lists of few different elements cover the most rules.
    const check = async (there: JsonValue, given: JsonValue, how: MergePolicy | undefined) => {
      fc.pre(!(how?.appends && isEmptyList(there) && isEmptyList(given)));
      await compare({ a: there }, "a", given, how);
    };
    await fc.assert(fc.asyncProperty(value, value, policy, check), { numRuns: 2_500 });
    const both = fc.tuple(object, object);
    await fc.assert(
      fc.asyncProperty(both, policy, ([there, given], how) => check(there, given, how)),
      { numRuns: 2_500 },
    );
  });

  it("gives the same result at any path", async () => {
    await fc.assert(
      fc.asyncProperty(object, path, value, policy, async (from, text, given, how) => {
        fc.pre(!(how?.appends && isEmptyList(given)));
        await compare(from, text, given, how);
      }),
      { numRuns: 1_000 },
    );
  });

  it("of two empty lists is an empty list, where Crossplane gives null", async () => {
    for (const how of [FORCE_APPEND, { ...KEEP, appends: true }]) {
      assert.deepEqual(merged({ a: [] }, "a", [], how), { a: [] });
      const options = { keepMapValues: !how.overwrites, appendSlice: true };
      const theirs = await ask("path.merge", { object: { a: [] }, path: "a", value: [], options });
      assert.deepEqual(theirs.result, { object: { a: null } });
    }
  });

  it("appends long lists in linear time", () => {
    const list = Array.from({ length: 100_000 }, (_, n) => ({ n }));
    const given = [...list, { n: -1 }];
    const { a } = merged({ a: list }, "a", given, FORCE_APPEND) as { a: JsonValue[] };
    assert.deepEqual([a.length, a.at(-1)], [100_001, { n: -1 }]);
  });

  it("does not change inherited properties", () => {
    const given = JSON.parse('{"b": {"__proto__": {"polluted": 1}}}') as JsonObject;
    const result = merged({ a: { b: { __proto__: null, c: 1 } as unknown as JsonObject } }, "a", given, FORCE_APPEND);
    assert.equal(({} as { polluted?: number }).polluted, undefined);
    assert.match(JSON.stringify(result), /"__proto__":\{"polluted":1\}/);
  });
});
