/** Whose a field is, told by managedFields alone. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { holdersOf } from "../../../src/explain/field-owners.ts";

const entry = (manager: string, fieldsV1: JsonObject, subresource?: string) => ({
  manager,
  operation: "Apply" as const,
  fieldsV1,
  ...(subresource && { subresource }),
});
const holders = (path: string, ...entries: ReturnType<typeof entry>[]) => holdersOf(entries, FieldPath.parse(path));

describe("the holders of a field", () => {
  it("are those whose entries have it, each once, with the subresource by which they wrote", () => {
    const s3 = { "f:spec": { "f:s3": { "f:key": {}, "f:region": {} } } };
    const region = { "f:spec": { "f:s3": { "f:region": {} } } };
    const entries = [
      entry("inlay/a/b", s3),
      entry("argocd", region),
      entry("argocd", region),
      entry("hpa", s3, "scale"),
    ];
    assert.deepEqual(holders("spec.s3.region", ...entries), ["inlay/a/b", "argocd", "hpa (scale)"]);
    assert.deepEqual(holders("spec.s3.key", ...entries), ["inlay/a/b", "hpa (scale)"]);
    assert.deepEqual(holders("spec.s3.other", ...entries), []);
  });

  it("of an object are those too who hold something in it", () => {
    assert.deepEqual(holders("spec.s3", entry("argocd", { "f:spec": { "f:s3": { "f:region": {} } } })), ["argocd"]);
  });

  it("in an atomic list are those of the list", () => {
    const list = entry("argocd", { "f:spec": { "f:hosts": {} } });
    assert.deepEqual(holders("spec.hosts[0].host", list), ["argocd"]);
    assert.deepEqual(holders("spec.hosts[name=web].host", list), ["argocd"]);
  });

  it("are not those who once wrote an empty object above it, if someone holds the field himself", () => {
    const empty = entry("kubectl", { "f:metadata": { "f:annotations": {} } });
    const own = entry("inlay/a/b", { "f:metadata": { "f:annotations": { "f:x": {} } } });
    assert.deepEqual(holders("metadata.annotations.x", empty, own), ["inlay/a/b"]);
    assert.deepEqual(holders("metadata.annotations.x", empty), ["kubectl"]);
  });

  it("in an element of a map list are found by those of its keys that the path names", () => {
    const port = (number: number, fields: JsonObject) => ({
      [`k:{"containerPort":${number},"protocol":"TCP"}`]: { ".": {}, ...fields },
    });
    const ports = { ...port(80, { "f:name": {} }), ...port(81, {}) };
    const entries = [entry("argocd", { "f:ports": ports })];
    assert.deepEqual(holders("ports[containerPort=80].name", ...entries), ["argocd"]);
    assert.deepEqual(holders("ports[containerPort=80,protocol=TCP].name", ...entries), ["argocd"]);
    assert.deepEqual(holders("ports[containerPort=80,protocol=UDP].name", ...entries), []);
    assert.deepEqual(holders("ports[containerPort=82].name", ...entries), []);
    assert.deepEqual(holders("ports[name=web].name", ...entries), []);
  });

  it("are nobody where nothing is managed", () => {
    assert.deepEqual(holders("spec.key"), []);
    assert.deepEqual(holders("spec.key", entry("argocd", {})), []);
    assert.deepEqual(holders("spec.constructor2", entry("argocd", { "f:spec": { "f:a": {} } })), []);
  });
});
