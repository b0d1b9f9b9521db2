/** What a release removes from an object, what it keeps, and how it handles refusals of the API server. */
import assert from "node:assert/strict";
import fc from "fast-check";
import jsonPatch from "fast-json-patch";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { isObject } from "../../../src/apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../../../src/apimachinery/objects.ts";
import { isEntryOf } from "../../../src/apply/ownership.ts";
import { planRelease, type Release, release } from "../../../src/apply/release.ts";
import { WRITE_VERBS } from "../../../src/kube/access-error.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { Client, JsonPatchOperation } from "../../../src/kube/client.ts";
import { fakeClient } from "../fakes.ts";
import { HARBOR } from "../resources.ts";
import { byKeys, countedList, entry, fieldsOf, liveObject, OURS, shape } from "./managed.ts";

const access = (client: Pick<Client, "get" | "jsonPatch">, identity = "") => ({
  client,
  identity,
  ref: HARBOR,
  verbs: WRITE_VERBS,
});

const asked = (paths: string[], more: Partial<Release> = {}): Release => ({
  uid: "uid-1",
  paths,
  written: paths,
  reverted: [],
  parents: [],
  mode: "Remove",
  fieldManager: OURS,
  kept: [],
  shape: shape(),
  ...more,
});

/** Plans a release, and applies it as the API server would. */
function patch(live: KubeObject, request: Release) {
  const { operations, released } = planRelease(live, request);
  const patched = jsonPatch.applyPatch(structuredClone(live), structuredClone(operations) as never[], true);
  return { operations, released, object: patched.newDocument };
}

const nothing = {
  removed: [],
  retained: [],
  shared: [],
  blocked: [],
  positional: [],
  shifted: [],
  unproven: [],
  denied: [],
  restored: [],
};
const shared = (path: string, ...managers: string[]) => ({
  path,
  managers,
  pointer: FieldPath.parse(path).toJsonPointer(),
});
const guard = { op: "replace", path: "/metadata/resourceVersion", value: "7" };

describe("a release that removes", () => {
  it("removes a leaf that only the binding owns, in the version that was read", () => {
    const live = liveObject({ spec: { "a/b~c": "x", d: 1 } }, [entry(OURS, ['spec["a/b~c"]'])]);
    const { operations, released } = patch(live, asked(['spec["a/b~c"]']));
    const giveUp = { op: "remove", path: "/metadata/managedFields/0" };
    assert.deepEqual(operations, [guard, giveUp, { op: "remove", path: "/spec/a~1b~0c" }]);
    assert.deepEqual(released, { ...nothing, removed: ['spec["a/b~c"]'] });
  });

  it("removes parents that were created with it and are empty now, the deepest first", () => {
    const live = liveObject({ spec: { s3: { auth: { key: "x" } }, size: 1 } }, [entry(OURS, ["spec.s3.auth.key"])]);
    const { object } = patch(live, asked(["spec.s3.auth.key"], { parents: ["spec.s3", "spec.s3.auth"] }));
    assert.deepEqual(object["spec"], { size: 1 });
  });

  it("removes a written field that no manager owns any more, and keeps one that was only announced", () => {
    const live = liveObject({ spec: { a: "x", b: "x", c: "x" } }, [entry("kubectl", ["spec.c"])]);
    const { object, released } = patch(live, asked(["spec.a", "spec.b", "spec.c"], { written: ["spec.a", "spec.c"] }));
    assert.deepEqual(object["spec"], { b: "x", c: "x" });
    assert.deepEqual(released, { ...nothing, removed: ["spec.a"] });
    const first = [entry("before-first-apply", ["spec.a", "spec.c"]), entry(OURS, ["spec.a"])];
    assert.deepEqual(patch(liveObject({ spec: { a: "x", c: "x" } }, first), asked(["spec.a"])).object["spec"], {
      c: "x",
    });
  });

  it("removes parents that were created with it and that another client left empty", () => {
    const emptied = (entries: ManagedFieldsEntry[], spec: JsonObject = { s3: { auth: {} } }) =>
      patch(
        liveObject({ spec }, entries),
        asked(["spec.s3.auth.key", "spec.list[id=x].key"], {
          parents: ["spec.s3", "spec.s3.auth", "spec.list[id=x]"],
        }),
      );
    assert.deepEqual(emptied([]).object["spec"], {});
    assert.deepEqual(emptied([]).released, nothing);
    assert.deepEqual(emptied([entry("other", ["spec.s3.auth"])]).object["spec"], { s3: { auth: {} } });
    const list = { list: [{ id: "x" }, { id: "y" }] };
    assert.deepEqual(emptied([entry(OURS, ["spec.list"])], list).object["spec"], { list: [{ id: "y" }] });
    assert.deepEqual(emptied([entry("other", ["spec.list"])], list).object["spec"], list);
  });

  it("keeps a parent that existed before, has other content, or is owned itself by another manager", () => {
    const key = [entry(OURS, ["spec.s3.key"])];
    const remove = (fields: JsonObject, parents: string[], more = key) =>
      patch(liveObject(fields, more), asked(["spec.s3.key"], { parents })).object["spec"];
    assert.deepEqual(remove({ spec: { s3: { key: "x" } } }, []), { s3: {} });
    assert.deepEqual(remove({ spec: { s3: { key: "x", other: 1 } } }, ["spec.s3"]), { s3: { other: 1 } });
    const wanted = { ...entry("kubectl", []), fieldsV1: { "f:spec": { "f:s3": { ".": {} } } } };
    assert.deepEqual(remove({ spec: { s3: { key: "x" } } }, ["spec.s3"], [...key, wanted]), { s3: {} });
  });

  it("removes from an object only the fields that no other manager owns", () => {
    const live = liveObject({ data: { a: "x", b: "x", theirs: "x" } }, [
      entry(OURS, ["data.a", "data.b"]),
      entry("kubectl", ["data.theirs", "data.b"]),
    ]);
    const { object, released } = patch(live, asked(["data"]));
    assert.deepEqual(object["data"], { b: "x", theirs: "x" });
    assert.deepEqual(released, { ...nothing, removed: ["data"], shared: [shared("data.b", "kubectl")] });
  });

  it("keeps empty parents of another path", () => {
    const live = liveObject({ spec: { a: { x: 1 }, b: {} } }, [entry(OURS, ["spec.a.x"])]);
    const { object } = patch(live, asked(["spec.a.x"], { parents: ["spec.a", "spec.b"] }));
    assert.deepEqual(object["spec"], { b: {} });
  });

  it("keeps a leaf that another manager owns too, and gives up its ownership", () => {
    const live = liveObject({ spec: { a: "x", b: "y" } }, [
      entry(OURS, ["spec.a", "spec.b", "spec.c"]),
      entry("argo", ["spec.a"]),
    ]);
    const { released, object } = patch(live, asked(["spec.a", "spec.b"], { kept: ["spec.c"] }));
    assert.deepEqual(released, { ...nothing, removed: ["spec.b"], shared: [shared("spec.a", "argo")] });
    assert.deepEqual(object["spec"], { a: "x" });
    assert.deepEqual(object.metadata.managedFields?.[0]?.fieldsV1, fieldsOf(["spec.c"]));
  });

  it("keeps a required leaf, and reports it", () => {
    const live = liveObject({ spec: { a: "x", b: "y" } }, [entry(OURS, ["spec.a", "spec.b"])]);
    const { released, object } = patch(live, asked(["spec.a", "spec.b"], { shape: shape({}, ["spec.a"]) }));
    assert.deepEqual(released, { ...nothing, removed: ["spec.b"], blocked: ["spec.a"] });
    assert.deepEqual(object["spec"], { a: "x" });
  });

  it("removes a required field with a default", () => {
    const live = liveObject({ spec: { a: "x" } }, [entry(OURS, ["spec.a"])]);
    const withDefault = shape({}, ["spec.a"], [], { "spec.a": "auto" });
    assert.deepEqual(patch(live, asked(["spec.a"], { shape: withDefault })).released.removed, ["spec.a"]);
  });

  it("removes a required field of an object that is removed too, and not of one that stays", () => {
    const paths = ["spec.list[name=x].url", "spec.list[name=x].token"];
    const requires = shape({}, ["spec.list[1].url"]);
    const released = (list: JsonObject[], more: Partial<Release> = {}) =>
      patch(
        liveObject({ spec: { list } }, [entry("kubectl", ["spec.list"])]),
        asked(paths, { parents: ["spec.list[name=x]"], shape: requires, ...more }),
      );
    const before = { name: "a", url: "b" };
    const whole = released([before, { name: "x", url: "y", token: "z" }]);
    assert.deepEqual(whole.object["spec"], { list: [before] });
    assert.deepEqual([whole.released.removed, whole.released.blocked], [paths, []]);
    const filled = released([before, { name: "x", url: "y", token: "z", others: 1 }]);
    assert.deepEqual(filled.object["spec"], { list: [before, { name: "x", url: "y", others: 1 }] });
    assert.deepEqual([filled.released.removed, filled.released.blocked], [[paths[1]], [paths[0]]]);
    const notOurs = released([before, { name: "x", url: "y", token: "z" }], { parents: [] });
    assert.deepEqual(notOurs.object["spec"], { list: [before, { name: "x", url: "y" }] });
  });

  it("removes a field of an atomic object by the record alone, and the objects that it created", () => {
    const atomic = shape({}, [], ["spec.sel"]);
    const path = 'spec.sel.labels["a/b"]';
    const parents = ["spec.sel", "spec.sel.labels"];
    const released = (sel: JsonObject, manager: string, more: Partial<Release> = {}) =>
      patch(
        liveObject({ spec: { sel } }, [entry(manager, ["spec.sel"])]),
        asked([path], { shape: atomic, parents, ...more }),
      );
    assert.deepEqual(released({ labels: { "a/b": "x" } }, OURS).object["spec"], {});
    assert.deepEqual(released({ labels: { "a/b": "x" } }, "two").object["spec"], { sel: {} });
    assert.deepEqual(released({ labels: { "a/b": "x", c: "y" } }, "two").object["spec"], {
      sel: { labels: { c: "y" } },
    });
    const kept = released({ labels: { "a/b": "x", c: "y" } }, OURS, { kept: ["spec.sel.labels.c"] });
    assert.deepEqual(kept.object.metadata.managedFields, [entry(OURS, ["spec.sel"])]);
    const retained = released({ labels: { "a/b": "x" } }, OURS, { mode: "Retain" });
    assert.deepEqual(retained.released, { ...nothing, retained: [path] });
    assert.deepEqual(
      [retained.object["spec"], retained.object.metadata.managedFields],
      [{ sel: { labels: { "a/b": "x" } } }, []],
    );
  });

  it("ignores a path that the binding no longer owns", () => {
    const live = liveObject({ spec: { a: "x" } }, [entry("kubectl", ["spec.a"]), entry(OURS, ["spec.b"])]);
    assert.deepEqual(planRelease(live, asked(["spec.a"], { kept: ["spec.b"] })), {
      kept: [FieldPath.parse("spec.b")],
      operations: [],
      released: nothing,
      removal: [],
      gone: [],
      shared: [],
    });
  });
});

describe("a release of elements of lists", () => {
  const patched = (...paths: string[]) => entry(OURS, paths, { operation: "Update" });
  const names = (object: KubeObject, path: string) => FieldPath.parse(path).get(object);

  it("finds them by their conditions, and removes appended elements in which only their keys are left", () => {
    const list = [
      { id: "b", token: "x" },
      { id: "a", port: 1, kind: "d", token: "x" },
      { id: "c", token: "x" },
    ];
    const live = liveObject({ spec: { list } }, [entry("other", ["spec.list"])]);
    const { object, released } = patch(
      live,
      asked(["spec.list[id=a,port=1].token", "spec.list[id=b].token", "spec.list[id=gone].token"], {
        parents: ["spec.list[id=a,port=1]", "spec.list"],
        shape: shape({}, [], [], { "spec.list[1].kind": "d" }),
      }),
    );
    assert.deepEqual(names(object, "spec.list"), [{ id: "b" }, { id: "c", token: "x" }]);
    assert.deepEqual(released.removed, ["spec.list[id=a,port=1].token", "spec.list[id=b].token"]);
  });

  it("removes them from the last to the first", () => {
    const list = [{ id: "a" }, { id: "b" }, { id: "c" }];
    const live = liveObject({ spec: { list } }, [patched("spec.list")]);
    const { object, operations } = patch(live, asked(["spec.list[id=a]", "spec.list[id=c]"]));
    assert.deepEqual(names(object, "spec.list"), [{ id: "b" }]);
    assert.equal(operations.at(-1)?.path, "/spec/list/0");
  });

  it("removes the value at an index only if no other manager changed the list since", () => {
    const want = { spec: { list: [{ x: 1 }, { x: 2 }] } };
    const request = asked(["spec.list[1].x"]);
    const ours = patch(liveObject(want, [patched("spec.list")]), request);
    assert.deepEqual(names(ours.object, "spec.list"), [{ x: 1 }, {}]);
    const theirs = patch(liveObject(want, [entry("other", ["spec.list"])]), request);
    assert.deepEqual([theirs.released.shifted, theirs.operations], [["spec.list[1].x"], []]);
  });

  it("keeps elements that a path names by index, and gives up their ownership", () => {
    const want = { spec: { texts: ["a", "b"], map: [{ id: "a", x: 1 }] } };
    const live = liveObject(want, [patched("spec.texts", "spec.map[id=a].x")]);
    const request = asked(["spec.texts[0]", "spec.map[0]"], { shape: shape({ "spec.map": byKeys("id") }) });
    const { object, released } = patch(live, request);
    assert.deepEqual([object["spec"], object.metadata.managedFields], [want.spec, []]);
    assert.deepEqual(released, { ...nothing, positional: request.paths });
    assert.deepEqual(patch(live, { ...request, mode: "Retain" }).released, { ...nothing, retained: request.paths });
  });

  it("keeps the ownership of a list with another path of the binding", () => {
    const live = liveObject({ spec: { list: [{ id: "a", x: 1, y: 2 }] } }, [patched("spec.list")]);
    const retained = asked(["spec.list[id=a].x"], { mode: "Retain", kept: ["spec.list[id=a].y"] });
    assert.deepEqual(planRelease(live, retained), {
      kept: [FieldPath.parse("spec.list")],
      operations: [],
      released: { ...nothing, retained: ["spec.list[id=a].x"] },
      removal: [],
      gone: [],
      shared: [],
    });
    assert.deepEqual(planRelease(live, { ...retained, kept: [] }).operations, [
      guard,
      { op: "remove", path: "/metadata/managedFields/0" },
    ]);
  });

  it("keeps a required field of an element, and a list whose elements no longer have keys", () => {
    const live = liveObject(
      {
        spec: {
          list: [
            { id: "a", x: 1 },
            { id: "b", x: 1 },
            { id: "b", x: 2 },
          ],
        },
      },
      [],
    );
    const request = asked(["spec.list[id=a].x", "spec.list[id=b].x"], { shape: shape({}, ["spec.list[0].x"]) });
    const { released, operations } = planRelease(live, request);
    assert.deepEqual(operations, []);
    assert.deepEqual([released.blocked, released.shifted], [["spec.list[id=a].x"], ["spec.list[id=b].x"]]);
  });

  it("keeps elements of a map list that others own, with their keys, and removes the binding's", () => {
    const live = liveObject(
      {
        spec: {
          map: [
            { id: "a", x: 1, y: 2 },
            { id: "b", x: 1 },
          ],
        },
      },
      [entry(OURS, ["spec.map[id=a].x", "spec.map[id=b].x"]), entry("other", ["spec.map[id=a].y"])],
    );
    const lists = { shape: shape({ "spec.map": byKeys("id") }), parents: ["spec.map[id=a]", "spec.map[id=b]"] };
    const { object } = patch(live, asked(["spec.map[id=a].x", "spec.map[id=b].x"], lists));
    assert.deepEqual(names(object, "spec.map"), [{ id: "a", y: 2 }]);
    assert.deepEqual(
      object.metadata.managedFields?.map(({ manager }) => manager),
      ["other"],
    );
  });
});

describe("a release from a long list", () => {
  const env = { "spec.env": { kind: "map" as const, keys: ["name"] } };
  const paths = Array.from({ length: 30 }, (_, n) => `spec.env[name=n${n * 10}].value`);

  it("searches each element once", () => {
    for (const mode of ["Retain", "Remove"] as const) {
      const { list, reads } = countedList(500);
      const live = liveObject({ spec: { env: list } }, [entry(OURS, paths)]);
      const { released } = planRelease(live, asked(paths, { mode, shape: shape(env) }));
      assert.deepEqual(mode === "Remove" ? released.removed : released.retained, paths);
      // A copy of the object reads each name too.
      const more = reads() - paths.length * list.length;
      assert.ok(more <= 3 * list.length, `${reads()} reads`);
    }
  });

  it("removes the elements that were created with it, although each removal moves others", () => {
    const list = Array.from({ length: 500 }, (_, n) => ({ name: `n${n}`, value: "x" }));
    const live = liveObject({ spec: { env: list } }, [entry(OURS, paths)]);
    const parents = paths.map((path) => path.replace(".value", ""));
    const { object } = patch(live, asked(paths, { parents, shape: shape(env) }));
    const left = list.filter((_, n) => n % 10 > 0 || n >= 300);
    assert.deepEqual(object["spec"], { env: left });
  });
});

describe("a release that retains", () => {
  it("keeps every value, and removes the binding's whole entry with its last path", () => {
    const live = liveObject({ spec: { a: "x" } }, [entry("kubectl", ["spec.b"]), entry(OURS, ["spec.a"])]);
    const { operations, released, object } = patch(live, asked(["spec.a"], { mode: "Retain", parents: ["spec"] }));
    assert.deepEqual(operations, [guard, { op: "remove", path: "/metadata/managedFields/1" }]);
    assert.deepEqual(released, { ...nothing, retained: ["spec.a"] });
    assert.deepEqual(object["spec"], { a: "x" });
  });

  it("keeps the ownership of other paths", () => {
    const live = liveObject({ spec: { a: "x", b: "y" } }, [entry(OURS, ["spec.a", "spec.b"])]);
    const { operations } = patch(live, asked(["spec.a"], { mode: "Retain", kept: ["spec.b"] }));
    assert.deepEqual(operations, [
      guard,
      { op: "replace", path: "/metadata/managedFields/0/fieldsV1", value: fieldsOf(["spec.b"]) },
    ]);
  });
});

describe("any release", () => {
  const names = fc.constantFrom("a", "b", "c/~", "d.e");
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", maxDepth: 3, withCrossShrink: true },
      fc.oneof(
        fc.string(),
        fc.integer(),
        fc.constant(null),
        fc.constant<JsonValue>([{ n: 1 }]),
        fc.constant<JsonValue>({}),
      ),
      fc.dictionary(names, tie("value"), { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<JsonValue>,
    ),
  }));
  const spec = fc.dictionary(names, value, {
    minKeys: 1,
    maxKeys: 4,
    noNullPrototype: true,
  }) as fc.Arbitrary<JsonObject>;

  /** Every path of an object: down to values, lists and empty objects. */
  function nodes(object: JsonObject, above: FieldPath): { path: FieldPath; value: JsonValue }[] {
    return Object.entries(object).flatMap(([key, child]) => {
      const path = new FieldPath([...above.segments, { kind: "key", key }]);
      return [{ path, value: child }, ...(isObject(child) ? nodes(child, path) : [])];
    });
  }

  const scene = spec.chain((fields) => {
    const all = nodes(fields, FieldPath.parse("spec"));
    const leaves = all.filter(({ value: at }) => !(isObject(at) && Object.keys(at).length > 0)).map(({ path }) => path);
    const inner = all.filter(({ value: at }) => isObject(at) && Object.keys(at).length > 0).map(({ path }) => path);
    return fc.record({
      fields: fc.constant(fields),
      leaves: fc.constant(leaves),
      ours: fc.subarray(leaves),
      asked: fc.subarray(leaves),
      required: fc.subarray(leaves, { maxLength: 1 }),
      parents: fc.subarray(inner),
      others: fc.array(fc.subarray([...leaves, ...inner]), { maxLength: 2 }),
      mode: fc.constantFrom("Remove" as const, "Retain" as const),
    });
  });

  it("removes only leaves without other owners, and changes no other value and no other manager", () => {
    fc.assert(
      fc.property(scene, (some) => {
        const has = (paths: readonly FieldPath[], path: FieldPath) => paths.some((each) => each.equals(path));
        const entries = [
          ...some.others.map((paths, i) => entry(`other-${i}`, paths)),
          ...(some.ours.length > 0 ? [entry(OURS, some.ours)] : []),
        ];
        const live = liveObject({ spec: some.fields }, entries);
        const request = asked(some.asked.map(String), {
          mode: some.mode,
          parents: some.parents.map(String),
          kept: some.ours.filter((path) => !has(some.asked, path)).map(String),
          shape: shape({}, some.required.map(String)),
        });
        const { released, object, operations } = patch(live, request);
        // The owner of a parent does not own the path: the parent is granular.
        const shared = (path: FieldPath) => some.others.some((held) => has(held, path));
        // Fields without owner count as the binding's: the API server lost their owner.
        const mayGo = some.asked.filter((path) => some.mode === "Remove" && !shared(path));
        const objects = nodes(some.fields, FieldPath.parse("spec")).filter(({ path }) => !has(some.leaves, path));
        const goesToo = (object: FieldPath) =>
          has(some.parents, object) &&
          some.leaves.every((leaf) => !leaf.startsWith(object) || has(mayGo, leaf)) &&
          objects.every(({ path }) => !path.startsWith(object) || (has(some.parents, path) && !shared(path)));
        const gone = mayGo.filter((path) => !has(some.required, path) || goesToo(path.parent as FieldPath));
        assert.deepEqual(released.removed.toSorted(), gone.map(String).toSorted());
        for (const leaf of some.leaves) {
          assert.deepEqual(leaf.get(object), has(gone, leaf) ? undefined : leaf.get(live), String(leaf));
        }
        // All other missing objects were created by the binding, above removed fields, and are empty without them.
        const still = new Set(
          nodes(object["spec"] as JsonObject, FieldPath.parse("spec")).map(({ path }) => String(path)),
        );
        for (const { path } of nodes(some.fields, FieldPath.parse("spec"))) {
          if (still.has(String(path)) || has(gone, path)) continue;
          assert.ok(has(some.parents, path), `${path} was not created by the binding`);
          assert.ok(some.leaves.every((leaf) => !leaf.startsWith(path) || has(gone, leaf)));
        }
        // The binding's entry gives up the paths, removed or not; entries of others are unchanged.
        const entriesAfter = object.metadata.managedFields ?? [];
        assert.deepEqual(
          entriesAfter.filter((each) => !isEntryOf(each, OURS)),
          entries.filter((each) => !isEntryOf(each, OURS)),
        );
        const givenUp = [
          ...released.retained,
          ...released.shared.map(({ path }) => path),
          ...released.blocked,
          ...released.removed,
        ];
        const kept = some.ours.filter((path) => !givenUp.includes(String(path)));
        const own = entriesAfter.find((each) => isEntryOf(each, OURS));
        assert.deepEqual(own?.fieldsV1 ?? {}, fieldsOf(kept));
        assert.deepEqual(
          givenUp.toSorted(),
          some.asked
            .filter((path) => has(some.ours, path) || (some.mode === "Remove" && !shared(path)))
            .map(String)
            .toSorted(),
        );
        assert.deepEqual(operations[0], operations.length > 0 ? guard : undefined);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the API server", () => {
  const live = liveObject({ spec: { a: "x" } }, [entry(OURS, ["spec.a"])]);
  /** A client that reads `live` and fails patches with the given errors in turn, and then accepts them. */
  function clientWith(errors: (ApiError | undefined)[], read: () => KubeObject = () => live) {
    const patches: JsonPatchOperation[][] = [];
    const client = fakeClient({
      get: async () => read(),
      jsonPatch: async (_identity: unknown, _ref: unknown, operations: JsonPatchOperation[]) => {
        patches.push(operations);
        assert.ok(patches.length < 20, "it never ends");
        const error = errors[Math.min(patches.length, errors.length) - 1];
        if (error) throw error;
        return givenUp(live);
      },
    });
    return { client, patches };
  }
  const givenUp = (object: KubeObject) => ({
    ...object,
    spec: {},
    metadata: { ...object.metadata, managedFields: [] },
  });
  const answer = (status: number, reason: string) => new ApiError("PATCH /x", status, reason);

  it("gets no request if the object was created again, or is gone", async () => {
    const { client, patches } = clientWith([]);
    assert.deepEqual(await release(access(client), asked(["spec.a"], { uid: "uid-0" })), nothing);
    const gone = clientWith([], () => {
      throw answer(404, "NotFound");
    });
    assert.deepEqual(await release(access(gone.client), asked(["spec.a"])), nothing);
    assert.deepEqual([...patches, ...gone.patches], []);
  });

  it("reports a change of the object: it is read again, and the patch planned again", async () => {
    const versions = ["7", "8"];
    const { client, patches } = clientWith([answer(409, "Conflict"), undefined], () => ({
      ...live,
      metadata: { ...live.metadata, resourceVersion: versions.shift() ?? "9" },
    }));
    assert.deepEqual(await release(access(client), asked(["spec.a"])), { ...nothing, removed: ["spec.a"] });
    assert.deepEqual(
      patches.map(([test]) => test?.value),
      ["7", "8"],
    );
  });

  it("reports changes again and again: the release is retried later", async () => {
    const { client, patches } = clientWith([answer(409, "Conflict")]);
    await assert.rejects(release(access(client), asked(["spec.a"])), { reason: "Unavailable" });
    assert.equal(patches.length, 5);
  });

  it("reports that the object is invalid without the value: the value stays, and is reported", async () => {
    const { client, patches } = clientWith([answer(422, "Invalid"), undefined]);
    assert.deepEqual(await release(access(client), asked(["spec.a"])), {
      ...nothing,
      blocked: ["spec.a"],
    });
    assert.deepEqual(patches[1]?.[1], { op: "remove", path: "/metadata/managedFields/0" });
  });

  it("refuses to remove some of several values: the others are removed in one patch, and dry runs find out which", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const many = liveObject({ spec: Object.fromEntries(names.map((name) => [name, "x"])) }, [
      entry(
        OURS,
        names.map((name) => `spec.${name}`),
      ),
    ]);
    const writes: JsonPatchOperation[][] = [];
    const client = fakeClient({
      get: async () => many,
      jsonPatch: async (_identity, _ref, operations: JsonPatchOperation[], _manager, dryRun?: boolean) => {
        const isGone = (name: string) => operations.some(({ path }) => path === `/spec/${name}`);
        if (isGone("b") || (isGone("d") && isGone("e"))) throw answer(422, "Invalid");
        if (!dryRun) writes.push(operations);
        return givenUp(many);
      },
    });
    const paths = names.map((name) => `spec.${name}`);
    assert.deepEqual(await release(access(client), asked(paths)), {
      ...nothing,
      removed: ["spec.a", "spec.c", "spec.d"],
      blocked: ["spec.b", "spec.e"],
    });
    assert.equal(writes.length, 1);
  });

  it("replaces a value by a default: its ownership is given up too", async () => {
    const managers: string[] = [];
    const client = fakeClient({
      get: async () => live,
      jsonPatch: async (_identity, _ref, operations: JsonPatchOperation[], manager: string) => {
        managers.push(`${manager} ${operations.at(-1)?.path}`);
        return managers.length === 1 ? live : givenUp(live);
      },
    });
    const request = asked(["spec.a"], { shape: shape({}, [], [], { "spec.a": "x" }) });
    assert.deepEqual((await release(access(client), request)).removed, ["spec.a"]);
    assert.deepEqual(managers, [`${OURS} /spec/a`, "inlay /metadata/managedFields/0"]);
  });

  it("refuses all changes of the object, such as by an admission policy: that is a problem, and no endless loop", async () => {
    for (const mode of ["Remove", "Retain"] as const) {
      const { client, patches } = clientWith([answer(422, "Invalid")]);
      await assert.rejects(release(access(client), asked(["spec.a"], { mode })), { reason: "Rejected" });
      assert.equal(patches.length, mode === "Remove" ? 2 : 1);
    }
  });

  it("refuses the account: the problem names the missing permission", async () => {
    const { client } = clientWith([answer(403, "Forbidden")]);
    await assert.rejects(release(access(client, "system:serviceaccount:registry:inlay"), asked(["spec.a"])), {
      reason: "Forbidden",
    });
  });
});
