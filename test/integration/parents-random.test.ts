/**
 * Random bindings that write into parents that they create, release them by Retain or Remove, change their selections, and
 * are deleted, while another client writes there too. What Inlay created goes with the last value, and no more.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { scaled } from "../controller/scale.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const SEED = 20_261_127;
const RUNS = scaled(120, 12);

const text = { type: "string" };
const deep = { type: "object", properties: { a: text, b: text, other: text } };
const tray: Kind = {
  group: "parents.example.com",
  kind: "Tray",
  plural: "trays",
  spec: {
    type: "object",
    properties: {
      note: text,
      nested: { type: "object", properties: { deep } },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      // A path into it makes the write a JSON Patch.
      sel: { type: "object", "x-kubernetes-map-type": "atomic", properties: { kind: text, a: text, b: text } },
      map: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["id"],
        items: { type: "object", required: ["id"], properties: { id: text, a: text, other: text, inner: deep } },
      },
    },
  },
};

/** The paths of each binding. Both write into the same parents. */
const PATHS = {
  one: ["spec.nested.deep.a", "spec.free.x.y.a", "spec.map[id=x].a", "spec.sel.a"],
  two: ["spec.nested.deep.b", "spec.free.x.b", "spec.map[id=x].inner.b", "spec.map[id=y].a", "spec.sel.b"],
};
type Name = keyof typeof PATHS;
const OBJECTS = ["left", "right"] as const;

const binding = fc.record({
  name: fc.constantFrom<Name>("one", "two"),
  /** None: the binding is deleted. */
  objects: fc.subarray([...OBJECTS]),
  paths: fc.nat(0b11111),
  onRelease: fc.constantFrom("Retain" as const, "Remove" as const),
});
const edit = fc.record({
  object: fc.constantFrom(...OBJECTS),
  at: fc.constantFrom("nested" as const, "free" as const, "map" as const),
  what: fc.constantFrom("put" as const, "take" as const, "empty" as const, "drop" as const),
});
const story = fc.record({
  start: fc.constantFrom<object>({}, { nested: { deep: {} } }, { nested: { deep: { other: "theirs" } } }, { map: [] }),
  steps: fc.array(fc.record({ binding: fc.option(binding), edit: fc.option(edit), busy: fc.boolean() }), {
    minLength: 2,
    maxLength: 8,
  }),
});
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;
type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;

/** The fields of managers other than Inlay's, below each name. */
const othersIn = ({ metadata }: AnyObject): AnyObject[] =>
  metadata.managedFields
    .filter(({ manager }: AnyObject) => !manager.startsWith("inlay"))
    .map(({ fieldsV1 }: AnyObject) => fieldsV1["f:spec"] ?? {});
const below = (nodes: AnyObject[], name: string) => nodes.flatMap((node) => node[name] ?? []);
const nameOf = (key: string, child: AnyObject) => (/^\d+$/.test(key) ? `k:{"id":"${child.id}"}` : `f:${key}`);

/** The value without empty parents that no other manager owns. Adds their places to `unowned`. */
function withoutEmpty(value: AnyObject, nodes: AnyObject[], place: string, unowned: Set<string>): AnyObject {
  if (typeof value !== "object") return value;
  const entries = Object.entries(value as AnyObject).flatMap(([key, child]: [string, AnyObject]) => {
    const [name, at] = [nameOf(key, child), `${place}/${Array.isArray(value) ? child.id : key}`];
    const left = withoutEmpty(child, below(nodes, name), at, unowned);
    const isEmpty = typeof left === "object" && Object.keys(left).every((each) => each === "id");
    if (!isEmpty || below(nodes, name).length > 0) return [[key, left]];
    unowned.add(at);
    return [];
  });
  return Array.isArray(value) ? entries.map(([, child]) => child) : Object.fromEntries(entries);
}

describe(`parents of random bindings (seed ${SEED})`, () => {
  let team: TestNamespace;
  let count = 0;

  before(async () => {
    team = await createNamespace({ rules: [...usualRules, mayWrite(tray)] });
    await installKind(team.api, tray);
    await team.secret("bucket", { token: secretText("token") });
  });

  async function bind(name: string, paths: readonly string[], objects: readonly string[], onRelease: string) {
    const fields = paths.map((path) => ({
      path,
      from: { source: "bucket", key: "token" },
      onMissingElement: "Append",
    }));
    const target = { apiVersion: apiVersionOf(tray), kind: tray.kind, fields, onRelease, onConflict: "Force" };
    const targets = objects.map((each) => ({ ...target, name: each }));
    const spec = { sources: [{ secret: { name: "bucket" } }], targets };
    const there = await team.api.find(team.bindingPath(name));
    await (there === undefined ? team.bind(name, spec) : team.rebind(name, spec));
    await team.until(name, "Synced");
  }

  /** Another client edits an object. Returns the places that it put something into. */
  async function change(path: string, { at, what }: Edit): Promise<string[]> {
    const value = { put: { other: "theirs" }, take: { other: null }, empty: { a: null, b: null }, drop: null }[what];
    if (at !== "map") {
      const patch = at === "nested" ? { nested: value && { deep: value } } : { free: value && { x: value } };
      await team.api.merge(path, { spec: patch }, "writer");
      return what === "put" ? (at === "nested" ? ["/nested", "/nested/deep"] : ["/free", "/free/x"]) : [];
    }
    const { metadata, spec } = await team.api.get(path);
    const elements: AnyObject[] = spec.map ?? [];
    const at0 = elements.findIndex(({ id }) => id === "x");
    const test = { op: "test", path: "/metadata/resourceVersion", value: metadata.resourceVersion };
    const element = elements[at0];
    if (element === undefined) return [];
    const operation =
      what === "put"
        ? { op: "add", path: `/spec/map/${at0}/other`, value: "theirs" }
        : what === "drop"
          ? { op: "remove", path: `/spec/map/${at0}` }
          : { op: "remove", path: `/spec/map/${at0}/${what === "take" ? "other" : "a"}` };
    const isThere = what === "put" || what === "drop" || element[what === "take" ? "other" : "a"] !== undefined;
    // The controller may have written in between.
    const isDone = isThere && (await team.api.jsonPatch(path, [test, operation], "writer").catch(() => undefined));
    return isDone && what === "put" ? ["/map", "/map/x"] : [];
  }

  /** Other changes of the object in quick succession. */
  async function busyWith(path: string): Promise<void> {
    for (let n = 0; n < 8; n++) await team.api.merge(path, { spec: { note: `${n}` } }, "busy");
  }

  async function live({ start, steps }: Story): Promise<void> {
    const run = ++count;
    const named = (name: string) => `${name}-${run}`;
    const pathOf = (object: string) => objectPath(tray, team.namespace, named(object));
    for (const each of OBJECTS)
      await createObject(team.api, tray, named(each), { ...start, sel: { kind: "theirs" } }, team.namespace);
    const touched = new Map(OBJECTS.map((each) => [each, new Set<string>()]));
    for (const { binding: wanted, edit: edited, busy } of steps) {
      const act = async () => {
        if (wanted === null) return;
        const all = PATHS[wanted.name];
        const paths = all.filter((_, n) => (wanted.paths >> n) % 2 === 1);
        const name = named(wanted.name);
        if (wanted.objects.length === 0 || paths.length === 0) {
          if (await team.api.find(team.bindingPath(name))) await team.unbind(name);
        } else await bind(name, paths, wanted.objects.map(named), wanted.onRelease);
      };
      const write = async () => {
        for (const place of edited === null ? [] : await change(pathOf(edited.object), edited))
          touched.get((edited as Edit).object)?.add(place);
      };
      await Promise.all([act(), write(), ...(busy ? OBJECTS.map((each) => busyWith(pathOf(each))) : [])]);
    }
    for (const name of ["one", "two"] as const) await bind(named(name), PATHS[name], OBJECTS.map(named), "Remove");
    const written = await Promise.all(OBJECTS.map((each) => team.api.get(pathOf(each))));
    for (const name of ["one", "two"]) await team.unbind(named(name));
    for (const [n, each] of OBJECTS.entries()) {
      const after = await eventually(async () => {
        const now = await team.api.get(pathOf(each));
        assert.ok(now.metadata.managedFields.every(({ manager }: AnyObject) => !manager.startsWith("inlay")));
        return now;
      });
      const withoutOurs = structuredClone(written[n].spec);
      const { nested, free, sel, map = [] } = withoutOurs;
      for (const part of [
        sel,
        nested?.deep,
        free?.x,
        free?.x?.y,
        ...map,
        ...map.map(({ inner }: AnyObject) => inner),
      ]) {
        delete part?.a;
        delete part?.b;
      }
      const unowned = new Set<string>();
      const left = withoutEmpty(after.spec, othersIn(after), "", unowned);
      assert.deepEqual(left, withoutEmpty(withoutOurs, othersIn(written[n]), "", new Set()));
      for (const place of unowned)
        assert.ok(touched.get(each)?.has(place), `${place} of ${each}: ${JSON.stringify(after)}`);
      await team.api.delete(pathOf(each));
    }
  }

  it("are removed with the last value, unless another client owns them or put something there", async function () {
    this.timeout("10m");
    await fc.assert(fc.asyncProperty(story, live), { seed: SEED, numRuns: RUNS, endOnFailure: true });
    assert.equal(count, RUNS);
  });
});
