/** The lists of the CRDs: a GitOps tool that applies a list sees everything in it that is not in git as a difference. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { AnyObject } from "../../controller/api.ts";

const root = join(import.meta.dirname, "..", "..", "..");

interface Place {
  path: string;
  schema: AnyObject;
  isInList: boolean;
}

/** Each schema in a schema. What is below an element of a list, of any type of list, is in a list. */
function* schemasIn({ path, schema, isInList }: Place): Generator<Place> {
  yield { path, schema, isInList };
  for (const [key, each] of Object.entries(schema.properties ?? {}))
    yield* schemasIn({ path: `${path}.${key}`, schema: each, isInList });
  if (schema.items) yield* schemasIn({ path: `${path}[]`, schema: schema.items, isInList: true });
  if (typeof schema.additionalProperties === "object")
    yield* schemasIn({ path: `${path}.*`, schema: schema.additionalProperties, isInList });
}

describe("the specs of the CRDs", () => {
  const files = globSync("apis/*.yaml", { cwd: root });
  const all = files.flatMap((file) => {
    const { spec } = parse(readFileSync(join(root, file), "utf8"));
    const specs = spec.versions.map(({ schema }: AnyObject) => schema.openAPIV3Schema.properties.spec);
    return specs.flatMap((schema: AnyObject) => [...schemasIn({ path: `${file}: spec`, schema, isInList: false })]);
  }) as Place[];
  const pathsOf = (chosen: (place: Place) => boolean) => all.filter(chosen).map(({ path }) => path);

  it("have no default below a list, because the controller fills in", () => {
    assert.equal(files.length, 4);
    assert.ok(all.filter(({ isInList }) => isInList).length > 300);
    assert.deepEqual(
      pathsOf(({ schema, isInList }) => isInList && schema.default !== undefined),
      [],
    );
  });

  it("keep a null below a list where any JSON value is possible", () => {
    const isFree = ({ schema, isInList }: Place) =>
      isInList && schema.type === undefined && schema["x-kubernetes-preserve-unknown-fields"];
    assert.ok(all.some(isFree));
    assert.deepEqual(
      pathsOf((place) => isFree(place) && !place.schema.nullable),
      [],
    );
  });

  it("say for each list how it is merged", () => {
    assert.deepEqual(
      pathsOf(({ schema }) => schema.type === "array" && schema["x-kubernetes-list-type"] === undefined),
      [],
    );
  });
});
