/** What a refusal says about the paths of a binding: the path and the rule of the schema, and nothing of the server's text. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { findingsOf, placesIn } from "../../../src/apply/findings.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { schemaIn } from "../../../src/transform/schema-check.ts";

const MARKER = "hunter2-s3cr3t";
const text: OpenApiSchema = { type: "string" };
const element: OpenApiSchema = {
  type: "object",
  properties: {
    name: text,
    token: text,
    kind: { ...text, pattern: "^k" },
    tls: { type: "object", properties: { ca: text, key: text } },
  },
};
const schema: OpenApiSchema = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      "x-kubernetes-validations": [
        { rule: "self.a ==\n  self.b" },
        { rule: "self.c != ''", message: "c is needed" },
        { rule: "self.level != self.a", message: "level differs from a", fieldPath: ".level" },
      ],
      properties: {
        a: { ...text, pattern: "^x+$" },
        b: { ...text, "x-kubernetes-validations": [{ rule: "self != 'bad'", messageExpression: "'no ' + self" }] },
        level: { ...text, enum: ["low", "high"], maxLength: 4 },
        mail: { ...text, format: "email" },
        port: { type: "integer", minimum: 1, maximum: 65535 },
        list: { type: "array", maxItems: 3, items: element },
        map: { type: "array", "x-kubernetes-list-map-keys": ["name"], items: element },
        tags: { type: "array", items: text },
        labels: { type: "object", additionalProperties: text },
        db: { type: "object", properties: { host: text }, required: ["host"] },
      },
    },
  },
};
const schemaAt = schemaIn(schema, () => undefined);

type Cause = [field: string, reason: string, message?: string];

function find(causes: Cause[], paths: (string | [path: string, at: string])[], object: object = {}) {
  const details = { causes: causes.map(([field, reason, message = ""]) => ({ field, reason, message })) };
  const error = ApiError.fromAnswer("PATCH /x", 422, JSON.stringify({ message: MARKER, reason: "Invalid", details }));
  const located = paths.map((each) => {
    const [path, at] = typeof each === "string" ? [each, each] : each;
    return { path: FieldPath.parse(path), place: { at: FieldPath.parse(at) } };
  });
  const { clauses, areExact } = findingsOf(error, placesIn(object, located), schemaAt);
  assert.doesNotMatch(clauses.join(), new RegExp(MARKER));
  return [areExact, ...clauses];
}

describe("the findings in a refusal", () => {
  for (const [field, reason, message, path, clause] of [
    [
      "spec.level",
      "FieldValueInvalid",
      "level differs from a",
      "spec.level",
      'spec.level breaks the rule "level differs from a"',
    ],
    ["spec.a", "FieldValueInvalid", `in body should match '^x+$'`, "spec.a", "spec.a must match the pattern ^x+$"],
    [
      "spec.mail",
      "FieldValueInvalid",
      "in body must be of type email: ",
      "spec.mail",
      "spec.mail must be of the format email",
    ],
    [
      "spec.port",
      "FieldValueInvalid",
      "in body should be less than or equal to 65535",
      "spec.port",
      "spec.port must be at most 65535",
    ],
    [
      "spec.port",
      "FieldValueInvalid",
      "in body should be greater than or equal to 1",
      "spec.port",
      "spec.port must be at least 1",
    ],
    ["spec.level", "FieldValueNotSupported", "", "spec.level", 'spec.level must be one of "low", "high"'],
    ["spec.level", "FieldValueTooLong", "", "spec.level", "spec.level must have at most 4 characters"],
    ["spec.list", "FieldValueTooMany", "", "spec.list[0].token", "spec.list must have at most 3 elements"],
    ["spec.b", "FieldValueInvalid", `no ${MARKER}`, "spec.b", "spec.b breaks the CEL rule `self != 'bad'`"],
    [
      "spec",
      "FieldValueInvalid",
      "failed rule: self.a ==\n  self.b",
      "spec.a",
      "spec breaks the CEL rule `self.a == self.b`",
    ],
    ["spec", "FieldValueInvalid", "c is needed", "spec.a", 'spec breaks the rule "c is needed"'],
    ["spec.db.host", "FieldValueRequired", "", "spec.db", "spec.db.host is required"],
    ["spec.a", "FieldValueForbidden", "", "spec.a", "spec.a may not be set"],
    ["spec.a", "FieldValueDuplicate", "", "spec.a", "spec.a must be unique in its list"],
    ["spec.a", "FieldValueTypeInvalid", "", "spec.a", "spec.a has another type"],
    ["spec.a", "FieldValueInvalid", MARKER, "spec.a", "spec.a is not valid"],
    ["spec.unknown", "FieldValueInvalid", MARKER, "spec.unknown", "spec.unknown is not valid"],
    ["<nil>", "FieldValueInvalid", MARKER, "spec.a", "the object is not valid"],
  ] as const) {
    it(`of ${reason} at ${field} are: ${clause}`, () => {
      const isExact = !["spec", "spec.list", "<nil>"].includes(field);
      assert.deepEqual(find([[field, reason, `Invalid value: "${MARKER}": ${message}`]], [path]), [isExact, clause]);
    });
  }

  it("name the binding's path of a list element, which the server names by its index", () => {
    const web: [string, string] = ["spec.list[name=web].token", "spec.list[2].token"];
    assert.deepEqual(find([["spec.list[2].token", "FieldValueInvalid"]], [web]), [
      true,
      "spec.list[name=web].token is not valid",
    ]);
    assert.deepEqual(find([["spec.list[1].token", "FieldValueInvalid"]], [web]), [
      false,
      "another field, which the binding does not write, is not valid",
    ]);
  });

  const added = (path: string): [string, string] => [path, "spec.list"];
  const three = { spec: { list: [{}, {}, {}] } };

  it("name a new list element by the binding's path", () => {
    const paths = [added("spec.list[name=web].token"), added("spec.list[name=db].token")];
    for (const [index, name] of [
      [3, "web"],
      [4, "db"],
    ])
      assert.deepEqual(find([[`spec.list[${index}].token`, "FieldValueInvalid"]], paths, three), [
        true,
        `spec.list[name=${name}].token is not valid`,
      ]);
  });

  it("name a field by which a path names a new element, and the rule of the field", () => {
    const cause: Cause = ["spec.list[3].kind", "FieldValueInvalid", "in body should match '^k'"];
    const clause = "spec.list[kind=x,name=web].kind must match the pattern ^k";
    const path = "spec.list[name=web,kind=x].tls.ca";
    assert.deepEqual(find([cause], [added(path)], three), [true, clause]);
    // Of an element that exists.
    assert.deepEqual(find([cause], [[path, "spec.list[3].tls.ca"]], { spec: { list: [{}, {}, {}, {}] } }), [
      false,
      clause,
    ]);
  });

  it("name the field that a new element or object lacks, and not the one that is written", () => {
    const paths = [added("spec.list[name=web].token"), added("spec.list[name=db].tls.ca")];
    const lacks = (field: string) => find([[field, "FieldValueRequired"]], paths, three);
    const says = "is required, and the binding does not write it";
    assert.deepEqual(lacks("spec.list[3].kind"), [true, `spec.list[name=web].kind ${says}`]);
    assert.deepEqual(lacks("spec.list[4].kind"), [true, `spec.list[name=db].kind ${says}`]);
    assert.deepEqual(lacks("spec.list[4].tls.key"), [true, `spec.list[name=db].tls.key ${says}`]);
    // Of an object that exists.
    assert.deepEqual(lacks("spec.level"), [false, `spec.level ${says}`]);
    assert.deepEqual(lacks("spec.list[2].kind"), [false, `spec.list[2].kind ${says}`]);
    const other = "another field, which the binding does not write, is missing";
    for (const field of ["spec.list[4].other", `spec.labels.${MARKER}`]) assert.deepEqual(lacks(field), [false, other]);
  });

  it("name no key of a map and no field that the binding does not write", () => {
    for (const field of [`spec.labels.${MARKER}`, `spec.labels[${MARKER}]`])
      assert.deepEqual(find([[field, "FieldValueInvalid"]], ["spec.labels"]), [true, "spec.labels is not valid"]);
    const other = find([[`spec.${MARKER}`, "FieldValueRequired"]], ["spec.a"]);
    assert.deepEqual(other, [false, "another field, which the binding does not write, is missing"]);
  });

  it("name a key of a map that is a path of the binding, in each form of the server", () => {
    const path = 'metadata.labels["example.com/a"]';
    for (const field of ["metadata.labels[example.com/a]", "metadata.labels.example.com/a"])
      assert.deepEqual(find([[field, "FieldValueInvalid"]], [path]), [true, `${path} is not valid`]);
  });

  it("name the field beside the binding's that excludes it, or breaks a rule of its own", () => {
    const token = "spec.list[name=web].token";
    const web: [string, string] = [token, "spec.list[2].token"];
    const beside = (field: string, reason: string) => find([[field, reason, MARKER]], [web]);
    const not = ", and the binding does not write it";
    const tls = `spec.list[name=web].tls`;
    assert.deepEqual(beside("spec.list[2].tls", "FieldValueInvalid"), [
      false,
      `${tls} is not valid beside ${token}${not}`,
    ]);
    assert.deepEqual(beside("spec.list[2].tls.ca", "FieldValueForbidden"), [false, `${tls}.ca may not be set${not}`]);
    const other = "another field, which the binding does not write, is not valid";
    assert.deepEqual(beside(`spec.list[2].${MARKER}`, "FieldValueInvalid"), [false, other]);
  });

  it("name the binding's element if the server names its later duplicate", () => {
    const duplicate = (field: string, path: string, at: string) => find([[field, "FieldValueDuplicate"]], [[path, at]]);
    const unique = (element: string) => [false, `${element} must be unique in its list`];
    assert.deepEqual(duplicate("spec.tags[2]", "spec.tags[0]", "spec.tags[0]"), unique("spec.tags[0]"));
    const name: [string, string] = ["spec.map[name=web].name", "spec.map[0].name"];
    assert.deepEqual(duplicate("spec.map[2]", ...name), unique("spec.map[name=web]"));
    const other = [false, "another field, which the binding does not write, is not valid"];
    assert.deepEqual(duplicate("spec.map[2]", "spec.map[name=web].token", "spec.map[0].token"), other);
  });

  it("prefer the field itself to a field below the same object", () => {
    const both: Cause[] = [
      ["spec", "FieldValueInvalid", "c is needed"],
      ["spec.port", "FieldValueInvalid", "x should be less than or equal to 1"],
    ];
    assert.deepEqual(find(both, ["spec.a", "spec.port"]), [
      false,
      'spec breaks the rule "c is needed"',
      "spec.port must be at most 65535",
    ]);
  });

  it("are none without fields in the answer", () => {
    assert.deepEqual(find([], ["spec.a"]), [false]);
  });
});
