/** JSON Patches that write into lists: what they test and change, with several libraries. */
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
  const plan = { fields, omitted: [] };
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

  it("tests the uid, the keys of the element, and the old value: others may change the rest", () => {
    assert.deepEqual(patch({ spec: { list } }, { 'spec.list[name="a/b",port=80].token': "new" }), [
      uid,
      { op: "test", path: "/spec/list/1/name", value: "a/b" },
      { op: "test", path: "/spec/list/1/port", value: 80 },
      { op: "test", path: "/spec/list/1/token", value: "old" },
      { op: "replace", path: "/spec/list/1/token", value: "new" },
    ]);
  });

  it("tests values that are already there, so that all are right together", () => {
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

  it("needs one version for an index, a new value, or a value with several parts", () => {
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

  it("appends one element for all fields in it, with its keys, and the lists and objects around it", () => {
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

  it("treats null as missing", () => {
    assert.deepEqual(patch({ spec: { list: null } }, { "spec.list[name=a].token": "x" }, true), [
      version,
      { op: "replace", path: "/spec/list", value: [{ name: "a", token: "x" }] },
    ]);
  });

  it("writes a whole element with the keys of the path", () => {
    assert.deepEqual(patch({ spec: { list } }, { "spec.list[name=web]": { token: "x" } }), [
      version,
      { op: "replace", path: "/spec/list/0", value: { name: "web", token: "x" } },
    ]);
    for (const value of [{ name: "db" }, "text", ["x"]]) {
      assert.throws(() => patch({ spec: { list } }, { "spec.list[name=web]": value }), { reason: "InvalidValue" });
    }
  });

  it("does not modify the object that was read", () => {
    const live = liveObject({ spec: { list: [{ name: "a" }] } });
    const before = structuredClone(live);
    planPatch(live, located(live, { "spec.list[name=b].x": 1, "spec.list[name=b].y": 2 }, true), shape());
    assert.deepEqual(live, before);
  });
});

describe("a patch of an object or list with fields of others", () => {
  const lists = { "spec.map": byKeys("name"), "spec.env.set": { kind: "set" } as const };
  const token = "spec.hosts[name=web].token";
  const WRITTEN = { hosts: [{ name: "web", token: "new" }] };
  /** The spec after the patch, or `unchanged`. */
  function put(spec: JsonObject, entries: ManagedFieldsEntry[], want: Record<string, JsonValue>, ours: string[] = []) {
    const live = liveObject({ spec: { ...structuredClone(WRITTEN), ...spec } }, entries);
    const fields = Object.entries({ [token]: "new", ...want }).map(([path, value]) => ({
      path: FieldPath.parse(path),
      value: new SecretValue(value),
      fromSecret: true,
    }));
    const desired = {
      plan: { fields, omitted: [] },
      shape: shape(lists),
      fieldManager: OURS,
      onConflict: "Fail" as const,
    };
    const record = { apiVersion: "v1", kind: "A", name: "a", reason: "Synced", uid: "uid-1", paths: ours } as const;
    const { write, way, fields: located } = decide(desired, live, record);
    assert.equal(way, "patch");
    if (!write) return "unchanged";
    const operations = planPatch(live, located, desired.shape);
    const { hosts: _, ...after } = fastJsonPatch.applyPatch(live, operations as never[], true).newDocument[
      "spec"
    ] as JsonObject;
    return after;
  }
  const helm = (...paths: string[]) => entry("helm", paths);
  const us = (...paths: string[]) => entry(OURS, paths, { operation: "Update" });

  it("keeps the keys of others, and those without owner", () => {
    const after = put({ env: { A: "1", THEIRS: "x", nobodys: "y" } }, [helm("spec.env.THEIRS")], {
      "spec.env": { A: "2", none: null },
    });
    assert.deepEqual(after, { env: { A: "2", none: null, THEIRS: "x", nobodys: "y" } });
  });

  it("removes unwanted keys that only the binding owns, at any depth", () => {
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

  it("is not sent if all wanted values are there, and the binding owns nothing else alone", () => {
    const env = { A: "1", THEIRS: "x" };
    assert.equal(put({ env }, [helm("spec.env.A", "spec.env.THEIRS")], { "spec.env": { A: "1" } }), "unchanged");
    assert.equal(put({ env }, [us("spec.env.A"), helm("spec.env.THEIRS")], { "spec.env": { A: "1" } }), "unchanged");
  });

  it("is a conflict if another manager owns a wanted key", () => {
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
      omitted: [],
    },
    shape: shape(LISTS),
    fieldManager: OURS,
    onConflict: "Fail" as const,
  });
  const decided = (live: KubeObject, ...paths: string[]) => decide(desired(paths), live, undefined);

  it("is applied if all lists are map lists, and else patched", () => {
    const live = liveObject({ spec: { map: [{ name: "a", list: [{ n: 1 }] }], list: [{ n: 1 }] } });
    assert.equal(decided(live, "spec.map[name=a].x", "spec.y").way, "apply");
    assert.equal(decided(live, "spec.map[0].x").way, "apply");
    assert.equal(decided(live, "spec.map[name=a].list[n=1].x").way, "patch");
    assert.equal(decided(live, "spec.y", "spec.list[n=1].x").way, "patch");
    // A change of a key creates another element.
    assert.equal(decided(live, "spec.map[0].name").way, "patch");
  });

  it("is owned by the keys of map lists, for any form of the path, and otherwise by whole lists", () => {
    const live = liveObject({ spec: { map: [{ name: "a", n: 1, list: [{ n: 1 }] }], list: [{ n: 1 }] } });
    const paths = ["spec.map[n=1].x", "spec.map[0].list[0].x", "spec.list[n=1].x"];
    const { keeps } = decided(live, ...paths);
    assert.deepEqual(keeps.map(String), ["spec.map[name=a].x", "spec.map[name=a].list", "spec.list"]);
  });

  it("is no conflict if another manager owns the list, but if it owns a field in an element of a map list", () => {
    const live = liveObject({ spec: { map: [{ name: "a", x: "old" }], list: [{ n: 1, x: "old" }] } }, [
      entry("argocd", ["spec.list", "spec.map[name=a].x"]),
    ]);
    const { takenBy, warnings } = decided(live, "spec.list[n=1].x");
    assert.deepEqual(takenBy, ["argocd"]);
    assert.match(warnings.join(), /spec\.list .* argocd/);
    assert.throws(() => decided(live, "spec.map[name=a].x"), { reason: "Conflict" });
  });

  it("is not written if its values are there, for any owner of the list", () => {
    const live = liveObject({ spec: { list: [{ n: 1, x: "x" }] } }, [entry("argocd", ["spec.list"])]);
    const { write, acquires } = decided(live, "spec.list[n=1].x");
    assert.deepEqual([write, acquires], [false, ["spec.list[n=1].x"]]);
  });

  const BY_FIELD =
    /the list is empty; name the element by a field, as in spec\.none\[name=\.\.\.\], or add the element to the target\. onMissingElement: Append adds only an element that the path names by its fields$/;
  const refused: [path: string, reason: Problem["reason"], says: RegExp][] = [
    ["spec.list[n=9].x", "ElementNotFound", /^spec\.list\[n=9\]\.x: there is no element spec\.list\[n=9\]; add it/],
    ["spec.list[n=9]", "ElementNotFound", /^there is no element spec\.list\[n=9\]/],
    ["spec.list[3].x", "ElementNotFound", /the list has 2 elements, with the indexes 0 to 1; correct the index, name/],
    ["spec.none[0]", "ElementNotFound", BY_FIELD],
    [
      "spec.list[m=1].x",
      "ElementNotUnique",
      /matches 2 elements of the list, with the indexes 0, 1; name one, by .* or by its index$/,
    ],
    ["spec.list.name", "TypeMismatch", /name the element, as in spec\.list\[INDEX\], where INDEX is/],
    ["spec.list.x", "TypeMismatch", /spec\.list is a list in the target; name the element/],
    ["spec.text[0]", "TypeMismatch", /spec\.text is a single value in the target/],
    ["spec.text.x", "TypeMismatch", /needs an object/],
  ];
  for (const [path, reason, says] of refused) {
    it(`is not written at ${path}: ${reason}`, () => {
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

  it("is not written twice at one location", () => {
    const live = liveObject({ spec: { list: [{ n: 1 }] } });
    assert.throws(() => decided(live, "spec.list[0].x", "spec.list[n=1].x"), { reason: "InvalidBinding" });
    assert.throws(() => decided(live, "spec.list[0]", "spec.list[n=1].x"), { reason: "InvalidBinding" });
  });

  it("gets no element by its index", () => {
    const live = liveObject({ spec: { list: [] } });
    assert.throws(() => decide(desired(["spec.list[0].x"], true), live, undefined), { reason: "ElementNotFound" });
    assert.equal(decide(desired(["spec.list[n=1].x"], true), live, undefined).write, true);
  });
});

describe("a field of an atomic object", () => {
  const atomic = shape({ "spec.map": byKeys("name") }, [], ["spec.sel", "spec.map[name=a].sel"]);
  const key = 'spec.sel.labels["a/b.c"]';
  const decided = (live: KubeObject, want: Record<string, JsonValue>, paths?: string[]) => {
    const fields = Object.entries(want).map(([path, value]) => {
      return { path: FieldPath.parse(path), value: new SecretValue(value), fromSecret: false };
    });
    const desired = { plan: { fields, omitted: [] }, shape: atomic, fieldManager: OURS, onConflict: "Fail" as const };
    const record = { apiVersion: "v1", kind: "A", name: "a", reason: "Synced", uid: "uid-1" } as const;
    return decide(desired, live, paths && { ...record, paths });
  };
  const patched = (live: KubeObject, want: Record<string, JsonValue>) =>
    planPatch(live, decided(live, want).fields, atomic);

  it("is replaced by a patch that tests the uid and the old value, for any owner of the object", () => {
    const live = liveObject({ spec: { sel: { labels: { "a/b.c": "old", x: "y" } } } }, [entry("git", ["spec.sel"])]);
    assert.deepEqual(patched(live, { [key]: "new" }), [
      uid,
      { op: "test", path: "/spec/sel/labels/a~1b.c", value: "old" },
      { op: "replace", path: "/spec/sel/labels/a~1b.c", value: "new" },
    ]);
    const { way, keeps, takenBy, warnings } = decided(live, { [key]: "new" });
    assert.deepEqual([way, keeps.map(String), takenBy], ["patch", ["spec.sel"], ["git"]]);
    assert.match(warnings.join(), /spec\.sel as one value, and git applies it/);
  });

  it("is added to the version that was read, with the objects that are missing", () => {
    const want = { [key]: "new", "spec.sel.labels.more": "x", "spec.map[name=a].sel.x": "y" };
    const spec = { map: [{ name: "a" }] };
    assert.deepEqual(patched(liveObject({ spec }), want), [
      version,
      { op: "add", path: "/spec/sel", value: { labels: { "a/b.c": "new" } } },
      { op: "add", path: "/spec/sel/labels/more", value: "x" },
      { op: "add", path: "/spec/map/0/sel", value: { x: "y" } },
    ]);
    const { parents, keeps } = decided(liveObject({ spec }), want);
    assert.deepEqual(parents, ["spec.sel.labels", "spec.sel", "spec.map[name=a].sel"]);
    assert.deepEqual(keeps.map(String), ["spec.sel", "spec.sel", "spec.map[name=a].sel"]);
  });

  it("is not written if its value is there, for any owner of the object; the whole object is applied", () => {
    const live = liveObject({ spec: { sel: { labels: { "a/b.c": "x" } } } }, [entry("two", ["spec.sel"])]);
    assert.equal(decided(live, { [key]: "x" }, [key]).write, false);
    assert.equal(decided(liveObject({ spec: {} }), { "spec.sel": { labels: {} } }).way, "apply");
  });
});

describe("an element of a map list", () => {
  const at = (path: string, map: JsonObject[], append: boolean) =>
    located(liveObject({ spec: { map } }), { [path]: "x" }, append);
  const path = "spec.map[name=web,role=x].token";

  it("is appended only by its keys: with further conditions, another element with these keys would be written", () => {
    for (const map of [[], [{ name: "web", role: "y" }]]) {
      const message = /^spec\.map\[name=web,role=x\] does not exist .* only name .* remove role from the path/;
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

  it("has the same effect with fast-json-patch and jsonpatch, writes every value at its path, and changes nothing else", () => {
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
          // Missing elements, objects in place of lists, two paths to one location.
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
          // Without the values, the object is as before, plus the appended elements with their keys.
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
