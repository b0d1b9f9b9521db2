/** The JSON Patch that writes into lists: what it tests, what it changes, and that it does so for any library. */
import assert from "node:assert/strict";
import fc from "fast-check";
import fastJsonPatch from "fast-json-patch";
import jsonpatch from "jsonpatch";
import { FieldPath, type Segment } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../../../src/apimachinery/objects.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { decide, type Located } from "../../../src/apply/decide.ts";
import { planPatch } from "../../../src/apply/patch.ts";
import { byKeys, entry, liveObject, OURS, shape } from "./managed.ts";

const LISTS = { "spec.map": byKeys("name") };

function located(live: KubeObject, want: Record<string, JsonValue>, append = false): Located[] {
  const fields = Object.entries(want).map(([path, value]) => ({
    path: FieldPath.parse(path),
    value: new SecretValue(value),
    fromSecret: false,
    append,
  }));
  const plan = { fields, leftOut: [] };
  return decide({ plan, shape: shape(LISTS), fieldManager: OURS, onConflict: "Fail" }, live, undefined).fields;
}

const patch = (fields: JsonObject, want: Record<string, JsonValue>, append = false) => {
  const live = liveObject(fields);
  return planPatch(live, located(live, want, append), shape(LISTS));
};

const uid = { op: "test", path: "/metadata/uid", value: "uid-1" };
const version = { op: "replace", path: "/metadata/resourceVersion", value: "7" };

describe("a patch of lists", () => {
  const list = [{ name: "web" }, { name: "a/b", token: "old", port: 80 }];

  it("tests the object, what names the element, and the value that it replaces: others may change the rest", () => {
    assert.deepEqual(patch({ spec: { list } }, { 'spec.list[name="a/b",port=80].token': "new" }), [
      uid,
      { op: "test", path: "/spec/list/1/name", value: "a/b" },
      { op: "test", path: "/spec/list/1/port", value: 80 },
      { op: "test", path: "/spec/list/1/token", value: "old" },
      { op: "replace", path: "/spec/list/1/token", value: "new" },
    ]);
  });

  it("tests a value that stands already: so all are right in the version that it makes", () => {
    assert.deepEqual(
      patch({ spec: { list, size: "s" } }, { "spec.list[name=web].name2": "x", "spec.size": "s" }).slice(1),
      [{ op: "add", path: "/spec/list/0/name2", value: "x" }],
    );
    assert.deepEqual(patch({ spec: { list, size: "s" } }, { 'spec.list[name="a/b"].token': "old", "spec.size": "s" }), [
      uid,
      { op: "test", path: "/spec/list/1/name", value: "a/b" },
      { op: "test", path: "/spec/list/1/token", value: "old" },
      { op: "test", path: "/spec/size", value: "s" },
    ]);
  });

  it("is for one version where a place is a number, something is made, or a value has more than one part", () => {
    const spec = { list, deep: [{ n: 1, part: { a: 1 } }], texts: ["a", "b"], half: [{ n: 0.5 }] };
    for (const [path, value] of Object.entries<JsonValue>({
      "spec.list[1].token": "new",
      "spec.texts[0]": "new",
      "spec.list[name=web].token": "new",
      "spec.deep[n=1].part": { a: 2 },
      "spec.half[n=0.5].token": "new",
    })) {
      const [first, ...rest] = patch({ spec }, { [path]: value });
      assert.deepEqual(first, version, path);
      assert.equal(rest.length, 1, path);
    }
  });

  it("appends one element for all fields in it, with what names it, and the lists and objects on the way", () => {
    const want = {
      "spec.list[name=db,port=5432].token": "x",
      "spec.list[name=db,port=5432].kind": "y",
      "spec.none.list[name=a].deep[id=b].token": "z",
    };
    const operations = patch({ spec: { list } }, want, true);
    assert.deepEqual(operations, [
      version,
      { op: "add", path: "/spec/list/-", value: { name: "db", port: 5432, token: "x" } },
      { op: "add", path: "/spec/list/2/kind", value: "y" },
      { op: "add", path: "/spec/none", value: { list: [{ name: "a", deep: [{ id: "b", token: "z" }] }] } },
    ]);
  });

  it("takes null for nothing", () => {
    assert.deepEqual(patch({ spec: { list: null } }, { "spec.list[name=a].token": "x" }, true), [
      version,
      { op: "replace", path: "/spec/list", value: [{ name: "a", token: "x" }] },
    ]);
  });

  it("writes a whole element as the one that its conditions name", () => {
    assert.deepEqual(patch({ spec: { list } }, { "spec.list[name=web]": { token: "x" } }), [
      version,
      { op: "replace", path: "/spec/list/0", value: { name: "web", token: "x" } },
    ]);
    for (const value of [{ name: "db" }, "text", ["x"]]) {
      assert.throws(() => patch({ spec: { list } }, { "spec.list[name=web]": value }), { reason: "InvalidValue" });
    }
  });

  it("leaves an object that was read as it was", () => {
    const live = liveObject({ spec: { list: [{ name: "a" }] } });
    const before = structuredClone(live);
    planPatch(live, located(live, { "spec.list[name=b].x": 1, "spec.list[name=b].y": 2 }, true), shape());
    assert.deepEqual(live, before);
  });
});

describe("a patch that puts an object or a list beside what others hold in it", () => {
  const lists = { "spec.map": byKeys("name"), "spec.env.set": { kind: "set" } as const };
  const token = "spec.hosts[name=web].token";
  const WRITTEN = { hosts: [{ name: "web", token: "new" }] };
  /** What stands after the patch, or that nothing was to do. */
  function put(spec: JsonObject, entries: ManagedFieldsEntry[], want: Record<string, JsonValue>, ours: string[] = []) {
    const live = liveObject({ spec: { ...structuredClone(WRITTEN), ...spec } }, entries);
    const fields = Object.entries({ [token]: "new", ...want }).map(([path, value]) => ({
      path: FieldPath.parse(path),
      value: new SecretValue(value),
      fromSecret: true,
    }));
    const desired = {
      plan: { fields, leftOut: [] },
      shape: shape(lists),
      fieldManager: OURS,
      onConflict: "Fail" as const,
    };
    const record = { apiVersion: "v1", kind: "A", name: "a", reason: "Synced", uid: "uid-1", paths: ours } as const;
    const { write, way, fields: located } = decide(desired, live, record);
    assert.equal(way, "patch");
    if (!write) return "stands";
    const operations = planPatch(live, located, desired.shape);
    const { hosts: _, ...after } = fastJsonPatch.applyPatch(live, operations as never[], true).newDocument[
      "spec"
    ] as JsonObject;
    return after;
  }
  const helm = (...paths: string[]) => entry("helm", paths);
  const us = (...paths: string[]) => entry(OURS, paths, { operation: "Update" });

  it("leaves the keys of others, and those of nobody", () => {
    const after = put({ env: { A: "1", THEIRS: "x", nobodys: "y" } }, [helm("spec.env.THEIRS")], {
      "spec.env": { A: "2", none: null },
    });
    assert.deepEqual(after, { env: { A: "2", none: null, THEIRS: "x", nobodys: "y" } });
  });

  it("takes out what is ours alone and wanted no more, however deep", () => {
    const env = {
      A: "1",
      GONE: "1",
      SHARED: "1",
      deep: { gone: "1" },
      mixed: { gone: "1", theirs: "1" },
      set: ["a", "b", "c"],
    };
    const own = us("spec.env.A", "spec.env.GONE", "spec.env.SHARED", "spec.env.deep.gone", "spec.env.mixed.gone");
    const set = { "f:spec": { "f:env": { "f:set": { 'v:"a"': {}, 'v:"b"': {} } } } };
    const entries = [own, us(), helm("spec.env.SHARED", "spec.env.mixed.theirs")].map((each, n) =>
      n === 1 ? { ...each, fieldsV1: set } : each,
    );
    assert.deepEqual(put({ env }, entries, { "spec.env": { A: "1", set: ["b", "d"] } }, ["spec.env"]), {
      env: { A: "1", SHARED: "1", mixed: { theirs: "1" }, set: ["b", "c", "d"] },
    });
  });

  it("merges a map list by its keys", () => {
    const map = [
      { name: "a", x: "1", theirs: "1" },
      { name: "gone", x: "1" },
      { name: "theirs", x: "1" },
    ];
    const entries = [
      us("spec.map[name=a].x", "spec.map[name=gone].x"),
      helm("spec.map[name=a].theirs", "spec.map[name=theirs].x"),
    ];
    const want = {
      "spec.map": [
        { name: "a", x: "2" },
        { name: "b", x: "2" },
      ],
    };
    assert.deepEqual(put({ map }, entries, want, ["spec.map"]), {
      map: [
        { name: "a", x: "2", theirs: "1" },
        { name: "theirs", x: "1" },
        { name: "b", x: "2" },
      ],
    });
  });

  it("is not made where all that is wanted stands, and nothing else is ours alone", () => {
    const env = { A: "1", THEIRS: "x" };
    assert.equal(put({ env }, [helm("spec.env.A", "spec.env.THEIRS")], { "spec.env": { A: "1" } }), "stands");
    assert.equal(put({ env }, [us("spec.env.A"), helm("spec.env.THEIRS")], { "spec.env": { A: "1" } }), "stands");
  });

  it("is in conflict with who holds a key that is wanted", () => {
    const entries = [helm("spec.env.A")];
    assert.throws(() => put({ env: { A: "1" } }, entries, { "spec.env": { A: "2" } }), { reason: "Conflict" });
  });
});

describe("a target with lists", () => {
  const desired = (paths: string[], append = false) => ({
    plan: {
      fields: paths.map((path) => ({
        path: FieldPath.parse(path),
        value: new SecretValue("x"),
        fromSecret: true,
        append,
      })),
      leftOut: [],
    },
    shape: shape(LISTS),
    fieldManager: OURS,
    onConflict: "Fail" as const,
  });
  const decided = (live: KubeObject, ...paths: string[]) => decide(desired(paths), live, undefined);

  it("is applied where all are map lists, and patched as a whole else", () => {
    const live = liveObject({ spec: { map: [{ name: "a", list: [{ n: 1 }] }], list: [{ n: 1 }] } });
    assert.equal(decided(live, "spec.map[name=a].x", "spec.y").way, "apply");
    assert.equal(decided(live, "spec.map[0].x").way, "apply");
    assert.equal(decided(live, "spec.map[name=a].list[n=1].x").way, "patch");
    assert.equal(decided(live, "spec.y", "spec.list[n=1].x").way, "patch");
    // Who changes a key makes it another element.
    assert.equal(decided(live, "spec.map[0].name").way, "patch");
  });

  it("calls an element of a map list by its keys, however the path names it, and other lists as a whole", () => {
    const live = liveObject({ spec: { map: [{ name: "a", n: 1, list: [{ n: 1 }] }], list: [{ n: 1 }] } });
    const paths = ["spec.map[n=1].x", "spec.map[0].list[0].x", "spec.list[n=1].x"];
    const { keeps } = decided(live, ...paths);
    assert.deepEqual(keeps.map(String), ["spec.map[name=a].x", "spec.map[name=a].list", "spec.list"]);
  });

  it("is not in conflict with who holds a list, but with who holds a field of an element of a map list", () => {
    const live = liveObject({ spec: { map: [{ name: "a", x: "old" }], list: [{ n: 1, x: "old" }] } }, [
      entry("argocd", ["spec.list", "spec.map[name=a].x"]),
    ]);
    const { takenBy, warnings } = decided(live, "spec.list[n=1].x");
    assert.deepEqual(takenBy, ["argocd"]);
    assert.match(warnings.join(), /spec\.list is one value .* argocd applies it/);
    assert.throws(() => decided(live, "spec.map[name=a].x"), { reason: "Conflict" });
  });

  it("is not written when its values stand, whoever holds the list", () => {
    const live = liveObject({ spec: { list: [{ n: 1, x: "x" }] } }, [entry("argocd", ["spec.list"])]);
    const { write, acquires } = decided(live, "spec.list[n=1].x");
    assert.deepEqual([write, acquires], [false, ["spec.list[n=1].x"]]);
  });

  const refused: [path: string, reason: Problem["reason"], says: RegExp][] = [
    ["spec.list[n=9].x", "ElementNotFound", /^spec\.list\[n=9\]\.x: there is no element spec\.list\[n=9\]; add it/],
    ["spec.list[n=9]", "ElementNotFound", /^there is no element spec\.list\[n=9\]/],
    ["spec.list[3].x", "ElementNotFound", /the list has 2 elements, counted from 0/],
    ["spec.none[0]", "ElementNotFound", /the list has 0 elements/],
    ["spec.list[m=1].x", "ElementNotUnique", /fits 2 elements/],
    ["spec.list.x", "TypeMismatch", /spec\.list is a list in the target; name the element/],
    ["spec.text[0]", "TypeMismatch", /spec\.text is a single value in the target/],
    ["spec.text.x", "TypeMismatch", /goes into it as an object/],
  ];
  for (const [path, reason, says] of refused) {
    it(`is not written by ${path}: ${reason}`, () => {
      const live = liveObject({
        spec: {
          list: [
            { n: 1, m: 1 },
            { n: 2, m: 1 },
          ],
          text: "SECRET",
        },
      });
      assert.throws(
        () => decided(live, path),
        (problem: Problem) => {
          assert.equal(problem.reason, reason);
          assert.match(problem.message, says);
          return !problem.message.includes("SECRET");
        },
      );
    });
  }

  it("is not written twice at one place", () => {
    const live = liveObject({ spec: { list: [{ n: 1 }] } });
    assert.throws(() => decided(live, "spec.list[0].x", "spec.list[n=1].x"), { reason: "InvalidBinding" });
    assert.throws(() => decided(live, "spec.list[0]", "spec.list[n=1].x"), { reason: "InvalidBinding" });
  });

  it("has no element appended by its place", () => {
    const live = liveObject({ spec: { list: [] } });
    assert.throws(() => decide(desired(["spec.list[0].x"], true), live, undefined), { reason: "ElementNotFound" });
    assert.equal(decide(desired(["spec.list[n=1].x"], true), live, undefined).write, true);
  });
});

describe("an element of a map list", () => {
  const at = (path: string, map: JsonObject[], append: boolean) =>
    located(liveObject({ spec: { map } }), { [path]: "x" }, append);
  const path = "spec.map[name=web,role=x].token";

  it("is appended by its keys alone: by more, another element of those keys would be written", () => {
    for (const map of [[], [{ name: "web", role: "y" }]]) {
      const message = /^spec\.map\[name=web,role=x\] is not there, .* told by name alone; leave role out of the path/;
      assert.throws(() => at(path, map, true), { reason: "InvalidPath", message });
      assert.throws(() => at(path, map, false), { reason: "ElementNotFound" });
    }
    assert.equal(at("spec.map[name=web].token", [], true).length, 1);
  });

  it("is found by any of its fields", () => {
    for (const append of [true, false])
      assert.deepEqual(at(path, [{ name: "web", role: "x" }], append)[0]?.place.keys, [{ name: "web" }]);
  });
});

describe("any patch of lists", () => {
  const names = fc.constantFrom("a", "b/~", "c.d");
  const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.double({ noNaN: true, noDefaultInfinity: true }));
  const element = fc.record({ id: fc.constantFrom("1", "2", "3"), a: scalar }, { requiredKeys: ["id"] });
  const list = fc.uniqueArray(element, { selector: ({ id }) => id, maxLength: 3 });
  const spec = fc.dictionary(
    names,
    fc.oneof(
      list,
      scalar.map((x) => ({ x })),
    ),
    { maxKeys: 3, noNullPrototype: true },
  );
  const key = (name: string): Segment => ({ kind: "key", key: name });
  const target = fc.record({
    list: names,
    segment: fc.oneof(
      fc
        .constantFrom("1", "2", "3")
        .map((id): Segment => ({ kind: "element", conditions: [{ key: "id", value: id }] })),
      fc.nat(2).map((index): Segment => ({ kind: "index", index })),
    ),
    leaf: fc.constantFrom("a", "new"),
    value: scalar,
  });
  const scene = fc.record({
    spec,
    targets: fc.uniqueArray(target, { minLength: 1, maxLength: 4 }),
    append: fc.boolean(),
  });

  it("does the same by fast-json-patch and by jsonpatch, puts every value where its path is, and changes nothing else", () => {
    let written = 0;
    fc.assert(
      fc.property(scene, (some) => {
        const live = liveObject({ spec: structuredClone(some.spec) as JsonObject });
        const paths = some.targets.map(({ list: name, segment, leaf, value }) => ({
          path: new FieldPath([key("spec"), key(name), segment, key(leaf)]),
          value,
        }));
        const want = Object.fromEntries(paths.map(({ path, value }) => [String(path), value]));
        let fields: Located[];
        try {
          fields = located(live, want, some.append);
        } catch (error) {
          // Elements that are not there, objects where a list is meant, two ways to one place.
          assert.match((error as Problem).reason, /^(ElementNotFound|TypeMismatch|InvalidBinding)$/);
          return;
        }
        written++;
        const document = (): KubeObject => structuredClone(live);
        for (const byVersion of [false, true]) {
          const operations = planPatch(live, fields, shape(), { byVersion });
          const fast = fastJsonPatch.applyPatch(document(), structuredClone(operations) as never[], true).newDocument;
          const other = jsonpatch.apply_patch(document(), structuredClone(operations)) as KubeObject;
          assert.deepEqual(fast, other);
          for (const path of Object.keys(want)) assert.deepEqual(FieldPath.parse(path).get(fast), want[path]);
          // Without the values there is what there was, and the appended elements with what names them.
          const strip = (object: KubeObject) => {
            for (const { path } of paths) {
              const parent = path.parent?.get(object) as JsonObject | undefined;
              const leaf = path.segments.at(-1);
              if (parent && leaf?.kind === "key") delete parent[leaf.key];
            }
            return object;
          };
          const [before, after] = [strip(document()), strip(fast)];
          for (const [name, was] of Object.entries(before["spec"] as JsonObject)) {
            const now = (after["spec"] as JsonObject)[name];
            assert.deepEqual(Array.isArray(was) ? (now as JsonValue[]).slice(0, was.length) : now, was);
          }
        }
      }),
      { numRuns: 1000, seed: 7 },
    );
    assert.ok(written > 100, `${written} written`);
  });
});
