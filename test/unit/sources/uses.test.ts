/** Which keys of its sources a binding uses. */
import assert from "node:assert/strict";
import type { Field, Source } from "../../../src/api/binding.ts";
import { describeUse, filterIn, useInWords, usesBySource } from "../../../src/sources/uses.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { bindingOf, targetOf } from "../objects.ts";

const read = (text: string) => compileTemplate(text).references;

describe("what a binding uses of its sources", () => {
  it("contains what its fields name in from and in templates, without duplicates and in order", () => {
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

  it("contains the filter for all keys that pass it, equal for equivalent filters", () => {
    const used = (...froms: object[]) => {
      const fields = froms.map((from, n) => ({ path: `f${n}`, from: { source: "bucket", ...from } }));
      const sources: Source[] = [{ secret: { name: "bucket" } }];
      return usesBySource(bindingOf({ spec: { sources, targets: [targetOf({ fields })] } }), read).get("bucket") ?? [];
    };
    const [use = "", ...others] = used(
      { include: ["b", "a"], exclude: ["c"] },
      { exclude: ["c"], include: ["a", "b", "a"] },
    );
    assert.deepEqual(others, []);
    assert.equal(use, '*{"include":["a","b"],"exclude":["c"]}');
    assert.deepEqual(filterIn(use), { include: ["a", "b"], exclude: ["c"] });
    assert.equal(
      used({}, { include: ["a"] }, { exclude: ["a"] }, { include: ["a", "b"] }, { include: ["a,b"] }).length,
      5,
    );
    assert.deepEqual([filterIn("*"), filterIn("tls.crt")], [{}, undefined]);
    const words = used({}, { include: ["a", "b"] }, { exclude: ["c"] }, { include: ["a"], exclude: ["c", "d"] });
    assert.deepEqual(words.map(useInWords), [
      "all of it",
      "keys that do not match c",
      "keys that match a or b",
      "keys that match a, but not c or d",
    ]);
    assert.deepEqual(
      ["*", "tls.crt", use].map((of) => describeUse({ source: "bucket", of })),
      ["bucket", "bucket/tls.crt", "bucket (keys that match a or b, but not c)"],
    );
  });

  it("contains one key if its name only looks like a filter", () => {
    for (const name of ['*{"include":[1]}', '*{"include":"a"}', '*{"include":["b","a"]}', "*{}", "*{", "*{null}", "**"])
      assert.equal(filterIn(name), undefined, name);
  });

  it("ends a path at the first number, which may be an index of a list", () => {
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

  it("is empty for a malformed template, and for a template without a field", () => {
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
