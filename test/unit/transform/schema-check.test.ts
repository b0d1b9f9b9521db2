/** Which paths and values a published schema accepts. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { allIn, attemptSync, Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { checkAgainstSchema, checkManifest } from "../../../src/transform/schema-check.ts";

const SECRET = "hunter2-s3cr3t";
const ref = (name: string): OpenApiSchema => ({ $ref: `#/components/schemas/${name}` });
const schemas: Record<string, OpenApiSchema> = {
  ObjectMeta: { type: "object", properties: { name: { type: "string" } } },
  S3: {
    type: "object",
    required: ["bucket"],
    properties: { bucket: { type: "string" }, accesskey: { type: "string" }, v4auth: { type: "boolean" } },
  },
  RawExtension: { type: "object" },
  Quantity: { oneOf: [{ type: "string" }, { type: "number" }] },
  IntOrString: { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] },
  Json: {},
};
const root: OpenApiSchema = {
  type: "object",
  required: ["spec"],
  "x-kubernetes-group-version-kind": [{ group: "goharbor.io", version: "v1beta1", kind: "HarborCluster" }],
  properties: {
    apiVersion: { type: "string" },
    metadata: { allOf: [ref("ObjectMeta")] },
    data: { type: "object", additionalProperties: { type: "string", format: "byte" } },
    spec: {
      type: "object",
      required: ["s3"],
      allOf: [{ required: ["count"], properties: { count: { type: "integer" }, extra: { type: "string" } } }],
      properties: {
        s3: { allOf: [ref("S3")] },
        selector: { type: "object", additionalProperties: { type: "string" }, "x-kubernetes-map-type": "atomic" },
        count: { type: "integer" },
        ratio: { type: "number" },
        on: { type: "boolean" },
        mode: { type: "string", enum: ["on", "off"] },
        modes: { type: "array", items: { type: "string", enum: ["on", "off"] } },
        short: { type: "string", minLength: 2, allOf: [{ maxLength: 3 }, { maxLength: 9 }] },
        maybe: { type: "string", nullable: true },
        port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
        builtinPort: ref("IntOrString"),
        size: ref("Quantity"),
        hosts: { type: "array", items: { type: "object", properties: { host: { type: "string" } } } },
        labels: { type: "object", additionalProperties: { type: "string" } },
        closed: { type: "object" },
        any: { type: "object", additionalProperties: true },
        raw: ref("RawExtension"),
        json: ref("Json"),
        free: {
          type: "object",
          "x-kubernetes-preserve-unknown-fields": true,
          properties: { known: { type: "integer" } },
        },
        template: { type: "object", "x-kubernetes-embedded-resource": true, properties: { data: { type: "object" } } },
        lost: ref("NotPublished"),
      },
    },
  },
};
const resolveRef = (name: string) => schemas[name.replace("#/components/schemas/", "")];

function check(path: string, value: JsonValue): void {
  const plan = {
    fields: [{ path: FieldPath.parse(path), value: new SecretValue(value), fromSecret: true }],
    omitted: [],
  };
  checkAgainstSchema(plan, root, resolveRef);
}

function fails(path: string, value: JsonValue, reason: Problem["reason"], advice: string): void {
  assert.throws(
    () => check(path, value),
    (problem: Problem) => {
      assert.equal(problem.reason, reason);
      assert.ok(problem.message.includes(advice), problem.message);
      assert.ok(!`${problem.stack}${problem.cause}`.includes(SECRET));
      return true;
    },
  );
}

describe("the check against the published schema", () => {
  const passing: [path: string, value: JsonValue][] = [
    ["spec.s3.accesskey", SECRET],
    ["spec.extra", SECRET],
    ["spec.count", 3],
    ["spec.ratio", 3],
    ["spec.ratio", 0.5],
    ["spec.on", true],
    ["spec.maybe", null],
    ["spec.port", 80],
    ["spec.port", "http"],
    ["spec.builtinPort", 80],
    ["spec.builtinPort", "http"],
    ["spec.size", "1Gi"],
    ["spec.size", 1.5],
    ["spec.labels.any", "text"],
    ["spec.free.any.thing", [1]],
    ["spec.free.known", 1],
    ["spec.raw.any.thing", SECRET],
    ["spec.any.a", SECRET],
    ["spec.any", { a: 1, b: [SECRET], c: {} }],
    ["spec.json", { any: [1] }],
    ["spec.json.any", SECRET],
    ["spec.lost.any", SECRET],
    ["spec.template.metadata.name", SECRET],
    ["spec.template.kind", SECRET],
    ["spec.hosts", [{ host: SECRET }]],
    ["spec.hosts[0].host", SECRET],
    ["spec.s3", { bucket: SECRET, v4auth: true }],
    ['metadata.annotations["a.b/c"]', SECRET],
    ["metadata.labels.a", "b"],
  ];
  for (const [path, value] of passing) {
    it(`accepts ${JSON.stringify(value)} for ${path}`, () => check(path, value));
  }

  const unknown: [path: string, advice: string][] = [
    [
      "spec.s3.accessKey",
      "HarborCluster has no such field. Did you mean spec.s3.accesskey? spec.s3 has accesskey, bucket, v4auth. Correct the path, or install a version of the kind that has the field; kubectl explain harborcluster.spec.s3 --api-version=goharbor.io/v1beta1 lists the fields",
    ],
    ["spec.S3.accesskey", "HarborCluster has no field spec.S3. Did you mean spec.s3.accesskey?"],
    ["spec.s4", "Did you mean spec.s3?"],
    ["spec.s4.accesskey", "Did you mean spec.s3.accesskey?"],
    ["spec.s4.nothing", "Did you mean spec.s3? "],
    ["sepc.a", "Did you mean spec? HarborCluster has spec, "],
    ["s3.accesskey", "HarborCluster has no field s3. Did you mean spec.s3.accesskey? HarborCluster has "],
    ["hosts[0].host", "Did you mean spec.hosts[0].host?"],
    ["spec.something", ", and others"],
    ["spec.closed.a", "spec.closed has no fields"],
    ["spec.any.a.b", "spec.any.a has no fields"],
    ["spec.any.a[0].b", "spec.any.a[0] has no fields"],
    ["spec.hosts[0].toString", "spec.hosts[0] has host"],
    ["spec.template.spec", "spec.template has data"],
  ];
  for (const [path, advice] of unknown) {
    it(`refuses the unknown path ${path}, and names the known fields`, () =>
      fails(path, SECRET, "UnknownField", advice));
  }

  const mismatched: [path: string, value: JsonValue, advice: string][] = [
    ["spec.count", SECRET, "spec.count: the field is an integer, the value is a string"],
    ["spec.count", 0.5, "an integer, the value is a number"],
    ["spec.on", SECRET, "true or false, the value is a string"],
    ["spec.s3.bucket", 5, "a string, the value is an integer"],
    ["spec.s3.bucket", null, "the value is null"],
    ["spec.s3", SECRET, "an object, the value is a string"],
    ["spec.s3.bucket", [SECRET], "a string, the value is a list"],
    ["spec.hosts", { host: SECRET }, "a list, the value is an object"],
    ["spec.port", true, "an integer or a string, the value is true or false"],
    ["spec.builtinPort", 0.5, "an integer or a string"],
    ["spec.size", true, "a string or a number"],
    ["spec.free.known", SECRET, "an integer"],
    ["spec.labels.any", 5, "a string"],
    ["metadata.annotations.a", 5, "a string, the value is an integer"],
    ["data.a", SECRET, "bytes in base64"],
    ["data.a", "aGk=", "bytes in base64"],
    ["spec.s3", { bucket: 5 }, "spec.s3: a part of the value"],
    ["spec.hosts", [{ host: [SECRET] }], "spec.hosts: a part of the value"],
    [
      "spec.hosts.host",
      SECRET,
      "spec.hosts is a list, so it has no field host; name the element, as in spec.hosts[INDEX].host, where INDEX is its position in the list, from 0",
    ],
    ["spec.hosts.1.host", SECRET, "name the element, as in spec.hosts[1].host"],
    [
      "metadata.labels.app.kubernetes.io",
      SECRET,
      'if the key is app.kubernetes.io, write metadata.labels["app.kubernetes.io"]',
    ],
    ["spec.labels.a.b", SECRET, 'if the key is a.b, write spec.labels["a.b"]'],
    ["spec.s3.bucket.a", SECRET, "spec.s3.bucket is a string, so it has no field a"],
    ["spec.s3[0]", SECRET, "spec.s3 is an object, so it has no elements"],
  ];
  for (const [path, value, advice] of mismatched) {
    it(`refuses ${JSON.stringify(value)} for ${path}, and names the types`, () =>
      fails(path, value, "TypeMismatch", advice));
  }

  it("accepts bytes for fields of bytes only with as: bytes", () => {
    const value = new SecretValue<JsonValue>("aGk=");
    const fields = [{ path: FieldPath.parse("data.a"), value, isBytes: true, fromSecret: true }];
    checkAgainstSchema({ fields }, root, resolveRef);
    fails("data.a", "aGk=", "TypeMismatch", "as: bytes");
    check("data", { a: "aGk=" });
    fails("data", { a: SECRET }, "InvalidValue", "a part of the value must be of the format byte");
  });

  it("quotes the rule that a value or a part of it breaks", () => {
    fails("spec.mode", SECRET, "InvalidValue", 'spec.mode: the value must be one of "on", "off"');
    fails("spec.modes", [SECRET], "InvalidValue", 'spec.modes: a part of the value must be one of "on", "off"');
    fails("spec.short", SECRET, "InvalidValue", "at most 3 characters");
    fails("spec.short", "a", "InvalidValue", "at least 2 characters");
    check("spec.short", "abc");
  });

  it("names the `as` that makes a text fit", () => {
    fails("spec.count", SECRET, "TypeMismatch", "; set as: integer");
    fails("spec.s3", SECRET, "TypeMismatch", "set as: json or as: yaml");
    check("spec.count", 2n ** 62n);
    fails("spec.s3.bucket", 2n ** 62n, "TypeMismatch", "the value is an integer");
  });

  it("accepts one field of an atomic object, and the whole object", () => {
    check("spec.selector.app", SECRET);
    check("spec.selector", { app: SECRET });
  });

  it("shows no key of an invalid value", () => {
    fails("spec.s3", { [SECRET]: 1 }, "UnknownField", "spec.s3: a part of the value");
  });

  it("names every field of a manifest, and leaves metadata and nulls to the API server", () => {
    const check = (manifest: JsonObject) => () =>
      checkManifest(manifest, root, (name) => schemas[name.slice("#/components/schemas/".length)]);
    check({ metadata: { labels: { a: "b" } }, spec: { s3: { bucket: "b", accesskey: null }, count: 1 } })();
    const broken: [JsonObject, RegExp][] = [
      [
        { spec: { s3: { buckt: "b" } } },
        /^spec\.s3\.buckt: HarborCluster has no such field\. Did you mean spec\.s3\.bucket\?/,
      ],
      [{ sepc: {} }, /^sepc: HarborCluster has no such field\. Did you mean spec\?/],
      [{ spec: { count: "two" } }, /^spec\.count: the field is an integer, the value is a string$/],
      [{ data: { "a.b": 1 } }, /^data\["a\.b"\]: the field is a string, the value is an integer$/],
    ];
    for (const [manifest, message] of broken) assert.throws(check(manifest), { name: "Problem", message });
  });

  it("finds at most 100 mistakes of a manifest, however many it has, and takes a large valid one", () => {
    const list = {
      type: "object",
      properties: { list: { type: "array", items: { type: "array", items: { type: "string" } } } },
    };
    const check = (list_: unknown) =>
      attemptSync(() => checkManifest({ list: list_ } as JsonObject, list as never, () => undefined));
    const wrong = check(Array.from({ length: 300 }, () => Array.from({ length: 300 }, () => 1)));
    assert.ok(wrong instanceof Problem);
    assert.equal(allIn(wrong).length, 100);
    assert.equal(check([Array.from({ length: 200_000 }, () => "a")]), undefined);
  });
});
