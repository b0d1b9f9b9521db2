/** Which stored values count as the value that a binding writes. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../../../src/apimachinery/objects.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { formBeside, formIn, isStored } from "../../../src/apply/forms.ts";
import { entry, liveObject, OURS, shape } from "./managed.ts";

const SHAPE = shape(
  { "spec.map": { kind: "map", keys: ["name", "port"] }, "spec.set": { kind: "set" } },
  [],
  ["spec.one"],
  { "spec.text": "fallback", "spec.one.b": "b", "spec.list[0].b": "b", "spec.map[0].port": 80 },
);
const field = (path: string, wanted: JsonValue) => ({ path: FieldPath.parse(path), value: new SecretValue(wanted) });
const holding = (path: string, stored: JsonValue | undefined, owned: readonly string[] = [path]) => {
  const key = path.replace("spec.", "").split(/[.[]/)[0] as string;
  return liveObject({ spec: stored === undefined ? {} : ({ [key]: stored } as JsonObject) }, [entry(OURS, owned)]);
};

describe("a stored value", () => {
  const forms: [title: string, path: string, wanted: JsonValue, stored: JsonValue | undefined, form: string][] = [
    ["the same text", "spec.text", "a", "a", "same"],
    ["no field for an empty text", "spec.text", "", undefined, "equal"],
    ["no field for false", "spec.flag", false, undefined, "equal"],
    ["no field for null", "spec.text", null, undefined, "equal"],
    ["the default for an empty text", "spec.text", "", "fallback", "equal"],
    ["no field for a text", "spec.text", "a", undefined, "other"],
    ["a default for a text", "spec.text", "a", "fallback", "other"],
    ["a text for an empty text", "spec.text", "", "a", "other"],
    ["a quantity of a built-in kind", "spec.limits", "1024Mi", "1Gi", "equal"],
    ["a quantity for a number", "spec.limits", 1, "1", "equal"],
    ["a quantity of any other field", "spec.text", "1024Mi", "1Gi", "similar"],
    ["another quantity", "spec.limits", "1024Mi", "2Gi", "other"],
    ["lower case", "spec.text", "Token", "token", "similar"],
    ["no line break at the end", "spec.text", "token\n", "token", "similar"],
    ["the same time", "spec.text", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00.000Z", "similar"],
    ["a text with the value", "spec.text", "token", "Bearer token", "other"],
    ["another type", "spec.text", "a", { a: "a" }, "other"],
    ["a default in an object with one owner", "spec.one", { a: "a" }, { a: "a", b: "b" }, "equal"],
    ["another field in an object with one owner", "spec.one", { a: "a" }, { a: "a", b: "other" }, "similar"],
    ["a default in an element of a list with one owner", "spec.list", [{ a: "a" }], [{ a: "a", b: "b" }], "equal"],
    ["one element more in a list with one owner", "spec.list", ["a"], ["a", "b"], "other"],
    ["a set in another order", "spec.set", ["a", "b"], ["b", "a"], "equal"],
    ["another set", "spec.set", ["a", "b"], ["b", "c"], "other"],
    [
      "elements by their keys in another order",
      "spec.map",
      [{ name: "a", x: "A" }, { name: "b" }],
      [
        { name: "b", port: 80 },
        { name: "a", port: 80, x: "a" },
      ],
      "similar",
    ],
    ["no empty list", "spec.list", [], undefined, "equal"],
  ];
  it("is compared in objects with more fields than a call can have arguments", () => {
    const many = Object.fromEntries(Array.from({ length: 150_000 }, (_, n) => [`k${n}`, "x"]));
    assert.equal(formIn(holding("spec.one", many), field("spec.one", { k0: "x" }), OURS, SHAPE), "similar");
  });

  for (const [title, path, wanted, stored, form] of forms) {
    it(`is ${form}: ${title}`, () => {
      assert.equal(formIn(holding(path, stored), field(path, wanted), OURS, SHAPE), form);
    });
  }

  it("that was there before is similar only if a rule makes it of any value: one case, or less white space", () => {
    const form = (wanted: string, stored: string) =>
      formIn(holding("spec.text", stored), field("spec.text", wanted), OURS, SHAPE, undefined, true);
    for (const [wanted, stored] of [
      ["Token", "token"],
      ["Token", "TOKEN"],
      ["token\n", "token"],
      ["a  B ", "a b"],
    ] as const)
      assert.equal(form(wanted, stored), "similar", stored);
    for (const [wanted, stored] of [
      ["abcdef", "ABCdef"],
      ["Token", "tokeN"],
      ["token", "token\n"],
    ] as const)
      assert.equal(form(wanted, stored), "other", stored);
  });

  it("counts in an object with several owners as far as the binding owns it", () => {
    const stored = { a: "a", c: "theirs" };
    const live = holding("spec.object", stored, ["spec.object.a"]);
    assert.equal(formIn(live, field("spec.object", { a: "a" }), OURS, SHAPE), "same");
    assert.equal(formIn(live, field("spec.object", { a: "b" }), OURS, SHAPE), "other");
    const more = holding("spec.object", stored, ["spec.object.a", "spec.object.c"]);
    assert.equal(formIn(more, field("spec.object", { a: "a" }), OURS, SHAPE), "other");
    const empty = holding("spec.object", stored, ["spec.object"]);
    assert.equal(formIn(empty, field("spec.object", {}), OURS, SHAPE), "equal");
  });

  it("counts as written if it is the same, or if the binding owns it, and a similar one if Inlay saw it", () => {
    const stored = (wanted: JsonValue, there: JsonValue, isAsWritten: boolean, owned = ["spec.limits"]) =>
      isStored(holding("spec.limits", there, owned), field("spec.limits", wanted), OURS, SHAPE, { isAsWritten });
    assert.ok(stored("1Gi", "1Gi", false, []));
    assert.ok(stored("1024Mi", "1Gi", false));
    assert.ok(!stored("1024Mi", "1Gi", true, []));
    assert.ok(!stored("Ab", "ab", false));
    assert.ok(stored("Ab", "ab", true));
    assert.ok(!stored("Ab", "ab", true, []));
    assert.ok(!stored("Ab", "cd", true));
  });

  it("is compared before the first write with the fields that the binding names", () => {
    const live = liveObject({ spec: { object: { a: "a", c: "theirs" }, one: { a: "a", c: "c" }, set: ["x", "a"] } });
    const form = (path: string, wanted: JsonValue) => formBeside(live, field(path, wanted), SHAPE);
    assert.equal(form("spec.object", { a: "a" }), "same");
    assert.equal(form("spec.one", { a: "a" }), "similar");
    assert.equal(form("spec.set", ["a"]), "equal");
    assert.equal(form("spec.object", { a: "b" }), "other");
  });
});
