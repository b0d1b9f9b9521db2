/** Which value a JSON pointer names: the examples of RFC 6901, and invalid pointers. */
import assert from "node:assert/strict";
import { parsePointer, pointAt } from "../../../src/apimachinery/json-pointer.ts";
import type { JsonValue } from "../../../src/apimachinery/objects.ts";

const document: JsonValue = {
  foo: ["bar", "baz"],
  "": 0,
  "a/b": 1,
  "c%d": 2,
  "e^f": 3,
  "g|h": 4,
  "i\\j": 5,
  'k"l': 6,
  " ": 7,
  "m~n": 8,
};
const at = (text: string) => pointAt(document, parsePointer(text));

describe("a JSON pointer", () => {
  const examples: [text: string, value: JsonValue][] = [
    ["", document],
    ["/foo", ["bar", "baz"]],
    ["/foo/0", "bar"],
    ["/", 0],
    ["/a~1b", 1],
    ["/c%d", 2],
    ["/e^f", 3],
    ["/g|h", 4],
    ["/i\\j", 5],
    ['/k"l', 6],
    ["/ ", 7],
    ["/m~0n", 8],
  ];
  for (const [text, value] of examples) {
    it(`finds ${JSON.stringify(text)} as RFC 6901 says`, () => assert.deepEqual(at(text), value));
  }

  it("finds only the value's own properties", () => {
    for (const text of ["/foo/2", "/foo/-", "/foo/01", "/foo/length", "/toString", "/__proto__", "/a~1b/x", "/~01"]) {
      assert.equal(at(text), undefined, text);
    }
  });

  it("begins with a slash, and escapes only with ~0 and ~1", () => {
    for (const text of ["foo", "#/foo", "/a~", "/a~2"]) {
      assert.throws(() => parsePointer(text), { reason: "InvalidPath" }, text);
    }
  });
});
