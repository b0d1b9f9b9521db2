/** Which of several bindings that name a path of an object has precedence, and how the others react. */
import assert from "node:assert/strict";
import { bindingKey, type SecretBinding, type StoredBinding, type TargetStatus } from "../../../src/api/binding.ts";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../../../src/apimachinery/resources.ts";
import { holds } from "../../../src/apply/ownership.ts";
import { BindingStore } from "../../../src/cache/binding-store.ts";
import { ResourceStore } from "../../../src/cache/resource-store.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../src/kube/identity.ts";
import { deferToCompetingBinding } from "../../../src/targets/precedence.ts";
import type { TargetWithRecord } from "../../../src/targets/records.ts";
import { CpuScheduler } from "../../../src/workqueue/cpu-scheduler.ts";
import { entry, OURS } from "../apply/managed.ts";
import { FakeApi } from "../cache/api.ts";
import { settled } from "../clock.ts";
import { FakeCluster } from "../cluster.ts";
import { contextOf } from "../fakes.ts";
import { bindingOf, recordOf, targetOf } from "../objects.ts";
import { HARBOR } from "../resources.ts";

const STREAM = "- secretbindings *";
const [EARLY, LATE] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
const FIRST_MAY_PATCH = "first may patch harborclusters/harbor";
const WE_MAY_PATCH = "harbor-s3 may patch harborclusters/harbor";
const RELEASE = "harbor-s3 patch harborclusters/harbor";

interface Says {
  key?: string;
  createdAt?: string;
  paths?: string[];
  /** The record of the target in its status. */
  record?: Partial<TargetStatus>;
  onConflict?: "Fail" | "Force";
  /** The generation that its status observed. */
  observedGeneration?: number;
}

/** A binding that names paths of the HarborCluster registry/harbor, with an account of its own name. */
function naming({
  key = "registry/harbor-s3",
  createdAt = LATE,
  paths,
  record,
  onConflict,
  ...says
}: Says = {}): SecretBinding {
  const [namespace = "", name = ""] = key.split("/");
  const fields = paths?.map((path) => ({ path, from: { source: "bucket" } }));
  const target = targetOf({ namespace: "registry", ...(fields && { fields }), ...(onConflict && { onConflict }) });
  return bindingOf({
    metadata: { namespace, name, uid: `uid-of-${key}`, creationTimestamp: createdAt },
    spec: { serviceAccountName: name, targets: [target] },
    status: record && { targets: [recordOf(record)], ...says },
  });
}
const first = (says: Says = {}) => naming({ key: "registry/first", createdAt: EARLY, ...says });

describe("a binding whose target another binding names too", () => {
  let api: FakeApi;
  let store: BindingStore;
  let changed: string[];
  let cluster: FakeCluster;
  let version = 10;
  beforeEach(() => {
    api = new FakeApi();
    api.rights.add(STREAM);
    changed = [];
    const ignore = () => undefined;
    const bindings = new ResourceStore<StoredBinding>(api.transport, SECRET_BINDINGS, {
      failed: ignore,
      restarted: ignore,
    });
    store = new BindingStore(bindings, new CpuScheduler(() => 0));
    store.listen({ changed: (key) => changed.push(key), gone: ignore });
    cluster = new FakeCluster();
    const managedFields = [entry(OURS, ["spec.key", "spec.other"])];
    cluster.put(HARBOR, { spec: { key: "x", other: "y" } }, { managedFields });
  });
  afterEach(() => store.stop());

  const asObject = (binding: SecretBinding): KubeObject => ({ ...binding });

  async function created(...bindings: SecretBinding[]): Promise<void> {
    for (const each of bindings) api.objects.set(`${bindingKey(each)}/secretbindings`, [asObject(each)]);
    store.start();
    await settled();
  }

  async function watched(type: "MODIFIED" | "DELETED", binding: SecretBinding): Promise<void> {
    const metadata = { ...binding.metadata, resourceVersion: String(++version) };
    api.streams.get(STREAM)?.send(type, asObject({ ...binding, metadata }));
    await settled();
  }

  /** The outcome for the target of a binding. */
  function yielding(binding: SecretBinding, ref: TargetWithRecord["ref"] = HARBOR) {
    const { namespace = "", name } = binding.metadata;
    const context = contextOf(
      cluster.dependencies({ bindings: store }),
      binding,
      serviceAccountIdentity(namespace, name),
    );
    const [target] = binding.spec.targets;
    assert.ok(target !== undefined);
    return deferToCompetingBinding(context, { target, ref, record: binding.status?.targets?.[0] ?? recordOf() });
  }

  async function problemOf(binding: SecretBinding): Promise<Problem | undefined> {
    const yielded = await yielding(binding);
    return yielded !== undefined && "problem" in yielded ? yielded.problem : undefined;
  }

  /** The binding with precedence, from the message. */
  async function winnerOver(binding: SecretBinding): Promise<string | undefined> {
    return /the SecretBinding (\S+) has precedence/.exec((await problemOf(binding))?.message ?? "")?.[1];
  }

  it("does not write a path that an older binding names, and says which binding has it", async () => {
    const ours = naming();
    await created(ours, first());
    const problem = await problemOf(ours);
    assert.deepEqual([problem?.reason, problem?.retryPolicy], ["Conflict", "OnChange"]);
    assert.match(problem?.message ?? "", /SecretBinding registry\/first has precedence on spec\.key;/);
    assert.equal(await yielding(first()), undefined);
  });

  it("has precedence by namespace and then by name, if both were created in the same second", async () => {
    const bindings = ["registry/b", "registry/a", "registry-2/a"].map((key) => naming({ key }));
    await created(...bindings);
    const winners = await Promise.all(bindings.map(winnerOver));
    assert.deepEqual(winners, ["registry/a", undefined, "registry/a"]);
  });

  it("has precedence over older bindings if it created the object", async () => {
    const ours = naming({ record: { created: true, uid: "uid-harbor", paths: ["spec.key"] } });
    await created(ours, first());
    assert.equal(await winnerOver(ours), undefined);
    assert.equal(await winnerOver(first()), "registry/harbor-s3");
  });

  it("does not yield an object that it may have created, until it knows which one that is", async () => {
    const ours = naming({ record: { created: true } });
    await created(ours, first());
    assert.equal(await yielding(ours), undefined);
  });

  it("yields where one path is part of the other, and nowhere else", async () => {
    const ours = naming({ paths: ["spec.key"] });
    await created(ours, first({ paths: ["spec.keys"] }));
    assert.equal(await winnerOver(ours), undefined);
    for (const path of ["spec", "spec.key.id"]) {
      await watched("MODIFIED", first({ paths: [path] }));
      assert.equal(await winnerOver(ours), "registry/first", path);
    }
  });

  it("reconciles again when the older binding is deleted, and has the path then", async () => {
    const ours = naming();
    await created(ours, first());
    changed = [];
    await watched("DELETED", first());
    assert.deepEqual(changed, []);
    store.released("registry/first");
    assert.deepEqual(changed, ["registry/harbor-s3"]);
    assert.equal(await yielding(ours), undefined);
  });

  it("is blocked by an older binding that has not written the path only if its account may patch the object", async () => {
    const ours = naming();
    await created(ours, first());
    cluster.refused.set(FIRST_MAY_PATCH, new ApiError("POST", 503, "ServiceUnavailable"));
    assert.equal((await problemOf(ours))?.reason, "Unavailable");
    cluster.refused.set(FIRST_MAY_PATCH, new ApiError("POST", 403, "Forbidden"));
    assert.equal(await yielding(ours), undefined);
    cluster.refused.clear();
    cluster.denied.add(FIRST_MAY_PATCH);
    assert.equal(await yielding(ours), undefined);
  });

  it("checks each blocking account once, and at most sixteen accounts", async () => {
    const ours = naming({ paths: ["spec.key"] });
    const older = (n: number, paths: string[], serviceAccountName = `first-${n}`) => {
      const each = first({ key: `registry/first-${n}`, paths });
      return { ...each, spec: { ...each.spec, serviceAccountName } };
    };
    const shared = Array.from({ length: 5 }, (_, n) => older(n + 10, [`spec.key.of-${n}`], "first"));
    const own = Array.from({ length: 20 }, (_, n) => older(n + 20, ["spec.key"]));
    const mayPatch = (name: string) => `${name} may patch harborclusters/harbor`;
    await created(...shared, ...own, ours);
    const asked = [FIRST_MAY_PATCH, ...Array.from({ length: 15 }, (_, n) => mayPatch(`first-${n + 20}`))];
    for (const each of asked) cluster.denied.add(each);
    assert.equal(await yielding(ours), undefined);
    assert.deepEqual(cluster.takeRequests(), asked);
    cluster.denied.delete(mayPatch("first-34"));
    assert.equal(await winnerOver(ours), "registry/first-34");
  });

  it("checks no account if another binding owns the path, and names that one", async () => {
    const ours = naming();
    const holder = naming({ key: "registry/holder", createdAt: LATE, record: { paths: ["spec.key"] } });
    await created(first(), holder, ours);
    assert.equal(await winnerOver(ours), "registry/holder");
    assert.deepEqual(cluster.takeRequests(), [WE_MAY_PATCH]);
  });

  it("is blocked by an older binding that has written the path, whatever the account of that one may do", async () => {
    const ours = naming();
    await created(ours, first({ record: { uid: "uid-harbor", paths: ["spec.key"] } }));
    assert.equal(await winnerOver(ours), "registry/first");
    assert.ok(!cluster.requests.includes(FIRST_MAY_PATCH));
  });

  it("is blocked by a binding that was about to write the path only if its account may patch the object", async () => {
    const [ours, younger] = [first(), naming({ record: { reason: "Pending", pendingPaths: ["spec.key"] } })];
    await created(ours, younger);
    assert.equal(await winnerOver(ours), "registry/harbor-s3");
    cluster.denied.add(WE_MAY_PATCH);
    assert.equal(await yielding(ours), undefined);
  });

  it("is blocked by an older binding in a closed namespace only where that one has written", async () => {
    const ours = naming({ paths: ["spec.key", "spec.other"] });
    const closed = { key: "inlay-system/first", paths: ["spec.key", "spec.other"] };
    await created(ours, first(closed));
    assert.equal(await yielding(ours), undefined);
    await watched("MODIFIED", first({ ...closed, record: { uid: "uid-harbor", paths: ["spec.other"] } }));
    assert.match(
      (await problemOf(ours))?.message ?? "",
      /SecretBinding inlay-system\/first has precedence on spec\.other;/,
    );
  });

  it("has the path if an older binding that does not own it reports that it can't write it", async () => {
    const ours = naming();
    await created(ours, first());
    assert.equal(await winnerOver(ours), "registry/first");
    changed = [];
    await watched("MODIFIED", first({ record: { reason: "SourceNotFound" }, observedGeneration: 1 }));
    assert.deepEqual(changed.sort(), ["registry/first", "registry/harbor-s3"]);
    assert.equal(await yielding(ours), undefined);
    const held = { reason: "SourceNotFound", uid: "uid-harbor", paths: ["spec.key"] };
    await watched("MODIFIED", first({ record: held, observedGeneration: 1 }));
    assert.equal(await winnerOver(ours), "registry/first");
  });

  it("does not write a path that a younger binding owns, until that one is deleted", async () => {
    const ours = first();
    const younger = naming({ record: { uid: "uid-harbor", paths: ["spec.key"] } });
    await created(ours, younger);
    assert.equal(await winnerOver(ours), "registry/harbor-s3");
    assert.equal(await yielding(younger), undefined);
    changed = [];
    await watched("DELETED", younger);
    store.released("registry/harbor-s3");
    assert.deepEqual(changed, ["registry/first"]);
    assert.equal(await yielding(ours), undefined);
  });

  it("waits behind an older binding that waits for the same path, but not for another path of it", async () => {
    const ours = naming();
    const says = { paths: ["spec.key", "spec.other"], observedGeneration: 1 };
    await created(ours, first({ ...says, record: { reason: "Conflict", awaitedPaths: ["spec.key"] } }));
    assert.equal(await winnerOver(ours), "registry/first");
    await watched("MODIFIED", first({ ...says, record: { reason: "Conflict", awaitedPaths: ["spec.other"] } }));
    assert.equal(await yielding(ours), undefined);
  });

  it("does not write the path with onConflict: Force either", async () => {
    const ours = naming({ onConflict: "Force" });
    await created(ours, first());
    const problem = await problemOf(ours);
    assert.deepEqual([problem?.reason, problem?.retryPolicy], ["Contended", "OnChange"]);
  });

  it("does not show the other binding to an account without permission for the object", async () => {
    const ours = naming();
    await created(ours, first());
    cluster.denied.add(WE_MAY_PATCH);
    const problem = await problemOf(ours);
    assert.equal(problem?.reason, "Forbidden");
    assert.doesNotMatch(problem?.message ?? "", /first/);
  });

  it("yields nothing of a target that can't be resolved", async () => {
    const ours = naming();
    await created(ours, first());
    assert.equal(await yielding(ours, new Problem("KindNotFound", "no such kind")), undefined);
  });

  describe("that has written it", () => {
    const held = { uid: "uid-harbor", paths: ["spec.key", "spec.other"] };
    const isHeld = (path: string) => holds(cluster.find(HARBOR) as KubeObject, OURS, FieldPath.parse(path));

    /** An older binding that owns the paths that it names: both wrote at the same time. */
    const holding = (says: Says & { paths: string[] }) =>
      first({ ...says, record: { uid: "uid-harbor", paths: says.paths } });

    it("keeps it if an older binding names it later", async () => {
      const ours = naming({ record: held, paths: held.paths });
      await created(ours, first({ paths: ["spec.key"] }));
      assert.equal(await yielding(ours), undefined);
      assert.equal(await winnerOver(first({ paths: ["spec.key"] })), "registry/harbor-s3");
    });

    it("releases the path that an older binding owns too, leaves the value, and keeps the other paths", async () => {
      const ours = naming({ record: held, paths: held.paths });
      await created(ours, holding({ paths: ["spec.key"] }));
      const yielded = await yielding(ours);
      assert.deepEqual(
        yielded?.record,
        recordOf({ uid: "uid-harbor", paths: ["spec.other"], awaitedPaths: ["spec.key"] }),
      );
      assert.deepEqual(cluster.find(HARBOR)?.["spec"], { key: "x", other: "y" });
      assert.deepEqual(held.paths.map(isHeld), [false, true]);
      assert.deepEqual(cluster.events, ["Retained"]);
    });

    it("does the same with paths that it was about to write", async () => {
      const ours = naming({ record: { uid: "uid-harbor", pendingPaths: held.paths }, paths: held.paths });
      await created(ours, holding({ paths: ["spec.key"] }));
      assert.deepEqual(
        (await yielding(ours))?.record,
        recordOf({ uid: "uid-harbor", pendingPaths: ["spec.other"], awaitedPaths: ["spec.key"] }),
      );
      assert.deepEqual(held.paths.map(isHeld), [false, true]);
    });

    it("releases a path that it no longer names only together with one that it names", async () => {
      const ours = naming({ record: held, paths: ["spec.key"] });
      await created(ours, holding({ paths: ["spec.other"] }));
      assert.equal(await yielding(ours), undefined);
      await watched("MODIFIED", holding({ paths: held.paths }));
      assert.deepEqual((await yielding(ours))?.record, recordOf({ uid: "uid-harbor", awaitedPaths: ["spec.key"] }));
    });

    it("releases the paths of every older binding, and names the oldest", async () => {
      const ours = naming({ record: held, paths: held.paths });
      const second = holding({ key: "registry/alpha", createdAt: "2026-01-01T12:00:00Z", paths: ["spec.other"] });
      await created(ours, second, holding({ paths: ["spec.key"] }));
      assert.deepEqual((await yielding(ours))?.record, recordOf({ uid: "uid-harbor", awaitedPaths: held.paths }));
      assert.deepEqual(held.paths.map(isHeld), [false, false]);
      assert.equal(await winnerOver(ours), "registry/first");
    });

    it("keeps the path on record until it is released", async () => {
      const ours = naming({ record: held, paths: held.paths });
      await created(ours, holding({ paths: ["spec.key"] }));
      cluster.refused.set(RELEASE, new ApiError("PATCH", 503, "ServiceUnavailable"));
      const yielded = await yielding(ours);
      assert.deepEqual(yielded?.record, recordOf(held));
      assert.equal((await problemOf(ours))?.reason, "Unavailable");
    });
  });
});
