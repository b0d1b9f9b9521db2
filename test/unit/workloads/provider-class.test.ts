/** Which Secrets the driver of a SecretProviderClass writes. */
import assert from "node:assert/strict";
import { syncedBy } from "../../../src/workloads/provider-class.ts";

describe("a SecretProviderClass", () => {
  it("names the Secrets that are written for it, with their keys", () => {
    const data = [
      { key: "token", objectName: "a" },
      { key: "id", objectName: "b" },
      { key: "id", objectName: "c" },
    ];
    const secretObjects = [
      { secretName: "bucket", data },
      { secretName: "all", data: [] },
      { secretName: "odd", data: [{}] },
    ];
    assert.deepEqual(syncedBy({ provider: "vault", secretObjects }), [
      { secret: "bucket", keys: ["id", "token"] },
      { secret: "all", keys: undefined },
      { secret: "odd", keys: undefined },
    ]);
  });

  it("names a Secret once, with the keys of all its entries", () => {
    const entry = (secretName: string, ...keys: string[]) => ({ secretName, data: keys.map((key) => ({ key })) });
    const secretObjects = [entry("a", "x"), entry("b", "x"), entry("a", "y", "x"), entry("b")];
    assert.deepEqual(syncedBy({ secretObjects }), [
      { secret: "a", keys: ["x", "y"] },
      { secret: "b", keys: undefined },
    ]);
  });

  it("is not read if it names more Secrets and keys than wanted", () => {
    const secretObjects = [{ secretName: "a", data: [{ key: "x" }, { key: "y" }] }, { secretName: "b" }];
    assert.equal(syncedBy({ secretObjects }, 4)?.length, 2);
    assert.equal(syncedBy({ secretObjects }, 3), undefined);
  });

  it("names none if it is malformed", () => {
    for (const spec of [
      undefined,
      null,
      "x",
      {},
      { secretObjects: "x" },
      { secretObjects: [null, {}, { secretName: "" }, { secretName: 7 }] },
    ])
      assert.deepEqual(syncedBy(spec), []);
  });
});
