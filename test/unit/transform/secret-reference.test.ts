/** Which field next to a path accepts a reference to a Secret for the same value, with the shapes of real kinds. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { secretReferenceFor } from "../../../src/transform/readable-copies.ts";
import { schemaIn } from "../../../src/transform/schema-check.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const text: OpenApiSchema = { type: "string" };
const object = (properties: Record<string, OpenApiSchema>, more: OpenApiSchema = {}): OpenApiSchema => ({
  type: "object",
  properties,
  ...more,
});
/** SecretKeySelector: only its description mentions Secrets. */
const selector = object({ name: text, key: text }, { description: "The key of the secret to select from." });
const keyRef = object({ name: text, key: text });
const open: OpenApiSchema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const list = (items: OpenApiSchema): OpenApiSchema => ({ type: "array", items });

const find = (schema: OpenApiSchema, path: string) =>
  secretReferenceFor(
    FieldPath.parse(path),
    schemaIn(schema, () => undefined),
  );

describe("the reference to a Secret beside a field", () => {
  const auth = (properties: Record<string, OpenApiSchema>, more: OpenApiSchema = {}) =>
    object({ spec: object({ auth: object(properties, more) }) });

  it("has the field's name with a suffix, in any spelling", () => {
    for (const [field, reference, schema] of [
      ["password", "passwordSecretRef", keyRef],
      ["access_key_id", "accessKeyIdSecretKeyRef", keyRef],
      ["accessKeyID", "accessKeyIDSecretRef", selector],
      ["token", "tokenSecretName", text],
      ["token", "tokenSecret", object({ name: text })],
      ["caBundle", "caBundleSecretRef", selector],
      ["password", "passwordRef", selector],
    ] as const) {
      assert.equal(find(auth({ [field]: text, [reference]: schema }), `spec.auth.${field}`), `spec.auth.${reference}`);
    }
    const from = auth({ password: text, passwordFrom: object({ secretKeyRef: keyRef, configMapKeyRef: keyRef }) });
    assert.equal(find(from, "spec.auth.password"), "spec.auth.passwordFrom.secretKeyRef");
  });

  it("may be any for credentials next to them, and for a value next to `value`", () => {
    for (const reference of [
      "existingSecret",
      "secretRef",
      "secretName",
      "credentialsSecret",
      "credentialsSecretName",
    ]) {
      const schema = auth({ username: text, password: text, host: text, [reference]: text });
      assert.equal(find(schema, "spec.auth.password"), `spec.auth.${reference}`);
      assert.equal(find(schema, "spec.auth.username"), `spec.auth.${reference}`);
      assert.equal(find(schema, "spec.auth.host"), undefined);
    }
    const env = object({
      spec: object({ env: list(object({ name: text, value: text, valueFrom: object({ secretKeyRef: keyRef }) })) }),
    });
    assert.equal(find(env, "spec.env[name=TOKEN].value"), "spec.env[name=TOKEN].valueFrom.secretKeyRef");
    assert.equal(find(env, "spec.env[0].name"), undefined);
  });

  it("is not one for another field", () => {
    for (const [field, other, schema] of [
      ["accesskey", "secretkeyRef", text],
      ["keyID", "keySecretRef", selector],
      ["username", "passwordSecret", object({ secretName: text, password: text })],
      ["username", "passwordSecretRef", selector],
      ["roleId", "secretRef", selector],
      ["hostedZoneID", "secretAccessKeySecretRef", selector],
      ["client", "clientSecret", text],
      ["password", "configMapRef", keyRef],
      ["storage", "storageRef", keyRef],
      ["password", "passwordFile", text],
      ["certificate", "secret", text],
    ] as const) {
      assert.equal(
        find(auth({ [field]: text, [other]: schema }), `spec.auth.${field}`),
        undefined,
        `${field} ${other}`,
      );
    }
  });

  it("is none if the field is required", () => {
    const schema = auth({ password: text, passwordSecretRef: keyRef }, { required: ["password"] });
    assert.equal(find(schema, "spec.auth.password"), undefined);
  });

  it("may be next to a parent: Kong's configFrom, Flux's valuesFrom, Grafana's valuesFrom", () => {
    const kong = object({ config: open, configFrom: object({ secretKeyRef: keyRef }) });
    assert.equal(find(kong, "config.api.key"), "configFrom.secretKeyRef");
    const kind: OpenApiSchema = { type: "string", enum: ["Secret", "ConfigMap"] };
    const flux = object({ spec: object({ values: open, valuesFrom: list(object({ kind, name: text })) }) });
    assert.equal(find(flux, "spec.values.password"), "spec.valuesFrom");
    const valueFrom = object({ secretKeyRef: keyRef, configMapKeyRef: keyRef });
    const valuesFrom = list(object({ targetPath: text, valueFrom }));
    const grafana = object({ spec: object({ datasource: object({ secureJsonData: open }), valuesFrom }) });
    assert.equal(find(grafana, "spec.datasource.secureJsonData.password"), "spec.valuesFrom");
    const untold = object({ spec: object({ datasource: open, valuesFrom: list(object({ valueFrom })) }) });
    assert.equal(find(untold, "spec.datasource.password"), undefined);
  });

  it("is none without a schema, or without the path in it", () => {
    assert.equal(find({}, "spec.password"), undefined);
    assert.equal(find(object({ spec: object({}) }), "spec.auth.password"), undefined);
    assert.equal(find(object({ spec: open }), "spec.auth[0].password"), undefined);
  });

  it("is searched in few levels, and in none below the first that the schema does not have", () => {
    const path = FieldPath.parse(`spec${".a".repeat(250)}`);
    const lookupsIn = (known: number) => {
      let count = 0;
      secretReferenceFor(path, ({ segments }) => {
        count++;
        return segments.length < known ? open : undefined;
      });
      return count;
    };
    assert.deepEqual([lookupsIn(2), lookupsIn(Number.POSITIVE_INFINITY)], [3, 16]);
  });

  const rows: [file: string, path: string, expected?: string][] = [
    ["samples/harbor/crd", "spec.storage.spec.s3.accesskey"],
    ["samples/acme-account/crd", "spec.acme.externalAccountBinding.keyID"],
    ["samples/acme-account/crd", "spec.vault.auth.appRole.roleId"],
    ["samples/acme-account/crd", "spec.acme.solvers[0].dns01.route53.hostedZoneID"],
    [
      "samples/acme-account/crd",
      "spec.acme.solvers[0].dns01.route53.accessKeyID",
      "spec.acme.solvers[0].dns01.route53.accessKeyIDSecretRef",
    ],
    ["test/demand/crds/kafkaconnect.yaml", "spec.authentication.username"],
    ["test/demand/crds/kongplugin.yaml", "config.api_key"],
    ["test/demand/crds/middleware.yaml", "spec.headers.customRequestHeaders.Authorization"],
    ["test/demand/crds/rabbitmqcluster.yaml", "spec.rabbitmq.additionalConfig"],
  ];
  for (const [file, path, expected] of rows) {
    it(`is ${expected ?? "none"} for ${path} of ${file}`, async () => {
      const files = file.endsWith(".yaml") ? [file] : (await readdir(join(root, file))).map((name) => join(file, name));
      const crd = parse(await readFile(join(root, files[0] as string), "utf8"));
      const schema = crd.spec.versions[0].schema.openAPIV3Schema;
      const found = find(schema, path);
      // The path exists in the kind, so that the result means something.
      assert.ok(schemaIn(schema, () => undefined)(FieldPath.parse(path)), path);
      assert.equal(found, expected);
    });
  }
});
