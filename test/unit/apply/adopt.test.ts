/** What an adoption changes in an object, who owns its fields then, and which answers show that the object changed. */
import assert from "node:assert/strict";
import jsonPatch from "fast-json-patch";
import type { ManagedFieldsEntry, ObjectMeta } from "../../../src/apimachinery/objects.ts";
import { adoptionOf, adoptObject, keysOfOthers, previewAdoption } from "../../../src/apply/adopt.ts";
import { correctObject } from "../../../src/apply/create.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { fakeClient } from "../fakes.ts";
import { kubeObjectOf } from "../objects.ts";
import { CONFIGMAPS } from "../resources.ts";
import { entry, OURS } from "./managed.ts";

const LABEL = "inlay.dev/created-by";
const DATA = ["data.a", "data.b"];

const objectOf = (data: object, metadata: Partial<ObjectMeta> = {}) => kubeObjectOf({ metadata, data });
const previewOf = (data: object, { labels, ...metadata }: Partial<ObjectMeta> = {}) =>
  objectOf(data, { managedFields: [entry(OURS, DATA)], ...metadata, labels: { ...labels, [LABEL]: "uid-9" } });
const none = () => false;

describe("the adoption of an object", () => {
  it("makes the previewed changes in one patch, and names what it overwrites, removes and adds", () => {
    const live = objectOf({ a: "1", b: "2", c: "3" });
    const preview = previewOf({ a: "1", b: "other", "d/e": "4" }, { annotations: { "x.y/z": "n" } });
    const { operations, differing } = adoptionOf(live, preview, OURS, none);
    assert.deepEqual(jsonPatch.applyPatch(structuredClone(live), operations as never[]).newDocument, preview);
    assert.deepEqual(differing, ["data.b", "data.c", 'data["d/e"]', 'metadata.annotations["x.y/z"]']);
  });

  it("ignores its own label and owner reference, and the changes of every write", () => {
    const owner = { uid: "uid-9", kind: "SecretBinding", name: "b" };
    const preview = previewOf({ a: "1" }, { resourceVersion: "2", generation: 5, ownerReferences: [owner] });
    assert.deepEqual(adoptionOf(objectOf({ a: "1" }), preview, OURS, none).differing, []);
  });

  it("names keys that no path can contain", () => {
    const live = objectOf(JSON.parse('{"constructor":"1","__proto__":"2"}'));
    const { operations, differing } = adoptionOf(live, previewOf({}), OURS, none);
    assert.deepEqual(differing, ["data.constructor", "data.__proto__"]);
    assert.deepEqual(
      operations.filter(({ op }) => op === "remove").map(({ path }) => path),
      ["/data/constructor", "/data/__proto__"],
    );
  });

  it("removes owners that no longer exist in the same patch, and no others", () => {
    const [gone, other, ours] = ["gone", "other", "ours"].map((uid) => ({ uid }));
    const owners = [gone, other].map((owner) => owner as { uid: string });
    const live = objectOf({}, { ownerReferences: owners });
    const preview = previewOf({}, { ownerReferences: [...owners, ours as { uid: string }] });
    const { operations } = adoptionOf(live, preview, OURS, ({ uid }) => uid === "gone");
    const patch = operations.find(({ path }) => path === "/metadata/ownerReferences");
    assert.deepEqual(patch, { op: "replace", path: "/metadata/ownerReferences", value: [other, ours] });
  });

  /** The owners of all fields after the adoption. */
  const managersAfter = (...managedFields: ManagedFieldsEntry[]): unknown => {
    const { operations } = adoptionOf(objectOf({}), previewOf({}, { managedFields }), OURS, none);
    return operations.find(({ path }) => path === "/metadata/managedFields")?.value;
  };

  it("leaves others only the fields that the binding does not apply", () => {
    const own = entry(OURS, [...DATA, "metadata.labels.app"]);
    const status = entry("operator", DATA, { operation: "Update", subresource: "status" });
    const others = [
      entry("kubectl-create", [...DATA, "data", "data.c"], { operation: "Update" }),
      entry("flux", ["data.a"]),
      entry("kubectl-label", ["metadata.labels", "metadata.labels.app"], { operation: "Update" }),
      status,
    ];
    assert.deepEqual(managersAfter(own, ...others), [
      own,
      entry("kubectl-create", ["data", "data.c"], { operation: "Update" }),
      status,
    ]);
  });

  it("leaves others a whole list element in which they own another field", () => {
    const own = entry(OURS, ["list[name=a].value", "list[name=b].value"]);
    const theirs = ["list[name=a].value", "list[name=a].other", "list[name=b].value"];
    const left = ["list[name=a].value", "list[name=a].other"];
    assert.deepEqual(managersAfter(own, entry("helm", theirs)), [own, entry("helm", left)]);
  });

  it("drops the entry of an earlier binding of its name, so that later applies can remove its fields", () => {
    const [own, posted] = [entry(OURS, DATA), entry(OURS, [...DATA, "data.old"], { operation: "Update" })];
    assert.deepEqual(managersAfter(own, posted), [own]);
  });
});

describe("keys of data that a binding does not write", () => {
  const creator = { uid: "uid-9", fieldManager: OURS };
  const whole = { object: { data: { a: "1" } }, fields: [], digest: "", creator };

  it("are named, except those that the next write removes because no other manager owns them", () => {
    const managedFields = [entry(OURS, ["data.a", "data.dropped", "data.shared"]), entry("helm", ["data.shared"])];
    const live = kubeObjectOf({
      metadata: { managedFields },
      data: { a: "1", dropped: "2", shared: "3", theirs: "4" },
      binaryData: { "b.in": "AA==" },
    });
    assert.deepEqual(keysOfOthers(live, whole), ["data.shared", "data.theirs", 'binaryData["b.in"]']);
    assert.deepEqual(keysOfOthers(kubeObjectOf({ data: { a: "1" } }), whole), []);
  });
});

describe("an answer of the API server while an object is adopted", () => {
  const live = objectOf({ a: "1" });
  const whole = {
    object: { metadata: { labels: {} }, data: { a: "2" } },
    fields: [],
    digest: "",
    creator: { uid: "uid-9", fieldManager: OURS },
  };
  const invalid = (field: string) => {
    const cause = { reason: "FieldValueInvalid", message: 'Invalid value: "uid-1": field is immutable', field };
    return new ApiError("PATCH /x", 422, "Invalid", { details: { causes: [cause, cause] } });
  };
  const accessTo = (refuse: () => never, now = live) => ({
    client: fakeClient({ get: async () => now, apply: async () => refuse(), jsonPatch: async () => refuse() }),
    identity: "",
    ref: { resource: CONFIGMAPS, namespace: "registry", name: "a" },
    verbs: [],
  });
  const failing = (error: ApiError) => () => {
    throw error;
  };
  const conflict = new ApiError("PATCH /x", 409, "Conflict");
  const gone = new ApiError("PATCH /x", 404, "NotFound");

  it("shows a change by another version, another uid, or its absence", async () => {
    for (const error of [conflict, invalid("metadata.uid"), gone]) {
      const access = accessTo(failing(error));
      assert.equal(await previewAdoption(access, whole, live), "stale");
      assert.equal(await adoptObject(access, live, { operations: [], differing: [] }, OURS), "stale");
      assert.equal(await correctObject(access, whole, live), "stale");
    }
  });

  it("is a Conflict if a field is immutable, with the binding's path and no value", async () => {
    await assert.rejects(previewAdoption(accessTo(failing(invalid("data"))), whole, live), (problem: Error) => {
      assert.match(problem.message, /^data\.a can't be changed/);
      return "reason" in problem && problem.reason === "Conflict" && !problem.message.includes("uid-1");
    });
  });

  it("shows a change if a patch does not fit and the object is another one, else Rejected", async () => {
    const refused = failing(new ApiError("PATCH /x", 422, "Invalid"));
    const adopt = (now: typeof live) =>
      adoptObject(accessTo(refused, now), live, { operations: [], differing: [] }, OURS);
    assert.equal(await adopt(objectOf({}, { uid: "uid-2", resourceVersion: "2" })), "stale");
    await assert.rejects(adopt(live), { reason: "Rejected" });
  });
});
