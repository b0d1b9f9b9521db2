/** What is sent to the API server, and how refusals are reported. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, ObjectRef } from "../../../src/apimachinery/objects.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { decide } from "../../../src/apply/decide.ts";
import { writeTarget } from "../../../src/apply/write.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { fakeClient } from "../fakes.ts";
import { kubeObjectOf } from "../objects.ts";
import { CONFIGMAPS } from "../resources.ts";
import { shape } from "./managed.ts";

const live = kubeObjectOf({ metadata: { uid: "1" } });
const ref = { resource: CONFIGMAPS, namespace: "registry", name: "a" };

/** The request, or that the object changed meanwhile. */
async function write(paths: string[], refusal?: ApiError, uidNow = "1"): Promise<JsonObject | "stale"> {
  let sent: JsonObject = {};
  const client = fakeClient({
    get: async () => ({ ...live, metadata: { ...live.metadata, uid: uidNow } }),
    apply: async (_identity: string, _ref: ObjectRef, _uid: string, leaves: JsonObject) => {
      sent = leaves;
      if (refusal) throw refusal;
      return live;
    },
    jsonPatch: () => assert.fail("unexpected patch"),
  });
  const fields = paths.map((path) => ({ path: FieldPath.parse(path), value: new SecretValue("v"), fromSecret: true }));
  const plan = { fields, omitted: [] };
  const desired = { plan, shape: shape(), fieldManager: "inlay/registry/b", onConflict: "Fail" as const };
  const decision = decide(desired, live, undefined);
  if ((await writeTarget({ client, identity: "", ref, verbs: [] }, desired, decision, live)) === "stale")
    return "stale";
  return JSON.parse(JSON.stringify(sent));
}

describe("the write of a target", () => {
  const metadata = { resourceVersion: "1" };

  it("contains the named leaves, the version that was read, and nothing else", async () => {
    assert.deepEqual(await write(["a.b", "a.c", "d"]), { a: { b: "v", c: "v" }, d: "v", metadata });
    const labelled = { labels: { l: "v" }, ...metadata };
    assert.deepEqual(await write(["metadata.labels.l"]), { metadata: labelled });
  });

  const inherited = Object.getOwnPropertyNames(Object.prototype).filter(
    (name) => !/^(__proto__|constructor)$/.test(name),
  );
  for (const name of inherited) {
    it(`treats the key ${name} like any other`, async () => {
      const before = Object.getOwnPropertyDescriptors(Object.prototype);
      assert.deepEqual(await write([`config.${name}.call`, `${name}.name`]), {
        config: { [name]: { call: "v" } },
        [name]: { name: "v" },
        metadata,
      });
      assert.deepEqual(Object.getOwnPropertyDescriptors(Object.prototype), before);
      assert.equal(Object.hasOwn(Object.prototype.hasOwnProperty, "call"), false);
    });
  }

  const conflictAt = (field: string) =>
    new ApiError("PATCH /x", 409, "Conflict", {
      details: { causes: [{ reason: "FieldManagerConflict", message: 'conflict with "helm" using v1', field }] },
    });

  it("names the binding's path of a conflict, never the server's, which may contain a value", async () => {
    await assert.rejects(write(["a.b", "a.tags"], conflictAt('.a.tags[="hunter2"]')), (problem: Problem) => {
      assert.equal(problem.reason, "Conflict");
      assert.match(problem.message, /^a\.tags belongs to "helm"/);
      return !problem.message.includes("hunter2");
    });
  });

  it("names all its paths if the conflict is about a parent of them", async () => {
    await assert.rejects(
      write(["a.b", "c"], conflictAt(".a")),
      /^Problem: a\.b belongs to "helm"; nothing was written/,
    );
  });

  it("is stale if the object changed since it was read", async () => {
    assert.equal(await write(["a"], new ApiError("PATCH /x", 409, "Conflict")), "stale");
  });

  it("is stale, not invalid, if a new object has the name", async () => {
    const invalid = new ApiError("PATCH /x", 422, "Invalid");
    assert.equal(await write(["a"], invalid, "2"), "stale");
    await assert.rejects(write(["a"], invalid, "1"), (problem: Problem) => problem.reason === "Rejected");
  });
});
