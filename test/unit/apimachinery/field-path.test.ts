/** What the text of a path means, which texts are refused, and that every path has one text. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { type ElementCondition, FieldPath, type Segment, settled } from "../../../src/apimachinery/field-path.ts";
import type { Problem } from "../../../src/apimachinery/problem.ts";

const parsed = (text: string) => FieldPath.parse(text).segments;
const key = (text: string): Segment => ({ kind: "key", key: text });

const element = (...conditions: ElementCondition[]): Segment => ({
  kind: "element",
  conditions: conditions.toSorted((a, b) => (a.key < b.key ? -1 : 1)),
});

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom('"', "\\", ".", "[", "]", "=", "a", "1", "\n", "'", "\ud800") }),
);
const field = text.filter((name) => !["__proto__", "constructor", "prototype"].includes(name));
const keySegment: fc.Arbitrary<Segment> = field.map(key);
const segment: fc.Arbitrary<Segment> = fc.oneof(
  keySegment,
  fc.nat(999_999_999).map((index): Segment => ({ kind: "index", index })),
  fc
    .uniqueArray(fc.record({ key: field, value: text }), {
      minLength: 1,
      maxLength: 3,
      selector: ({ key: name }) => name,
    })
    .map((some): Segment => element(...some)),
);
const path = fc.tuple(keySegment, fc.array(segment)).map(([root, rest]) => new FieldPath([root, ...rest]));

describe("a field path", () => {
  it("goes through objects by dots, from any root", () => {
    assert.deepEqual(parsed("spec.storage.s3"), [key("spec"), key("storage"), key("s3")]);
    assert.deepEqual(parsed("config"), [key("config")]);
    assert.deepEqual(parsed("data.8080"), [key("data"), key("8080")]);
    assert.deepEqual(parsed('["a root"].b'), [key("a root"), key("b")]);
  });

  it("accepts a quoted key with dots and slashes as one key", () => {
    assert.deepEqual(parsed('metadata.annotations["example.com/key"].b'), [
      key("metadata"),
      key("annotations"),
      key("example.com/key"),
      key("b"),
    ]);
    assert.deepEqual(parsed('a["say \\"hi\\"\\n"]'), [key("a"), key('say "hi"\n')]);
  });

  it("names an element of a list by its index or by one of its fields", () => {
    assert.deepEqual(parsed("a.b[0].c"), [key("a"), key("b"), { kind: "index", index: 0 }, key("c")]);
    for (const written of ["list[name=web].value", 'list[name="web"].value', 'list["name"="web"].value']) {
      assert.deepEqual(parsed(written), [key("list"), element({ key: "name", value: "web" }), key("value")]);
    }
    assert.deepEqual(parsed("a[ip=10.0.0.1]")[1], element({ key: "ip", value: "10.0.0.1" }));
  });

  it("names an element by several of its fields, in any order", () => {
    const both = element({ key: "name", value: "a,b]c" }, { key: "port", value: "80" });
    for (const written of ['list[name="a,b]c",port=80]', 'list["port"="80","name"="a,b]c"]']) {
      assert.deepEqual(parsed(written), [key("list"), both]);
      assert.equal(FieldPath.parse(written).toString(), 'list[name="a,b]c",port=80]');
    }
  });

  it("equals the path that its text parses to", () => {
    fc.assert(fc.property(path, (some) => FieldPath.parse(some.toString()).equals(some)));
  });

  it("has one canonical text", () => {
    assert.equal(FieldPath.parse('["a"]["b"][0]["k"="v"]["c.d"]').toString(), 'a.b[0][k=v]["c.d"]');
    fc.assert(fc.property(path, path, (one, other) => one.equals(other) === (one.toString() === other.toString())));
  });

  const refused: [text: string, column: number, advice: string][] = [
    ["", 1, "write it from the object's root"],
    ["a.", 3, "a key is missing"],
    ["a..b", 3, "a key is missing before this dot"],
    ["a b", 2, 'as in data["tls.crt"]'],
    ['a["b"]c', 7, "not allowed here"],
    ["metadata.annotations.example.com/key", 33, 'as in metadata.annotations["example.com/key"]'],
    ["spec.template.nodeSelector.a.b/c", 31, 'as in spec.template.nodeSelector["a.b/c"]'],
    ['a.["b"]', 3, "a dot before ["],
    ["a[b]", 3, '["example.com/key"]'],
    ["a['b']", 3, "in double quotes"],
    ["a[-1]", 3, "an index [0]"],
    ["a[01]", 3, "an index [0]"],
    ["a[*]", 3, "an index [0]"],
    ['a["b"', 3, "in double quotes"],
    ["a[k=", 3, "[name=web]"],
    ["a[k=v,j]", 3, "[name=web,port=80]"],
    ["a[k=v,]", 3, "[name=web]"],
    ["a[k=v,k=w]", 10, "name k"],
    ['a["\\x"]', 3, "a JSON string"],
    ["[0].a", 2, "start the path with a field"],
    ["[name=web].a", 2, "start the path with a field"],
  ];
  const foreign: [text: string, advice: string][] = [
    ["$.spec.s3.accesskey", "; write spec.s3.accesskey"],
    [".spec.s3", "; write spec.s3"],
    ["{.spec.s3}", "; write spec.s3"],
    ["$.spec.hosts[0].host", "; write spec.hosts[0].host"],
    ["$['spec']", "; write it as in spec.host"],
    ["/spec/hosts/0/host", "; write spec.hosts[0].host"],
    ["/metadata/annotations/example.com~1key", '; write metadata.annotations["example.com/key"]'],
    ["spec/s3", "; write spec.s3"],
    ["/__proto__/a", "; write it as in spec.host"],
  ];
  for (const [written, advice] of foreign) {
    it(`refuses ${JSON.stringify(written)}, which is in another syntax, with the path to write`, () =>
      assert.throws(
        () => FieldPath.parse(written),
        ({ reason, message }: Problem) =>
          reason === "InvalidPath" && message.startsWith(`path ${written}, column 1: `) && message.endsWith(advice),
      ));
  }

  for (const [written, column, advice] of refused) {
    it(`refuses ${JSON.stringify(written)} with the column and the fix`, () => {
      assert.throws(
        () => FieldPath.parse(written),
        ({ reason, message }: Problem) =>
          reason === "InvalidPath" && message.includes(`column ${column}: `) && message.includes(advice),
      );
    });
  }

  it("refuses keys with a meaning in JavaScript, in any notation", () => {
    for (const name of ["__proto__", "constructor", "prototype"]) {
      for (const written of [
        name,
        `a.${name}.b`,
        `a["${name}"]`,
        `a["\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"]`,
        `a[${name}=b]`,
      ]) {
        assert.throws(() => FieldPath.parse(written), { reason: "InvalidPath" }, written);
      }
    }
  });

  it("throws only InvalidPath, for any text", () => {
    const grammar = fc.string({ unit: fc.constantFrom("a", ".", "[", "]", '"', "=", "0", "\\", "-", " ") });
    fc.assert(
      fc.property(fc.oneof(grammar, fc.string()), (written) => {
        try {
          FieldPath.parse(written);
        } catch (error) {
          assert.equal((error as { reason?: string }).reason, "InvalidPath");
        }
      }),
    );
  });

  it("finds own values, and no inherited ones", () => {
    const object = { spec: { "a.b": [{ name: "web", port: 80 }], none: null }, list: [1] };
    const get = (written: string) => FieldPath.parse(written).get(object);
    assert.equal(get('spec["a.b"][0].port'), 80);
    assert.equal(get('spec["a.b"][name=web].port'), 80);
    assert.equal(get('spec["a.b"][port=80].name'), "web");
    assert.equal(get("spec.none"), null);
    for (const absent of [
      "spec.c",
      "spec.none.c",
      'spec["a.b"][1]',
      'spec["a.b"].length',
      "spec[0]",
      "spec.toString",
      'spec["a.b"][name=db]',
      "list[name=1]",
    ]) {
      assert.equal(get(absent), undefined, absent);
    }
  });

  it("finds the one element that matches all conditions, and reports several", () => {
    const object = {
      list: [
        { name: "web", port: 80, up: true },
        { name: "web", port: 443 },
        { name: "db", port: null },
      ],
    };
    const get = (written: string) => FieldPath.parse(written).get(object);
    assert.equal(get("list[name=web,port=443].port"), 443);
    assert.equal(get("list[up=true].port"), 80);
    assert.equal(get("list[name=db,port=80]"), undefined);
    assert.equal(get("list[port=null]"), undefined);
    assert.throws(() => get("list[name=web].port"), {
      reason: "ElementNotUnique",
      message: /^list\[name=web\] matches 2 elements/,
    });
  });

  it("finds what others put into a long list, and searches a settled object once", () => {
    const list = Array.from({ length: 100 }, (_, n) => ({ name: `n${n}`, value: n }));
    const get = (object: object, name: string) => FieldPath.parse(`list[name=${name}].value`).get(object);
    const [changing, still] = [{ list }, settled({ list: structuredClone(list) })];
    for (const object of [changing, still]) assert.deepEqual([get(object, "n7"), get(object, "new")], [7, undefined]);
    const copy = structuredClone(still);
    for (const object of [changing, still, copy]) object.list.unshift({ name: "new", value: -1 });
    for (const object of [changing, copy]) assert.deepEqual([get(object, "n7"), get(object, "new")], [7, -1]);
    assert.equal(get(still, "new"), undefined, "a settled object must not change");
    for (const object of [changing, copy]) object.list.push({ name: "n7", value: 0 });
    for (const object of [changing, copy]) assert.throws(() => get(object, "n7"), { reason: "ElementNotUnique" });
  });

  it("has a parent, and starts with the paths above it", () => {
    const here = FieldPath.parse('a["b.c"][0][k=v]');
    assert.equal(here.parent?.toString(), 'a["b.c"][0]');
    assert.equal(FieldPath.parse("a").parent, undefined);
    assert.ok(here.startsWith(here));
    assert.ok(here.startsWith(FieldPath.parse('a["b.c"]')));
    for (const other of ["a.b", 'a["b.c"][1]', 'a["b.c"][0][k=w]', 'a["b.c"][0][k=v].d']) {
      assert.ok(!here.startsWith(FieldPath.parse(other)), other);
    }
  });

  it("is plain if it contains only keys", () => {
    assert.ok(FieldPath.parse('a["b.c"].d').isPlain);
    assert.ok(!FieldPath.parse("a[0]").isPlain);
    assert.ok(!FieldPath.parse("a[k=v].b").isPlain);
  });

  it("has a JSON pointer unless it names an element by a field", () => {
    assert.equal(FieldPath.parse('a["b/c~d"][3].e').toJsonPointer(), "/a/b~1c~0d/3/e");
    assert.throws(() => FieldPath.parse("a[k=v]").toJsonPointer(), TypeError);
  });
});
