/** Patches: the types of their values are those that the tools read, and operations that Inlay does not have are reported. */
import assert from "node:assert/strict";
import { migrate } from "../../../src/migrate/migration.ts";
import { PATCH_OPERATOR } from "../../../src/migrate/patch-operator.ts";

const template = `- op: replace
  path: /spec/{{ (index . 1).data.one }}
  value: a
- op: replace
  path: /spec/{{ (index . 1).data.two }}
  value: b
- op: replace
  path: /spec/host
  value: "{{ (index . 1).data.host }}"
`;
const patch = {
  apiVersion: "redhatcop.redhat.io/v1alpha1",
  kind: "Patch",
  metadata: { name: "p", namespace: "shop" },
  spec: {
    patches: {
      p: {
        targetObjectRef: { apiVersion: "v1", kind: "ConfigMap", name: "target", namespace: "shop" },
        sourceObjectRefs: [{ apiVersion: "v1", kind: "ConfigMap", name: "source", namespace: "shop" }],
        patchType: "application/json-patch+json",
        patchTemplate: template,
      },
    },
  },
};

/** The fields of a binding for a merge patch of a custom resource, or of a ConfigMap. */
function fieldsOf(patchTemplate: string, apiVersion = "example.com/v1"): Record<string, unknown> {
  const { p } = patch.spec.patches;
  const targetObjectRef = { apiVersion, kind: "Site", name: "target", namespace: "shop" };
  const merge = { ...p, targetObjectRef, patchType: "application/merge-patch+json", patchTemplate };
  const { converted, lost } = migrate(
    PATCH_OPERATOR,
    [{ name: "a", text: JSON.stringify({ ...patch, spec: { patches: { p: merge } } }) }],
    "shop",
  );
  assert.deepEqual(lost, []);
  const spec = converted[0]?.object["spec"] as { targets: { fields: { path: string }[] }[] };
  return Object.fromEntries((spec.targets[0]?.fields ?? []).map(({ path, ...field }) => [path, field]));
}

describe("the values of a patch", () => {
  it("have the types that programs in Go read in YAML", () => {
    const integer = (template: string) => ({ template, as: "integer" });
    const expected: Record<string, object> = {
      "0755": integer("493"),
      "-0o17": integer("-15"),
      "0b101": integer("5"),
      "0x_1F": integer("31"),
      "1_000": integer("1000"),
      "+1_0": integer("10"),
      "08": integer("8"),
      "0_8": integer("8"),
      "1e3": integer("1000"),
      "1_0.5": { template: "10.5", as: "number" },
      yes: { template: "true", as: "boolean" },
      "2026-01-01": { template: "2026-01-01" },
      "22:22": { template: "22:22" },
      _1: { template: "_1" },
      "0b": { template: "0b" },
      '"0755"': { template: "0755" },
      "[0755, 1_0, '010']": { template: '[493,10,"010"]', as: "json" },
    };
    const texts = Object.keys(expected);
    const template = `spec:\n${texts.map((text, at) => `  f${at}: ${text}\n`).join("")}`;
    const fields = fieldsOf(template);
    for (const [at, text] of texts.entries()) assert.deepEqual(fields[`spec.f${at}`], expected[text], text);
  });

  it("have the type that YAML gives a template without quotes, also in lists", () => {
    const key = (name: string) => `{{ (index . 1).data.${name} }}`;
    const lines = [
      `port: ${key("port")}`,
      `quoted: "${key("port")}"`,
      `version: ${key("major")}.${key("minor")}`,
      `url: https://${key("host")}/`,
      `ports: [${key("port")}, 2, "${key("port")}"]`,
      `rules: [{ port: 1${key("port")}, host: a.${key("host")}/ }]`,
      "json: {{ (index . 1).data.port | toJson }}",
    ];
    const from = { source: "source", key: "port" };
    assert.deepEqual(fieldsOf(`spec:\n${lines.map((line) => `  ${line}\n`).join("")}`), {
      "spec.port": { from, as: "yaml" },
      "spec.quoted": { from },
      "spec.version": { template: "{{source.major}}.{{source.minor}}", as: "yaml" },
      "spec.url": { template: "https://{{source.host}}/" },
      "spec.ports": { template: '[{{json (parse source.port)}},2,"{{jsontext source.port}}"]', as: "json" },
      "spec.rules": {
        template: '[{"port":{{json (parse (concat "1" source.port))}},"host":"a.{{jsontext source.host}}/"}]',
        as: "json",
      },
      "spec.json": { from },
    });
    // All fields of a ConfigMap have a schema.
    assert.deepEqual(fieldsOf(`data:\n  port: ${key("port")}\n`, "v1"), { "data.port": { from } });
  });
});

describe("a patch of JSON", () => {
  it("reports each path that has a template", () => {
    const { converted, lost } = migrate(PATCH_OPERATOR, [{ name: "a", text: JSON.stringify(patch) }], "shop");
    const spec = converted[0]?.object["spec"] as { targets: { fields: { path: string }[] }[] };
    assert.deepEqual(
      spec.targets[0]?.fields.map(({ path }) => path),
      ["spec.host"],
    );
    assert.equal(lost.filter(({ message }) => message.includes("fixed paths")).length, 2);
  });
});
