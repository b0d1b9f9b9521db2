/** Fields that the API server copies into managedFields in plain text, where no value of a Secret may be written. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { assertNotInManagedFields, schemaIn } from "../../../src/transform/schema-check.ts";

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
    assertNotInManagedFields(
      { path: FieldPath.parse(path), value: new SecretValue(value), fromSecret },
      schemaAt,
      schemaAt,
    );

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
  ["spec.whole.set", [SECRET]],
  ["spec.whole.map[0].name", SECRET],
  ["spec.free", { set: [SECRET], constructor: [SECRET] }],
  ["spec.inner", { set: [], list: [{ name: SECRET }] }],
];

describe("the plain text in managedFields", () => {
  for (const [path, value] of spelled) {
    it(`includes ${path} with ${JSON.stringify(value).replaceAll(SECRET, "…")}, which can't be from a Secret`, () => {
      assert.throws(check(path, value), ({ reason, message }: Problem) => {
        assert.equal(reason, "InvalidPath");
        assert.match(message, /into metadata\.managedFields in plain text/);
        return !message.includes(SECRET);
      });
      check(path, value, false)();
    });
  }
  it("is named by its path, without keys in the value", () => {
    const says = (path: string, value: JsonValue, message: RegExp) => assert.throws(check(path, value), { message });
    says("spec.map[name=a].set", [SECRET], /an element of spec\.map\[name=a\]\.set into/);
    says("spec.map[0].name", SECRET, /a key of an element of spec\.map into/);
    says("spec.inner", { set: [SECRET] }, /^spec\.inner: .* an element of a list in the value into/);
    assert.throws(check("spec.named", { [SECRET]: [SECRET] }), ({ message }: Problem) => !message.includes(SECRET));
  });

  for (const [path, value] of hidden) {
    it(`does not include ${path} with ${JSON.stringify(value).replaceAll(SECRET, "…")}`, check(path, value));
  }
});
