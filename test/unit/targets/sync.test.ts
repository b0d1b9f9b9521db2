/** The write of a target that others write at the same time: the decision is repeated for its new state. */
import assert from "node:assert/strict";
import type { TargetStatus } from "../../../src/api/binding.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, KubeObject, ManagedFieldsEntry, ObjectRef } from "../../../src/apimachinery/objects.ts";
import { MissingValue } from "../../../src/apimachinery/problem.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { decide } from "../../../src/apply/decide.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { ContentionBudget } from "../../../src/targets/contention-budget.ts";
import { Rejections } from "../../../src/targets/rejections.ts";
import { syncTarget } from "../../../src/targets/sync.ts";
import { entry, liveObject, OURS, shape } from "../apply/managed.ts";
import { contextOf, dependenciesOf, fakeClient } from "../fakes.ts";
import { bindingOf, recordOf } from "../objects.ts";
import { HARBOR } from "../resources.ts";

const PATH = "spec.a.b";
const record = (more: Partial<TargetStatus> = {}) => recordOf({ onRelease: "Retain", uid: "uid-1", ...more });

/** Changes of others right before each write, from the first on. */
type Meanwhile = { fields?: JsonObject; entries?: ManagedFieldsEntry[]; uid?: string };

/** Writes `new` to the path as the API server would: only to the current version. */
async function sync(meanwhile: Meanwhile[], ours: Partial<TargetStatus>) {
  const before = liveObject({ spec: { a: {} } });
  let now: KubeObject = before;
  let version = 7;
  const writes: { version: unknown; force: boolean }[] = [];
  const client = fakeClient({
    get: async () => now,
    apply: async (_i: string, _r: ObjectRef, _u: string, leaves: { metadata: JsonObject }, how: { force: boolean }) => {
      const change = meanwhile[writes.length];
      if (change !== undefined) {
        const object = liveObject(change.fields ?? { spec: { a: {} } }, change.entries);
        const resourceVersion = String(++version);
        now = { ...object, metadata: { ...object.metadata, uid: change.uid ?? "uid-1", resourceVersion } };
      }
      writes.push({ version: leaves.metadata["resourceVersion"], force: how.force });
      if (leaves.metadata["resourceVersion"] !== now.metadata.resourceVersion)
        throw new ApiError("PATCH /x", 409, "Conflict");
      const { spec } = leaves as unknown as { spec: JsonObject };
      return { ...now, spec, metadata: { ...now.metadata, resourceVersion: String(++version) } };
    },
  });
  const reasons: string[] = [];
  const deps = dependenciesOf({
    client,
    contention: new ContentionBudget(),
    rejections: new Rejections(),
    events: { record: (_: unknown, { reason }: { reason: string }) => reasons.push(reason) },
    propagation: { wrote() {} },
    log: { info() {} },
  });
  const fields = [{ path: FieldPath.parse(PATH), value: new SecretValue("new"), fromSecret: true }];
  const desired = { plan: { fields, omitted: [] }, shape: shape(), fieldManager: OURS, onConflict: "Fail" as const };
  const mine = record(ours);
  const decision = decide(desired, before, mine);
  const outcome = await syncTarget(contextOf(deps, bindingOf(), ""), {
    record: mine,
    ref: HARBOR,
    live: before,
    desired,
    decision,
  });
  return { outcome, writes, reasons };
}

const pendingPaths = { reason: "Pending", pendingPaths: [PATH] };

describe("a target that others change while it is written", () => {
  it("is read again and written at once", async () => {
    const { outcome, writes, reasons } = await sync([{}, {}], pendingPaths);
    assert.deepEqual(
      writes.map(({ version }) => version),
      ["7", "8", "9"],
    );
    assert.deepEqual(
      [outcome.problem, outcome.record.paths, outcome.record.pendingPaths],
      [undefined, [PATH], undefined],
    );
    assert.deepEqual(reasons, ["Written"]);
  });

  it("is retried later if the changes continue, after five writes", async () => {
    const { outcome, writes } = await sync(Array(9).fill({}), pendingPaths);
    assert.deepEqual(
      [writes.length, outcome.problem?.reason, outcome.record],
      [5, "Unavailable", record(pendingPaths)],
    );
  });

  it("is not written if the value is there by then, such as after an interrupted write", async () => {
    const done = { fields: { spec: { a: { b: "new" } } }, entries: [entry(OURS, [PATH])] };
    const { outcome, writes, reasons } = await sync([done], pendingPaths);
    const parents = ["spec.a", "spec"];
    const wanted = record({ reason: "Pending", paths: [PATH], parents });
    assert.deepEqual([writes.length, reasons, outcome.record], [1, [], wanted]);
  });

  it("is left to another manager that took the field", async () => {
    const taken = { fields: { spec: { a: { b: "theirs" } } }, entries: [entry("argocd", [PATH])] };
    const { outcome, writes } = await sync([taken], pendingPaths);
    assert.deepEqual([writes.length, outcome.problem?.reason], [1, "Conflict"]);
  });

  it("is retaken by force if it is recorded as owned", async () => {
    const taken = { fields: { spec: { a: { b: "theirs" } } }, entries: [entry("argocd", [PATH])] };
    const { outcome, writes } = await sync([taken], { paths: [PATH] });
    assert.deepEqual([writes.length, writes[1]?.force, outcome.problem], [2, true, undefined]);
  });

  it("is not written if the status must announce more first: a new object, or missing parents", async () => {
    for (const change of [{ uid: "uid-2" }, { fields: { spec: {} } }]) {
      const { outcome, writes } = await sync([change], pendingPaths);
      assert.deepEqual(
        [writes.length, outcome.problem?.reason, outcome.record],
        [1, "Unavailable", record(pendingPaths)],
      );
    }
  });
});

describe("a target whose write was interrupted", () => {
  const [list, optional] = ["spec.list[name=web].token", "spec.list[name=web].user"];
  const policy = { onMissing: "Wait", optional: true } as const;

  it("keeps a path on record that it may have written, while its value is missing", async () => {
    const live = liveObject({ spec: { list: [{ name: "web", token: "new", user: "old" }] } });
    const fields = [{ path: FieldPath.parse(list), value: new SecretValue("new"), fromSecret: true }];
    const omitted = [{ path: FieldPath.parse(optional), why: new MissingValue("KeyNotFound", "no key", policy) }];
    const desired = { plan: { fields, omitted }, shape: shape(), fieldManager: OURS, onConflict: "Fail" as const };
    const noted = record({ pendingPaths: [list, optional] });
    const decision = decide(desired, live, noted);
    const context = contextOf(dependenciesOf({ contention: new ContentionBudget() }), bindingOf(), "");
    const first = await syncTarget(context, { record: noted, ref: HARBOR, live, desired, decision });
    assert.deepEqual(first.record, record({ paths: [list], pendingPaths: [optional] }));
    const again = await syncTarget(context, { record: first.record, ref: HARBOR, live, desired, decision });
    assert.deepEqual(again.record, first.record);
  });
});
