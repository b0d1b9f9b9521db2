/** Which bindings of compositions a diff shows as deleted: not those that the controller keeps. */
import assert from "node:assert/strict";
import { bindingKey, type SecretBinding, type StoredBinding } from "../../../src/api/binding.ts";
import type { BindingComposition } from "../../../src/api/composition.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { obsoleteBindings } from "../../../src/diff/diff.ts";

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
  producedBy: "none" as const,
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
    const found = obsoleteBindings({ bindings, notMade }, known ? [composition] : [], live, new Set(inFiles));
    return found.map((each) => bindingKey(each.binding));
  };

  it("are deleted if their entry is gone, or if they move to another namespace", () => {
    assert.deepEqual(match([made("x", "a")], [binding("x", "a"), binding("gone", "b")]), ["team/gone"]);
    assert.deepEqual(match([made("x", "a", "1", "other")], [binding("x", "a")]), ["team/x"]);
  });

  it("stay if they can't be composed now, if the claims are unknown, or if the files have them", () => {
    const live = [binding("x", "a")];
    assert.deepEqual(match([], live, { held: ["a"] }), []);
    assert.deepEqual(match([], live, { known: false }), []);
    assert.deepEqual(match([], live, { inFiles: ["team/x"] }), []);
    assert.deepEqual(match([], live), ["team/x"]);
  });
});
