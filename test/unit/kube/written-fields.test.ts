/** Which object and which fields of a write a dry run names, and that it names no value. */
import assert from "node:assert/strict";
import { bodyFields, writeTarget } from "../../../src/kube/dry-run.ts";

const value = "AKIA-value";

describe("a planned write", () => {
  it("names its object by the path of the request", () => {
    assert.deepEqual(writeTarget("/api/v1/namespaces/shop/secrets/a%3Ab"), {
      resource: "secrets",
      namespace: "shop",
      name: "a:b",
    });
    assert.deepEqual(writeTarget("/apis/inlay.dev/v1alpha1/namespaces/shop/secretbindings/x/status"), {
      resource: "secretbindings.inlay.dev/status",
      namespace: "shop",
      name: "x",
    });
    assert.deepEqual(writeTarget("/apis/apps/v1/namespaces/shop/deployments"), {
      resource: "deployments.apps",
      namespace: "shop",
    });
    assert.deepEqual(writeTarget("/api/v1/namespaces/shop"), { resource: "namespaces", name: "shop" });
    assert.deepEqual(writeTarget("/apis/inlay.dev/v1alpha1/bindingcompositions/x"), {
      resource: "bindingcompositions.inlay.dev",
      name: "x",
    });
  });

  it("names the fields of objects and patches, and no value", () => {
    const object = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a", uid: "1", annotations: { "example.com/a": value } },
      data: { key: value, "tls.crt": value },
      list: [{ a: value }],
      empty: {},
    };
    const fields = bodyFields({
      method: "PATCH",
      body: JSON.stringify(object),
      contentType: "application/apply-patch+yaml",
    });
    assert.deepEqual(fields, ["data.key", 'data["tls.crt"]', "empty", "list", 'metadata.annotations["example.com/a"]']);
    const operations = [
      { op: "test", path: "/metadata/uid", value },
      { op: "replace", path: "/spec/list/0/a", value },
    ];
    const body = JSON.stringify(operations);
    assert.deepEqual(bodyFields({ method: "PATCH", body, contentType: "application/json-patch+json" }), [
      "/spec/list/0/a",
    ]);
    assert.deepEqual(bodyFields({ method: "DELETE", body: JSON.stringify({ preconditions: { uid: value } }) }), []);
  });

  it("names at most 50 fields", () => {
    const data = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`key-${at}`, value]));
    const fields = bodyFields({ method: "POST", body: JSON.stringify({ data }) });
    assert.deepEqual([fields.length, fields.at(-1)], [51, "and 10 more"]);
  });
});
