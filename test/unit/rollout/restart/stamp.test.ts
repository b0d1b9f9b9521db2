/** What a restart does after each answer of the API server. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import type { JsonObject, KubeObject } from "../../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { stamp } from "../../../../src/rollout/restart/restart.ts";
import { fakeClient } from "../../fakes.ts";
import { dependentOf, kubeObjectOf } from "../../objects.ts";

const workloadAt = (resourceVersion: string, generation = 3) =>
  kubeObjectOf({ kind: "Deployment", metadata: { name: "core", uid: "1", generation, resourceVersion } });

/** The result, and the versions that were read and written. `now` is the workload after each conflict. */
async function restart(failures: ApiError[], now: KubeObject[] = []) {
  const requests: string[] = [];
  const client = fakeClient({
    get: async () => {
      const found = now.shift() ?? assert.fail("an unexpected read");
      requests.push(`read ${found.metadata.resourceVersion}`);
      return found;
    },
    mergeFields: async (_: unknown, __: unknown, patch: JsonObject) => {
      const { uid, resourceVersion } = patch["metadata"] as JsonObject;
      requests.push(`write ${uid} ${resourceVersion}`);
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return workloadAt("90", 4);
    },
  });
  const dependent = dependentOf({ version: { uid: "1", generation: 3, resourceVersion: "10" } });
  const answer = await stamp(client, "system:serviceaccount:shop:inlay", dependent, "1-3fa9c1-09ab34de12").catch(
    (error) => error.reason,
  );
  return { answer: answer.metadata?.resourceVersion ?? answer, requests };
}

/** The fields of the write beside the guard. */
async function patchOf(stampAt: string, restarts?: string): Promise<JsonObject> {
  let patch: JsonObject = {};
  const client = fakeClient({
    get: () => assert.fail("an unexpected read"),
    mergeFields: async (_: unknown, __: unknown, written: JsonObject) => {
      patch = written;
      return workloadAt("90", 4);
    },
  });
  const dependent = dependentOf({ stampAt: FieldPath.parse(stampAt), version: { uid: "1", resourceVersion: "10" } });
  await stamp(client, "system:serviceaccount:shop:inlay", dependent, "the stamp", undefined, restarts);
  const { uid: _, resourceVersion: __, ...metadata } = patch["metadata"] as JsonObject;
  return { ...patch, metadata };
}

const conflict = () => new ApiError("PATCH", 409, "Conflict");

describe("a restart", () => {
  it("is written to a later version with the same spec after a conflict, and is decided again for another spec", async () => {
    assert.deepEqual(await restart([conflict(), conflict()], [workloadAt("11"), workloadAt("12")]), {
      answer: "90",
      requests: ["write 1 10", "read 11", "write 1 11", "read 12", "write 1 12"],
    });
    const { answer, requests } = await restart([conflict()], [workloadAt("11", 4)]);
    assert.deepEqual([answer, requests.at(-1)], ["stale", "read 11"]);
  });

  it("has the times of the last restarts beside it, where they restart nothing", async () => {
    const times = { annotations: { "inlay.dev/restarts": "times" } };
    const template = { metadata: { annotations: { a: "the stamp" } } };
    assert.deepEqual(await patchOf("spec.template.metadata.annotations.a", "times"), {
      metadata: times,
      spec: { template },
    });
    assert.deepEqual(await patchOf("spec.restartAt", "times"), { metadata: times, spec: { restartAt: "the stamp" } });
    assert.deepEqual(await patchOf("metadata.annotations.a", "times"), {
      metadata: { annotations: { a: "the stamp", ...times.annotations } },
    });
    assert.deepEqual(await patchOf("metadata.annotations.a"), { metadata: { annotations: { a: "the stamp" } } });
  });

  it("of a deleted workload is decided again, and a refused one is reported, without a read", async () => {
    const requests = ["write 1 10"];
    assert.deepEqual(await restart([new ApiError("PATCH", 404, "NotFound")]), { answer: "stale", requests });
    assert.deepEqual(await restart([new ApiError("PATCH", 422, "Invalid")]), { answer: "Rejected", requests });
    // The kind is not served any more.
    assert.deepEqual(await restart([new ApiError("PATCH", 404, "Error")]), { answer: "KindNotFound", requests });
  });
});
