/** When a binding adopts an object that it did not create, also if the object or the binding changes meanwhile. */
import assert from "node:assert/strict";
import type { SecretBinding, TargetStatus } from "../../../src/api/binding.ts";
import type { KubeObject, ObjectMeta, ObjectRef, Resource } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { JsonPatchOperation, Selectors } from "../../../src/kube/client.ts";
import { CONTROLLER, type Identity } from "../../../src/kube/identity.ts";
import { decideObject } from "../../../src/targets/create.ts";
import { acquires } from "../../../src/targets/prepared.ts";
import { Rejections } from "../../../src/targets/rejections.ts";
import { syncTarget } from "../../../src/targets/sync.ts";
import { CpuScheduler } from "../../../src/workqueue/cpu-scheduler.ts";
import { shape } from "../apply/managed.ts";
import { contextOf, dependenciesOf, fakeClient, immediately } from "../fakes.ts";
import { bindingOf, kubeObjectOf, recordOf, targetOf } from "../objects.ts";
import { CONFIGMAPS } from "../resources.ts";

const REF = { resource: CONFIGMAPS, namespace: "registry", name: "a" };
const WRONG_UID = new ApiError("PATCH /x", 422, "Invalid", {
  details: { causes: [{ message: 'Invalid value: "x": field is immutable', field: "metadata.uid" }] },
});
const OUTDATED = new ApiError("PATCH /x", 409, "Conflict");

/** One object, for which some requests are refused, and a binding with `adopt`. */
class World {
  live: KubeObject;
  binding: SecretBinding | undefined = bindingOf();
  /** Answers of the API server to the next dry runs and patches. */
  readonly previews: ApiError[] = [];
  readonly patches: (ApiError | (() => ApiError))[] = [];
  readonly sent: string[] = [];
  readonly events: string[] = [];
  waitMs = 0;
  /** The existing bindings by uid. */
  readonly others = new Map<string, string>();

  constructor(metadata: Partial<ObjectMeta> = {}) {
    this.live = kubeObjectOf({ metadata: { uid: "theirs", ...metadata }, data: { a: "1" } });
  }

  async *#bindings(list: string) {
    this.sent.push(`list ${list}`);
    yield this.binding === undefined ? [] : [this.binding as unknown as KubeObject];
  }

  async decide(record: Partial<TargetStatus> = {}, adopt: "Equal" | "Any" = "Equal") {
    const client = fakeClient({
      get: async (_: string, { resource }: ObjectRef) => {
        this.sent.push(`get ${resource.plural}`);
        return this.live;
      },
      list: (identity: Identity, { plural }: Resource, namespace: string, { fields = "" }: Selectors = {}) =>
        this.#bindings([identity === CONTROLLER ? "controller" : identity, plural, namespace, fields].join(" ")),
      may: async () => true,
      apply: async () => {
        this.sent.push("dry run");
        const refused = this.previews.shift();
        if (refused) throw refused;
        return this.live;
      },
      jsonPatch: async (_identity: string, _ref: ObjectRef, operations: JsonPatchOperation[]) => {
        const of = operations.slice(0, 2).map(({ value }) => value);
        this.sent.push(`patch ${of.join(" ")}`);
        const refused = this.patches.shift();
        if (refused) throw typeof refused === "function" ? refused() : refused;
        return { ...this.live, metadata: { ...this.live.metadata, resourceVersion: "9" } };
      },
    });
    const deps = dependenciesOf({
      client,
      contention: { mayWrite: () => this.waitMs, wrote: () => undefined, stateOf: () => undefined },
      rejections: new Rejections(),
      cpu: new CpuScheduler(),
      bindings: { competingClaims: () => immediately([]), keyOf: (uid: string) => this.others.get(uid) },
      propagation: { wrote: () => undefined },
      log: { info: () => undefined },
      events: { record: (_: unknown, { reason }: { reason: string }) => this.events.push(reason) },
    });
    const context = contextOf(deps, bindingOf(), "");
    const target = targetOf({ apiVersion: "v1", kind: "ConfigMap", name: "a", create: { adopt, manifest: {} } });
    const wanted = { target, ref: REF, plan: { fields: [], omitted: [] }, shape: shape(), missing: undefined };
    const prepared = await decideObject(context, wanted, recordOf(record));
    return { prepared, sync: () => syncTarget(context, prepared) };
  }
}

describe("an object to adopt", () => {
  it("is announced first without its uid, and written while the binding exists, in the version that was read", async () => {
    const world = new World();
    const { prepared, sync } = await world.decide();
    assert.deepEqual([acquires(prepared), prepared.record.created, prepared.record.uid], [true, true, undefined]);
    assert.deepEqual(world.sent, ["get configmaps", "dry run"]);
    const { record, problem } = await sync();
    assert.deepEqual(world.sent.splice(2), [
      "list controller secretbindings registry metadata.name=harbor-s3",
      "patch theirs 1",
    ]);
    assert.deepEqual([record.uid, record.created, problem, world.events], ["theirs", true, undefined, ["Adopted"]]);
  });

  for (const [what, error] of Object.entries({ uid: WRONG_UID, version: OUTDATED })) {
    it(`is decided again and adopted if its ${what} changes before the dry run`, async () => {
      const world = new World();
      world.previews.push(error);
      const { prepared } = await world.decide();
      assert.deepEqual(world.sent, ["get configmaps", "dry run", "get configmaps", "dry run"]);
      assert.ok(acquires(prepared));
    });

    it(`is decided again and adopted if its ${what} changes after it`, async () => {
      const world = new World();
      const { sync } = await world.decide();
      world.patches.push(() => {
        world.live = kubeObjectOf({ metadata: { uid: "another", resourceVersion: "5" }, data: { a: "2" } });
        return error;
      });
      const { record, problem } = await sync();
      assert.deepEqual(
        world.sent.filter((request) => request.startsWith("patch")),
        ["patch theirs 1", "patch another 5"],
      );
      assert.deepEqual([record.uid, problem], ["another", undefined]);
    });
  }

  it("is retried later if it changes all the time, and nothing is recorded as owned", async () => {
    const world = new World();
    world.previews.push(...Array<ApiError>(9).fill(OUTDATED));
    const { prepared } = await world.decide();
    assert.ok("problem" in prepared && prepared.problem.reason === "Unavailable");
    assert.deepEqual([prepared.record.created, prepared.record.uid], [undefined, undefined]);
  });

  it("is not written if the binding is gone, deleted, or another one by then", async () => {
    const [another, deleted] = [{ uid: "uid-2" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }];
    for (const binding of [undefined, bindingOf({ metadata: another }), bindingOf({ metadata: deleted })]) {
      const world = new World();
      world.binding = binding;
      const { problem } = await (await world.decide()).sync();
      assert.equal(problem?.reason, "Unavailable");
      assert.ok(!world.sent.some((request) => request.startsWith("patch")));
    }
  });

  it("is neither announced nor written while contention delays it", async () => {
    const world = new World();
    world.waitMs = 1_000;
    const { prepared, sync } = await world.decide({ created: true, uid: "former" });
    assert.deepEqual([acquires(prepared), prepared.record.created, prepared.record.uid], [false, undefined, undefined]);
    assert.equal((await sync()).requeueAfterMs, 1_000);
    assert.deepEqual(world.sent, ["get configmaps", "dry run"]);
  });

  it("is not owned because of a record that only announced it, if it can't be adopted", async () => {
    const world = new World({ ownerReferences: [{ uid: "boss", kind: "ConfigMap", name: "boss", controller: true }] });
    const { prepared } = await world.decide({ created: true }, "Any");
    assert.ok("problem" in prepared && prepared.problem.reason === "Conflict");
    assert.equal(prepared.record.created, undefined);
  });

  it("belongs to another binding by its label or owner reference, if that binding exists", async () => {
    const owner = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", name: "first", uid: "uid-first" };
    for (const marks of [{ labels: { "inlay.dev/created-by": "uid-first" } }, { ownerReferences: [owner] }]) {
      const world = new World(marks);
      assert.ok(acquires((await world.decide()).prepared), "a deleted binding prevents no adoption");
      world.others.set("uid-first", "blog/first");
      const { prepared } = await world.decide();
      assert.ok("problem" in prepared);
      assert.match(prepared.problem.message, /belongs to the SecretBinding blog\/first/);
      // No watch shows when that binding is deleted.
      assert.equal(prepared.problem.retryPolicy, "Slow");
    }
  });
});
