/** Which objects a binding's targets are, by what streams show, and how many they may be. */
import assert from "node:assert/strict";
import type { Target } from "../../../src/api/binding.ts";
import type { Effort } from "../../../src/apimachinery/glob.ts";
import type { ObjectRef } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import type { Streams } from "../../../src/cache/informers.ts";
import type { Collection } from "../../../src/cache/subscription.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { References } from "../../../src/targets/references.ts";
import { membersOf } from "../../../src/targets/select.ts";
import type { Selection } from "../../../src/targets/selection.ts";
import { CONFIGMAPS } from "../resources.ts";

const version = { uid: "u", resourceVersion: "1", generation: undefined };
const named = (name: string) => ({
  target: { apiVersion: "v1", kind: "ConfigMap", name, fields: [] } as unknown as Target,
  at: { resource: CONFIGMAPS, namespace: "team", name } as ObjectRef | Selection,
});
const refused = new Problem("ForbiddenNamespace", "closed");
const refusedIn = (where: unknown) => (String(where).startsWith("closed") ? refused : undefined);
const selected = (labels: string, namespaces: readonly string[] = ["team"]) => ({
  target: { apiVersion: "v1", kind: "ConfigMap", selector: {}, fields: [] } as unknown as Target,
  at: { resource: CONFIGMAPS, objects: { names: undefined, labels }, namespaces, refusedIn } as ObjectRef | Selection,
});

/** Takes more effort than there is. */
const HARD = "hard";

/** Streams that show these names for each label selector; one is refused where they are `undefined`. */
function found(
  targets: (References["targets"][number] | ReturnType<typeof named>)[],
  shown: Record<string, string[] | undefined>,
) {
  const members = (_key: string, { labels, namespace }: Collection, effort: Effort) => {
    const names = shown[labels];
    if (labels === HARD) effort.left = -1;
    if (names === undefined) return { phase: "failed", error: new ApiError("LIST", 403, "Forbidden"), members: [] };
    return { phase: "synced", members: names.map((name) => ({ namespace, name, version })) };
  };
  const streams = { members } as unknown as Streams;
  return membersOf(streams, "team/b", "system:serviceaccount:team:inlay", { targets } as unknown as References);
}
const namesOf = ({ members }: ReturnType<typeof found>) =>
  members.map(({ ref, selected: isSelected }) =>
    ref instanceof Problem ? ref : `${ref.name}${isSelected ? "" : "!"}`,
  );
const many = (count: number, prefix = "o") => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

describe("the objects of targets", () => {
  it("are those that are named, then those that are selected, each once and in the order of their names", () => {
    const both = found([selected("a"), named("y"), selected("b")], { a: ["z", "x"], b: ["x", "y", "w"] });
    assert.deepEqual(namesOf(both), ["x", "z", "y!", "w"]);
    assert.deepEqual(both.notes, ["2 objects that spec.targets[2] matches are left to others of spec.targets"]);
  });

  it("are not known where a stream is refused, which is said for that namespace alone", () => {
    const { members, unknown } = found([selected("a", ["one", "two"])], {});
    assert.deepEqual([members, unknown.map(({ namespace }) => namespace)], [[], ["one", "two"]]);
    assert.ok(unknown.every(({ problem }) => problem.reason === "Forbidden" && problem.healing === "event"));
  });

  it("may be five thousand; a target that goes beyond is left alone, and the others go on", () => {
    assert.equal(found([selected("a")], { a: many(5_000) }).members.length, 5_000);
    const { members, unknown } = found([named("x"), selected("a"), selected("b")], { a: many(5_001), b: ["y"] });
    assert.deepEqual([members.length, unknown.length], [2, 1]);
    assert.match(unknown[0]?.problem.message ?? "", /spec\.targets\[1\] the binding selects 5001 objects.*split it/);
  });

  it("may be fewer if their names are long: the record of all has to have room", () => {
    const { members, unknown } = found([selected("a")], { a: many(4_000, "x".repeat(240)) });
    assert.deepEqual([members.length, unknown[0]?.problem.reason], [0, "InvalidBinding"]);
  });

  it("are none where the installation closes a namespace, which is not watched, and is said", () => {
    const { members, closed, unknown, notes, dependencies } = found([selected("a", ["closed-0", "team"])], {
      a: ["x"],
    });
    assert.deepEqual(
      members.map(({ ref }) => ref),
      [{ resource: CONFIGMAPS, namespace: "team", name: "x" }],
    );
    assert.deepEqual([closed.map(({ namespace }) => namespace), unknown, dependencies.length], [["closed-0"], [], 1]);
    assert.deepEqual(notes, ["spec.targets[0] leaves out closed-0, where the installation lets it write nothing"]);
    const many = found([selected("a", ["closed-0", "closed-1", "closed-2", "closed-3", "closed-4"])], {});
    assert.match(many.notes.join(), /leaves out closed-0, closed-1, closed-2 and 2 more,/);
  });

  it("are not the Namespaces that it closes", () => {
    const namespaces = { ...CONFIGMAPS, kind: "Namespace", plural: "namespaces", namespaced: false };
    const target = { apiVersion: "v1", kind: "Namespace", selector: {}, fields: [] } as unknown as Target;
    const at = { resource: namespaces, objects: { names: undefined, labels: "a" }, namespaces: [undefined], refusedIn };
    const { members, closed } = found([{ target, at }], { a: ["closed-0", "team"] });
    assert.deepEqual(
      members.map(({ ref }) => ref),
      [{ resource: namespaces, name: "team" }],
    );
    assert.deepEqual(
      closed.map(({ name }) => name),
      ["closed-0"],
    );
  });

  it("are left alone where their names take too long to compare, or are too many patterns", () => {
    const before = found([named("x"), selected("a"), selected(HARD), selected("b")], {
      a: ["y"],
      [HARD]: ["z"],
      b: ["w"],
    });
    assert.deepEqual(namesOf(before), ["x!", "y"]);
    assert.deepEqual(
      before.unknown.map(({ problem }) => [problem.reason, problem.healing]),
      [
        ["InvalidBinding", "event"],
        ["InvalidBinding", "event"],
      ],
    );
    assert.match(before.unknown[0]?.problem.message ?? "", /spec\.targets\[2\] take too long to compare/);
    const withNames = (labels: string, count: number) => {
      const target = {
        ...selected(labels).target,
        selector: { names: many(count).map((name) => `${name}*`) },
      } as Target;
      return { ...selected(labels), target };
    };
    const { members, unknown } = found([withNames("a", 16), withNames("b", 112), withNames("c", 1)], {
      a: ["x"],
      b: ["y"],
      c: ["z"],
    });
    assert.deepEqual([members.length, unknown.length], [2, 1]);
    assert.match(unknown[0]?.problem.message ?? "", /more than 128 names with \* or \? together/);
  });
});
