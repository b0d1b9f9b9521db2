/** Which keys of its sources a binding uses. */
import assert from "node:assert/strict";
import { usesBySource } from "../../../src/sources/uses.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { bindingOf, harbor } from "../bindings.ts";

const read = (text: string) => compileTemplate(text).references;

describe("what a binding uses of its sources", () => {
  it("is what its fields name, by from and in templates, each once and in order", () => {
    const sources = [
      { secret: { name: "bucket" } },
      { name: "minio", object: { apiVersion: "v1", resource: "services", name: "minio", scope: "Namespaced" } },
      { configMap: { name: "idle" } },
    ];
    const fields = [
      { path: "a", from: { source: "bucket", key: "tls.crt" } },
      { path: "b", template: "{{minio.spec.clusterIP}}:{{bucket.port}}{{#if bucket.[tls.crt]}}s{{/if}}" },
      { path: "c", from: { source: "minio", fieldPath: 'metadata.annotations["a/b"]' } },
      { path: "d", from: { source: "bucket" } },
    ];
    const uses = usesBySource(bindingOf({ sources, targets: [harbor(fields)] }), read);
    assert.deepEqual(Object.fromEntries(uses), {
      bucket: ["*", "port", "tls.crt"],
      minio: ['metadata.annotations["a/b"]', "spec.clusterIP"],
      idle: [],
    });
  });

  it("goes as far into an object as by names: a number may be a place in a list", () => {
    const sources = [{ name: "web", object: { apiVersion: "v1", resource: "services", name: "web" } }];
    const used = (template: string) =>
      usesBySource(bindingOf({ sources, targets: [harbor([{ path: "a", template }])] }), read).get("web");
    assert.deepEqual(used("{{web.spec.ports.[0].port}}"), ["spec.ports"]);
    assert.deepEqual(used("{{web.[0].port}}"), ["*"]);
  });

  it("is nothing of a template that can't be read", () => {
    const fields = [{ path: "a", template: "{{bucket.key" }];
    assert.deepEqual(usesBySource(bindingOf({ targets: [harbor(fields)] }), read).get("bucket"), []);
  });
});
