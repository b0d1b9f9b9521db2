/** How an object that can't be created is reported, and how creations are announced. */
import assert from "node:assert/strict";
import type { TargetStatus } from "../../../src/api/binding.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { Problem, type Reason, UnintendedTarget } from "../../../src/apimachinery/problem.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { decideObject, failed, syncObject } from "../../../src/targets/create.ts";
import { acquires } from "../../../src/targets/prepared.ts";
import { Rejections } from "../../../src/targets/rejections.ts";
import { syncTarget } from "../../../src/targets/sync.ts";
import { liveObject, shape } from "../apply/managed.ts";
import { contextOf, dependenciesOf, fakeClient } from "../fakes.ts";
import { bindingOf, recordOf, targetOf } from "../objects.ts";
import { bindingWith, ReleaseFixture, recordOf as written } from "../release.ts";
import { HARBOR } from "../resources.ts";

const record = { apiVersion: "v1", kind: "Secret", name: "blog", reason: "Pending" };
const notMeant = new UnintendedTarget("InvalidBinding", "it is a source of this binding");

describe("an object that can't be created", () => {
  it("is a problem if the target names it", () => {
    assert.deepEqual(failed(record, notMeant), { record, problem: notMeant });
  });

  it("is only a note if a selector matched it, and can't have meant it", () => {
    const selected = { ...record, selected: true as const };
    assert.deepEqual(failed(selected, notMeant), { record: selected, note: "it is a source of this binding" });
    const problem = new Problem("Conflict", "it is another's");
    assert.deepEqual(failed(selected, problem), { record: selected, problem });
  });

  it("is excluded if a selector matched it and its namespace is being deleted, and retried", () => {
    const selected = { ...record, selected: true as const };
    const excluded = new UnintendedTarget("TargetNotFound", "namespace a is being deleted", "Slow");
    // Listed namespaces are not watched.
    assert.deepEqual(failed(selected, excluded), { record: selected, excluded, requeueAfterMs: 30_000 });
    assert.deepEqual(failed(record, excluded), { record, problem: excluded });
  });
});

describe("a selected object that can't be written", () => {
  it("is excluded while the namespace in which it was written is being deleted", async () => {
    const fixture = new ReleaseFixture();
    const run = fixture.contextOf(bindingWith());
    const selected = { ...written("a"), selected: true as const };
    const { uid: _, ...unseen } = selected;
    const outcome = async (record: TargetStatus, reason: Reason) => {
      const { problem, excluded } = await syncTarget(run, { record, problem: new Problem(reason, "") });
      return [problem?.reason, excluded?.reason];
    };
    assert.deepEqual(await outcome(selected, "Forbidden"), ["Forbidden", undefined]);
    fixture.endNamespace();
    for (const reason of ["Forbidden", "TargetNotFound"] as const) {
      assert.deepEqual(await outcome(selected, reason), [undefined, "TargetNotFound"]);
      assert.deepEqual(await outcome({ ...unseen, created: true }, reason), [undefined, "TargetNotFound"]);
      assert.deepEqual(await outcome(written("a"), reason), [reason, undefined]);
      // The account may not know whether the namespace exists.
      assert.deepEqual(await outcome(unseen, reason), [reason, undefined]);
    }
    assert.deepEqual(await outcome(selected, "Conflict"), ["Conflict", undefined]);
  });
});

describe("an object to create", () => {
  /** The decision for an object that does not exist. Its account may create it, or contention delays it. */
  async function decided(record: Partial<TargetStatus>, { may = true, waitMs = 0 } = {}) {
    const client = fakeClient({
      get: async () => {
        throw new ApiError("GET /x", 404, "NotFound");
      },
      may: async () => may,
    });
    const contention = { mayWrite: () => waitMs, stateOf: () => undefined };
    const context = contextOf(dependenciesOf({ client, contention }), bindingOf(), "");
    const target = targetOf({ create: { manifest: {} } });
    const wanted = { target, ref: HARBOR, plan: { fields: [], omitted: [] }, shape: shape(), missing: undefined };
    const prepared = await decideObject(context, wanted, recordOf(record));
    return { prepared, sync: () => ("whole" in prepared ? syncObject(context, prepared) : undefined) };
  }
  const gone = { created: true, uid: "uid-1", paths: ["spec.key"] };

  it("is announced before, also after a deletion", async () => {
    for (const before of [{}, gone]) {
      const { prepared } = await decided(before);
      assert.deepEqual([acquires(prepared), prepared.record.created, prepared.record.uid], [true, true, undefined]);
    }
  });

  it("is not announced if its account may not create it", async () => {
    const { prepared } = await decided({}, { may: false });
    assert.ok("problem" in prepared && prepared.problem.reason === "Forbidden");
    assert.equal(prepared.record.created, undefined);
    assert.equal((await decided(gone, { may: false })).prepared.record.uid, "uid-1");
  });

  it("is neither announced nor created while contention delays it", async () => {
    for (const before of [{}, gone]) {
      const { prepared, sync } = await decided(before, { waitMs: 1_000 });
      assert.deepEqual([acquires(prepared), prepared.record.created], [false, undefined]);
      const outcome = await sync();
      assert.ok(typeof outcome === "object" && outcome.record.created === undefined);
      assert.equal(outcome.requeueAfterMs, 1_000);
    }
  });

  it("stays announced while it is unknown whether it was created", async () => {
    const { prepared } = await decided({ created: true }, { may: false });
    assert.deepEqual([acquires(prepared), prepared.record.created], [false, true]);
  });

  it("waits for its announcement if it is deleted while it is corrected", async () => {
    const creations: string[] = [];
    let live: KubeObject | undefined = liveObject({ spec: { key: "old" } });
    const client = fakeClient({
      get: async () => {
        if (live === undefined) throw new ApiError("GET /x", 404, "NotFound");
        return live;
      },
      apply: async () => {
        live = undefined;
        throw new ApiError("PATCH /x", 404, "NotFound");
      },
      createObject: async () => {
        creations.push("created");
        return liveObject({});
      },
      may: async () => true,
    });
    const contention = { mayWrite: () => 0, stateOf: () => undefined, wrote: () => {} };
    const deps = dependenciesOf({ client, contention, rejections: new Rejections() });
    const context = contextOf(deps, bindingOf(), "");
    const target = targetOf({ create: { manifest: { metadata: { labels: { team: "a" } } } } });
    const wanted = { target, ref: HARBOR, plan: { fields: [], omitted: [] }, shape: shape(), missing: undefined };
    const prepared = await decideObject(context, wanted, recordOf(gone));
    assert.ok("whole" in prepared && prepared.decision.write && !acquires(prepared));
    const { record, problem } = await syncTarget(context, prepared);
    assert.deepEqual([creations, record.uid, problem?.reason], [[], "uid-1", "Unavailable"]);
  });
});
