/** Who owns a path according to managedFields, and the rest of an entry that gives up paths. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, ManagedFieldsEntry } from "../../../src/apimachinery/objects.ts";
import {
  appliesBeyond,
  holds,
  isEntryOf,
  otherAppliers,
  otherHolders,
  restrictedTo,
} from "../../../src/apply/ownership.ts";
import { entry, fieldsOf, liveObject, OURS } from "./managed.ts";

const at = (text: string) => FieldPath.parse(text);
const key = at("spec.s3.accesskey");
const liveWith = (...entries: ManagedFieldsEntry[]) => liveObject({ spec: { s3: { accesskey: "a" } } }, entries);

describe("a path", () => {
  it("is owned if the manager's entry names it, by server-side apply or by a patch", () => {
    assert.ok(holds(liveWith(entry("kubectl", ["spec.size"]), entry(OURS, ["spec.s3.accesskey"])), OURS, key));
    assert.ok(holds(liveWith(entry(OURS, ["spec.s3.accesskey"], { operation: "Update" })), OURS, key));
    assert.ok(
      holds(liveWith(entry(OURS, ['metadata.annotations["a.b/c"]'])), OURS, at('metadata.annotations["a.b/c"]')),
    );
  });

  it("is not owned on a subresource, under another name, or if only a parent or a neighbour is", () => {
    const paths = ["spec.s3.accesskey"];
    for (const [why, other] of Object.entries({
      subresource: entry(OURS, paths, { subresource: "status" }),
      name: entry("inlay/registry/other", paths),
      parent: entry(OURS, ["spec.s3"]),
      neighbour: entry(OURS, ["spec.s3.secretkey"]),
      nothing: { manager: OURS, operation: "Apply" as const },
    })) {
      assert.equal(holds(liveWith(other), OURS, key), false, why);
    }
  });

  it("is also owned by other managers that own it or something below it", () => {
    const live = liveWith(
      entry("exact", ["spec.s3.accesskey"]),
      entry("below", ["spec.s3.accesskey.part"]),
      entry("updater", ["spec.s3.accesskey"], { operation: "Update" }),
      entry("status", ["spec.s3.accesskey"], { subresource: "status" }),
      entry(OURS, ["spec.s3.accesskey"], { operation: "Update" }),
    );
    assert.deepEqual(otherHolders(live, OURS, key), ["exact", "below", "updater", "status"]);
    assert.deepEqual(otherAppliers(live, OURS, key), ["exact", "below", "status"]);
  });

  it("is not owned by a manager that owns only an object around it: that object was empty, or lost its fields since", () => {
    assert.deepEqual(otherHolders(liveObject({ spec: {} }, [entry("empty", ["spec"])]), OURS, key), []);
    assert.deepEqual(otherHolders(liveWith(entry("once", ["spec.s3"])), OURS, key), []);
  });

  it("is not owned by a manager that owns a neighbour, or only a parent", () => {
    const live = liveWith(
      entry(OURS, ["spec.s3.accesskey"]),
      entry("neighbour", ["spec.s3.secretkey", "spec.size"]),
      entry("object", ["spec.s3", "spec.s3.secretkey"]),
      { manager: "empty" },
    );
    assert.deepEqual(otherHolders(live, OURS, key), []);
  });

  it("is owned by an unknown manager if the entry has no name", () => {
    assert.deepEqual(otherHolders(liveWith({ fieldsV1: fieldsOf(["spec.s3.accesskey"]) }), OURS, key), ["unknown"]);
  });

  it("differs from a path with a similar key", () => {
    assert.equal(holds(liveWith(entry(OURS, ['["a.b"]'])), OURS, at("a.b")), false);
    assert.equal(holds(liveWith(entry(OURS, ["a"])), OURS, at('["f:a"]')), false);
  });
});

it("an entry belongs to a manager only on the object itself", () => {
  assert.ok(isEntryOf(entry(OURS, []), OURS));
  assert.ok(isEntryOf(entry(OURS, [], { operation: "Update" }), OURS));
  assert.ok(isEntryOf(entry(OURS, [], { subresource: "" }), OURS));
  assert.ok(!isEntryOf(entry(OURS, [], { subresource: "scale" }), OURS));
});

describe("an entry that is reduced to some paths", () => {
  it("keeps them and their children in place", () => {
    const fields = fieldsOf(["spec.a", "spec.b.c", "spec.b.d", "metadata.labels.x"]);
    assert.deepEqual(restrictedTo(fields, [at("spec.a"), at("spec.b")]), fieldsOf(["spec.a", "spec.b.c", "spec.b.d"]));
  });

  it("is undefined if nothing is left, and unchanged itself", () => {
    const fields = fieldsOf(["spec.a", "spec.b.c", "spec.b"]);
    const before = structuredClone(fields);
    assert.equal(restrictedTo(fields, [at("spec.z"), at("spec.b.z")]), undefined);
    assert.deepEqual(fields, before);
  });

  it("keeps the ownership of objects around them, and only with them", () => {
    const fields = fieldsOf(["spec.a.b", "spec.a.c", "spec.a"]);
    assert.deepEqual(restrictedTo(fields, [at("spec.a.b")]), fieldsOf(["spec.a.b", "spec.a"]));
  });

  it("keeps a leaf above a path as a whole", () => {
    const fields = fieldsOf(["spec.a", "spec.list"]);
    assert.deepEqual(restrictedTo(fields, [at("spec.list.part")]), fieldsOf(["spec.list"]));
  });

  it("keeps an element of a map list with its keys while another field in it is kept", () => {
    const fields = fieldsOf(["spec.ports[name=web,port=80].host", "spec.ports[name=db,port=5432].host"]);
    const web = [at("spec.ports[name=web,port=80].host")];
    assert.deepEqual(restrictedTo(fields, web), fieldsOf(["spec.ports[name=web,port=80].host"]));
    assert.equal(restrictedTo(fields, [at("spec.ports[name=web,port=81].host")]), undefined);
    assert.equal(restrictedTo(fields, [at("spec.ports[name=web,port=80].other")]), undefined);
  });

  it("keeps elements of a set only with the whole list", () => {
    const fields = { "f:spec": { "f:set": { 'v:"a"': {} } } };
    assert.deepEqual(restrictedTo(fields, [at("spec.set")]), fields);
    assert.equal(restrictedTo(fields, [at("spec.other")]), undefined);
  });

  it("accepts keys that no path can contain", () => {
    const fields = fieldsOf(["spec.a", "spec.b.c"]);
    (fields["f:spec"] as JsonObject)["f:constructor"] = { "f:prototype": {} };
    assert.deepEqual(restrictedTo(fields, [at("spec.a")]), fieldsOf(["spec.a"]));
  });

  it("contains exactly the owned leaves that are kept", () => {
    const path = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
      .map((keys) => new FieldPath(keys.map((name) => ({ kind: "key", key: name }))));
    fc.assert(
      fc.property(fc.array(path, { maxLength: 8 }), fc.array(path, { maxLength: 4 }), (held, keep) => {
        // Only leaves, as in Inlay's applies: none is the parent of another.
        const leaves = held.filter((one) => !held.some((other) => !other.equals(one) && other.startsWith(one)));
        const kept = leaves.filter((leaf) => keep.some((each) => leaf.startsWith(each) || each.startsWith(leaf)));
        assert.deepEqual(restrictedTo(fieldsOf(leaves), keep) ?? ({} satisfies JsonObject), fieldsOf(kept));
      }),
    );
  });
});

describe("the fields that a manager applies beside some paths", () => {
  it("are detected", () => {
    const live = liveObject({}, [entry("other", ["spec.z"]), entry(OURS, ["spec.a", "spec.b.c"])]);
    assert.equal(appliesBeyond(live, OURS, [at("spec.a"), at("spec.b"), at("spec.c")]), false);
    assert.equal(appliesBeyond(live, OURS, [at("spec.a"), at("spec.b.d")]), true);
    assert.equal(appliesBeyond(live, "unknown", []), false);
    const patched = liveObject({}, [entry(OURS, ["spec.a"], { operation: "Update" })]);
    assert.equal(appliesBeyond(patched, OURS, []), false);
  });
});
