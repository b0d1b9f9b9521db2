/** The object that a binding creates, and whether an existing object matches it. */
import assert from "node:assert/strict";
import type { TargetStatus } from "../../../src/api/binding.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../../../src/apimachinery/objects.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { toApplied, withoutMarks } from "../../../src/apply/create.ts";
import { type Creator, composeWhole, decideWhole, isCreatedBy } from "../../../src/apply/manifest.ts";
import type { PlannedField } from "../../../src/transform/plan-types.ts";
import { entry, liveObject, OURS, shape } from "./managed.ts";

const LABEL = "inlay.dev/created-by";
const creator: Creator = { uid: "binding-1", fieldManager: OURS };
const owner = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", name: "harbor" };
const field = (path: string, value: JsonValue = "v"): PlannedField => ({
  path: FieldPath.parse(path),
  value: new SecretValue(value),
  fromSecret: true,
});
const record = (more: Partial<TargetStatus> = {}): TargetStatus => ({
  apiVersion: "v1",
  kind: "Thing",
  name: "thing",
  reason: "Synced",
  created: true,
  uid: "uid-1",
  ...more,
});

describe("the object that a binding creates", () => {
  it("consists of its manifest, the values, and the binding's marks", () => {
    const manifest = { metadata: { labels: { a: "b" }, annotations: { c: "d" } }, spec: { x: 1, y: { z: "old" } } };
    const { object } = composeWhole(
      manifest,
      [field("spec.y.z", "new"), field("data.k", 7)],
      { ...creator, owner },
      shape(),
    );
    assert.deepEqual(object, {
      metadata: {
        labels: { a: "b", [LABEL]: "binding-1" },
        annotations: { c: "d" },
        ownerReferences: [{ ...owner, uid: "binding-1", controller: false, blockOwnerDeletion: false }],
      },
      spec: { x: 1, y: { z: "new" } },
      data: { k: 7 },
    });
    assert.equal(manifest.spec.y.z, "old");
  });

  it("is invalid if a field goes through a text of the manifest", () => {
    const compose = () => composeWhole({ spec: { y: "text" } }, [field("spec.y.z")], creator, shape());
    assert.throws(compose, { reason: "InvalidBinding", message: /spec\.y\.z/ });
  });

  it("has a digest of everything except the values", () => {
    const digest = (manifest: JsonObject, paths: string[], by = creator, value = "v") =>
      composeWhole(
        manifest,
        paths.map((path) => field(path, value)),
        by,
        shape(),
      ).digest;
    const first = digest({ a: 1 }, ["x", "y"]);
    assert.equal(digest({ a: 1 }, ["y", "x"], creator, "other"), first);
    const others = [
      digest({ a: 2 }, ["x", "y"]),
      digest({ a: 1 }, ["x"]),
      digest({ a: 1 }, ["x", "y"], { ...creator, owner }),
    ];
    assert.ok(!others.includes(first));
  });
});

describe("an object is a binding's own", () => {
  const live = (labels: Record<string, string>): KubeObject => {
    const object = liveObject({});
    return { ...object, metadata: { ...object.metadata, labels } };
  };
  it("by its label, while the record only announces it", () => {
    const { uid: _, ...announced } = record();
    assert.ok(isCreatedBy("binding-1", live({ [LABEL]: "binding-1" }), announced));
    assert.ok(!isCreatedBy("binding-1", live({}), announced));
    assert.ok(!isCreatedBy("binding-1", live({ [LABEL]: "binding-1" }), record({ uid: "other" })));
    assert.ok(!isCreatedBy("binding-1", live({ [LABEL]: "binding-1" }), { ...announced, created: false }));
  });
  it("by the uid in the record, without a label", () => {
    assert.ok(isCreatedBy("binding-1", live({}), record()));
  });
  it("in no other case", () => {
    assert.ok(!isCreatedBy("binding-1", live({ [LABEL]: "binding-2" }), record({ uid: "other" })));
    assert.ok(!isCreatedBy("binding-1", live({}), { ...record(), created: false }));
  });
});

describe("an object that a binding created is written", () => {
  const manifest = {
    spec: {
      host: "h",
      tags: ["a", "b"],
      ports: [{ port: 80, note: "x" }],
      set: ["s"],
      limits: { cpu: "1000m" },
      empty: {},
      nothing: null,
      rules: [{ key: "x" }],
    },
  };
  const spec = {
    host: "h",
    tags: ["a", "b"],
    ports: [{ port: 80, protocol: "TCP", note: "x" }],
    set: ["s"],
    limits: { cpu: "1" },
    rules: [{ key: "x", operator: "Equal" }],
    token: "v",
  };
  const port = 'k:{"port":80,"protocol":"TCP"}';
  const tree = (): { "f:metadata": JsonObject; "f:spec": Record<string, JsonObject> } => ({
    "f:metadata": { "f:labels": { [`f:${LABEL}`]: {} } },
    "f:spec": {
      "f:host": {},
      "f:tags": {},
      "f:ports": { [port]: { ".": {}, "f:port": {}, "f:note": {} } },
      "f:set": { 'v:"s"': {} },
      "f:limits": { "f:cpu": {} },
      "f:empty": {},
      "f:rules": {},
      "f:token": {},
    },
  });
  const whole = composeWhole(manifest, [field("spec.token")], creator, shape());
  const current = record({ manifestDigest: whole.digest });
  const decideOn = (
    fieldsV1: JsonObject,
    others: ManagedFieldsEntry[] = [],
    live: object = spec,
    said: TargetStatus = current,
    operation: "Apply" | "Update" = "Apply",
  ) => {
    const object = liveObject({ spec: live as JsonObject }, [...others, entry(OURS, [], { fieldsV1, operation })]);
    return decideWhole(whole, object, said, shape());
  };

  it("not if all of it is there, with defaults and normalized values of the server", () => {
    for (const operation of ["Apply", "Update"] as const) {
      assert.deepEqual(decideOn(tree(), [], spec, current, operation), { write: false, takenBy: [] });
    }
  });

  it("if the manifest changed, or the object is another one", () => {
    assert.ok(decideOn(tree(), [], spec, record({ manifestDigest: "other" })).write);
    assert.ok(decideOn(tree(), [], spec, record({ manifestDigest: whole.digest, uid: "other" })).write);
  });

  it("if it was written in another version of the kind", () => {
    const former = liveObject({ spec }, [entry(OURS, [], { fieldsV1: tree(), apiVersion: "goharbor.io/v1" })]);
    assert.deepEqual(decideWhole(whole, former, current, shape()), { write: true, takenBy: [] });
  });

  it("if the value of a field differs", () => {
    assert.ok(decideOn(tree(), [], { ...spec, token: "other" }).write);
  });

  it("not if admission adds an element before the one that a path names by its index", () => {
    const lists = shape({ "spec.parts": { kind: "map", keys: ["name"] } });
    const parts = composeWhole(
      { spec: { parts: [{ name: "a" }] } },
      [field("spec.parts[0].token", "t")],
      creator,
      lists,
    );
    const fieldsV1 = {
      "f:metadata": tree()["f:metadata"],
      "f:spec": { "f:parts": { 'k:{"name":"a"}': { ".": {}, "f:name": {}, "f:token": {} } } },
    } as JsonObject;
    const decided = (token: string) => {
      const live = liveObject({ spec: { parts: [{ name: "added" }, { name: "a", token }] } }, [
        entry(OURS, [], { fieldsV1 }),
      ]);
      return decideWhole(parts, live, record({ manifestDigest: parts.digest }), lists).write;
    };
    assert.deepEqual([decided("t"), decided("other")], [false, true]);
  });

  it("not if the API server spells the quantity of a field differently", () => {
    const limits = composeWhole({}, [field("spec.limits.cpu", "0.5")], creator, shape());
    const fieldsV1 = { "f:metadata": tree()["f:metadata"], "f:spec": { "f:limits": { "f:cpu": {} } } };
    const decided = (cpu: string) => {
      const live = liveObject({ spec: { limits: { cpu } } }, [entry(OURS, [], { fieldsV1 })]);
      return decideWhole(limits, live, record({ manifestDigest: limits.digest }), shape()).write;
    };
    assert.deepEqual([decided("500m"), decided("501m")], [false, true]);
  });

  it("if it has no field of the binding's manager any more", () => {
    assert.ok(decideWhole(whole, liveObject({ spec }, [entry("platform", ["spec.host"])]), current, shape()).write);
  });

  const taken: Record<string, [change: (spec: Record<string, JsonObject>) => void, theirs: JsonObject, live?: object]> =
    {
      "a value": [(own) => delete own["f:host"], { "f:host": {} }],
      "a list": [(own) => delete own["f:tags"], { "f:tags": {} }],
      "a value in an element": [
        (own) => delete (own["f:ports"] as Record<string, JsonObject>)[port]?.["f:note"],
        { "f:ports": { [port]: { "f:note": {} } } },
      ],
      "an element of a set": [(own) => delete own["f:set"]?.['v:"s"'], { "f:set": { 'v:"s"': {} } }],
      "everything in an object": [(own) => delete own["f:limits"]?.["f:cpu"], { "f:limits": { "f:cpu": {} } }],
    };
  for (const [what, [change, theirs]] of Object.entries(taken)) {
    it(`if another manager took ${what}, which it names`, () => {
      const ours = tree();
      change(ours["f:spec"]);
      const others = [
        entry("kubectl-edit", [], { operation: "Update", fieldsV1: { "f:spec": theirs } }),
        entry("idle", ["spec.z"]),
      ];
      assert.deepEqual(decideOn(ours, others), { write: true, takenBy: ["kubectl-edit"] });
    });
  }

  it("if a value, an element, or everything in an object was removed", () => {
    const { host: _h, ...hostless } = spec;
    const [value, element, content] = [tree(), tree(), tree()];
    delete value["f:spec"]["f:host"];
    delete element["f:spec"]["f:ports"]?.[port];
    delete content["f:spec"]["f:limits"]?.["f:cpu"];
    assert.ok(decideOn(value, [], hostless).write);
    assert.ok(decideOn(element, [], { ...spec, ports: [] }).write);
    assert.ok(decideOn(content, [], { ...spec, limits: {} }).write);
  });
});

describe("an object that was posted", () => {
  it("becomes an apply with all fields of both operations", () => {
    const object = liveObject({}, [
      entry(OURS, ["spec.a"], { operation: "Update" }),
      entry("kubectl", ["spec.b"], { operation: "Update" }),
      entry(OURS, ["spec.c"]),
    ]);
    assert.deepEqual(toApplied(object, OURS), [
      { op: "replace", path: "/metadata/managedFields/0/operation", value: "Apply" },
      { op: "replace", path: "/metadata/managedFields/0/fieldsV1", value: { "f:spec": { "f:a": {}, "f:c": {} } } },
      { op: "remove", path: "/metadata/managedFields/2" },
    ]);
    assert.deepEqual(toApplied(liveObject({}, [entry(OURS, ["spec.c"])]), OURS), []);
    assert.deepEqual(toApplied(liveObject({}, [entry("kubectl", ["spec.c"])]), OURS), []);
  });

  it("becomes an apply of the paths that stay, which are owned all the time", () => {
    const keep = [FieldPath.parse("spec.a"), FieldPath.parse("spec.none")];
    const kept = (...entries: ManagedFieldsEntry[]) => toApplied(liveObject({}, entries), OURS, keep);
    assert.deepEqual(kept(entry(OURS, ["spec.a", "spec.list"], { operation: "Update" })), [
      { op: "replace", path: "/metadata/managedFields/0/operation", value: "Apply" },
      { op: "replace", path: "/metadata/managedFields/0/fieldsV1", value: { "f:spec": { "f:a": {} } } },
    ]);
    assert.deepEqual(kept(entry(OURS, ["spec.a"])), []);
    assert.deepEqual(
      kept(entry(OURS, ["spec.b"]), entry("kubectl", []), entry(OURS, ["spec.c"], { operation: "Update" })),
      [
        { op: "remove", path: "/metadata/managedFields/2" },
        { op: "remove", path: "/metadata/managedFields/0" },
      ],
    );
  });
});

describe("a released object", () => {
  it("loses label, owner reference and manager, but nothing of others", () => {
    const { metadata } = liveObject({}, [
      entry("kubectl", ["spec.b"]),
      entry(OURS, ["spec.a"], { operation: "Update" }),
    ]);
    const owners = [{ uid: "theirs" }, { uid: "binding-1" }];
    const live = {
      ...liveObject({}),
      metadata: { ...metadata, labels: { [LABEL]: "binding-1" }, ownerReferences: owners },
    };
    assert.deepEqual(withoutMarks(live, creator), [
      { op: "remove", path: "/metadata/labels/inlay.dev~1created-by" },
      { op: "remove", path: "/metadata/ownerReferences/1" },
      { op: "remove", path: "/metadata/managedFields/1" },
    ]);
  });

  it("gets empty managedFields if all are the binding's, and keeps the label of another binding", () => {
    const { metadata } = liveObject({}, [entry(OURS, ["spec.a"])]);
    const live = { ...liveObject({}), metadata: { ...metadata, labels: { [LABEL]: "binding-2" } } };
    assert.deepEqual(withoutMarks(live, creator), [{ op: "replace", path: "/metadata/managedFields", value: [{}] }]);
  });
});
