/** A thousand records fit into a status, and only some messages are dropped. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { TargetStatus } from "../../../src/api/binding.ts";
import { compact, expand } from "../../../src/api/status-records.ts";

function selected(name: string, more: Partial<TargetStatus> = {}): TargetStatus {
  const kind = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", namespace: "registry" };
  return { ...kind, name, uid: `uid-${name}`, reason: "Synced", paths: ["spec.a"], selected: true, ...more };
}
function named(name: string, more: Partial<TargetStatus> = {}): TargetStatus {
  const { selected: _, ...rest } = selected(name, more);
  return rest;
}

describe("the records of a status", () => {
  it("are grouped by state for selected objects, and stay single for named ones", () => {
    const { namespace: _n, name: _m, uid: _u, ...state } = named("a");
    assert.deepEqual(compact([named("x"), selected("a"), named("y"), selected("b"), selected("c", { paths: [] })]), [
      named("x"),
      { ...state, objects: ["registry/a uid-a", "registry/b uid-b"] },
      named("y"),
      { ...state, paths: [], objects: ["registry/c uid-c"] },
    ]);
  });

  it("need little room for a thousand objects with uids of their own", () => {
    const many = Array.from({ length: 1000 }, (_, index) => selected(`harbor-${index}`));
    assert.ok(JSON.stringify(compact(many)).length < 40 * many.length);
  });

  it("keep ten different messages of selected objects, all of named ones, and each reason", () => {
    const failed = (name: string) => ({ reason: "Conflict", message: `${name} is taken` });
    const names = Array.from({ length: 25 }, (_, index) => `harbor-${index}`);
    const stored = compact([
      ...names.map((name) => selected(name, failed(name))),
      ...names.map((name) => named(name, failed(name))),
    ]);
    const groups = stored.filter(({ objects }) => objects !== undefined);
    assert.equal(groups.filter(({ message }) => message !== undefined).length, 10);
    assert.equal(groups.length, 11);
    assert.equal(groups.at(-1)?.objects?.length, 15);
    assert.ok(groups.every(({ reason }) => reason === "Conflict"));
    assert.equal(stored.filter(({ name, message }) => name !== undefined && message !== undefined).length, 25);
  });

  it("store the common message of a thousand objects once", () => {
    const many = Array.from({ length: 1000 }, (_, index) =>
      selected(`harbor-${index}`, { message: "left out: spec.b" }),
    );
    assert.equal(compact(many).length, 1);
  });

  const text = fc.stringMatching(/^[a-z0-9:.-]{1,8}$/);
  const state = fc.record(
    {
      apiVersion: fc.constantFrom("v1", "apps/v1"),
      kind: fc.constantFrom("A", "B"),
      name: fc.oneof(text, fc.constant("a b"), fc.constant(" ")),
      namespace: text,
      uid: text,
      reason: fc.constantFrom("Synced", "Conflict", "Pending"),
      message: fc.stringMatching(/^[a-c]{0,3}$/),
      onRelease: fc.constantFrom("Retain" as const, "Remove" as const),
      paths: fc.array(fc.constantFrom("spec.a", "spec.b")),
      pendingPaths: fc.array(fc.constantFrom("spec.a", "spec.b")),
      selected: fc.constant(true as const),
    },
    { requiredKeys: ["apiVersion", "kind", "name", "reason"], noNullPrototype: true },
  );
  const sorted = (records: readonly TargetStatus[], withMessages = true) =>
    records
      .map(({ message, ...rest }) => JSON.stringify(Object.entries(withMessages ? { ...rest, message } : rest).sort()))
      .sort();

  it("are read as they were, except for their order and messages after the tenth", () => {
    fc.assert(
      fc.property(fc.array(state, { maxLength: 40 }), (records) => {
        const back = expand(compact(records));
        assert.deepEqual(sorted(back, false), sorted(records, false));
        const messages = new Set(records.flatMap((each) => (each.selected ? (each.message ?? []) : [])));
        if (messages.size <= 10) assert.deepEqual(sorted(back), sorted(records));
      }),
    );
  });

  it("are stored equally after they were read, also with the API server's order of keys", () => {
    fc.assert(
      fc.property(fc.array(state, { maxLength: 40 }), (records) => {
        const stored = JSON.parse(JSON.stringify(compact(records)));
        assert.deepEqual(compact(expand(stored)), stored);
      }),
    );
  });
});
