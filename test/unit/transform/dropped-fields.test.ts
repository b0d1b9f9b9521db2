/** What the API server drops from an object that passes through another version of its kind. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { droppedPaths, lacksFields } from "../../../src/transform/dropped-fields.ts";

const text: OpenApiSchema = { type: "string" };
const object = (properties: Record<string, OpenApiSchema>, more: OpenApiSchema = {}): OpenApiSchema => {
  return { type: "object", properties, ...more };
};
const list = (items: OpenApiSchema): OpenApiSchema => ({ type: "array", items });
const keeps: OpenApiSchema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const map = (values: OpenApiSchema | true): OpenApiSchema => ({ type: "object", additionalProperties: values });
const resource: OpenApiSchema = { type: "object", "x-kubernetes-embedded-resource": true };
const intOrText: OpenApiSchema = { "x-kubernetes-int-or-string": true };
const version = (root: OpenApiSchema, defined: Record<string, OpenApiSchema> = {}): KindSchema => {
  return { root, resolve: (ref) => defined[ref] };
};
const lacks = (own: OpenApiSchema, other: OpenApiSchema) =>
  lacksFields(version(object({ spec: own })), version(object({ spec: other })));
const dropped = (spec: JsonValue, own: OpenApiSchema, other: OpenApiSchema) => [
  ...droppedPaths(
    { kind: "Item", metadata: { name: "a" }, spec },
    version(object({ spec: own })),
    version(object({ spec: other })),
  ),
];

describe("a version of a kind", () => {
  it("keeps all fields of the elements of a list that is open, except inside of the fields that they declare", () => {
    const open = { ...list(object({ in: object({ a: text }) })), "x-kubernetes-preserve-unknown-fields": true };
    const spec = [{ b: 1, c: { d: 1 }, in: { a: "x" } }];
    assert.deepEqual(dropped(spec, open, { "x-kubernetes-preserve-unknown-fields": true }), []);
    assert.deepEqual(dropped([{ in: { b: 1 } }], open, keeps), ["spec[0].in.b"]);
    assert.ok(!lacks(open, list(object({ b: text }))));
    assert.ok(lacks(open, list(object({ in: object({ b: text }) }))));
  });

  it("lacks fields, fields of elements, keys and unknown fields of another version", () => {
    const less = object({ a: text });
    const more = object({ a: text, b: text });
    for (const [own, other] of [
      [less, more],
      [list(less), list(more)],
      [map(less), map(more)],
      [object({}), map(text)],
      [less, keeps],
      [map(true), map(less)],
      [text, less],
      [{ type: "object" }, less],
      [map(list(less)), map(list(more))],
      [list(map(less)), list(map(more))],
      [{ ...object({ a: less }), ...keeps }, keeps],
      [{ ...object({ a: less }), ...keeps }, map(more)],
      [{ ...list(less), ...keeps }, keeps],
      [intOrText, less],
      [less, intOrText],
      [object({ spec: less }), { ...object({ spec: less }), ...resource }],
      [text, { ...text, nullable: true }],
      [keeps, { ...keeps, nullable: true }],
    ] as const) {
      assert.ok(lacks(own, other), JSON.stringify([own, other]));
      assert.ok(!lacks(own, own));
    }
    // Pruning ignores these: the fields that they name must be declared too.
    assert.ok(!lacks(less, { ...less, oneOf: [more], anyOf: [more], allOf: [more, { not: more } as OpenApiSchema] }));
    assert.ok(!lacks({ ...resource, ...keeps }, { ...object({ spec: less }), ...resource }));
    assert.ok(lacks({ ...resource, ...keeps }, keeps));
    for (const own of [more, keeps, map(text), { ...less, ...keeps }])
      assert.ok(!lacks(own, less), JSON.stringify(own));
  });

  it("is compared completely if a schema refers to itself", () => {
    const node = (more = {}): Record<string, OpenApiSchema> => ({
      node: object({ child: { allOf: [{ $ref: "node" }] }, all: list({ $ref: "node" }), ...more }),
    });
    const root = object({ spec: { $ref: "node" } });
    assert.ok(!lacksFields(version(root, node()), version(root, node())));
    assert.ok(lacksFields(version(root, node()), version(root, node({ more: text }))));
  });

  it("drops fields that it lacks, except defaults of the other version", () => {
    const own = object({ a: text, all: list(object({ a: text })) });
    const more = { b: text, "c.d": text, e: { ...object({ f: { ...text, default: "x" } }), default: {} } };
    const other = object({ a: text, ...more, all: list(object({ a: text, b: text })) });
    const spec = { a: "1", b: "1", "c.d": "1", all: [{ a: "1" }, { a: "1", b: "1" }] };
    const paths = ["spec.b", 'spec["c.d"]', "spec.all[1].b"];
    assert.deepEqual(dropped({ ...spec, e: { f: "x" } }, own, other).sort(), paths.sort());
    assert.deepEqual(dropped({ e: { f: "y" } }, own, other), ["spec.e"]);
    assert.deepEqual(dropped({ any: { thing: 1 } }, keeps, keeps), []);
    assert.deepEqual(dropped({ any: 1, key: { of: "it" } }, { type: "object", additionalProperties: true }, keeps), [
      "spec.key.of",
    ]);
  });

  it("drops the fields of an embedded resource, unless it declares one", () => {
    const part = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, spec: { a: "1" } };
    const own = object({ spec: object({ a: text }) });
    const paths = ["spec.part.apiVersion", "spec.part.kind", "spec.part.metadata"];
    const all = ["x", "y"].flatMap((key) => paths.map((path) => path.replace("part", `all.${key}[0]`)));
    const other = { ...own, ...resource };
    const [ours, theirs] = [own, other].map((each) => object({ part: each, all: map(list(each)) }));
    assert.ok(ours && theirs);
    assert.deepEqual(dropped({ part, all: { x: [part], y: [part] } }, ours, theirs), [...paths, ...all]);
    assert.deepEqual(dropped({ part }, theirs, theirs), []);
    const more = { ...part, metadata: { name: "a", labels: { a: "b" }, more: "x" } };
    assert.deepEqual(dropped({ part: more }, theirs, object({ part: keeps })), ["spec.part.metadata.more"]);
  });

  it("keeps the defaults inside a default, in objects, lists and maps", () => {
    const b = object({ b: { ...text, default: "x" } });
    const more = object({
      within: object({ a: b }, { default: { a: {} } }),
      all: { ...list(b), default: [{}, { b: "y" }] },
      map: { ...map(b), default: { k: {} } },
    });
    const given = { within: { a: { b: "x" } }, all: [{ b: "x" }, { b: "y" }], map: { k: { b: "x" } } };
    assert.deepEqual(dropped(given, object({}), more), []);
    const others = { within: { a: { b: "y" } }, all: [{ b: "x" }], map: { k: { b: "x" }, l: {} } };
    assert.deepEqual(dropped(others, object({}), more), ["spec.within", "spec.all", "spec.map"]);
  });

  it("drops an object with fewer fields than the other's default, and a null that it does not accept", () => {
    const enabled = object({ enabled: { type: "boolean" } }, { default: { enabled: true } });
    const other = object({ f: enabled, n: { ...text, nullable: true, default: "x" } });
    assert.deepEqual(dropped({ f: {} }, object({}), other), ["spec.f"]);
    assert.deepEqual(dropped({ f: { enabled: true } }, object({}), other), []);
    const own = object({ f: enabled, n: { ...text, default: "x" } });
    assert.deepEqual(dropped({ f: {}, n: null }, own, other), ["spec.n"]);
    assert.deepEqual(dropped({ n: null }, other, other), []);
    const nulls = (nullable: boolean) => object({ n: list({ ...text, nullable }), m: map({ ...text, nullable }) });
    assert.deepEqual(dropped({ n: ["1", null], m: { a: null } }, nulls(false), nulls(true)), ["spec.n[1]", "spec.m.a"]);
  });

  it("drops nothing of any object if it lacks no field", () => {
    const names = fc.constantFrom("a", "b", "kind");
    const more = fc.constantFrom<OpenApiSchema>({}, {}, keeps, resource, { nullable: true });
    const { schema } = fc.letrec<{ schema: OpenApiSchema }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        fc.constant(text),
        fc.constant(keeps),
        fc.constant(intOrText),
        fc.tuple(tie("schema").map(list), more).map(([schema, also]): OpenApiSchema => ({ ...also, ...schema })),
        fc.tuple(tie("schema").map(map), more).map(([schema, also]) => ({ ...also, ...schema })),
        fc.tuple(fc.dictionary(names, tie("schema")), more).map(([properties, also]) => object(properties, also)),
      ),
    }));
    const json = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom("1", null),
        fc.array(tie("value"), { maxLength: 2 }),
        fc.dictionary(names, tie("value")).map((value): JsonObject => value),
      ),
    })).value;
    fc.assert(
      fc.property(schema, schema, json, (own, other, value) => {
        if (lacks(own, other)) return;
        // Fields that the other version drops itself never exist.
        const gone = new Set(dropped(value, other, other));
        assert.deepEqual(
          dropped(value, own, other).filter((path) => ![...gone].some((each) => path.startsWith(each))),
          [],
        );
      }),
    );
  });
});
