/** What a manifest may not contain. */
import assert from "node:assert/strict";
import { assertManifest } from "../../../src/api/manifest.ts";

describe("a manifest", () => {
  it("may contain labels, annotations and the fields of its kind", () => {
    assertManifest("", "Secret", { metadata: { labels: { a: "b" }, annotations: {} }, type: "Opaque", data: {} });
    assertManifest("example.com", "Thing", {});
    assertManifest("example.com", "Secret", { stringData: {} });
  });

  const refused: [fact: RegExp, manifest: object][] = [
    [/can't contain apiVersion/, { apiVersion: "v1" }],
    [/can't contain kind/, { kind: "Secret" }],
    [/can't contain status/, { status: {} }],
    [/metadata .* must be an object/, { metadata: [] }],
    [/remove name, which the target sets/, { metadata: { name: "x" } }],
    [/remove finalizers/, { metadata: { finalizers: [] } }],
    [/remove ownerReferences/, { metadata: { ownerReferences: [] } }],
    [/remove generateName/, { metadata: { generateName: "x" } }],
    [/remove it/, { metadata: { labels: { "inlay.dev/created-by": "x" } } }],
  ];
  for (const [fact, manifest] of refused) {
    it(`is refused with ${JSON.stringify(manifest)}`, () => {
      assert.throws(() => assertManifest("", "Secret", { ...manifest }), { reason: "InvalidBinding", message: fact });
    });
  }

  it("may not contain fields that the API server never returns", () => {
    assert.throws(() => assertManifest("", "Secret", { stringData: {} }), { reason: "ForbiddenPath" });
  });
});
