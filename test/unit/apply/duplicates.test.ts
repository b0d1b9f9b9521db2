/** Which values an apply could not write without merging elements of others. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";
import { assertUnique } from "../../../src/apply/duplicates.ts";
import { locate } from "../../../src/apply/locate.ts";
import { byKeys, shape } from "./managed.ts";

const lists = shape(
  { "spec.ports": byKeys("port", "protocol"), "spec.apps": byKeys("name"), "spec.apps[1].env": byKeys("name") },
  [],
  ["spec.atomic"],
  { "spec.ports[0].protocol": "TCP" },
);
const check = (value: JsonValue, live: unknown) => assertUnique(FieldPath.parse("spec"), value, live, lists);
const tcp = { port: 80, protocol: "TCP" };

describe("a value with lists of type map", () => {
  it("is refused if the target has several elements for one of its elements, also by the default of a key", () => {
    const refused = { reason: "ElementNotUnique", message: /spec\.ports: the elements \[0\] and \[2\] of the target/ };
    const live = { ports: [tcp, { port: 80, protocol: "UDP" }, { port: 80 }] };
    for (const value of [{ ports: [tcp] }, { ports: [{ port: 80 }] }]) assert.throws(() => check(value, live), refused);
    check({ ports: [{ port: 80, protocol: "UDP" }, { port: 443 }] }, live);
    check({ ports: [] }, live);
  });

  it("is refused for lists within elements, which are found by their keys", () => {
    const env = [{ name: "A" }, { name: "A" }];
    const value = { apps: [{ name: "new" }, { name: "web", env: [{ name: "A" }] }] };
    assert.throws(() => check(value, { apps: [{ name: "web", env }] }), { reason: "ElementNotUnique" });
    check(value, { apps: [{ name: "other", env }] });
  });

  it("is invalid if it has elements with equal keys itself, unless the list is within one value", () => {
    assert.throws(() => check({ ports: [tcp, { port: 80 }] }, undefined), {
      reason: "InvalidValue",
      message: /spec\.ports: the elements \[0\] and \[1\] to write have the same port and protocol/,
    });
    check({ atomic: { list: [tcp, tcp] }, other: [tcp, tcp] }, undefined);
  });
});

describe("the location of an element with the keys of another one", () => {
  it("ends at the element, and continues within it", () => {
    const live = { spec: { ports: [tcp, { port: 443 }, { port: 80, name: "x" }] } };
    const place = locate(FieldPath.parse("spec.ports[name=x].host"), lists, live);
    assert.deepEqual([place.within, place.duplicate, String(place.at)], [true, 2, "spec.ports[2].host"]);
    assert.equal(place.held.segments.length, 3);
    const unique = locate(FieldPath.parse("spec.ports[1].host"), lists, live);
    assert.deepEqual([unique.within, unique.duplicate], [false, undefined]);
  });
});
