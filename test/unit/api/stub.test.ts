/** What is kept of a binding that is too large: nothing that a tenant can make large. */
import assert from "node:assert/strict";
import { FINALIZER, type StoredBinding } from "../../../src/api/binding.ts";
import { stubOf } from "../../../src/api/stub.ts";
import { stringifyJson } from "../../../src/apimachinery/json.ts";
import { bindingOf } from "../objects.ts";

const LARGE = "x".repeat(1_000_000);
const owner = { apiVersion: "v1", kind: "ConfigMap", name: "claim", uid: "u1" };

const stubWith = (metadata: object, conditions: object[] = []): StoredBinding => {
  const binding = bindingOf({ metadata: { uid: "u1", resourceVersion: "1", ...metadata } }) as StoredBinding;
  return stubOf({ ...binding, status: { ...binding.status, conditions } } as StoredBinding);
};

describe("the stub of a binding", () => {
  it("has its finalizer once, and no other", () => {
    const finalizers = ["example.com/other", ...Array.from({ length: 70_000 }, () => FINALIZER)];
    assert.deepEqual(stubWith({ finalizers }).metadata.finalizers, [FINALIZER]);
    assert.deepEqual(stubWith({ finalizers: ["example.com/other"] }).metadata.finalizers, []);
  });

  it("has the owners and conditions that Inlay writes, and no others", () => {
    const ready = { type: "Ready", status: "False", reason: "TooLarge", message: "it is too large" };
    const stub = stubWith({ ownerReferences: [owner, { ...owner, uid: LARGE }, { ...owner, name: LARGE }] }, [
      ready,
      { ...ready, message: LARGE },
    ]);
    assert.deepEqual(stub.metadata.ownerReferences, [owner]);
    assert.deepEqual(stub.status?.conditions, [ready]);
  });

  it("is short, whatever the binding has", () => {
    const texts = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, n) => [`example.com/${n}`, LARGE.slice(0, 900)]),
    );
    const stub = stubWith({
      labels: texts,
      annotations: texts,
      finalizers: [LARGE],
      ownerReferences: [{ ...owner, kind: LARGE }],
    });
    assert.ok(stringifyJson(stub).length < 2_000);
  });
});
