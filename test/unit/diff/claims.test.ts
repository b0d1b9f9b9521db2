/** The compositions in files whose claims `inlay diff` reads from the cluster. */
import assert from "node:assert/strict";
import { claimsIn } from "../../../src/diff/diff.ts";
import { Readers } from "../../../src/diff/readers.ts";
import { Transport } from "../../../src/kube/transport.ts";
import { readDocuments } from "../../../src/render/documents.ts";
import { inputsOf } from "../../../src/render/inputs.ts";

describe("the claims of the compositions in files", () => {
  it("are not those of a kind of the same name in another group", async () => {
    const other = { apiVersion: "example.com/v1", kind: "BindingComposition", metadata: { name: "a" } };
    const { documents } = readDocuments([{ name: "a", text: JSON.stringify(other) }]);
    const inputs = inputsOf(documents, "shop", { ownOnly: true });
    const transport = new Transport({ server: new URL("http://127.0.0.1:1"), tls: {}, headers: async () => ({}) });
    const { objects, notes } = await claimsIn(new Readers(transport), inputs);
    assert.deepEqual([objects, notes], [[], []]);
    await transport.close();
  });
});
