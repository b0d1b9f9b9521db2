/** The managers that own a field, by managedFields alone. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { holdersOf } from "../../../src/explain/targets.ts";

const entry = (manager: string, fieldsV1: JsonObject, subresource?: string) => ({
  manager,
  operation: "Apply" as const,
  fieldsV1,
  ...(subresource && { subresource }),
});
const holders = (path: string, ...entries: ReturnType<typeof entry>[]) => holdersOf(entries, FieldPath.parse(path));

describe("the owners of a field", () => {
  it("are the managers whose entries contain it, without duplicates, with the subresource that they wrote", () => {
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

  it("include, for an object, the owners of fields in it", () => {
    assert.deepEqual(holders("spec.s3", entry("argocd", { "f:spec": { "f:s3": { "f:region": {} } } })), ["argocd"]);
  });

  it("are the owners of the list, for a field in an atomic list", () => {
    const list = entry("argocd", { "f:spec": { "f:hosts": {} } });
    assert.deepEqual(holders("spec.hosts[0].host", list), ["argocd"]);
    assert.deepEqual(holders("spec.hosts[name=web].host", list), ["argocd"]);
  });

  it("exclude a manager that once wrote an empty object above it, if another manager owns the field", () => {
    const empty = entry("kubectl", { "f:metadata": { "f:annotations": {} } });
    const own = entry("inlay/a/b", { "f:metadata": { "f:annotations": { "f:x": {} } } });
    assert.deepEqual(holders("metadata.annotations.x", empty, own), ["inlay/a/b"]);
    assert.deepEqual(holders("metadata.annotations.x", empty), ["kubectl"]);
  });

  it("are found, in an element of a map list, by the keys that the path names", () => {
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

  it("are empty without managedFields", () => {
    assert.deepEqual(holders("spec.key"), []);
    assert.deepEqual(holders("spec.key", entry("argocd", {})), []);
    assert.deepEqual(holders("spec.constructor2", entry("argocd", { "f:spec": { "f:a": {} } })), []);
  });
});
