/** What would stand in managedFields in plain text, and is taken from no Secret. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { assertNotSpelledOut } from "../../../src/transform/managed-fields-keys.ts";
import { schemaIn } from "../../../src/transform/schema-check.ts";

const SECRET = "hunter2-s3cr3t";
const text: OpenApiSchema = { type: "string" };
const set: OpenApiSchema = { type: "array", items: text, "x-kubernetes-list-type": "set" };
const item: OpenApiSchema = { type: "object", properties: { name: text, token: text, set } };
const map: OpenApiSchema = {
  type: "array",
  items: { ...item, properties: { ...item.properties, list: { type: "array", items: item } } },
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["name"],
};
const inner: OpenApiSchema = { type: "object", properties: { set, map, list: { type: "array", items: item } } };
const root: OpenApiSchema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        ...inner.properties,
        inner,
        whole: { ...inner, "x-kubernetes-map-type": "atomic" },
        named: { type: "object", additionalProperties: set },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
  },
};
const schemaAt = schemaIn(root, () => undefined);
const check =
  (path: string, value: JsonValue, fromSecret = true) =>
  () =>
    assertNotSpelledOut({ path: FieldPath.parse(path), value: new SecretValue(value), fromSecret }, schemaAt);

const spelled: [path: string, value: JsonValue][] = [
  ["spec.set", [SECRET]],
  ["spec.set[0]", SECRET],
  ["spec.map", [{ name: SECRET }]],
  ["spec.map[0]", { name: SECRET }],
  ["spec.map[0].name", SECRET],
  ["spec.map[name=a].set", [SECRET]],
  ["spec.map[name=a].set[0]", SECRET],
  ["spec.inner", { set: [SECRET] }],
  ["spec", { inner: { map: [{ name: SECRET }] } }],
];
const hidden: [path: string, value: JsonValue][] = [
  ["spec.map[name=a].token", SECRET],
  ["spec.map[0].token", SECRET],
  ["spec.map[name=a].list", [{ name: SECRET, set: [SECRET] }]],
  ["spec.list", [{ name: SECRET, set: [SECRET] }]],
  ["spec.list[0].set", [SECRET]],
  ["spec.list[0].set[0]", SECRET],
  ["spec.whole", { set: [SECRET], map: [{ name: SECRET }] }],
  ["spec.free", { set: [SECRET], constructor: [SECRET] }],
  ["spec.inner", { set: [], list: [{ name: SECRET }] }],
];

describe("what the API server spells out in managedFields", () => {
  for (const [path, value] of spelled) {
    it(`is ${path} with ${JSON.stringify(value).replaceAll(SECRET, "…")}: no value of a Secret goes there`, () => {
      assert.throws(check(path, value), ({ reason, message }: Problem) => {
        assert.equal(reason, "InvalidPath");
        assert.match(message, /would stand in metadata\.managedFields in plain text/);
        return !message.includes(SECRET);
      });
      check(path, value, false)();
    });
  }
  it("is told by its own path, and within a value by no key of it", () => {
    const says = (path: string, value: JsonValue, message: RegExp) => assert.throws(check(path, value), { message });
    says("spec.map[name=a].set", [SECRET], /an element of spec\.map\[name=a\]\.set would/);
    says("spec.map[0].name", SECRET, /a key of an element of spec\.map would/);
    says("spec.inner", { set: [SECRET] }, /^spec\.inner: an element of a list within the value would/);
    assert.throws(check("spec.named", { [SECRET]: [SECRET] }), ({ message }: Problem) => !message.includes(SECRET));
  });

  for (const [path, value] of hidden) {
    it(`is not ${path} with ${JSON.stringify(value).replaceAll(SECRET, "…")}`, check(path, value));
  }
});
