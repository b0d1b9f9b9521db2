/** Large answers are reduced before they are parsed: only `fieldsV1` of managedFields lose content, wherever else the name is used. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { MAX_LEVELS, nestsDeeper, parseJson } from "../../../src/apimachinery/json.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import {
  type AnswerForm,
  beginningOfEvent,
  LARGE_CHARACTERS,
  type List,
  lengthOfOwners,
  parseAnswer,
  withoutOwners,
} from "../../../src/kube/answer-text.ts";

type Tree = { [key: string]: Tree } | Tree[] | string | number | boolean | null;

const KEYS = [
  "metadata",
  "managedFields",
  "fieldsV1",
  "object",
  "items",
  "f:data",
  "f:binaryData",
  "spec",
  '"',
  // A key that is only a backslash makes V8 return it for another one: https://github.com/nodejs/node/issues/63785
  "a\\",
  "ü",
];

/** JSON in which the keys that matter are at any place. */
const anyTree = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "medium" },
    fc.constantFrom<Tree>(1, null, "", "fieldsV1", '"fieldsV1":{"f:data":{}}', '\\"metadata\\":{', "}]"),
    fc.string({ unit: "binary" }),
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie("tree"), { maxKeys: 5 }),
  ),
})).tree;
const entry = fc.record({ manager: fc.string(), fieldsV1: anyTree }, { requiredKeys: [] });
const anyObject = fc.record(
  {
    spec: anyTree,
    metadata: fc.record({ name: fc.string(), managedFields: fc.oneof(anyTree, fc.array(entry)) }, { requiredKeys: [] }),
    items: anyTree,
    object: anyTree,
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Tree>;
/** Without objects that have no prototype, which are not equal to parsed ones. */
const plain = (tree: Tree): Tree => JSON.parse(JSON.stringify(tree));

const isMap = (tree: Tree | undefined): tree is { [key: string]: Tree } =>
  typeof tree === "object" && tree !== null && !Array.isArray(tree);

/** What the reduced text should contain. */
function expected(object: Tree): Tree {
  const { metadata } = isMap(object) ? object : {};
  const { managedFields } = isMap(metadata) ? metadata : {};
  if (!isMap(object) || !isMap(metadata) || !Array.isArray(managedFields)) return object;
  const reduced = managedFields.map((each) => {
    if (!isMap(each) || !isMap(each["fieldsV1"])) return each;
    const kept = Object.keys(each["fieldsV1"]).filter((key) => ["f:data", "f:binaryData"].includes(key));
    return { ...each, fieldsV1: Object.fromEntries(kept.map((key) => [key, {}])) };
  });
  return { ...object, metadata: { ...metadata, managedFields: reduced } };
}

/** Some keys with escapes. */
const escaped = (text: string) =>
  text.replaceAll(/"(metadata|managedFields|fieldsV1|object)"/g, (_, [first = "", ...rest]: string) => {
    return `"\\u00${first.charCodeAt(0).toString(16)}${rest.join("")}"`;
  });

function parsed(text: string, form: AnswerForm): JsonValue {
  const parsing = parseAnswer(text, form);
  for (let step = parsing.next(); ; step = parsing.next()) if (step.done) return step.value;
}

const large = "x".repeat(LARGE_CHARACTERS);

describe("an answer", () => {
  it("keeps everything but fieldsV1 of its object, in any notation", () => {
    fc.assert(
      fc.property(anyObject, fc.constantFrom(0, 1), fc.boolean(), (any, indent, isEscaped) => {
        const object = plain(any);
        const given = JSON.stringify(object, null, indent);
        const text = isEscaped ? escaped(given) : given;
        assert.deepEqual(JSON.parse(text), object);
        assert.deepEqual(JSON.parse(withoutOwners(text, "values")), expected(object));
        const event = { type: "MODIFIED", object };
        assert.deepEqual(JSON.parse(withoutOwners(JSON.stringify(event), "event")), {
          ...event,
          object: expected(object),
        });
      }),
      { numRuns: 500 },
    );
  });

  it("is reduced if it is large, and has all items of a list with their lengths", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(anyObject, fc.boolean()), { maxLength: 5 }), (given) => {
        const items = given.map(([object, isLarge]) => plain(isMap(object) && isLarge ? { ...object, large } : object));
        const list = { kind: "List", items, metadata: { continue: "x", resourceVersion: "1" }, large };
        const { lengths = [], ...rest } = parsed(JSON.stringify(list), "list") as unknown as List;
        const reduced = items.map((each) => (JSON.stringify(each).length > LARGE_CHARACTERS ? expected(each) : each));
        assert.deepEqual(rest, { ...list, items: reduced });
        assert.deepEqual(
          lengths,
          items.map((each) => JSON.stringify(each).length),
        );
      }),
      { numRuns: 50 },
    );
    const owned = { metadata: { managedFields: [{ fieldsV1: { "f:data": { "f:a": {} } } }] }, large };
    assert.deepEqual(parsed(JSON.stringify(owned), "values"), expected(owned));
    assert.deepEqual(parsed(JSON.stringify(owned), "whole"), owned);
    assert.deepEqual(parsed(JSON.stringify({ ...owned, large: "" }), "values"), { ...owned, large: "" });
  });

  it("has no deeper levels if it is large", () => {
    const deep = `${'{"a":['.repeat(5_000)}${"]}".repeat(5_000)}`;
    for (const text of [`{"large":"${large}","deep":${deep}}`, `{"items":[{"large":"${large}","deep":${deep}}]}`]) {
      const value = parsed(text, text.startsWith('{"items"') ? "list" : "values");
      assert.ok(!nestsDeeper(value, MAX_LEVELS + 2));
    }
  });

  it("that is not JSON is refused", () => {
    const text = JSON.stringify({ items: [{ large }, {}] });
    for (const form of ["whole", "values", "list"] as const)
      for (const broken of [text.slice(0, -1), text.slice(0, -3), large, ""])
        assert.throws(() => parsed(broken, form), SyntaxError);
  });

  it("has a known length of its managedFields", () => {
    const managedFields = [{ manager: "m", fieldsV1: { "f:spec": {} } }];
    const text = JSON.stringify({ spec: { managedFields: [1] }, metadata: { name: "x", managedFields } });
    assert.equal(lengthOfOwners(text), JSON.stringify(managedFields).length);
    assert.equal(lengthOfOwners("{}"), 0);
  });

  it("of a watch shows the metadata of an object of which only the beginning was read", () => {
    const metadata = { name: "x", resourceVersion: "7", managedFields: [{ fieldsV1: {} }] };
    const object = { kind: "ConfigMap", apiVersion: "v1", metadata, data: { large } };
    const text = JSON.stringify({ type: "MODIFIED", object });
    assert.deepEqual(beginningOfEvent(text.slice(0, -100)), {
      type: "MODIFIED",
      object: { kind: "ConfigMap", apiVersion: "v1", metadata },
    });
    assert.equal(beginningOfEvent(text.slice(0, 80)), undefined);
    assert.deepEqual(parseJson(JSON.stringify(beginningOfEvent(text)?.object.metadata)), metadata);
  });
});
