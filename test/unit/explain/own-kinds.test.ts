/** How an older Inlay in a cluster is noticed. test/integration/sync.test.ts does it on the API server. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { OpenApiSchema } from "../../../src/apimachinery/openapi.ts";
import { missingField } from "../../../src/explain/own-kinds.ts";
import { ownVersion } from "../../../src/manager/own-version.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const object = (properties: Record<string, OpenApiSchema>): OpenApiSchema => ({ type: "object", properties });
const text: OpenApiSchema = { type: "string" };

describe("the kinds of another Inlay", () => {
  const own = object({
    metadata: object({ x: text }),
    spec: object({
      list: { type: "array", items: object({ a: text }) },
      map: { type: "object", additionalProperties: object({ b: text }) },
    }),
  });
  const missing = (served: OpenApiSchema, refs: Record<string, OpenApiSchema> = {}) =>
    missingField(own, served, (ref) => refs[ref]);

  it("lack a field, wherever it is", () => {
    assert.equal(missing(own), undefined);
    assert.equal(missing(object({})), "spec");
    const { list, map } = own.properties?.["spec"]?.properties ?? {};
    assert.equal(missing(object({ spec: object({ map: map as OpenApiSchema }) })), "spec.list");
    const bare: OpenApiSchema = { type: "array", items: object({}) };
    assert.equal(missing(object({ spec: object({ list: bare, map: map as OpenApiSchema }) })), "spec.list[].a");
    const empty: OpenApiSchema = { type: "object", additionalProperties: object({}) };
    assert.equal(missing(object({ spec: object({ list: list as OpenApiSchema, map: empty }) })), "spec.map.*.b");
  });

  it("may have more fields, and parts of their own", () => {
    const spec = object({ ...own.properties?.["spec"]?.properties, more: text });
    assert.equal(missing(object({ spec: { $ref: "#/spec" } }), { "#/spec": spec }), undefined);
  });

  it("have the label of the version in every CRD of this one", () => {
    for (const file of globSync("apis/*.yaml", { cwd: root })) {
      const { metadata } = parse(readFileSync(join(root, file), "utf8"));
      assert.equal(metadata.labels["app.kubernetes.io/version"], ownVersion(), file);
    }
  });
});
