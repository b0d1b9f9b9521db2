/**
 * Random objects with lists of every kind, random paths into them, and other users who edit them meanwhile. A release
 * removes or keeps what the binding wrote, and changes nothing else.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { scaled } from "../controller/scale.ts";
import { createNamespace, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const SEED = 20_261_121;
const RUNS = scaled(40, 12);

const text = { type: "string" };
const part = { type: "object", required: ["id"], properties: { id: text, token: text, note: text } };
const byId = { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"] };
const item = {
  type: "object",
  required: ["id"],
  properties: {
    id: text,
    alias: text,
    token: text,
    note: text,
    size: { type: "integer", default: 1 },
    atomic: { type: "array", items: part },
    map: { type: "array", items: part, ...byId },
  },
};
const chest: Kind = {
  group: "random.example.com",
  kind: "Chest",
  plural: "chests",
  spec: {
    type: "object",
    properties: {
      token: text,
      note: text,
      atomic: { type: "array", items: item },
      map: { type: "array", items: item, ...byId },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  },
};

type Name = "atomic" | "map" | "free.atomic" | "free.map";
type Item = { id: string; alias: string; note?: string; atomic?: Part[]; map?: Part[] };
type Part = { id: string; note?: string };

const note = fc.constantFrom("a", "b");
const ids = ["1", "2", "3"];
const partsOf = fc.uniqueArray(fc.record({ id: fc.constantFrom(...ids), note }, { requiredKeys: ["id"] }), {
  selector: ({ id }) => id,
  maxLength: 3,
});
const items = fc
  .uniqueArray(
    fc.record({ id: fc.constantFrom(...ids), note, atomic: partsOf, map: partsOf }, { requiredKeys: ["id"] }),
    { selector: ({ id }) => id, maxLength: 3 },
  )
  .map((some): Item[] => some.map((each) => ({ ...each, alias: `alias-${each.id}` })));

const lists = fc.record({ atomic: items, map: items, "free.atomic": items, "free.map": items }, { requiredKeys: [] });

/** A path to an item of a list, or to a part of a list in the item: by its id, another field, or its index. */
const choice = fc.record({
  list: fc.constantFrom<Name>("atomic", "map", "free.atomic", "free.map"),
  id: fc.constantFrom(...ids, "new"),
  by: fc.constantFrom("id" as const, "alias" as const, "place" as const),
  inner: fc.option(
    fc.record({ list: fc.constantFrom("atomic" as const, "map" as const), id: fc.constantFrom(...ids, "new") }),
  ),
});

const edit = fc.record({
  list: fc.constantFrom<Name>("atomic", "map", "free.atomic", "free.map"),
  what: fc.constantFrom("prepend" as const, "note" as const, "remove" as const, "plain" as const),
  by: fc.constantFrom("apply" as const, "update" as const),
});

const story = fc.record({
  lists,
  plain: fc.boolean(),
  choices: fc.array(choice, { minLength: 1, maxLength: 4 }),
  append: fc.boolean(),
  edits: fc.array(edit, { maxLength: 3 }),
  onRelease: fc.constantFrom("Remove" as const, "Retain" as const),
});
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

function specOf({ lists: given }: Story): AnyObject {
  const free = Object.fromEntries(
    (["atomic", "map"] as const).flatMap((name) => (given[`free.${name}`] ? [[name, given[`free.${name}`]]] : [])),
  );
  return structuredClone({
    note: "theirs",
    ...(given.atomic && { atomic: given.atomic }),
    ...(given.map && { map: given.map }),
    free,
  });
}

/** The paths that the object has, or that can be appended to it. Each place has one path. */
function pathsOf({ lists: given, choices, append, plain }: Story): string[] {
  const paths = new Map<string, string>();
  for (const { list, id, by, inner } of choices) {
    const at = (given[list] ?? []).findIndex((each) => each.id === id);
    const found = given[list]?.[at];
    if (found === undefined && !append) continue;
    const how = found === undefined ? "id" : by;
    const element = how === "place" ? `[${at}]` : how === "alias" ? `[alias=alias-${id}]` : `[id=${id}]`;
    const path = `spec.${list}${element}`;
    if (inner === null) paths.set(`${list}/${id}`, `${path}.token`);
    else if (append || found?.[inner.list]?.some((each) => each.id === inner.id)) {
      paths.set(`${list}/${id}/${inner.list}/${inner.id}`, `${path}.${inner.list}[id=${inner.id}].token`);
    }
  }
  if (plain) paths.set("", "spec.token");
  return [...paths.values()];
}

const at = (spec: AnyObject, list: Name): AnyObject[] | undefined =>
  list.startsWith("free.") ? spec.free?.[list.slice(5)] : spec[list];

/** The spec without the binding's values, and without appended elements that have only an id. */
function withoutOurs(value: AnyObject, before: AnyObject): AnyObject {
  if (Array.isArray(value)) {
    const old = (id: string) => (Array.isArray(before) ? before : []).find((each: AnyObject) => each.id === id);
    return value
      .map((each) => withoutOurs(each, old(each.id)))
      .filter((each) => old(each.id) !== undefined || Object.keys(each).some((key) => key !== "id" && key !== "size"));
  }
  if (typeof value !== "object") return value;
  const rest = Object.entries(value).filter(([key]) => key !== "token");
  const cleaned = rest.map(([key, child]) => [key, withoutOurs(child, before?.[key])] as const);
  return Object.fromEntries(
    cleaned.filter(([key, child]) => before?.[key] !== undefined || !(Array.isArray(child) && child.length === 0)),
  );
}

/** Omits lists that are one value, because a manager who writes or removes one element owns the whole list. */
function withoutLists(fields: AnyObject): AnyObject {
  const below = Object.entries(fields).map(([name, child]) => [name, withoutLists(child as AnyObject)] as const);
  const isList = (name: string) => /^f:(atomic|map)$/.test(name) && Object.keys(fields[name]).length === 0;
  const isKept = (name: string, child: object) =>
    Object.keys(fields[name]).length === 0 || Object.keys(child).length > 0;
  return Object.fromEntries(below.filter(([name, child]) => !isList(name) && isKept(name, child)));
}

const own = /^inlay(-controller$|\/)/;
const others = ({ metadata }: AnyObject) =>
  metadata.managedFields
    .filter(({ manager }: AnyObject) => !own.test(manager))
    .map(({ manager, operation, fieldsV1 }: AnyObject) => [manager, operation, withoutLists(fieldsV1)])
    .filter(([, , fields]: [string, string, object]) => Object.keys(fields).length > 0)
    .map((each: unknown) => JSON.stringify(each))
    .sort();
const ours = ({ metadata }: AnyObject) => metadata.managedFields.filter(({ manager }: AnyObject) => own.test(manager));

describe(`lists of random objects (seed ${SEED})`, () => {
  let team: TestNamespace;
  let count = 0;

  before(async () => {
    team = await createNamespace({ rules: [...usualRules, mayWrite(chest)] });
    await installKind(team.api, chest);
    await team.secret("bucket", { token: secretText("token") });
  });

  /** Edits the object as another user, who reads it and writes it back. */
  async function change(
    path: string,
    { list, what, by }: Story["edits"][number],
    taken: readonly string[],
  ): Promise<void> {
    const { metadata, spec } = await team.api.get(path);
    const elements = at(spec, list);
    if (what === "plain" || elements === undefined) {
      await team.api.merge(path, { spec: { note: `edited-${metadata.resourceVersion}` } }, "editor");
      return;
    }
    // An element on a path of the binding stays, or it would be appended again.
    const free = elements.findIndex(({ id }) => !taken.includes(`${list}/${id}`));
    if (what === "prepend") elements.unshift({ id: `theirs-${metadata.resourceVersion}`, alias: "theirs" });
    else if (what === "note" && elements[0]) elements[0].note = "edited";
    else if (what === "remove" && free >= 0) elements.splice(free, 1);
    const object = { metadata: { resourceVersion: metadata.resourceVersion }, spec };
    if (by === "update") await team.api.merge(path, object, "editor");
    else await team.api.jsonPatch(path, [{ op: "replace", path: "/spec", value: spec }], "patcher");
  }

  async function live(some: Story): Promise<void> {
    const paths = pathsOf(some);
    if (paths.length === 0) return;
    const name = `chest-${++count}`;
    const path = objectPath(chest, team.namespace, name);
    await createObject(team.api, chest, name, specOf(some), team.namespace);
    const start = (await team.api.get(path)).spec;
    const fields = paths.map((each) => ({
      path: each,
      from: { source: "bucket", key: "token" },
      ...(some.append && { onMissingElement: "Append" }),
    }));
    const target = { apiVersion: apiVersionOf(chest), kind: chest.kind, name, fields, onRelease: some.onRelease };
    await team.bind(name, { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    await team.until(name, "Synced");
    const written = await team.api.get(path);
    assert.equal(JSON.stringify(written.spec).match(/"token":/g)?.length, paths.length);
    assert.deepEqual(withoutOurs(written.spec, start), start);

    // An element that is named by its index belongs to the binding only while no other user writes the list.
    const numbered = paths.some((each) => /\[\d+\]/.test(each));
    const taken = some.choices.map(({ list, id }) => `${list}/${id}`);
    for (const each of numbered ? [] : some.edits) await change(path, each, taken);
    const edited = await team.api.get(path);
    await team.unbind(name);
    await eventually(async () => assert.deepEqual(ours(await team.api.get(path)), []));
    const after = await team.api.get(path);
    assert.deepEqual(others(after), others(edited));
    const wanted = some.onRelease === "Retain" ? edited.spec : withoutOurs(edited.spec, specWith(start, edited.spec));
    assert.deepEqual(after.spec, wanted);
    await team.api.delete(path);
  }

  /** The edited object without the binding's parts: the first elements, and those that others added. */
  function specWith(start: AnyObject, edited: AnyObject): AnyObject {
    const merged = structuredClone(start);
    for (const list of ["atomic", "map", "free.atomic", "free.map"] as const) {
      const added = (at(edited, list) ?? []).filter(({ id }) => id.startsWith("theirs"));
      if (added.length > 0) at(merged, list)?.push(...added);
    }
    return merged;
  }

  it("are restored when a binding is deleted, except for retained values, and have no field manager of Inlay", async function () {
    this.timeout("5m");
    await fc.assert(fc.asyncProperty(story, live), { seed: SEED, numRuns: RUNS, endOnFailure: true });
    assert.ok(count > RUNS / 2, `${count} objects`);
  });
});
