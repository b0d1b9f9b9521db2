/** Which bindings of compositions a diff shows as deleted: not those that the controller keeps. */
import assert from "node:assert/strict";
import type { SecretBinding, StoredBinding } from "../../../src/api/binding.ts";
import type { BindingComposition } from "../../../src/api/composition.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { matchComposed } from "../../../src/diff/obsolete.ts";

const binding = (name: string, entry: string, uid = "1", namespace = "team") =>
  ({
    metadata: {
      namespace,
      name,
      labels: { "inlay.dev/composition": "c", "inlay.dev/composition-binding": entry, "inlay.dev/claim-uid": uid },
      annotations: { "inlay.dev/claim": "team/shop" },
    },
  }) as unknown as StoredBinding;
const from = (entry: string) => ({ composition: "c", claim: "Shop team/shop", entry });
const made = (name: string, entry: string, uid?: string, namespace?: string) => ({
  binding: binding(name, entry, uid, namespace) as unknown as SecretBinding,
  from: from(entry),
  notes: [],
  isBroken: false,
  mistakeAt: () => assert.fail(),
});
const composition = { metadata: { name: "c" }, spec: { for: { kind: "Shop" } } } as unknown as BindingComposition;

describe("the bindings that compositions have made", () => {
  const match = (
    bindings: ReturnType<typeof made>[],
    live: StoredBinding[],
    { held = [], known = true, inFiles = [] }: { held?: string[]; known?: boolean; inFiles?: string[] } = {},
  ) => {
    const notMade = held.map((entry) => ({ ...from(entry), problem: new Problem("FieldNotFound", "") }));
    const found = matchComposed({ bindings, notMade }, known ? [composition] : [], live, new Set(inFiles));
    const names = (all: readonly { binding: Pick<SecretBinding, "metadata"> }[]) =>
      all.map(({ binding: { metadata } }) => `${metadata.namespace}/${metadata.name}`);
    return { made: names(found.made), obsolete: names(found.obsolete) };
  };

  it("are deleted if their entry is gone, and keep their names otherwise", () => {
    const live = [binding("old-name", "a"), binding("gone", "b")];
    assert.deepEqual(match([made("new-name", "a")], live), { made: ["team/old-name"], obsolete: ["team/gone"] });
  });

  it("are deleted if they belong to another claim of that name, or move to another namespace", () => {
    assert.deepEqual(match([made("new", "a", "2")], [binding("old", "a")]).obsolete, ["team/old"]);
    assert.deepEqual(match([made("x", "a", "1", "other")], [binding("x", "a")]).obsolete, ["team/x"]);
  });

  it("stay if they can't be composed now, if the claims are unknown, or if the files have them", () => {
    const live = [binding("x", "a")];
    assert.deepEqual(match([], live, { held: ["a"] }).obsolete, []);
    assert.deepEqual(match([], live, { known: false }).obsolete, []);
    assert.deepEqual(match([], live, { inFiles: ["team/x"] }).obsolete, []);
    assert.deepEqual(match([], live).obsolete, ["team/x"]);
  });
});
