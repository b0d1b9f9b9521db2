/** What is shown for an object that the user can't read. */
import assert from "node:assert/strict";
import { Reader } from "../../../src/explain/reading.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { fakeTransport } from "../fakes.ts";
import { HARBOR } from "../resources.ts";

async function reading(status: number, message: string) {
  const error = ApiError.fromAnswer("GET /x", status, JSON.stringify({ message, reason: "InternalError" }));
  const request = () => Promise.reject(error);
  return new Reader(fakeTransport({ request, lines: () => assert.fail() })).get(HARBOR, () => "read");
}

describe("an object that can't be read", () => {
  it("is explained as in the conditions if a conversion webhook fails", async () => {
    const found = await reading(
      500,
      "conversion webhook for goharbor.io/v1, Kind=HarborCluster failed: hunter2-s3cr3t",
    );
    assert.ok(found.state === "Unreadable");
    assert.match(found.message, /^the API server can't get HarborCluster .*CustomResourceDefinition harborclusters\./);
    assert.doesNotMatch(found.message, /hunter2/);
  });

  it("has the status code otherwise", async () => {
    const found = await reading(500, "etcdserver: request timed out");
    assert.ok(found.state === "Unreadable");
    assert.match(found.message, /did not get harborclusters\.goharbor\.io\/\S+ .*\(500 InternalError\)$/);
  });
});
