/** Which objects a binding's targets are, according to watches, and how many they may be. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { Watcher } from "../../../src/cache/watcher.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { References } from "../../../src/targets/references.ts";
import { selectTargets } from "../../../src/targets/select.ts";
import { finish } from "../../../src/workqueue/cpu-scheduler.ts";
import { selectingTargetOf, targetOf } from "../objects.ts";
import { CONFIGMAPS } from "../resources.ts";

type Referenced = References["targets"][number];

const version = { uid: "u", resourceVersion: "1", generation: undefined };
const named = (name: string): Referenced => ({
  target: targetOf({ apiVersion: "v1", kind: "ConfigMap", name, fields: [] }),
  at: { resource: CONFIGMAPS, namespace: "team", name },
});
const refused = new Problem("ForbiddenNamespace", "closed");
const refusedIn = (where: unknown) => (String(where).startsWith("closed") ? refused : undefined);
const selected = (labels: string, namespaces: readonly string[] = ["team"]): Referenced => ({
  target: selectingTargetOf({ apiVersion: "v1", kind: "ConfigMap", fields: [] }),
  at: { resource: CONFIGMAPS, objects: { names: undefined, labels }, namespaces, refusedIn },
});

/** Takes more effort than allowed. */
const HARD = "hard";

/** Watches that show these names for each label selector. `undefined`: the watch is refused. */
function found(targets: Referenced[], shown: Record<string, string[] | undefined>) {
  const list: Watcher["list"] = (_key, { labels, namespace }, effort) => {
    const names = shown[labels];
    if (labels === HARD && effort) effort.left = -1;
    if (names === undefined) return { phase: "failed", error: new ApiError("LIST", 403, "Forbidden"), members: [] };
    return { phase: "synced", members: names.map((name) => ({ ...(namespace && { namespace }), name, version })) };
  };
  return finish(selectTargets({ list }, "team/b", "system:serviceaccount:team:inlay", { targets }));
}
const namesOf = ({ objects }: ReturnType<typeof found>) =>
  objects.map(({ ref, selected: isSelected }) =>
    ref instanceof Problem ? ref : `${ref.name}${isSelected ? "" : "!"}`,
  );
const many = (count: number, prefix = "o") => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

describe("the selected objects of targets", () => {
  it("are the named ones, then the selected ones, each once and sorted by name", () => {
    const both = found([selected("a"), named("y"), selected("b")], { a: ["z", "x"], b: ["x", "y", "w"] });
    assert.deepEqual(namesOf(both), ["x", "z", "y!", "w"]);
    assert.deepEqual(both.notes, ["2 objects that spec.targets[2] matches belong to other entries of spec.targets"]);
  });

  it("are unknown where a watch is refused, which is reported for that namespace only", () => {
    const { objects, unresolved } = found([selected("a", ["one", "two"])], {});
    assert.deepEqual([objects, unresolved.map(({ namespace }) => namespace)], [[], ["one", "two"]]);
    assert.ok(unresolved.every(({ problem }) => problem.reason === "Forbidden" && problem.retryPolicy === "OnChange"));
  });

  it("may be five thousand; a target with more is not written, and the others are", () => {
    assert.equal(found([selected("a")], { a: many(5_000) }).objects.length, 5_000);
    const { objects, unresolved } = found([named("x"), selected("a"), selected("b")], { a: many(5_001), b: ["y"] });
    assert.deepEqual([objects.length, unresolved.length], [2, 1]);
    assert.match(
      unresolved[0]?.problem.message ?? "",
      /spec\.targets\[1\] the binding selects 5001 objects.*split the binding/,
    );
  });

  it("may be fewer if the targets have many fields, which may be fifty thousand together", () => {
    const withFields = (count: number) => {
      const each = selected("a");
      const field = { path: "data.a", template: "" };
      return { ...each, target: { ...each.target, fields: Array.from({ length: count }, () => field) } };
    };
    assert.equal(found([withFields(50)], { a: many(1_000) }).objects.length, 1_000);
    const { objects, unresolved } = found([withFields(50)], { a: many(1_001) });
    assert.deepEqual([objects.length, unresolved[0]?.problem.reason], [0, "InvalidBinding"]);
    assert.match(unresolved[0]?.problem.message ?? "", /spec\.targets\[0\] .* 50050 fields .*split the binding/);
  });

  it("may be fewer if their names are long, because all records must fit into the status", () => {
    const { objects, unresolved } = found([selected("a")], { a: many(4_000, "x".repeat(240)) });
    assert.deepEqual([objects.length, unresolved[0]?.problem.reason], [0, "InvalidBinding"]);
  });

  it("are none in a closed namespace, which is not watched, with a note", () => {
    const { objects, closed, unresolved, notes, dependencies } = found([selected("a", ["closed-0", "team"])], {
      a: ["x"],
    });
    assert.deepEqual(
      objects.map(({ ref }) => ref),
      [{ resource: CONFIGMAPS, namespace: "team", name: "x" }],
    );
    assert.deepEqual(
      [closed.map(({ namespace }) => namespace), unresolved, dependencies.length],
      [["closed-0"], [], 1],
    );
    assert.deepEqual(notes, ["spec.targets[0] excludes closed-0, where the installation allows no writes"]);
    const many = found([selected("a", ["closed-0", "closed-1", "closed-2", "closed-3", "closed-4"])], {});
    assert.match(many.notes.join(), /excludes closed-0, closed-1, closed-2 and 2 more,/);
  });

  it("are not the Namespace objects of closed namespaces", () => {
    const namespaces = { ...CONFIGMAPS, kind: "Namespace", plural: "namespaces", namespaced: false };
    const target = selectingTargetOf({ apiVersion: "v1", kind: "Namespace", fields: [] });
    const at = { resource: namespaces, objects: { names: undefined, labels: "a" }, namespaces: [undefined], refusedIn };
    const { objects, closed } = found([{ target, at }], { a: ["closed-0", "team"] });
    assert.deepEqual(
      objects.map(({ ref }) => ref),
      [{ resource: namespaces, name: "team" }],
    );
    assert.deepEqual(
      closed.map(({ name }) => name),
      ["closed-0"],
    );
  });

  it("are not written if their names take too long to compare, or are too many patterns", () => {
    const before = found([named("x"), selected("a"), selected(HARD), selected("b")], {
      a: ["y"],
      [HARD]: ["z"],
      b: ["w"],
    });
    assert.deepEqual(namesOf(before), ["x!", "y"]);
    assert.deepEqual(
      before.unresolved.map(({ problem }) => [problem.reason, problem.retryPolicy]),
      [
        ["InvalidBinding", "OnChange"],
        ["InvalidBinding", "OnChange"],
      ],
    );
    assert.match(before.unresolved[0]?.problem.message ?? "", /spec\.targets\[2\] .* takes too long/);
    const globs = (count: number) => ["plain", ...many(count).map((name) => `${name}*`)];
    const withNames = (labels: string, selector: object, namespaceSelector: object = {}) => {
      const target = selectingTargetOf({
        apiVersion: "v1",
        kind: "ConfigMap",
        selector,
        namespaceSelector,
        fields: [],
      });
      return { ...selected(labels), target };
    };
    const first = withNames("a", { names: globs(16) });
    const second = withNames("b", { names: globs(48), exceptNames: globs(32) }, { exceptNames: globs(32) });
    const third = withNames("c", { exceptNames: globs(1) });
    const { objects, unresolved } = found([first, second, third], { a: ["x"], b: ["y"], c: ["z"] });
    assert.deepEqual([objects.length, unresolved.length], [2, 1]);
    assert.match(unresolved[0]?.problem.message ?? "", /more than 128 names with \* or \? together/);
  });
});
