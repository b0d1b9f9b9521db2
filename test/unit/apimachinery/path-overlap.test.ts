/** Which paths can affect each other's values. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import { mayOverlap } from "../../../src/apimachinery/path-overlap.ts";

const cases: readonly [a: string, b: string, overlap: boolean][] = [
  ["spec.a", "spec.a", true],
  ["spec.a", "spec.b", false],
  ["spec.a", "spec.a.b", true],
  ["spec.a.b", "spec.a.c", false],
  ["spec.ab", "spec.a", false],
  ['spec["a.b"]', "spec.a.b", false],
  ["spec.list", "spec.list[0].value", true],
  ["spec.list[0].value", "spec.list[0].name", false],
  ["spec.list[0]", "spec.list[1]", false],
  ["spec.list[name=web]", "spec.list[0]", true],
  ["spec.list[name=web].value", "spec.list[name=db].value", false],
  ["spec.list[name=web].value", "spec.list[port=80].value", true],
  ["spec.list[name=web].value", "spec.list[port=80].other", false],
  ["spec.list[name=web,port=80]", "spec.list[name=web]", true],
  ["spec.list[name=web,port=80]", "spec.list[port=80,tls=true]", true],
  ["spec.list[name=web,port=80]", "spec.list[name=web,port=443]", false],
  ["spec.list[0]", "spec.list.name", false],
];

describe("two paths", () => {
  for (const [a, b, overlap] of cases) {
    it(`${a} and ${b} ${overlap ? "may touch" : "never touch"} each other`, () => {
      assert.equal(mayOverlap(FieldPath.parse(a), FieldPath.parse(b)), overlap);
      assert.equal(mayOverlap(FieldPath.parse(b), FieldPath.parse(a)), overlap);
    });
  }
});
