/** A binding that requires a field that the claim lacks. */
import assert from "node:assert/strict";
import type { CompositionSpec } from "../../../src/api/composition.ts";
import { compileComposition } from "../../../src/composition/compile.ts";
import { composeBinding } from "../../../src/composition/compose.ts";

const KIND = { group: "example.com", kind: "Shop", namespaced: true };
const SECRET = { fromFieldPath: "spec.secret", toFieldPath: "spec.sources[0].secret.name" };
const TARGET = { fromFieldPath: "spec.target", toFieldPath: "spec.targets[0].name" };
const OTHER = { fromFieldPath: "spec.other", toFieldPath: "metadata.labels[other]" };

function reasonFor(patches: object[], claim: Record<string, string>, name?: null): string | undefined {
  const base = {
    spec: {
      sources: [{ secret: {} }],
      targets: [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          ...(name === null && { name }),
          fields: [{ path: "data.a", template: "x" }],
        },
      ],
    },
  };
  const spec = {
    for: { apiVersion: "example.com/v1", kind: "Shop" },
    reach: "ClaimNamespace",
    bindings: [{ name: "a", base, patches }],
  } as unknown as CompositionSpec;
  const compiled = compileComposition(spec, KIND);
  const [binding = assert.fail()] = compiled.bindings;
  const place = { apiVersion: "example.com/v1", kind: "Shop", name: "shop", namespace: "team", uid: "uid" };
  return composeBinding(compiled, binding, { ...place, fields: { spec: claim } }).problems[0]?.reason;
}

describe("a binding without a required field of the claim", () => {
  it("waits for the field, whether the schema requires it or one of two", () => {
    const patches = [SECRET, TARGET, OTHER];
    assert.equal(reasonFor(patches, { secret: "a", target: "a" }), undefined);
    assert.equal(reasonFor(patches, { target: "a" }), "FieldNotFound");
    assert.equal(reasonFor(patches, { secret: "a" }), "FieldNotFound");
  });

  it("is invalid if no field of the claim could correct it", () => {
    assert.equal(reasonFor([TARGET, OTHER], { target: "a" }), "InvalidValue");
    assert.equal(reasonFor([SECRET, OTHER], { secret: "a" }), "InvalidValue");
    assert.equal(reasonFor([SECRET, OTHER], { secret: "a" }, null), "InvalidValue");
  });
});
