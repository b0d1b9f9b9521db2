/** What to watch for a target with selectors. */
import assert from "node:assert/strict";
import { selectionOf } from "../../../src/targets/selection.ts";
import { selectingTargetOf, targetOf } from "../objects.ts";
import { WIDGETS } from "../resources.ts";

type Chosen = Parameters<typeof selectingTargetOf>[0];
const target = (chosen: Chosen) => selectingTargetOf({ apiVersion: "example.com/v1", kind: "Widget", ...chosen });
const all = { matchLabels: { a: "b" } };

describe("a selection", () => {
  it("has label selectors in the API server's syntax, equal texts for equal meanings", () => {
    const matchExpressions = [
      { key: "tier", operator: "In", values: ["x", "y"] },
      { key: "old", operator: "DoesNotExist" },
      { key: "new", operator: "Exists" },
      { key: "env", operator: "NotIn", values: [""] },
    ];
    const chosen = (selector: object) => selectionOf(target({ selector }), WIDGETS, "team").objects;
    const labels = "!old,a=,env notin (),new,tier in (x,y)";
    assert.deepEqual(chosen({ matchLabels: { a: "" }, matchExpressions }), { names: undefined, labels });
    const reversed = matchExpressions.toReversed();
    assert.deepEqual(chosen({ names: ["x*"], matchLabels: { a: "" }, matchExpressions: reversed }), {
      names: ["x*"],
      labels,
    });
  });

  it("is in the binding's namespace, or the target's, or in listed ones, once each", () => {
    const where = (more: object) => selectionOf(target({ selector: all, ...more }), WIDGETS, "team").namespaces;
    assert.deepEqual(where({}), ["team"]);
    assert.deepEqual(where({ namespace: "other" }), ["other"]);
    assert.deepEqual(where({ namespaceSelector: { names: ["a", "b", "a"] } }), ["a", "b"]);
    assert.deepEqual(where({ namespaceSelector: { names: ["a", "b", "ab"], exceptNames: ["a*"] } }), ["b"]);
  });

  it("watches namespaces if labels or wildcards select them", () => {
    const where = (namespaceSelector: object) =>
      selectionOf(targetOf({ name: "x", namespaceSelector }), WIDGETS, "team").namespaces;
    assert.deepEqual(where({ names: ["a", "b*"] }), { names: ["a", "b*"], labels: "" });
    assert.deepEqual(where({ names: ["a"], matchLabels: { c: "d" } }), { names: ["a"], labels: "c=d" });
    assert.deepEqual(where({ matchLabels: {} }), { names: undefined, labels: "" });
    const except = { exceptNames: ["kube-*"] };
    assert.deepEqual(where(except), { names: undefined, ...except, labels: "" });
    assert.deepEqual(where({ names: ["b*"], ...except }), { names: ["b*"], ...except, labels: "" });
  });

  it("of a cluster-scoped kind has no namespace", () => {
    const cluster = { ...WIDGETS, namespaced: false };
    assert.deepEqual(selectionOf(target({ selector: all }), cluster, "team").namespaces, [undefined]);
    const nowhere = target({ selector: all, namespaceSelector: { names: ["a"] } });
    assert.throws(() => selectionOf(nowhere, cluster, "team"), { reason: "InvalidBinding" });
  });
});
