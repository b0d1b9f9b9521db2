/** Conversions of values without `as`, by the target's schema. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Field } from "../../../src/api/binding.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { isInt64 } from "../../../src/apimachinery/json.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { type As, inferAs } from "../../../src/transform/convert.ts";
import { planTarget } from "../../../src/transform/plan.ts";
import { checkAgainstSchema, schemaIn } from "../../../src/transform/schema-check.ts";
import { object, secret } from "./sources.ts";

const SECRET = "hunter2-s3cr3t";
const schemas: Record<string, OpenApiSchema> = {
  IntOrString: { type: "string", format: "int-or-string" },
  OneOf: { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] },
  Quantity: { oneOf: [{ type: "string" }, { type: "number" }] },
  Port: { type: "integer", format: "int32" },
};
const ref = (name: string): OpenApiSchema => ({ $ref: `#/components/schemas/${name}` });
const properties: Record<string, OpenApiSchema> = {
  text: { type: "string" },
  count: { type: "integer" },
  port: { description: "wrapped", default: 1, allOf: [ref("Port")] } as OpenApiSchema,
  maybe: { type: "integer", nullable: true },
  ratio: { type: "number" },
  on: { type: "boolean" },
  ca: { type: "string", format: "byte" },
  either: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
  builtin: ref("IntOrString"),
  oneOf: ref("OneOf"),
  size: ref("Quantity"),
  mixed: { oneOf: [{ type: "boolean" }, { type: "integer" }] },
  list: { type: "array", items: { type: "integer" } },
  hosts: { type: "array", items: { type: "object", properties: { port: { type: "integer" }, ca: ref("OneOf") } } },
  ports: { type: "object", additionalProperties: { type: "integer" } },
  nested: { type: "object", properties: { a: { type: "integer" } } },
  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  any: {},
};
const root: OpenApiSchema = { type: "object", properties: { spec: { type: "object", properties } } };
const resolveRef = (name: string) => schemas[name.replace("#/components/schemas/", "")];
const schemaAt = schemaIn(root, resolveRef);

const keys = { digits: "80", word: "http", fraction: "0.5", yes: "true", a: SECRET, csv: "1,2", json: '{"a":[1]}' };
const sources = new Map([
  ["s", secret({ ...keys, bytes: Uint8Array.of(0xff, 0xfe) })],
  ["o", object({ spec: { port: 80, on: true, text: "80", base64: "aGk=", list: [1] } })],
]);

function made(field: Field): JsonValue | undefined {
  const plan = planTarget([field], sources, schemaAt);
  checkAgainstSchema(plan, root, resolveRef);
  return plan.fields[0]?.value.reveal();
}

const of = (path: string, key: string) => made({ path: `spec.${path}`, from: { source: "s", key } });
const by = (path: string, template: string) => made({ path: `spec.${path}`, template });
const field = (path: string, fieldPath: string) => made({ path: `spec.${path}`, from: { source: "o", fieldPath } });

function fails(act: () => unknown, reason: Problem["reason"], advice: string): void {
  assert.throws(act, (problem: Problem) => {
    assert.equal(problem.reason, reason, problem.message);
    assert.ok(problem.message.includes(advice), problem.message);
    assert.ok(!problem.message.includes(SECRET), problem.message);
    return true;
  });
}

describe("a value without `as`", () => {
  const inferred: [path: string, key: string, value: JsonValue][] = [
    ["text", "digits", "80"],
    ["text", "yes", "true"],
    ["count", "digits", 80],
    ["port", "digits", 80],
    ["maybe", "digits", 80],
    ["ratio", "digits", 80],
    ["ratio", "fraction", 0.5],
    ["on", "yes", true],
    ["ca", "word", "aHR0cA=="],
    ["ca", "bytes", "//4="],
    ["either", "digits", 80],
    ["either", "word", "http"],
    ["either", "fraction", "0.5"],
    ["builtin", "digits", 80],
    ["oneOf", "digits", 80],
    ["size", "digits", "80"],
    ["mixed", "yes", true],
    ["mixed", "digits", 80],
    ["ports.any", "digits", 80],
    ["free.any", "digits", "80"],
    ["any", "digits", "80"],
    ["any.thing", "yes", "true"],
  ];
  for (const [path, key, value] of inferred) {
    it(`has the type of the schema: at ${path}, the key ${key} becomes ${JSON.stringify(value)}`, () =>
      assert.deepEqual(of(path, key), value));
    if (key === "bytes") continue;
    it(`has it in a template too, alone and with other text: ${path} of ${key}`, () => {
      assert.deepEqual(by(path, `{{s.${key}}}`), value);
      assert.deepEqual(by(path, `{{! text }}{{s.${key}}}`), value);
    });
  }

  it("gets its type through elements of lists", () => {
    for (const path of ["spec.hosts[0].port", "spec.hosts[ca=80].port", "spec.hosts[3].ca", "spec.list[0]"]) {
      assert.equal(schemaAt(FieldPath.parse(path)) && inferAs(schemaAt(FieldPath.parse(path)), "80"), "integer", path);
    }
  });

  it("gets the type of `as` if there is one", () => {
    const as = (path: string, key: string, type: As) => made({ path, from: { source: "s", key }, as: type });
    assert.equal(as("spec.either", "digits", "string"), "80");
    assert.equal(as("spec.any", "digits", "integer"), 80);
    fails(() => as("spec.count", "digits", "string"), "TypeMismatch", "the field is an integer, the value is a string");
  });

  it("keeps its type if it is a list, an object, a number or a boolean", () => {
    assert.deepEqual(by("any", '{{split s.csv ","}}'), ["1", "2"]);
    assert.deepEqual(by("free", "{{parse s.json}}"), { a: [1] });
    assert.deepEqual(by("list", "{{pointer s.json '/a'}}"), [1]);
    assert.equal(by("any", "{{o.spec.port}}"), 80);
    assert.equal(by("count", "{{o.spec.port}}"), 80);
    assert.equal(by("either", "{{o.spec.port}}"), 80);
    assert.equal(field("either", "spec.port"), 80);
  });

  it("becomes text in a template if it is a number or boolean and the field only accepts text", () => {
    assert.equal(by("text", "{{o.spec.port}}"), "80");
    assert.equal(by("text", "{{o.spec.on}}"), "true");
    assert.equal(by("size", "{{o.spec.on}}"), "true");
    assert.equal(by("ca", "{{o.spec.port}}"), "ODA=");
    fails(() => field("text", "spec.port"), "TypeMismatch", "set as: string");
  });

  it("is refused if it does not fit, with the fix", () => {
    fails(() => of("count", "a"), "InvalidValue", "key a of Secret registry/bucket is not a whole number");
    fails(() => of("ratio", "a"), "InvalidValue", "is not a number in JSON's notation");
    fails(() => of("on", "a"), "InvalidValue", "is not true or false");
    fails(() => of("mixed", "a"), "InvalidValue", "is not a whole number");
    fails(() => of("text", "bytes"), "NotUtf8", "base64 source.key");
    fails(() => of("either", "bytes"), "NotUtf8", "");
    fails(
      () => of("nested", "a"),
      "TypeMismatch",
      "the field is an object, the value is a string; continue the path to a field in it, or, if the text is a JSON or YAML object, set as: json",
    );
    fails(() => of("list", "a"), "TypeMismatch", 'or split it: {{split source.key ","}}');
    fails(() => by("text", '{{split s.csv ","}}'), "TypeMismatch", "convert it with json, yaml or join");
    fails(() => field("count", "spec.text"), "TypeMismatch", "set as: integer");
    fails(() => field("ca", "spec.base64"), "TypeMismatch", "{{base64decode source.field}}");
    fails(() => of("nothing", "a"), "UnknownField", "has no such field");
  });

  it("is marked if it is from a Secret", () => {
    const { fields } = planTarget(
      [
        { path: "spec.a", from: { source: "s", key: "a" } },
        { path: "spec.b", from: { source: "o", fieldPath: "spec.text" } },
        { path: "spec.c", template: "{{c.a}}{{o.spec.text}}" },
        { path: "spec.d", template: "{{#if s.a}}{{o.spec.text}}{{/if}}" },
      ],
      new Map([...sources, ["c", secret({ a: "b" }, { isSecret: false })]]),
    );
    assert.deepEqual(
      fields.map(({ fromSecret }) => fromSecret),
      [true, false, false, true],
    );
  });

  it("becomes an integer in an integer-or-string field exactly if it has the form of one", () => {
    const either = properties["either"];
    fc.assert(
      fc.property(fc.oneof(fc.bigInt().map(String), fc.string(), fc.stringMatching(/^[-+ 0-9.e]{0,6}$/)), (text) => {
        const isOne = /^-?(0|[1-9][0-9]*)$/.test(text) && isInt64(BigInt(text));
        assert.equal(inferAs(either, text), isOne ? "integer" : undefined);
        assert.equal(inferAs(either, Buffer.from(text)), isOne ? "integer" : undefined);
      }),
    );
  });
});
