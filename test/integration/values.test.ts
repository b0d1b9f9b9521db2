/** Shows that values arrive unchanged or in the type of the field, or not at all, and how bindings handle missing values. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const specimen: Kind = {
  group: "values.example.com",
  kind: "Specimen",
  plural: "specimens",
  spec: {
    type: "object",
    properties: {
      texts: { type: "object", additionalProperties: { type: "string" } },
      big: { type: "integer", format: "int64" },
      negative: { type: "integer", format: "int64" },
      small: { type: "integer", format: "int32", minimum: 1 },
      ratio: { type: "number" },
      on: { type: "boolean" },
      port: { "x-kubernetes-int-or-string": true },
      ca: { type: "string", format: "byte" },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      server: {
        type: "object",
        properties: { host: { type: "string" }, port: { type: "integer", default: 443 }, ttl: { type: "integer" } },
      },
      any: { "x-kubernetes-preserve-unknown-fields": true },
      brokers: { type: "array", items: { type: "string" } },
      url: { type: "string", pattern: "^https://[^/]+$" },
      mode: { type: "string", enum: ["on", "off"] },
      name: { type: "string", maxLength: 3 },
      address: { type: "string", format: "ipv4" },
    },
  },
};

const from = (key: string, more: object = {}) => ({ from: { source: "values", key, ...more } });

/** Creates a team whose account may write Specimens, and the Specimen `one`. */
async function createNamespaceWithSpecimen(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(specimen)] });
  await installKind(team.api, specimen);
  await createObject(team.api, specimen, "one", {}, team.namespace);
  return team;
}

/** Binds fields of the Specimen's spec, by default to the Secret `values`. */
function bind(team: TestNamespace, fields: Record<string, object>, more: object = {}): Promise<unknown> {
  const target = {
    apiVersion: apiVersionOf(specimen),
    kind: "Specimen",
    name: "one",
    fields: Object.entries(fields).map(([field, value]) => ({ path: `spec.${field}`, ...value })),
  };
  return team.bind("values", { sources: [{ secret: { name: "values" } }], targets: [target], ...more });
}

const path = (team: TestNamespace) => objectPath(specimen, team.namespace, "one");
const specOf = async (team: TestNamespace) => (await team.api.get(path(team))).spec ?? {};

/** The fields of a specimen in the digits of the API server, which a JavaScript number would round. */
async function digits(team: TestNamespace, name: string, ...fields: string[]): Promise<string[]> {
  const output = `--output=jsonpath=${fields.map((field) => `{.spec.${field}}`).join(" ")}`;
  const { stdout } = await controlPlane().kubectl("get", "specimens", name, `--namespace=${team.namespace}`, output);
  return stdout.split(" ");
}

async function annotate(team: TestNamespace, secret: string, annotations: object): Promise<void> {
  await team.api.merge(`${team.path("v1", "secrets")}/${secret}`, { metadata: { annotations } });
}

describe("a value", () => {
  it("that is text arrives unchanged, directly and by a template", async () => {
    const team = await createNamespaceWithSpecimen();
    const pem = `-----BEGIN CERTIFICATE-----\n${randomBytes(48).toString("base64")}\n-----END CERTIFICATE-----\n`;
    const texts = [
      "12345",
      "true",
      "null",
      'a&b"c<d>',
      "{{x}}",
      pem,
      "𝄞 😀 \u{10ffff}",
      " a\t",
      "\ufeff\u2028\\n$&",
      "~",
    ];
    const data = Object.fromEntries(texts.map((text, n) => [`k${n}`, text]));
    await team.secret("values", data);
    const fields = texts.flatMap((_, n) => [
      [`texts.k${n}`, from(`k${n}`)],
      [`texts.t${n}`, { template: `<{{values.k${n}}}>` }],
    ]);
    await bind(team, Object.fromEntries(fields));
    await team.until("values", "Synced");
    const spec = await specOf(team);
    for (const [n, text] of texts.entries()) {
      assert.equal(spec.texts[`k${n}`], text);
      assert.equal(spec.texts[`t${n}`], `<${text}>`);
    }
  });

  it("that its author may mean otherwise is written, and the status says what it is and how to write the other", async () => {
    const team = await createNamespaceWithSpecimen();
    const yaml = "a: 1\nb: no\n";
    await team.secret("values", { user: secretText("user"), yaml });
    await bind(team, {
      "texts.a": { template: "CORP\\{{values.user}}" },
      any: { ...from("yaml"), as: "yaml" },
      "texts.yaml": { ...from("yaml"), as: "string" },
    });
    const { status } = await team.until("values", "Synced");
    assert.match(status.targets[0].message, /spec\.texts\.a: template 1:5: .*, write \\\\\{\{values\.user\}\}/);
    assert.match(
      status.targets[0].message,
      /spec\.any: key yaml of Secret \S+ is YAML with .* in line 2 .*set as: string/,
    );
    assert.deepEqual(await specOf(team), { texts: { a: "CORP{{values.user}}", yaml }, any: { a: 1, b: "no" } });

    await team.secret("values", { yaml: "<<: {a: 1}" });
    await team.until("values", "InvalidValue");
    await team.secret("values", { yaml: "a: 'no'" });
    await team.rebind("values", {
      targets: [
        {
          apiVersion: apiVersionOf(specimen),
          kind: "Specimen",
          name: "one",
          fields: [
            { path: "spec.texts.a", template: "CORP\\\\{{values.user}}" },
            { path: "spec.any", ...from("yaml"), as: "yaml" },
          ],
        },
      ],
    });
    const after = await team.until("values", "Synced");
    assert.equal(after["status"].targets[0].message, undefined);
    assert.match((await specOf(team)).texts.a, /^CORP\\[^\\]/);
  });

  it("of the maximum size that the API server accepts arrives", async () => {
    const team = await createNamespaceWithSpecimen();
    const text = randomBytes(512 * 1024).toString("hex");
    assert.equal(text.length, 1024 * 1024);
    await team.secret("values", { large: text });
    await bind(team, { "texts.large": from("large") });
    await team.until("values", "Synced", 30_000);
    assert.ok((await specOf(team)).texts.large === text);
  });

  it("gets the type of the field, exact to the last digit, and is written once", async () => {
    const team = await createNamespaceWithSpecimen();
    const bytes = Buffer.from([0, 0xff, 0xfe, 0x80, 10]);
    await team.secret("values", {
      big: "9223372036854775807",
      negative: "-9223372036854775808",
      ratio: "1e20",
      on: "true",
      port: "8443",
      ca: bytes,
      json: '{"a":{"b":[1,9007199254740993,"x",true]},"empty":{}}',
      yaml: "a: 9223372036854775806\nb:\n  - x\n",
      brokers: "a:9092,b:9092",
      server: '{"host":"a","ttl":5}',
    });
    await bind(team, {
      big: { ...from("big"), as: "integer" },
      negative: { ...from("negative"), as: "integer" },
      ratio: { ...from("ratio"), as: "number" },
      on: { ...from("on"), as: "boolean" },
      port: { ...from("port"), as: "integer" },
      ca: { ...from("ca"), as: "bytes" },
      free: { ...from("json"), as: "json" },
      any: { ...from("yaml"), as: "yaml" },
      server: { ...from("server"), as: "json" },
      brokers: { template: '{{json (split values.brokers ",")}}', as: "json" },
    });
    await team.until("values", "Synced");
    assert.deepEqual(await digits(team, "one", "big", "negative", "free.a.b[1]", "any.a"), [
      "9223372036854775807",
      "-9223372036854775808",
      "9007199254740993",
      "9223372036854775806",
    ]);
    const { ratio, on, port, ca, free, any, brokers, server } = await specOf(team);
    assert.deepEqual(
      { ratio, on, port, brokers },
      { ratio: 1e20, on: true, port: 8443, brokers: ["a:9092", "b:9092"] },
    );
    assert.deepEqual(Buffer.from(ca, "base64"), bytes);
    assert.deepEqual([free.a.b[2], free.empty, any.b], ["x", {}, ["x"]]);
    assert.deepEqual(server, { host: "a", port: 443, ttl: 5 });
    const requests = await team.requestsDuring(() => team.secret("values", { other: "x" }));
    const writes = requests.filter(({ verb, resource }) => verb === "patch" && resource.includes("specimens"));
    assert.deepEqual(writes, []);
    await team.secret("values", { server: '{"host":"b"}' });
    await eventually(async () => assert.deepEqual((await specOf(team)).server, { host: "b", port: 443 }));
  });

  it("of an object keeps all digits when it is copied to another", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { big: "-9223372036854775807" });
    await bind(team, { big: { ...from("big"), as: "integer" } });
    await team.until("values", "Synced");
    await createObject(team.api, specimen, "two", {}, team.namespace);
    const object = { apiVersion: apiVersionOf(specimen), resource: "specimens", name: "one" };
    const field = { path: "spec.big", from: { source: "one", fieldPath: "spec.big" } };
    const text = { path: "spec.texts.big", template: "{{one.spec.big}}" };
    await team.bind("copy", {
      sources: [{ object }],
      targets: [{ apiVersion: apiVersionOf(specimen), kind: "Specimen", name: "two", fields: [field, text] }],
    });
    await team.until("copy", "Synced");
    const big = "-9223372036854775807";
    assert.deepEqual(await digits(team, "two", "big", "texts.big"), [big, big]);
  });

  it("is found by a JSON pointer in a key with JSON, such as COSI's, and in templates", async () => {
    const team = await createNamespaceWithSpecimen();
    const key = secretText("access");
    const secretS3 = { endpoint: "https://s3.example.com", region: "", accessKeyID: key, accessSecretKey: "x" };
    await team.secret("values", { BucketInfo: JSON.stringify({ spec: { bucketName: "harbor", secretS3 } }) });
    await bind(team, {
      url: from("BucketInfo", { pointer: "/spec/secretS3/endpoint" }),
      "texts.key": from("BucketInfo", { pointer: "/spec/secretS3/accessKeyID" }),
      "texts.path": { template: 's3://{{pointer values.BucketInfo "/spec/bucketName"}}/' },
      "texts.region": { template: '{{default (pointer values.BucketInfo "/spec/secretS3/region") "eu-central-1"}}' },
      "texts.auth": {
        template: 'Basic {{base64 (join (split (pointer values.BucketInfo "/spec/secretS3/accessKeyID") "-") ":")}}',
      },
    });
    await team.until("values", "Synced");
    const { url, texts } = await specOf(team);
    assert.equal(url, "https://s3.example.com");
    assert.deepEqual(texts, {
      key,
      path: "s3://harbor/",
      region: "eu-central-1",
      auth: `Basic ${Buffer.from(key.replace("-", ":")).toString("base64")}`,
    });
  });

  const misfits: [name: string, field: string, how: object, reason: string, rule: RegExp][] = [
    ["is no integer", "big", { as: "integer" }, "InvalidValue", /64 bits/],
    ["is no JSON", "free", { as: "json" }, "InvalidValue", /JSON/],
    ["does not match a pattern", "url", {}, "InvalidValue", /must match the pattern \^https:\/\/\[\^\/\]\+\$/],
    ["is none of the choices", "mode", {}, "InvalidValue", /must be one of "on", "off"/],
    ["is too long", "name", {}, "InvalidValue", /must have at most 3 characters/],
    ["is not of the format", "address", {}, "InvalidValue", /must be of the format ipv4/],
    ["is text where a number belongs", "small", {}, "InvalidValue", /whole number/],
    ["is text where a list belongs", "brokers", {}, "TypeMismatch", /set as: json/],
    ["is base64 of bytes where text belongs", "mode", { as: "bytes" }, "InvalidValue", /must be one of/],
  ];
  for (const [name, field, how, reason, rule] of misfits) {
    it(`that ${name} is not written, and the condition has the rule and not the value`, async () => {
      const team = await createNamespaceWithSpecimen();
      const value = secretText("misfit");
      await team.secret("values", { key: value });
      await bind(team, { [field]: { ...from("key"), ...how } });
      const { status } = await team.until("values", reason);
      assert.match(status.conditions[0].message, rule);
      assert.ok(!JSON.stringify(status).includes(value));
      assert.deepEqual(await specOf(team), {});
    });
  }

  it("that violated a rule is written as soon as it complies", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { port: "none" });
    await bind(team, { small: { ...from("port"), as: "integer" } });
    await team.until("values", "InvalidValue");
    await team.secret("values", { port: "0" });
    await eventually(async () =>
      assert.match((await team.binding("values")).status.conditions[0].message, /must be at least 1/),
    );
    await team.secret("values", { port: "5432" });
    await team.until("values", "Synced");
    assert.equal((await specOf(team)).small, 5432);
  });
});

describe("a missing value", () => {
  const drop = (team: TestNamespace, key: string) =>
    team.api.merge(`${team.path("v1", "secrets")}/values`, { data: { [key]: null } });
  const texts = async (team: TestNamespace) => (await specOf(team)).texts;

  it("stays in its field by default, and nothing else of the target changes", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1", b: "1" });
    await bind(team, { "texts.a": from("a"), "texts.b": from("b") });
    await team.until("values", "Synced");
    await drop(team, "b");
    await team.until("values", "KeyNotFound");
    await team.secret("values", { a: "2" });
    await team.api.delete(`${team.path("v1", "secrets")}/values`);
    await team.until("values", "SourceNotFound");
    assert.deepEqual(await texts(team), { a: "1", b: "1" });
  });

  it("is removed where its source has onMissing: Remove, and written again when it is back", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1", b: "1" });
    const sources = [{ secret: { name: "values" }, onMissing: "Remove" }];
    await bind(team, { "texts.a": from("a"), "texts.b": from("b") }, { sources });
    await team.until("values", "Synced");
    await drop(team, "b");
    await team.until("values", "KeyNotFound");
    assert.deepEqual(await texts(team), { a: "1" });
    await team.secret("values", { a: "2", b: "2" });
    await team.until("values", "Synced");
    assert.deepEqual(await texts(team), { a: "2", b: "2" });
    await team.api.delete(`${team.path("v1", "secrets")}/values`);
    await team.until("values", "SourceNotFound");
    assert.equal(await texts(team), undefined);
  });

  it("stays in its field when it is optional, while the other fields of the target are updated", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1", b: "1" });
    const sources = [{ secret: { name: "values" }, optional: true }];
    await bind(team, { "texts.a": from("a"), "texts.b": from("b") }, { sources });
    await team.until("values", "Synced");
    await drop(team, "b");
    await team.secret("values", { a: "2" });
    await eventually(async () => assert.equal((await texts(team)).a, "2"));
    assert.deepEqual(await texts(team), { a: "2", b: "1" });
    await eventually(async () => {
      const { status } = await team.until("values", "Synced");
      assert.equal(status.conditions[0].status, "True");
      assert.match(status.targets[0].message, /omitted: spec\.texts\.b: Secret .* has no key b/);
      assert.deepEqual(status.targets[0].paths, ["spec.texts.a", "spec.texts.b"]);
    });
    await team.secret("values", { b: "3" });
    await eventually(async () => assert.deepEqual(await texts(team), { a: "2", b: "3" }));
  });

  it("is removed when it is optional and its source has onMissing: Remove, and the binding is Ready", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1", b: "1" });
    const defaults = { onMissing: "Remove" };
    await bind(
      team,
      { "texts.a": from("a"), "texts.b": from("b") },
      {
        sources: [{ secret: { name: "values" }, optional: true }],
        defaults,
      },
    );
    await team.until("values", "Synced");
    await drop(team, "b");
    await team.secret("values", { a: "2" });
    await eventually(async () => assert.deepEqual(await texts(team), { a: "2" }));
    await team.until("values", "Synced");
  });

  it("is replaced by its default, once its source exists or is optional", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1" });
    const field = { template: '{{default values.region "eu"}}{{default lost.x "none"}}{{#if lost.y}}y{{/if}}' };
    const sources = [{ secret: { name: "values" } }, { secret: { name: "lost" }, optional: true }];
    await bind(team, { "texts.a": field }, { sources });
    await team.until("values", "Synced");
    assert.deepEqual(await texts(team), { a: "eunone" });
    await team.secret("lost", { x: "-1", y: "1" });
    await eventually(async () => assert.deepEqual(await texts(team), { a: "eu-1y" }));
  });
});

describe("a suspended binding", () => {
  it("writes and releases nothing, and processes all changes when it is resumed", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1" });
    await bind(team, { "texts.a": from("a"), "texts.b": from("a") }, { defaults: { onRelease: "Remove" } });
    await team.until("values", "Synced");
    const { spec } = await team.binding("values");
    const [target] = spec.targets;
    await team.rebind("values", { suspend: true, targets: [{ ...target, fields: target.fields.slice(0, 1) }] });
    const { status } = await team.until("values", "Suspended");
    assert.equal(status.conditions[0].status, "Unknown");
    await team.secret("values", { a: "2" });
    await team.barrier();
    assert.deepEqual((await specOf(team)).texts, { a: "1", b: "1" });
    await team.rebind("values", { suspend: false });
    await team.until("values", "Synced");
    assert.deepEqual((await specOf(team)).texts, { a: "2" });
  });

  it("is still released when it is deleted, as its spec says then", async () => {
    const team = await createNamespaceWithSpecimen();
    await team.secret("values", { a: "1" });
    await bind(team, { "texts.a": from("a") });
    await team.until("values", "Synced");
    await team.rebind("values", { suspend: true, defaults: { onRelease: "Remove" } });
    const { metadata } = await team.until("values", "Suspended");
    assert.deepEqual(metadata.finalizers, ["inlay.dev/release"]);
    await team.unbind("values");
    assert.equal((await specOf(team)).texts, undefined);
  });
});

describe("sources with the same consistency annotation", () => {
  it("are written only once all have the same value of the annotation", async () => {
    const team = await createNamespaceWithSpecimen();
    const key = "example.com/rotation";
    await team.secret("values", { id: "id-1" });
    await team.secret("other", { key: "key-1" });
    const sources = [{ secret: { name: "values" } }, { secret: { name: "other" } }];
    const fields = { "texts.id": from("id"), "texts.key": { from: { source: "other", key: "key" } } };
    await bind(team, fields, { sources, requireSame: key });
    const { status } = await team.until("values", "SourceAnnotationMismatch");
    assert.match(status.conditions[0].message, /Secret \S+\/values and Secret \S+\/other /);
    await annotate(team, "values", { [key]: "generation-1" });
    await eventually(async () =>
      assert.match((await team.binding("values")).status.conditions[0].message, /: Secret \S+\/other /),
    );
    await annotate(team, "other", { [key]: "generation-1" });
    await team.until("values", "Synced");
    assert.deepEqual((await specOf(team)).texts, { id: "id-1", key: "key-1" });

    await team.secret("values", { id: "id-2" });
    await eventually(async () => assert.equal((await specOf(team)).texts.id, "id-2"));
    await annotate(team, "values", { [key]: "generation-3" });
    await team.secret("values", { id: "id-3" });
    const differing = await team.until("values", "SourceAnnotationMismatch");
    assert.ok(!JSON.stringify(differing.status).includes("generation-"));
    await team.secret("other", { key: "key-3" });
    await team.barrier();
    assert.deepEqual((await specOf(team)).texts, { id: "id-2", key: "key-1" });
    await annotate(team, "other", { [key]: "generation-3" });
    await team.until("values", "Synced");
    assert.deepEqual((await specOf(team)).texts, { id: "id-3", key: "key-3" });
  });
});
