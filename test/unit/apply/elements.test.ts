/** The index of elements gives the same results as comparing each name with each element, but quickly. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { isObject, sameJson } from "../../../src/apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import { namesAmong, namesIn, placeOfName } from "../../../src/apply/elements.ts";
import { countedList } from "./managed.ts";

/** Names as the API server writes them, and elements, from so few values that many match. */
const scalar = fc.constantFrom<JsonValue>("a", "b", "1", 1, 2, 1n, 2n ** 60n, true, "");
const keys = fc.oneof(
  fc.record({ name: scalar }),
  fc.record({ port: scalar, protocol: scalar }),
  fc.record({ protocol: scalar, port: scalar, host: scalar }),
) as fc.Arbitrary<JsonObject>;
const spell = (value: JsonValue) =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? Number(each) : each));
const name = fc.oneof(
  keys.map((each) => `k:${spell(each)}`),
  scalar.map((each) => `v:${spell(each)}`),
  fc.constantFrom("f:name", "."),
);
const element = fc.oneof(
  scalar,
  fc.record({ name: scalar, port: scalar, protocol: scalar, host: scalar, more: scalar }, { requiredKeys: [] }),
) as fc.Arbitrary<JsonValue>;

/** Whether a name matches an element, by definition. With `defaults`, missing keys of the element match too. */
function means(name: string, each: JsonValue, defaults = false): boolean {
  if (name.startsWith("v:")) return sameJson(JSON.parse(name.slice(2)), each);
  if (!name.startsWith("k:") || !isObject(each)) return false;
  return Object.entries(JSON.parse(name.slice(2)) as JsonObject).every(([key, value]) =>
    Object.hasOwn(each, key) ? sameJson(each[key], value) : defaults,
  );
}

describe("the index of elements", () => {
  it("finds the same as comparing each with each", () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 12 }), fc.array(element, { maxLength: 12 }), (names, list) => {
        const fields = Object.fromEntries(names.map((each) => [each, {}]));
        for (const each of list) {
          const expected = names.filter((one) => means(one, each));
          assert.deepEqual([...namesIn(fields).of(each)].sort(), expected.sort());
          assert.deepEqual([...namesAmong(names).of(each)].sort(), expected);
          const first = namesIn(fields).first(each);
          assert.equal(
            first !== undefined,
            names.some((one) => means(one, each, true)),
          );
          if (first !== undefined) assert.ok(means(first, each, true));
        }
        for (const one of names) {
          assert.equal(
            placeOfName(list, one),
            list.findIndex((each) => means(one, each)),
          );
          const places = [false, true].map((defaults) => list.findIndex((each) => means(one, each, defaults)));
          assert.equal(placeOfName(list, one, { defaults: true }), places.find((place) => place >= 0) ?? -1);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("finds a name by all its keys, as text", () => {
    const fields = { 'k:{"port":80,"protocol":"TCP"}': {}, 'k:{"name":"80"}': {}, "v:80": {}, "f:name": {} };
    const by = (...conditions: [string, string][]) =>
      namesIn(fields).by(conditions.map(([key, value]) => ({ key, value })));
    assert.equal(by(["port", "80"], ["protocol", "TCP"]), 'k:{"port":80,"protocol":"TCP"}');
    assert.equal(by(["name", "80"]), 'k:{"name":"80"}');
    assert.equal(by(["port", "80"]), undefined);
  });

  it("reads each name and each element once", () => {
    const count = 2_000;
    const { list, reads } = countedList(count);
    for (let n = 0; n < count; n++) assert.equal(placeOfName(list, `k:{"name":"n${n}"}`), n);
    assert.equal(reads(), count);
  });

  it("reads each element once where keys are missing", () => {
    const count = 2_000;
    const { list: counted, reads } = countedList(count);
    const list = counted.map((element, n) => (n % 2 === 0 ? element : { protocol: "UDP", name: `n${n}` }));
    const place = (n: number) => placeOfName(list, `k:{"name":"n${n}","protocol":"TCP"}`, { defaults: true });
    for (let n = 0; n < count; n++) assert.equal(place(n), n % 2 === 0 ? n : -1);
    assert.equal(reads(), count / 2);
  });

  it("does not find elements that lack keys in more than 64 ways", () => {
    const keys = ["a", "b", "c", "d", "e", "f", "g"];
    const subsets = Array.from({ length: 127 }, (_, bits) => keys.filter((_, n) => bits & (1 << n)));
    const list = subsets.map((some) => Object.fromEntries(some.map((key) => [key, some.join("")])));
    const place = (some: readonly string[]) => {
      const name = Object.fromEntries(keys.map((key) => [key, some.join("")]));
      return placeOfName(list.slice(1), `k:${JSON.stringify(name)}`, { defaults: true });
    };
    assert.deepEqual(subsets.slice(1).map(place), [
      ...Array.from({ length: 64 }, (_, n) => n),
      ...Array.from({ length: 62 }, () => -1),
    ]);
  });
});
