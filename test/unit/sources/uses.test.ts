/** Which keys of its sources a binding uses. */
import assert from "node:assert/strict";
import type { Field, Source } from "../../../src/api/binding.ts";
import { usesBySource } from "../../../src/sources/uses.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { bindingOf, targetOf } from "../objects.ts";

const read = (text: string) => compileTemplate(text).references;

describe("what a binding uses of its sources", () => {
  it("is what its fields name, by from and in templates, each once and in order", () => {
    const sources: Source[] = [
      { secret: { name: "bucket" } },
      { name: "minio", object: { apiVersion: "v1", resource: "services", name: "minio", scope: "Namespaced" } },
      { configMap: { name: "idle" } },
    ];
    const fields: Field[] = [
      { path: "a", from: { source: "bucket", key: "tls.crt" } },
      { path: "b", template: "{{minio.spec.clusterIP}}:{{bucket.port}}{{#if bucket.[tls.crt]}}s{{/if}}" },
      { path: "c", from: { source: "minio", fieldPath: 'metadata.annotations["a/b"]' } },
      { path: "d", from: { source: "bucket" } },
    ];
    const uses = usesBySource(bindingOf({ spec: { sources, targets: [targetOf({ fields })] } }), read);
    assert.deepEqual(Object.fromEntries(uses), {
      bucket: ["*", "port", "tls.crt"],
      minio: ['metadata.annotations["a/b"]', "spec.clusterIP"],
      idle: [],
    });
  });

  it("goes as far into an object as by names: a number may be a place in a list", () => {
    const sources: Source[] = [
      { name: "web", object: { apiVersion: "v1", resource: "services", name: "web", scope: "Namespaced" } },
    ];
    const used = (template: string) =>
      usesBySource(
        bindingOf({ spec: { sources, targets: [targetOf({ fields: [{ path: "a", template }] })] } }),
        read,
      ).get("web");
    assert.deepEqual(used("{{web.spec.ports.[0].port}}"), ["spec.ports"]);
    assert.deepEqual(used("{{web.[0].port}}"), ["*"]);
  });

  it("is nothing of a template that can't be read, or that names no field of an object", () => {
    const sources: Source[] = [
      { secret: { name: "bucket" } },
      { name: "web", object: { apiVersion: "v1", resource: "services", name: "web", scope: "Namespaced" } },
    ];
    for (const template of ["{{bucket.key", "{{web.constructor.name}}", "{{web.__proto__}}"]) {
      const binding = bindingOf({ spec: { sources, targets: [targetOf({ fields: [{ path: "a", template }] })] } });
      assert.deepEqual([...usesBySource(binding, read).values()], [[], []], template);
    }
  });
});
