/** What no binding may write. */
import assert from "node:assert/strict";
import { assertWritableKind, assertWritablePath } from "../../../src/api/writable.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";

const write = (path: string) => () => assertWritablePath(FieldPath.parse(path));

describe("a binding", () => {
  for (const path of [
    "status",
    "status.phase",
    '["status"].phase',
    '["stat\\u0075s"]',
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.finalizers",
    "metadata.ownerReferences[0].name",
    'metadata["managedFields"]',
    "metadata.annotations",
    '["metadata"]["labels"]',
  ]) {
    it(`may not write ${path}`, () => assert.throws(write(path), { reason: "ForbiddenPath" }));
  }

  for (const path of [
    "spec",
    "spec.status",
    "config.kind",
    "data.metadata",
    'metadata.annotations["a/b"]',
    "metadata.labels.a",
  ]) {
    it(`may write ${path}`, write(path));
  }

  it("must quote an annotation's key that has dots", () => {
    assert.throws(write("metadata.annotations.example.com"), {
      reason: "InvalidPath",
      message: /metadata\.annotations\["example\.com"\]/,
    });
  });

  it("may not write kinds that grant permissions, decide about admission, or are Inlay's own", () => {
    for (const group of ["rbac.authorization.k8s.io", "admissionregistration.k8s.io", "inlay.dev"]) {
      assert.throws(() => assertWritableKind(group, "Some"), { reason: "ForbiddenKind" });
    }
    assertWritableKind("", "Secret");
    assertWritableKind("goharbor.io", "HarborCluster");
  });
});
