/** Who is at an object, by what bindings say and record, and whom a change of that concerns. */
import assert from "node:assert/strict";
import type { StoredBinding, StoredRecord } from "../../../src/model/binding.ts";
import type { ObjectRef } from "../../../src/model/kube-object.ts";
import { Claims } from "../../../src/watch/claims.ts";
import { WIDGETS } from "../resources.ts";

const ref = (name: string, namespace?: string): ObjectRef => ({
  resource: WIDGETS,
  name,
  ...(namespace && { namespace }),
});

interface Says {
  namespace?: string;
  generation?: number;
  spec?: object;
  targets?: object[];
  records?: object[];
  deletionTimestamp?: string;
}

function binding(name: string, { namespace = "team", generation = 1, targets = [], records, ...more }: Says = {}) {
  const { spec, deletionTimestamp } = more;
  return {
    metadata: { name, namespace, uid: `uid-${name}`, generation, resourceVersion: "1", deletionTimestamp },
    spec: { serviceAccountName: "inlay", sources: [], targets, ...spec },
    ...(records && { status: { targets: records as StoredRecord[] } }),
  } as unknown as StoredBinding;
}
const target = (name: string, paths: string[], more: object = {}) => ({
  apiVersion: "example.com/v1beta1",
  kind: "Widget",
  name,
  fields: paths.map((path) => ({ path })),
  ...more,
});
const record = (more: object) => ({ apiVersion: "example.com/v1", kind: "Widget", reason: "Synced", ...more });

describe("claims", () => {
  let claims: Claims;
  beforeEach(() => {
    claims = new Claims();
  });
  const at = (name: string, namespace?: string) =>
    claims.at(ref(name, namespace)).map(({ key, paths, held }) => `${key} ${held ? "holds" : "names"} ${paths}`);

  it("are what targets name in the spec, of whatever version, and what is held by record", () => {
    claims.put(binding("a", { targets: [target("w", ["spec.a", "spec.b"])] }));
    claims.put(binding("b", { records: [record({ namespace: "team", name: "w", paths: ["spec.c"] })] }));
    assert.deepEqual(at("w", "team"), ["team/a names spec.a,spec.b", "team/b holds spec.c"]);
    assert.deepEqual(at("w", "other"), []);
    assert.deepEqual(at("x", "team"), []);
  });

  it("of selected objects are in the records that stand together", () => {
    claims.put(binding("a", { records: [record({ objects: ["one/w u1", "two/w u2"], paths: ["spec.a"] })] }));
    assert.deepEqual(at("w", "two"), ["team/a holds spec.a"]);
  });

  it("are the objects that the targets were found to be, until the spec is another", () => {
    claims.put(binding("a", { targets: [target("w", ["spec.a"])] }));
    claims.resolved("team/a", [
      { ref: ref("w"), paths: ["spec.a"] },
      { ref: ref("v"), paths: ["spec.b"] },
    ]);
    assert.deepEqual([at("w"), at("v"), at("w", "team")], [["team/a names spec.a"], ["team/a names spec.b"], []]);
    claims.put(binding("a", { generation: 2, targets: [target("w", ["spec.c"])] }));
    assert.deepEqual([at("w", "team"), at("v")], [["team/a names spec.c"], []]);
  });

  it("of what was about to be acquired count, unless that was refused", () => {
    const acquiring = { namespace: "team", name: "w", acquiring: ["spec.a"] };
    claims.put(binding("a", { records: [record({ ...acquiring, reason: "Unavailable" })] }));
    claims.put(binding("b", { records: [record({ ...acquiring, reason: "Forbidden" })] }));
    assert.deepEqual(at("w", "team"), ["team/a holds spec.a"]);
  });

  it("of who is suspended or about to go are what he holds", () => {
    const says = {
      targets: [target("w", ["spec.a", "spec.b"])],
      records: [record({ namespace: "team", name: "w", paths: ["spec.a"] })],
    };
    claims.put(binding("a", { ...says, spec: { suspend: true } }));
    claims.put(binding("b", { ...says, deletionTimestamp: "2026-01-02T03:04:05Z" }));
    assert.deepEqual(at("w", "team"), ["team/a holds spec.a", "team/b holds spec.a"]);
  });

  it("concern the others when an account that was refused is so no more", () => {
    const says = (reason: string) =>
      binding("a", { targets: [target("w", ["spec.a"])], records: [record({ namespace: "team", name: "w", reason })] });
    claims.put(binding("b", { targets: [target("w", ["spec.a"])] }));
    for (const [reason, concerned] of [
      ["Forbidden", ["team/b"]],
      ["Forbidden", []],
      ["Conflict", ["team/b"]],
      ["Synced", []],
    ] as const)
      assert.deepEqual([...claims.put(says(reason))], concerned, reason);
  });

  it("concern the others at an object where they change, and nobody else", () => {
    const first = binding("a", { targets: [target("w", ["spec.a"])] });
    assert.deepEqual([...claims.put(first)], []);
    assert.deepEqual([...claims.put(binding("b", { targets: [target("w", ["spec.b"])] }))], ["team/a"]);
    assert.deepEqual([...claims.put(binding("c", { targets: [target("v", ["spec.a"])] }))], []);
    assert.deepEqual([...claims.put(first)], []);
    assert.deepEqual([...claims.put(binding("a", { targets: [target("v", ["spec.a"])] }))].sort(), [
      "team/b",
      "team/c",
    ]);
    assert.deepEqual([...claims.remove("team/a")], ["team/c"]);
    assert.deepEqual([at("w", "team"), at("v", "team")], [["team/b names spec.b"], ["team/c names spec.a"]]);
  });
});
