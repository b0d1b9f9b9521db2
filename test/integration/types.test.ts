/** Shows that a value gets the type of its field in the target's live schema, without configuration in the binding. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const gauge: Kind = {
  group: "types.example.com",
  kind: "Gauge",
  plural: "gauges",
  spec: {
    type: "object",
    properties: {
      text: { type: "string" },
      big: { type: "integer", format: "int64" },
      small: { type: "integer", format: "int32", nullable: true },
      ratio: { type: "number" },
      on: { type: "boolean" },
      ca: { type: "string", format: "byte" },
      port: { "x-kubernetes-int-or-string": true },
      quantity: {
        anyOf: [{ type: "integer" }, { type: "string" }],
        pattern: "^([0-9]+)(Ki|Mi|Gi)?$",
        "x-kubernetes-int-or-string": true,
      },
      ports: { type: "object", additionalProperties: { type: "integer" } },
      brokers: { type: "array", items: { type: "string" } },
      values: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      free: { "x-kubernetes-preserve-unknown-fields": true },
    },
  },
};

const mayWriteBuiltins = [
  { apiGroups: [""], resources: ["services", "secrets", "resourcequotas"], verbs: ["get", "list", "watch", "patch"] },
];

async function createNamespaceWithGauge(): Promise<TestNamespace> {
  const team = await createNamespace({ rules: [...usualRules, mayWrite(gauge), ...mayWriteBuiltins] });
  await installKind(team.api, gauge);
  await createObject(team.api, gauge, "one", {}, team.namespace);
  return team;
}

const target = (fields: Record<string, object>) => ({
  apiVersion: apiVersionOf(gauge),
  kind: gauge.kind,
  name: "one",
  fields: Object.entries(fields).map(([path, value]) => ({ path: `spec.${path}`, ...value })),
});

const from = (key: string) => ({ from: { source: "values", key } });
const template = (text: string) => ({ template: text });

function bind(team: TestNamespace, ...targets: object[]): Promise<unknown> {
  return team.bind("values", { sources: [{ secret: { name: "values" } }], targets });
}

const specOf = async (team: TestNamespace) => (await team.api.get(objectPath(gauge, team.namespace, "one"))).spec ?? {};

describe("the type of a value", () => {
  it("is the type of the field, for keys and templates, exact to the last digit, and all is written once", async () => {
    const team = await createNamespaceWithGauge();
    const bytes = randomBytes(40);
    await team.secret("values", {
      big: "-9223372036854775807",
      count: "5432",
      ratio: "0.25",
      yes: "true",
      bytes,
      quantity: "1024",
      name: "http",
      csv: "a:9092,b:9092",
      json: '{"a":{"b":[1,9007199254740993]}}',
    });
    await bind(
      team,
      target({
        text: from("count"),
        big: from("big"),
        small: template("{{values.count}}"),
        ratio: template("{{values.ratio}}5"),
        on: from("yes"),
        ca: from("bytes"),
        port: from("count"),
        quantity: template("{{values.quantity}}Mi"),
        "ports.a": from("count"),
        "ports.b": template("1{{values.count}}"),
        brokers: template('{{split values.csv ","}}'),
        "values.parsed": template("{{parse values.json}}"),
        "values.number": template("{{pointer values.json '/a/b/1'}}"),
        "values.text": from("count"),
        free: template("{{pointer values.json '/a'}}"),
      }),
    );
    await team.until("values", "Synced");
    const { big, free, values, ...spec } = await specOf(team);
    assert.deepEqual(spec, {
      text: "5432",
      small: 5432,
      ratio: 0.255,
      on: true,
      ca: bytes.toString("base64"),
      port: 5432,
      quantity: "1024Mi",
      ports: { a: 5432, b: 15432 },
      brokers: ["a:9092", "b:9092"],
    });
    assert.equal(values.text, "5432");
    const output = "--output=jsonpath={.spec.big} {.spec.values.number} {.spec.values.parsed.a.b[1]} {.spec.free.b[1]}";
    const { stdout } = await controlPlane().kubectl("get", "gauges", "one", `--namespace=${team.namespace}`, output);
    assert.equal(stdout, "-9223372036854775807 9007199254740993 9007199254740993 9007199254740993");
    const requests = await team.requestsDuring(() => team.secret("values", { other: "x" }));
    assert.deepEqual(
      requests.filter(({ verb }) => verb === "patch"),
      [],
    );
  });

  it("follows the value for a port, which is an integer or a name", async () => {
    const team = await createNamespaceWithGauge();
    await team.secret("values", { port: "http" });
    await bind(team, target({ port: from("port"), quantity: template("{{values.size}}") }));
    await team.secret("values", { size: "5" });
    await team.until("values", "Synced");
    assert.deepEqual(await specOf(team), { port: "http", quantity: 5 });
    await team.secret("values", { port: "8443", size: "5Gi" });
    await team.until("values", "Synced");
    await eventually(async () => assert.deepEqual(await specOf(team), { port: 8443, quantity: "5Gi" }));
  });

  it("is the type of the field for built-in kinds too: bytes, ports, quantities", async () => {
    const team = await createNamespaceWithGauge();
    const bytes = Buffer.concat([randomBytes(16), Buffer.of(0xff)]);
    await team.secret("values", { bytes, text: secretText("copied"), seconds: "30", size: "2Gi", count: "3" });
    await team.secret("copy", { other: "theirs" });
    await team.api.create(team.path("v1", "services"), {
      metadata: { name: "web" },
      spec: { ports: [{ port: 80 }], selector: { app: "web" }, sessionAffinity: "ClientIP" },
    });
    await team.api.create(team.path("v1", "resourcequotas"), { metadata: { name: "quota" }, spec: { hard: {} } });
    const affinity = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
    await bind(
      team,
      {
        apiVersion: "v1",
        kind: "Secret",
        name: "copy",
        fields: [
          { path: "data.bytes", ...from("bytes") },
          { path: 'data["a.text"]', ...template("<{{values.text}}>") },
        ],
      },
      {
        apiVersion: "v1",
        kind: "Service",
        name: "web",
        onConflict: "Force",
        fields: [{ path: affinity, ...from("seconds") }],
      },
      {
        apiVersion: "v1",
        kind: "ResourceQuota",
        name: "quota",
        fields: [
          { path: 'spec.hard["requests.storage"]', ...from("size") },
          { path: "spec.hard.pods", ...from("count") },
        ],
      },
    );
    await team.until("values", "Synced");
    const get = (plural: string, name: string) => team.api.get(`${team.path("v1", plural)}/${name}`);
    const { data } = await get("secrets", "copy");
    const values = (await get("secrets", "values")).data;
    assert.deepEqual(data, {
      other: Buffer.from("theirs").toString("base64"),
      bytes: values.bytes,
      "a.text": Buffer.from(`<${Buffer.from(values.text, "base64")}>`).toString("base64"),
    });
    assert.equal((await get("services", "web")).spec.sessionAffinityConfig.clientIP.timeoutSeconds, 30);
    assert.deepEqual((await get("resourcequotas", "quota")).spec.hard, { "requests.storage": "2Gi", pods: "3" });
  });

  it("is a quantity as given in a custom resource; a built-in kind that spells it differently needs no second write", async () => {
    const team = await createNamespaceWithGauge();
    await team.secret("values", { cpu: "0.5", size: "1024Mi" });
    const quotas = team.path("v1", "resourcequotas");
    const metadata = { name: "quota" };
    const theirs = { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard: { "limits.cpu": "500m" } } };
    await team.api.apply(`${quotas}/quota`, theirs, "git");
    const fields = [
      { path: 'spec.hard["limits.cpu"]', ...from("cpu") },
      { path: 'spec.hard["limits.memory"]', ...from("size") },
    ];
    await bind(team, target({ quantity: from("size") }), {
      apiVersion: "v1",
      kind: "ResourceQuota",
      name: "quota",
      fields,
    });
    await team.until("values", "Synced");
    assert.deepEqual(await specOf(team), { quantity: "1024Mi" });
    const { spec } = await team.api.get(`${quotas}/quota`);
    assert.deepEqual(spec.hard, { "limits.cpu": "500m", "limits.memory": "1Gi" });
    const requests = await team.requestsDuring(async () => {
      for (const n of ["1", "2", "3", "4"])
        await team.api.apply(`${quotas}/quota`, { ...theirs, metadata: { ...metadata, labels: { n } } }, "git");
    });
    assert.deepEqual(
      requests.filter(({ verb }) => verb === "patch"),
      [],
    );
    assert.equal((await team.until("values", "Synced")).status.synced, "2/2");
  });

  for (const [field, reason, says] of [
    ["big", "InvalidValue", /key value of Secret \S+ .*64 bits/],
    ["ratio", "InvalidValue", /number in JSON/],
    ["on", "InvalidValue", /true or false/],
    ["ports.any", "InvalidValue", /whole number/],
    ["quantity", "InvalidValue", /must match the pattern/],
    ["ports", "TypeMismatch", /set as: json/],
    ["brokers", "TypeMismatch", /set as: json, or yaml, or split/],
  ] as const) {
    it(`does not fit ${field}: the condition says what to write, without the value`, async () => {
      const team = await createNamespaceWithGauge();
      await team.secret("values", { value: secretText("misfit") });
      await bind(team, target({ [field]: from("value") }));
      const { status } = await team.until("values", reason);
      assert.match(status.conditions[0].message, says);
      assert.deepEqual(await specOf(team), {});
    });
  }
});
