/** Which values are behind the keys of a Secret that a binding writes. */
import assert from "node:assert/strict";
import type { Field } from "../../../../src/api/binding.ts";
import { writtenUses } from "../../../../src/rollout/discover/written-values.ts";
import { parseSources } from "../../../../src/sources/registry.ts";
import { bindingOf, targetOf } from "../../objects.ts";

const sources = parseSources(bindingOf({ spec: { sources: [{ secret: { name: "a" } }, { secret: { name: "b" } }] } }));
const usesOf = (...fields: Field[]) => writtenUses(sources, targetOf({ apiVersion: "v1", kind: "Secret", fields }));

describe("the values behind the keys of a Secret that is written", () => {
  it("are those of the keys of the same name, if all data is copied", () => {
    const uses = usesOf({ path: "data", from: { source: "a" } });
    assert.deepEqual(uses(["x", "y"]), ["a/x", "a/y"]);
    assert.deepEqual(uses(undefined), ["a/*"]);
  });

  it("are those of the fields that write the key, whatever their names are, and none for a key of other clients", () => {
    const uses = usesOf(
      { path: 'data["tls.crt"]', from: { source: "a", key: "cert" } },
      { path: "stringData.url", template: "{{a.user}}@{{b.host}}" },
      { path: "metadata.annotations.x", from: { source: "b", key: "other" } },
    );
    assert.deepEqual(uses(["tls.crt"]), ["a/cert"]);
    assert.deepEqual(uses(["url", "tls.crt"]), ["a/user", "b/host", "a/cert"]);
    assert.deepEqual(uses(["extra"]), []);
    assert.deepEqual(uses(undefined), ["a/cert", "a/user", "b/host"]);
  });

  it("are those of the keys that include and exclude permit", () => {
    const uses = usesOf({ path: "data", from: { source: "a", include: ["^tls"], exclude: ["key$"] } });
    assert.deepEqual(uses(["tls.crt", "tls.key", "password"]), ["a/tls.crt"]);
    assert.deepEqual(uses(undefined), ['a/*{"include":["^tls"],"exclude":["key$"]}']);
  });

  it("are all values of a text that contains all keys", () => {
    const uses = usesOf({ path: "data", from: { source: "a", key: "bundle" }, as: "json" });
    assert.deepEqual(uses(["x"]), ["a/bundle"]);
  });
});
