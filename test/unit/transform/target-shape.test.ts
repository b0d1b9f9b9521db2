/** List types, required fields and new elements according to a target's schema. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { shapeOf } from "../../../src/transform/target-shape.ts";

const port: OpenApiSchema = {
  type: "object",
  required: ["name", "host"],
  properties: {
    name: { type: "string" },
    host: { type: "string" },
    number: { type: "integer" },
    protocol: { type: "string", default: "TCP" },
    up: { type: "boolean" },
    target: { "x-kubernetes-int-or-string": true },
    limits: { type: "object", additionalProperties: { $ref: "#/quantity" } },
    size: { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true },
    parts: { type: "array", items: { type: "object", properties: { id: { type: "string" } } } },
  },
};
const root: OpenApiSchema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      required: ["ports"],
      properties: {
        ports: {
          type: "array",
          items: { $ref: "#/port" },
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["number", "protocol"],
        },
        plain: { type: "array", items: { $ref: "#/port" } },
        set: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
  },
};
const shared: Record<string, OpenApiSchema> = {
  "#/port": port,
  "#/quantity": { oneOf: [{ type: "string" }, { type: "number" }] },
};
const shape = shapeOf({ root, resolve: (ref) => shared[ref] });
const at = FieldPath.parse;
const element = (path: string) => {
  const parsed = at(path);
  const last = parsed.segments.at(-1);
  assert.ok(last?.kind === "element");
  return shape.elementOf(parsed.upTo(parsed.segments.length - 1), last.conditions);
};

describe("the shape of a target", () => {
  it("knows how each list is merged; a list without a type or a schema is one value", () => {
    assert.deepEqual(shape.listAt(at("spec.ports")), { kind: "map", keys: ["number", "protocol"] });
    assert.deepEqual(shape.listAt(at("spec.set")), { kind: "set" });
    for (const path of ["spec.plain", "spec.ports[number=1].parts", "spec.free.list", "spec.unknown"]) {
      assert.deepEqual(shape.listAt(at(path)), { kind: "atomic" }, path);
    }
    assert.deepEqual(shapeOf(undefined).listAt(at("spec.ports")), { kind: "atomic" });
  });

  it("knows which fields their parent requires, in elements of lists too", () => {
    for (const path of ["spec.ports", "spec.ports[number=1].host", "spec.plain[0].name"]) {
      assert.ok(shape.isRequired(at(path)), path);
    }
    for (const path of [
      "spec",
      "spec.plain",
      "spec.plain[0]",
      "spec.plain[name=a].up",
      "spec.free.a[0].b",
      "metadata.labels.a",
    ]) {
      assert.ok(!shape.isRequired(at(path)), path);
    }
    assert.ok(!shapeOf(undefined).isRequired(at("spec.ports")));
  });

  it("knows which quantities the API server normalizes: those of built-in kinds", () => {
    const isNormalized = (path: string) => shape.isNormalizedQuantity(at(path));
    assert.ok(isNormalized("spec.plain[0].limits.cpu"));
    for (const path of ["spec.plain[0].size", "spec.plain[0].target", "spec.plain[0].name", "spec.free.cpu"])
      assert.ok(!isNormalized(path), path);
  });

  it("knows defaults", () => {
    assert.equal(shape.defaultAt(at("spec.plain[0].protocol")), "TCP");
    assert.equal(shape.defaultAt(at("spec.plain[0].name")), undefined);
  });

  it("builds an element from its conditions, with the types of the fields and the defaults of its keys", () => {
    assert.deepEqual(element("spec.ports[number=80]"), { number: 80, protocol: "TCP" });
    assert.deepEqual(element("spec.plain[name=80,up=true,number=80]"), { name: "80", up: true, number: 80 });
    assert.deepEqual(element("spec.plain[target=80]"), { target: 80 });
    assert.deepEqual(element("spec.plain[target=web]"), { target: "web" });
    assert.deepEqual(element("spec.free.list[port=80]"), { port: "80" });
  });

  it("builds none from conditions that don't identify one", () => {
    assert.throws(() => element("spec.ports[name=web]"), {
      reason: "InvalidPath",
      message: /name all of them, as in spec\.ports\[number=\.\.\.,protocol=\.\.\.\]/,
    });
    assert.throws(() => element("spec.plain[number=web]"), {
      reason: "InvalidPath",
      message: /number is not a whole number/,
    });
  });
});
