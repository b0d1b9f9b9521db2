/** What a manifest may not say. */
import assert from "node:assert/strict";
import { assertManifest } from "../../../src/api/manifest.ts";

describe("a manifest", () => {
  it("has labels, annotations and whatever the kind has", () => {
    assertManifest("", "Secret", { metadata: { labels: { a: "b" }, annotations: {} }, type: "Opaque", data: {} });
    assertManifest("example.com", "Thing", {});
    assertManifest("example.com", "Secret", { stringData: {} });
  });

  const refused: Record<string, object> = {
    "apiVersion can't stand in a manifest: it stands in the target": { apiVersion: "v1" },
    "kind can't stand in a manifest: it stands in the target": { kind: "Secret" },
    "status can't stand in a manifest: it belongs to the controller of the object": { status: {} },
    "metadata of a manifest is an object": { metadata: [] },
    "metadata of a manifest has labels and annotations, and no name; it stands in the target": {
      metadata: { name: "x" },
    },
    "metadata of a manifest has labels and annotations, and no finalizers": { metadata: { finalizers: [] } },
    "metadata of a manifest has labels and annotations, and no ownerReferences": { metadata: { ownerReferences: [] } },
    "metadata of a manifest has labels and annotations, and no generateName": { metadata: { generateName: "x" } },
    "inlay.dev/created-by is Inlay's own to write; take it out of the manifest": {
      metadata: { labels: { "inlay.dev/created-by": "x" } },
    },
  };
  for (const [message, manifest] of Object.entries(refused)) {
    it(`is refused when ${message}`, () => {
      assert.throws(() => assertManifest("", "Secret", { ...manifest }), { reason: "InvalidBinding", message });
    });
  }

  it("has nothing that can't be read again", () => {
    assert.throws(() => assertManifest("", "Secret", { stringData: {} }), { reason: "ForbiddenPath" });
  });
});
