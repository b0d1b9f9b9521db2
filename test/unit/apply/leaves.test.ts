/** The parts of a value that server-side apply tracks separately, and their owners. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import { leafPaths, otherHoldersOf, ownParts } from "../../../src/apply/leaves.ts";
import { byKeys, entry, liveObject, OURS, shape } from "./managed.ts";

const data = FieldPath.parse("data");
const leaves = (value: JsonValue) => leafPaths(data, value, shape()).map(String);

describe("the leaves of a value", () => {
  it("are those of its objects; a list is one leaf, and so is an empty object", () => {
    assert.deepEqual(leaves({ a: 1, "b.c": { d: [{ e: 1 }], f: {} } }), ["data.a", 'data["b.c"].d', 'data["b.c"].f']);
    for (const value of ["x", 1, null, [1], {}]) assert.deepEqual(leaves(value), ["data"]);
  });

  it("end above a key that no path can contain", () => {
    assert.deepEqual(leaves({ a: 1, b: { constructor: 1 } }), ["data.a", "data.b"]);
  });

  it("are none for elements that the list can't have", () => {
    const list = [null, "x", { name: "a", value: 1 }];
    assert.deepEqual(leafPaths(data, list, shape({ data: byKeys("name") })).map(String), ["data[name=a].value"]);
  });

  it("are owned by others if they own them, or an atomic object around them", () => {
    const live = (...entries: Parameters<typeof liveObject>[1] & object) =>
      liveObject({ data: { a: 1, b: 1 } }, entries);
    const others = (object: ReturnType<typeof live>, atomic: string[] = []) =>
      otherHoldersOf(object, OURS, data, { a: 2, c: 3 }, shape({}, [], atomic));
    assert.deepEqual(others(live(entry("x", ["data.a"]), entry("y", ["data.b"]), entry(OURS, ["data.c"]))), ["x"]);
    assert.deepEqual(others(live(entry("whole", ["data"])), ["data"]), ["whole"]);
    assert.deepEqual(others(live(entry("once", ["data"]))), []);
    assert.deepEqual(others(live(entry("itself", ["data", "data.b"]))), []);
  });

  it("are released separately from an object that others share", () => {
    const live = liveObject({ data: { a: 1, b: { c: 1 }, d: 1 } }, [entry(OURS, ["data.a", "data.b.c"])]);
    const deps = () => ownParts(live, OURS, { held: data, at: data }).map(({ at, isShared }) => `${at} ${isShared}`);
    assert.deepEqual(deps(), ["data false"]);
    live.metadata.managedFields?.push(entry("other", ["data.d"]));
    assert.deepEqual(deps(), ["data.a false", "data.b false"]);
  });
});
