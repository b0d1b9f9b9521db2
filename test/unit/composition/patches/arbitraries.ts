/** Random objects and paths that often match each other, for comparisons with the oracle. */
import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../../../src/apimachinery/objects.ts";

const scalar = fc.constantFrom<JsonValue>(null, true, false, 0, 1, -7, 0.5, 2n ** 60n + 1n, "", "x", "a.b");
const key = fc.constantFrom("a", "b", "c.d", "0");

const { value: anyValue, object: anyObject } = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof({ depthSize: "small" }, scalar, fc.array(tie("value"), { maxLength: 3 }), tie("object")),
  object: fc.dictionary(key, tie("value"), { maxKeys: 3, noNullPrototype: true }),
}));

export const value = anyValue;
export const object = anyObject;

const step = fc.constantFrom(".a", ".b", "[a]", "['b']", '["c.d"]', "[c.d]", ".0", "[0]", "[1]", "[2]");
const wildcard = fc.constant("[*]");

const joined = (steps: readonly string[]) => steps.join("").replace(/^\./, "");

/** A path that Crossplane accepts, of at least one step. */
export const path = fc.array(step, { minLength: 1, maxLength: 5 }).map(joined);

/** The same with wildcards. */
export const pathWithWildcards = fc
  .tuple(fc.array(step, { maxLength: 2 }), wildcard, fc.array(fc.oneof(step, wildcard), { maxLength: 2 }))
  .map(([above, each, below]) => joined([...above, each, ...below]));

/** Text of the special characters of paths, except `=`, which identifies elements only in our paths. */
export const pathText = fc.string({ unit: fc.constantFrom(..."ab0.[]'\"*9 é"), minLength: 1, maxLength: 12 });
