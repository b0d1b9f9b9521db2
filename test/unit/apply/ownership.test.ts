/** What managedFields say about who holds a path, and what is left of an entry that gives paths up. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { heldBeside, holds, isEntryOf, otherHolders, withoutPaths } from "../../../src/apply/ownership.ts";
import { FieldPath } from "../../../src/model/field-path.ts";
import type { JsonObject, ManagedFieldsEntry } from "../../../src/model/kube-object.ts";
import { entry, fieldsOf, liveObject, OURS } from "./managed.ts";

const at = (text: string) => FieldPath.parse(text);
const key = at("spec.s3.accesskey");
const liveWith = (...entries: ManagedFieldsEntry[]) => liveObject({ spec: { s3: { accesskey: "a" } } }, entries);

describe("a path", () => {
  it("is ours when our entry by server-side apply names it", () => {
    assert.ok(holds([entry("kubectl", ["spec.size"]), entry(OURS, ["spec.s3.accesskey"])], OURS, key));
    assert.ok(holds([entry(OURS, ['metadata.annotations["a.b/c"]'])], OURS, at('metadata.annotations["a.b/c"]')));
  });

  it("is not ours by an update, on a subresource, under another name, or when a parent or a neighbour is", () => {
    const paths = ["spec.s3.accesskey"];
    for (const [why, other] of Object.entries({
      update: entry(OURS, paths, { operation: "Update" }),
      subresource: entry(OURS, paths, { subresource: "status" }),
      name: entry("inlay/registry/other", paths),
      parent: entry(OURS, ["spec.s3"]),
      neighbour: entry(OURS, ["spec.s3.secretkey"]),
      nothing: { manager: OURS, operation: "Apply" as const },
    })) {
      assert.equal(holds([other], OURS, key), false, why);
    }
  });

  it("has as its other holders who names it, or something below it", () => {
    const live = liveWith(
      entry("exact", ["spec.s3.accesskey"]),
      entry("below", ["spec.s3.accesskey.part"]),
      entry("updater", ["spec.s3.accesskey"], { operation: "Update" }),
      entry("status", ["spec.s3.accesskey"], { subresource: "status" }),
      entry(OURS, ["spec.s3.accesskey"], { operation: "Update" }),
    );
    assert.deepEqual(otherHolders(live, OURS, key), ["exact", "below", "updater", "status", OURS]);
  });

  it("has as its other holder who holds a parent of it as a whole", () => {
    assert.deepEqual(otherHolders(liveWith(entry("whole", ["spec.s3"])), OURS, key), ["whole"]);
  });

  it("has no holder in who wrote a parent of it as {}", () => {
    assert.deepEqual(otherHolders(liveObject({ spec: {} }, [entry("empty", ["spec"])]), OURS, key), []);
    const filledSince = liveWith(entry("empty", ["spec.s3"]), entry("other", ["spec.s3.secretkey"]));
    assert.deepEqual(otherHolders(filledSince, OURS, key), []);
  });

  it("has no holder in who names a neighbour, or an object on the way to it without what is in it", () => {
    const live = liveWith(
      entry(OURS, ["spec.s3.accesskey"]),
      entry("neighbour", ["spec.s3.secretkey", "spec.size"]),
      entry("object", ["spec.s3", "spec.s3.secretkey"]),
      { manager: "empty" },
    );
    assert.deepEqual(otherHolders(live, OURS, key), []);
  });

  it("is held by an unknown manager where the entry does not say whose it is", () => {
    assert.deepEqual(otherHolders(liveWith({ fieldsV1: fieldsOf(["spec.s3.accesskey"]) }), OURS, key), ["unknown"]);
  });

  it("of another key that reads alike is another path", () => {
    assert.equal(holds([entry(OURS, ['["a.b"]'])], OURS, at("a.b")), false);
    assert.equal(holds([entry(OURS, ["a"])], OURS, at('["f:a"]')), false);
  });
});

it("an entry is of a manager by server-side apply on the object itself alone", () => {
  assert.ok(isEntryOf(entry(OURS, []), OURS));
  assert.ok(isEntryOf(entry(OURS, [], { subresource: "" }), OURS));
  assert.ok(!isEntryOf(entry(OURS, [], { subresource: "scale" }), OURS));
});

describe("an entry that gives up paths", () => {
  it("keeps every other field where it stands", () => {
    const fields = fieldsOf(["spec.a", "spec.b.c", "spec.b.d", "metadata.labels.x"]);
    assert.deepEqual(withoutPaths(fields, [at("spec.b.c"), at("metadata.labels.x")]), fieldsOf(["spec.a", "spec.b.d"]));
  });

  it("is left undefined when nothing is left, and unchanged itself", () => {
    const fields = fieldsOf(["spec.a", "spec.b.c", "spec.b"]);
    const before = structuredClone(fields);
    assert.equal(withoutPaths(fields, [at("spec.a"), at("spec.b.c")]), undefined);
    assert.deepEqual(fields, before);
  });

  it("keeps what it does not name: a path that is absent, or below a field that it holds whole", () => {
    const fields = fieldsOf(["spec.a"]);
    assert.deepEqual(withoutPaths(fields, [at("spec.b"), at("spec.a.b"), at("status")]), fields);
  });

  it("holds after it exactly the fields that it did not give up", () => {
    const path = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
      .map((keys) => new FieldPath(keys.map((name) => ({ kind: "key", key: name }))));
    fc.assert(
      fc.property(fc.array(path, { maxLength: 8 }), fc.array(path, { maxLength: 4 }), (held, given) => {
        // Leaves only, as an apply of ours makes them: none on the way to another.
        const leaves = held.filter((one) => !held.some((other) => !other.equals(one) && other.startsWith(one)));
        const left = withoutPaths(fieldsOf(leaves), given);
        const kept = leaves.filter((leaf) => !given.some((gone) => leaf.startsWith(gone)));
        assert.deepEqual(left ?? ({} satisfies JsonObject), fieldsOf(kept));
      }),
    );
  });
});

describe("what stands under a manager's name beside some paths", () => {
  it("is every leaf that is neither one of them, nor above or below one", () => {
    const mine = entry(OURS, ["spec.a", "spec.b.c", "spec.b.d", 'metadata.annotations["a.b/c"]', "spec.whole"]);
    const live = liveObject({}, [entry("other", ["spec.z"]), mine]);
    const beside = (...paths: string[]) => heldBeside(live, OURS, paths.map(at)).map(String);
    assert.deepEqual(beside("spec.a", "spec.b", "spec.whole.part"), ['metadata.annotations["a.b/c"]']);
    assert.deepEqual(beside("spec.b.c", 'metadata.annotations["a.b/c"]', "spec.whole"), ["spec.a", "spec.b.d"]);
    assert.deepEqual(heldBeside(live, "nobody", []), []);
  });
});
