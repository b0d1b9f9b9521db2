/** A missing optional kind costs only a request now and then. */
import assert from "node:assert/strict";
import { optionalKind } from "../../../src/kube/discovery.ts";
import { CONFIGMAPS } from "../resources.ts";

const KIND = { apiVersion: "v1", kind: "ConfigMap" };

function asked(served: boolean) {
  const names: string[] = [];
  const byKind = async (apiVersion: string, kind: string) => {
    names.push(`${apiVersion} ${kind}`);
    return served ? CONFIGMAPS : undefined;
  };
  return { names, kind: optionalKind({ byKind }, KIND) };
}

describe("a kind that most clusters lack", () => {
  it("costs one request for all callers while it is missing", async () => {
    const { names, kind } = asked(false);
    for (let n = 0; n < 3; n++) assert.equal(await kind(), undefined);
    assert.deepEqual(names, ["v1 ConfigMap"]);
  });

  it("is returned as it is served now", async () => {
    const { names, kind } = asked(true);
    for (let n = 0; n < 2; n++) assert.deepEqual(await kind(), CONFIGMAPS);
    assert.equal(names.length, 2);
  });
});
