/** The bindings of claims beside those that exist in a cluster, as `inlay diff` predicts them. */
import assert from "node:assert/strict";
import { Installation } from "../../../src/api/installation.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { type Composed, composeBindings } from "../../../src/render/claims.ts";
import { readDocuments } from "../../../src/render/documents.ts";
import { inputsOf } from "../../../src/render/inputs.ts";
import { BASE, specOf } from "../composition/compositions.ts";

const LABEL = { fromFieldPath: "spec.label", toFieldPath: "metadata.labels[a]" };
const COMPOSITION = {
  apiVersion: "inlay.dev/v1alpha1",
  kind: "BindingComposition",
  metadata: { name: "shops" },
  spec: specOf([], { bindings: [{ name: "s3", base: BASE, patches: [LABEL] }] }),
};
const claim = (spec: object) => ({
  apiVersion: "example.com/v1",
  kind: "Shop",
  metadata: { name: "shop", namespace: "team", uid: "uid-1" },
  spec,
});

function composedBeside(live: readonly JsonObject[], spec: object = { label: "x" }): Composed {
  const text = [COMPOSITION, claim(spec)].map((each) => JSON.stringify(each)).join("\n---\n");
  const { documents } = readDocuments([{ name: "a", text }]);
  const inputs = inputsOf(documents, "default");
  return composeBindings(inputs, new Installation({ ownNamespace: "inlay-system" }), live as never);
}
const namesOf = ({ bindings }: Composed) => bindings.map(({ binding }) => binding.metadata.name);
const live = (name: string): JsonObject => {
  const [{ binding } = assert.fail()] = composedBeside([]).bindings;
  return { ...binding, metadata: { ...binding.metadata, name } } as unknown as JsonObject;
};

describe("a composed binding beside those of a cluster", () => {
  it("keeps its name, and stays as it is while its claim lacks a field that it had", () => {
    assert.deepEqual(namesOf(composedBeside([])), ["shop-s3"]);
    assert.deepEqual(namesOf(composedBeside([live("old")])), ["old"]);
    const held = composedBeside([live("old")], {});
    assert.deepEqual([namesOf(held), held.notMade.map(({ problem }) => problem.reason)], [[], ["FieldNotFound"]]);
    assert.deepEqual(held.mistakes, []);
  });

  it("is a mistake at its entry if another binding has its name", () => {
    const other = { metadata: { namespace: "team", name: "shop-s3" } };
    const { bindings, mistakes } = composedBeside([other]);
    const message =
      "Shop team/shop: bindings[s3]: metadata.name: another SecretBinding in namespace team has the name shop-s3; delete it, or set metadata.name by a patch";
    assert.deepEqual([bindings, mistakes.map((each) => each.message)], [[], [message]]);
    assert.deepEqual(namesOf(composedBeside([{ ...other, metadata: { ...other.metadata, namespace: "b" } }])), [
      "shop-s3",
    ]);
  });
});
