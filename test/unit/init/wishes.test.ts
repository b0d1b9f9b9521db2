/** The flags of `inlay init`, and the paths that it offers. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { missingFlags, textPaths, wishesOf } from "../../../src/init/init.ts";

describe("the flags of inlay init", () => {
  it("name fields one by one, or each in one flag, with conditions of elements in the path", () => {
    const flags = {
      target: "Thing.example.com/a",
      path: "spec.a",
      secret: "s",
      key: "k",
      field: ["l[name=x].v=s/k.pem"],
    };
    assert.deepEqual(wishesOf(flags), {
      kind: "Thing.example.com",
      object: "a",
      fields: [
        { path: "spec.a", secret: "s", key: "k" },
        { path: "l[name=x].v", secret: "s", key: "k.pem" },
      ],
    });
  });

  it("are missing only where nothing can be printed without them", () => {
    const missing = (flags: object) => missingFlags(wishesOf(flags));
    assert.deepEqual(missing({}), ["--target KIND/NAME", "--field PATH=SECRET/KEY"]);
    assert.deepEqual(missing({ target: "Thing" }), ["--target KIND/NAME", "--field PATH=SECRET/KEY"]);
    assert.deepEqual(missing({ target: "Thing/a", secret: "s" }), ["--path", "--key"]);
    assert.deepEqual(missing({ target: "Thing/a", field: ["a=s/k"] }), []);
  });

  it("are refused in another form, with an example", () => {
    for (const target of ["/a", "Thing/", "a/b/c"]) assert.throws(() => wishesOf({ target }), /HarborCluster\/harbor/);
    for (const field of ["a", "a=s", "=s/k", "a=s/"])
      assert.throws(() => wishesOf({ field: [field] }), /spec\.password=database\/password/);
  });
});

describe("the paths that inlay init offers", () => {
  const metadata = { name: "a", uid: "1", resourceVersion: "1" };
  const object = { apiVersion: "example.com/v1", kind: "Thing", metadata } as KubeObject;
  const text = { type: "string" } as const;

  it("are those of the object, with elements by name, and then those of the schema, without status and metadata", () => {
    const live = { ...object, spec: { b: "x", list: [{ name: "n", value: 1 }, "y"], none: null }, status: { s: "z" } };
    const spec = { type: "object" as const, properties: { a: text, b: text, count: { type: "integer" as const } } };
    const root = { type: "object" as const, properties: { spec, status: { type: "object" as const }, metadata: spec } };
    assert.deepEqual(textPaths(live, { root, resolve: () => undefined }), [
      "spec.b",
      "spec.list[name=n].name",
      "spec.list[name=n].value",
      "spec.list[1]",
      "spec.a",
    ]);
  });

  it("end in a schema that refers to itself", () => {
    const node = { type: "object" as const, properties: { child: { $ref: "#/components/schemas/node" }, v: text } };
    const root = { type: "object" as const, properties: { spec: node } };
    const paths = textPaths(object, { root, resolve: () => node });
    assert.ok(paths.includes("spec.child.v") && paths.length < 20, paths.join());
  });
});
