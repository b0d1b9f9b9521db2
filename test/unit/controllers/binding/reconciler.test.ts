/** The reconcile loop: its requests, their order, and the status that it leaves. */

import assert from "node:assert/strict";
import { mock } from "node:test";
import { Installation } from "../../../../src/api/installation.ts";
import { STALLED_AFTER_MS } from "../../../../src/api/progress.ts";
import type { KindSchema } from "../../../../src/apimachinery/openapi.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { SECRET_GRANTS } from "../../../../src/apimachinery/resources.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { ProducedBy } from "../../../../src/sources/grant-rules.ts";
import type { WorkResult } from "../../../../src/workqueue/work-queue.ts";
import type { FakeCluster, ReconcileDependencies } from "../../cluster.ts";
import { placeOf } from "../../informers.ts";
import { dependentOf, rolloutSpecOf, targetOf } from "../../objects.ts";
import { BUCKET, KEY } from "../../observed-state.ts";
import { ReconcilerFixture, SECOND } from "../../reconciler.ts";
import { DEPLOYMENTS, HARBOR, SECRETS } from "../../resources.ts";

const READ_SOURCE = "inlay get secrets/bucket";
const read = (name = "harbor") => `inlay get harborclusters/${name}`;
const write = (name = "harbor") => `inlay apply harborclusters/${name}`;
const RELEASE = "inlay patch harborclusters/harbor";
const OURS = "inlay.dev/release";
const WRITE_STATUS = "- status secretbindings/harbor-s3";
const setFinalizers = (...names: string[]) => `- finalizers [${names}] secretbindings/harbor-s3`;
const [NEVER, BACKOFF] = [{ retry: "never" }, { retry: "backoff" }];
/** A reconcile that waits for a change, and else for the end of the minute after which the binding is Stalled. */
function assertWaits(result: WorkResult): void {
  assert.ok(result.retry === "after" && result.rateLimitGroup === undefined, JSON.stringify(result));
  assert.ok(result.ms > STALLED_AFTER_MS / 2 && result.ms <= STALLED_AFTER_MS, `${result.ms}`);
}
const unavailable = new ApiError("PATCH", 503, "ServiceUnavailable");
const invalid = new ApiError("PATCH", 422, "Invalid");

describe("a reconcile", () => {
  let loop: ReconcilerFixture;
  let cluster: FakeCluster;
  beforeEach(() => {
    loop = new ReconcilerFixture();
    cluster = loop.cluster;
  });
  const specOf = (ref = HARBOR) => cluster.find(ref)?.["spec"];

  describe("of a binding that is too large to be kept", () => {
    const LIST = "- list secretbindings/harbor-s3";
    beforeEach(async () => {
      await loop.sync();
      cluster.keepsStubs = true;
      cluster.excess = { limit: "bindingBytes", bytes: 2 * 1024 ** 2, fields: 1 };
    });

    it("reads it once, to report that, and changes nothing else of its status", async () => {
      const { targets } = loop.binding.status ?? {};
      for (let n = 0; n < 2; n++) assertWaits(await loop.reconcile());
      assert.deepEqual(cluster.takeRequests(), [LIST, WRITE_STATUS]);
      assert.deepEqual([loop.ready, cluster.events.at(-1)], [["False", "TooLarge"], "TooLarge"]);
      assert.deepEqual(
        loop.binding.status?.targets?.map(({ paths }) => paths),
        targets?.map(({ paths }) => paths),
      );
      loop.rotate("new");
      await loop.reconcile();
      assert.deepEqual(specOf(), { key: "old" });
    });

    it("waits for another large binding of its namespace at the rate of retries, and counts when it has reported", async () => {
      const { metadata, ...rest } = loop.binding;
      cluster.putBinding({ ...rest, metadata: { ...metadata, name: "other", uid: "uid-other" } });
      const waiting = { retry: "after", ms: 250, rateLimitGroup: "registry" };
      const reconcileBoth = () => Promise.all([loop.reconcile(), loop.reconcile("registry/other")]);
      const [first, second] = await reconcileBoth();
      assertWaits(first as WorkResult);
      assert.deepEqual([second, cluster.limited], [waiting, ["bindingBytes"]]);
      for (const each of await reconcileBoth()) assertWaits(each);
      assert.equal(cluster.limited.length, 2);
    });

    it("continues when there is room for it", async () => {
      await loop.reconcile();
      cluster.excess = undefined;
      loop.rotate("new");
      assert.deepEqual(await loop.reconcile(), { retry: "after", ms: 0 });
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.ready], [{ key: "new" }, ["True", "Synced"]]);
    });

    it("releases it when it is deleted, by the records in its status, and keeps the finalizers of others", async () => {
      loop.edit({ defaults: { ...loop.binding.spec.defaults, onRelease: "Remove" } });
      loop.delete("others", OURS);
      cluster.takeRequests();
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeWrites(), [LIST, RELEASE, setFinalizers("others")]);
      assert.deepEqual(specOf(), {});
    });
  });

  describe("of a binding without room for its status", () => {
    const refuses = (isRefused: boolean) => {
      if (isRefused) cluster.refused.set(WRITE_STATUS, new ApiError("PUT", 413, "RequestEntityTooLarge"));
      else cluster.refused.clear();
    };

    it("writes nothing that the status can't announce, reports that once, and does not retry", async () => {
      refuses(true);
      for (let n = 0; n < 3; n++) assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual([specOf(), cluster.events, cluster.limited], [{}, ["TooLarge"], ["statusBytes"]]);
      assert.ok(cluster.takeRequests().filter((each) => each === WRITE_STATUS).length <= 3);
      loop.edit({});
      refuses(false);
      await loop.reconcile();
      assert.deepEqual(loop.ready, ["True", "Synced"]);
    });

    it("still releases it when it is deleted", async () => {
      await loop.sync();
      loop.edit({ defaults: { ...loop.binding.spec.defaults, onRelease: "Remove" } });
      loop.delete(OURS);
      refuses(true);
      cluster.refused.set(RELEASE, unavailable);
      assert.deepEqual(await loop.reconcile(), BACKOFF);
      cluster.refused.delete(RELEASE);
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual([specOf(), loop.binding.metadata.finalizers], [{}, []]);
    });
  });

  describe("that writes", () => {
    it("reads and writes as the binding's account, and records in the status what it writes before it does so", async () => {
      assert.deepEqual(await loop.reconcile(), NEVER);
      const before = [setFinalizers(OURS), WRITE_STATUS];
      assert.deepEqual(cluster.takeRequests(), [READ_SOURCE, read(), ...before, write(), WRITE_STATUS]);
      const paths = cluster.statuses.map(({ targets = [] }) => targets.map((each) => [each.pendingPaths, each.paths]));
      assert.deepEqual(paths, [[[["spec.key"], undefined]], [[undefined, ["spec.key"]]]]);
      assert.deepEqual([specOf(), loop.ready], [{ key: "old" }, ["True", "Synced"]]);
    });

    it("announces the writes of many targets in one status, and reports them in another", async () => {
      const refs = Array.from({ length: 100 }, (_, at) => ({ ...HARBOR, name: `harbor-${at}` }));
      for (const ref of refs) cluster.put(ref, { spec: {} });
      loop.edit({ targets: refs.map(({ name }) => targetOf({ name })) });
      await loop.reconcile();
      assert.deepEqual([cluster.statuses.length, loop.ready], [2, ["True", "Synced"]]);
    });

    it("writes large targets in batches, and announces each batch first", async () => {
      const refs = Array.from({ length: 64 }, (_, at) => ({ ...HARBOR, name: `harbor-${at}` }));
      for (const ref of refs) cluster.put(ref, { spec: { large: "x".repeat(1024 ** 2) } });
      loop.edit({ targets: refs.map(({ name }) => targetOf({ name })) });
      await loop.reconcile();
      const announced = cluster.statuses.map(({ targets = [] }) => targets.filter((each) => each.pendingPaths).length);
      assert.equal(announced.pop(), 0);
      assert.equal(
        announced.reduce((sum, each) => sum + each, 0),
        64,
      );
      // No target is added to 16 MiB. On a slow machine, some of the 32 targets that are prepared at once are added later than others.
      assert.ok(
        announced.every((each) => each <= 15 + 32),
        `${announced}`,
      );
    });

    it("keeps the record of a write whose answer was lost, and finds the write done in the next reconcile", async () => {
      cluster.lost.add(write());
      assert.deepEqual(await loop.reconcile(), BACKOFF);
      assert.deepEqual(loop.records[0]?.pendingPaths, ["spec.key"]);
      cluster.takeRequests();
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeRequests(), [READ_SOURCE, read(), WRITE_STATUS]);
      assert.deepEqual([loop.records[0]?.pendingPaths, loop.records[0]?.paths], [undefined, ["spec.key"]]);
    });

    it("adds its finalizer before it writes anything that a deletion must release, and keeps other finalizers", async () => {
      const { metadata, ...rest } = loop.binding;
      cluster.putBinding({ ...rest, metadata: { ...metadata, finalizers: ["example.com/audit"] } });
      await loop.reconcile();
      const before = [setFinalizers("example.com/audit", OURS), WRITE_STATUS];
      assert.deepEqual(cluster.takeWrites(), [...before, write(), WRITE_STATUS]);
    });

    it("records which paths of which objects it names, and leaves the paths of an older binding to that", async () => {
      const who = { key: "registry/first", account: "first", createdAt: "2026-01-01T00:00:00Z" };
      cluster.competing.push({
        ...who,
        paths: ["spec.key"],
        held: true,
        pending: false,
        passed: false,
        created: false,
        isOlder: true,
      });
      assertWaits(await loop.reconcile());
      assert.deepEqual(cluster.named, [{ ref: HARBOR, paths: new Set(["spec.key"]) }]);
      assert.deepEqual([specOf(), loop.reasons], [{}, ["harbor Conflict"]]);
      cluster.competing.pop();
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.reasons], [{ key: "old" }, ["harbor Synced"]]);
    });

    for (const [error, reason, result] of [
      [unavailable, "Unavailable", BACKOFF],
      [invalid, "Rejected", { retry: "after", ms: 30_000, rateLimitGroup: "registry" }],
    ] as const)
      it(`writes the other targets if one fails as ${reason}, and returns when to retry`, async () => {
        loop.edit({ targets: [targetOf(), targetOf({ name: "second" })] });
        cluster.refused.set(write(), error);
        assert.deepEqual(await loop.reconcile(), result);
        assert.deepEqual([specOf(), specOf(SECOND)], [{}, { key: "old" }]);
        assert.deepEqual(loop.reasons, [`harbor ${reason}`, "second Synced"]);
        assert.deepEqual([loop.status.synced, loop.ready], ["1/2", ["False", reason]]);
      });

    it("reports a failure in an event when it begins, and not at each retry", async () => {
      cluster.refused.set(write(), invalid);
      await loop.reconcile();
      await loop.reconcile();
      assert.deepEqual(cluster.events, ["Rejected"]);
    });

    it("reads and writes targets in several rounds if they are large together", async () => {
      const names = Array.from({ length: 60 }, (_, index) => `large-${index}`);
      const megabyte = "x".repeat(1024 * 1024);
      for (const name of names) cluster.put({ ...HARBOR, name }, { spec: { megabyte } });
      loop.edit({ targets: names.map((name) => targetOf({ name })) });
      await loop.reconcile();
      const verbs = cluster.takeRequests().map((request) => request.split(" ")[1]);
      const rounds = verbs.filter((verb, index) => verb !== verbs[index - 1]);
      const round = ["get", "status", "apply"];
      assert.deepEqual(rounds, ["get", "finalizers", ...round.slice(1), ...round, "status"]);
      assert.equal(loop.status.synced, "60/60");
      assert.ok(cluster.statuses.every(({ targets }) => targets?.length === names.length));
    });
  });

  describe("of a binding that was reconciled before", () => {
    it("makes no request if nothing has changed, or only the status of a target", async () => {
      await loop.sync();
      assert.deepEqual(await loop.reconcile(), NEVER);
      const seen = cluster.informers.objects.get(placeOf(HARBOR));
      assert.ok(seen !== undefined);
      cluster.informers.objects.set(placeOf(HARBOR), { ...seen, resourceVersion: "999" });
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeRequests(), []);
    });

    it("makes no request while its watch does not show the write yet, nor when it does", async () => {
      cluster.lags = true;
      await loop.sync();
      await loop.reconcile();
      cluster.catchUp();
      await loop.reconcile();
      assert.deepEqual(cluster.takeRequests(), []);
    });

    it("writes a new value without reading the target again", async () => {
      await loop.sync();
      loop.rotate("new");
      await loop.reconcile();
      assert.deepEqual(cluster.takeRequests(), [READ_SOURCE, write()]);
      assert.deepEqual(specOf(), { key: "new" });
    });

    it("reverts a target that another client changed, and reads no other target", async () => {
      loop.edit({ targets: [targetOf(), targetOf({ name: "second" })] });
      await loop.sync();
      cluster.put(SECOND, { spec: { key: "theirs" } });
      await loop.reconcile();
      assert.deepEqual(cluster.takeRequests(), [READ_SOURCE, read("second"), write("second")]);
      assert.deepEqual(specOf(SECOND), { key: "old" });
    });

    it("checks its targets again, once, after its results have expired, also during a reconcile", async () => {
      let expires = false;
      const of = async () => {
        if (expires) loop.expire();
        expires = false;
        return undefined;
      };
      loop.restart({ schemas: { of, renew: async () => false, revision: 0 } });
      await loop.sync();
      loop.expire();
      expires = true;
      for (const requests of [[READ_SOURCE, read()], [READ_SOURCE, read()], []]) {
        await loop.reconcile();
        assert.deepEqual(cluster.takeRequests(), requests);
      }
    });

    it("reads everything again, once, for a new text of the annotation, and writes only that it did so", async () => {
      await loop.sync();
      const { lastTransitionTime } = loop.status.conditions?.[0] ?? {};
      loop.annotate({ "inlay.dev/refresh": "now" });
      for (const requests of [[READ_SOURCE, read(), WRITE_STATUS], []]) {
        await loop.reconcile();
        assert.deepEqual(cluster.takeRequests(), requests);
      }
      assert.deepEqual([loop.status.lastHandledRefresh, loop.ready], ["now", ["True", "Synced"]]);
      assert.equal(loop.status.conditions?.[0]?.lastTransitionTime, lastTransitionTime);
      const written = cluster.statuses.length;
      loop.annotate({});
      await loop.reconcile();
      assert.deepEqual([cluster.statuses.length, loop.status.lastHandledRefresh], [written, "now"]);
    });

    it("records a request also while it is suspended", async () => {
      loop.edit({ suspend: true });
      loop.annotate({ "inlay.dev/refresh": "now" });
      await loop.reconcile();
      assert.deepEqual([loop.status.lastHandledRefresh, loop.ready], ["now", ["Unknown", "Suspended"]]);
    });

    it("is Stalled after a minute with the same problem, with one write and no read, until the problem is fixed", async () => {
      cluster.delete(HARBOR);
      await loop.reconcile();
      cluster.takeRequests();
      loop.age(STALLED_AFTER_MS - 2_000);
      const { ms = 0 } = (await loop.reconcile()) as { ms?: number };
      assert.ok(ms > 0 && ms <= 2_000, `${ms}`);
      assert.deepEqual([loop.progress, cluster.takeRequests()], ["Reconciling", []]);
      loop.age(2_000);
      for (let n = 0; n < 2; n++) assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual([loop.progress, cluster.takeRequests()], ["Stalled", [WRITE_STATUS]]);
      // A controller that has just started keeps it.
      loop.restart({});
      await loop.reconcile();
      assert.deepEqual([loop.progress, cluster.takeRequests().includes(WRITE_STATUS)], ["Stalled", false]);
      cluster.put(HARBOR, { spec: {} });
      await loop.reconcile();
      assert.deepEqual([loop.progress, loop.ready], [undefined, ["True", "Synced"]]);
    });

    it("is not Stalled for a field that a newer schema has", async () => {
      let published: KindSchema = { root: { type: "object", properties: {} }, resolve: () => undefined };
      const renew = async () => {
        const isNewer = Object.keys(published.root.properties ?? {}).length === 0;
        const properties = { spec: { type: "object", properties: { key: { type: "string" } } } } as const;
        published = { ...published, root: { type: "object", properties } };
        return isNewer;
      };
      loop.restart({ schemas: { of: async () => published, renew, revision: 0 } });
      loop.rotate("new");
      assert.deepEqual(await loop.reconcile(), { retry: "after", ms: 0 });
      assert.deepEqual([loop.progress, specOf(), cluster.takeWrites()], [undefined, {}, []]);
      await loop.reconcile();
      assert.deepEqual([loop.ready, specOf()], [["True", "Synced"], { key: "new" }]);
    });

    describe("of a field that no schema has", () => {
      beforeEach(() => {
        const root = { type: "object", properties: { spec: { type: "object", properties: {} } } } as const;
        loop.restart({
          schemas: { of: async () => ({ root, resolve: () => undefined }), renew: async () => false, revision: 0 },
        });
        mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 0, 1) });
      });
      afterEach(() => mock.timers.reset());

      it("is Stalled when a schema would have been published, also after another change of the spec", async () => {
        for (const path of ["spec.kee", "spec.kei"]) {
          loop.edit({ targets: [targetOf({ fields: [{ path, from: { source: "bucket", key: "key" } }] })] });
          const written = cluster.statuses.length;
          assert.deepEqual(await loop.reconcile(), { retry: "after", ms: 1_500 });
          mock.timers.tick(1_000);
          assert.deepEqual(await loop.reconcile(), { retry: "after", ms: 500 });
          assert.equal(cluster.statuses.length, written);
          mock.timers.tick(500);
          await loop.reconcile();
          assert.deepEqual([loop.ready, loop.progress], [["False", "UnknownField"], "Stalled"]);
        }
      });
    });

    it("is Stalled after a minute if Inlay does not process it, for a reason that a user must fix", async () => {
      loop.restart({ actorOf: () => new Problem("ImpersonationForbidden", "use another account") });
      await loop.reconcile();
      loop.age(STALLED_AFTER_MS);
      cluster.takeRequests();
      assert.deepEqual([await loop.reconcile(), loop.progress], [NEVER, "Stalled"]);
      assert.deepEqual(cluster.takeRequests(), [WRITE_STATUS]);
    });

    it("makes no request while a target is missing, and writes to it once it is created", async () => {
      cluster.delete(HARBOR);
      assertWaits(await loop.reconcile());
      assert.deepEqual(loop.reasons, ["harbor TargetNotFound"]);
      cluster.takeRequests();
      await loop.reconcile();
      assert.deepEqual(cluster.takeRequests(), []);
      cluster.put(HARBOR, { spec: {} });
      await loop.reconcile();
      assert.deepEqual(specOf(), { key: "old" });
    });

    it("releases a target that the spec names no longer, and keeps its record and the finalizer until then", async () => {
      loop.edit({ targets: [targetOf({ onRelease: "Remove" })] });
      await loop.sync();
      loop.edit({ targets: [targetOf({ name: "second" })] });
      cluster.refused.set(RELEASE, unavailable);
      assert.deepEqual(await loop.reconcile(), BACKOFF);
      assert.deepEqual([specOf(), loop.reasons], [{ key: "old" }, ["second Synced", "harbor Unavailable"]]);
      assert.deepEqual(loop.binding.metadata.finalizers, [OURS]);
      cluster.refused.clear();
      cluster.takeRequests();
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeWrites(), [RELEASE, WRITE_STATUS]);
      assert.deepEqual([specOf(), loop.reasons], [{}, ["second Synced"]]);
      loop.edit({ targets: [] });
      await loop.reconcile();
      assert.deepEqual(cluster.takeWrites(), ["inlay patch harborclusters/second", setFinalizers(), WRITE_STATUS]);
    });
  });

  describe("with a source that a SecretGrant permits for a composition", () => {
    const grant = { resource: SECRET_GRANTS, namespace: "registry", name: "harbors" };
    const spec = { from: [{ composition: "harbors" }], to: [{ kind: "Secret", name: "bucket" }] };
    let answer: ProducedBy;
    const start = () => loop.restart({ compositionOf: () => answer });

    beforeEach(async () => {
      cluster.put(grant, { spec });
      const { uid = "", resourceVersion = "" } = cluster.find(grant)?.metadata ?? {};
      cluster.informers.objects.set(placeOf(grant), { uid, resourceVersion, generation: 1, spec });
      answer = { by: "harbors" };
      start();
      loop.edit({ sources: [{ secret: { name: "bucket", granted: true }, onMissing: "Remove" }] });
      await loop.sync();
    });

    it("reads and removes nothing until the composition of the binding is known, and then writes", async () => {
      answer = "unknown";
      loop.rotate("new");
      assert.deepEqual(await loop.reconcile(), BACKOFF);
      assert.deepEqual(cluster.takeRequests(), [WRITE_STATUS]);
      assert.deepEqual([specOf(), loop.ready], [{ key: "old" }, ["False", "Unavailable"]]);
      answer = { by: "harbors" };
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.ready], [{ key: "new" }, ["True", "Synced"]]);
    });

    it("waits and reports nothing while the composition of the binding is being computed", async () => {
      answer = "pending";
      start();
      loop.rotate("new");
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeRequests(), []);
      assert.deepEqual([specOf(), loop.ready], [{ key: "old" }, ["True", "Synced"]]);
      answer = { by: "harbors" };
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.ready], [{ key: "new" }, ["True", "Synced"]]);
    });

    it("removes the value once no composition generates the binding, and says that the value must be rotated", async () => {
      answer = "none";
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.ready], [{}, ["False", "GrantWithdrawn"]]);
    });

    it("keeps the result of a controller that has just started and does not know the composition yet", async () => {
      answer = "unknown";
      start();
      await loop.reconcile();
      assert.deepEqual(specOf(), { key: "old" });
      answer = { by: "harbors" };
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.ready], [{ key: "old" }, ["True", "Synced"]]);
      assert.ok(!cluster.takeRequests().includes(write()));
    });
  });

  it("says once why the account can't be used, also for the rollout, and names the account that exists", async () => {
    const { discovery } = cluster.dependencies();
    const byKind = async (_: string, kind: string) => (kind === "Deployment" ? DEPLOYMENTS : HARBOR.resource);
    loop.restart({ discovery: { ...discovery, byKind } });
    const bytes = (text: string) => Buffer.from(text).toString("base64");
    const key = { resource: SECRETS, namespace: "inlay-system", name: "inlay-digest-key" };
    cluster.put(key, { data: { primary: bytes("one"), one: bytes("0".repeat(32)) } });
    const core = { uid: "uid-core", resourceVersion: "5", generation: 1, workload: dependentOf({}).workload };
    cluster.informers.objects.set("registry/deployments/core", core);
    const targets = [{ apiVersion: "apps/v1", kind: "Deployment", name: "core" }];
    loop.edit({ serviceAccountName: "rotator", rollout: rolloutSpecOf({ targets }) });
    await loop.reconcile();
    assert.deepEqual(
      loop.status.problems?.map(({ reason }) => reason),
      ["ServiceAccountNotFound"],
    );
    assert.match(loop.status.problems?.[0]?.message ?? "", /inlay exists: set serviceAccountName to inlay, or /);
    const rolledOut = loop.status.conditions?.find(({ type }) => type === "RolledOut");
    assert.equal(rolledOut?.message, "see the condition Ready");
  });

  describe("that does nothing", () => {
    it("waits for a watch that is not in sync", async () => {
      cluster.informers.pend(placeOf(BUCKET));
      assert.deepEqual([await loop.reconcile(), cluster.takeRequests()], [NEVER, []]);
      assert.ok(cluster.informers.watchedBy(KEY).includes(placeOf(BUCKET)));
      cluster.informers.sync(placeOf(BUCKET));
      await loop.reconcile();
      assert.deepEqual(specOf(), { key: "old" });
    });

    it("waits until the account of a generated binding is known", async () => {
      loop.restart({ actorOf: () => undefined });
      assert.deepEqual([await loop.reconcile(), cluster.takeRequests()], [NEVER, []]);
      assert.deepEqual(cluster.informers.watchedBy(KEY), []);
    });

    const closed = new Installation({ ownNamespace: "registry" });
    const refused = new Problem("ImpersonationForbidden", "use another account");
    const held: [what: string, spec: object, parts: Partial<ReconcileDependencies>, ready: [string, string]][] = [
      ["is suspended", { suspend: true }, {}, ["Unknown", "Suspended"]],
      ["is in a closed namespace", {}, { installation: closed }, ["False", "ForbiddenNamespace"]],
      ["may not use its account", {}, { actorOf: () => refused }, ["False", "ImpersonationForbidden"]],
    ];
    for (const [what, spec, parts, expected] of held)
      it(`says that the binding ${what}, watches nothing, and keeps what was written and its record`, async () => {
        await loop.sync();
        const before = loop.records;
        loop.restart(parts);
        loop.edit({ ...spec, targets: [] });
        loop.rotate("new");
        const result = await loop.reconcile();
        if (expected[1] === "ImpersonationForbidden") assertWaits(result);
        else assert.deepEqual(result, NEVER);
        assert.deepEqual(cluster.takeRequests(), [WRITE_STATUS]);
        assert.deepEqual([specOf(), loop.records, loop.ready], [{ key: "old" }, before, expected]);
        assert.deepEqual(cluster.informers.watchedBy(KEY), []);
        await loop.reconcile();
        assert.deepEqual(cluster.takeRequests(), []);
      });

    it("writes what changed in the meantime once a binding is no longer suspended", async () => {
      await loop.sync();
      loop.edit({ suspend: true });
      await loop.reconcile();
      loop.rotate("new");
      loop.edit({ suspend: false });
      await loop.reconcile();
      assert.deepEqual([specOf(), loop.ready], [{ key: "new" }, ["True", "Synced"]]);
    });

    it("adds the finalizer to a suspended binding again if it has something to release", async () => {
      await loop.sync();
      loop.edit({ suspend: true });
      const { metadata, ...rest } = loop.binding;
      cluster.putBinding({ ...rest, metadata: { ...metadata, finalizers: [] } });
      await loop.reconcile();
      assert.deepEqual(cluster.takeRequests(), [setFinalizers(OURS), WRITE_STATUS]);
    });
  });

  describe("of a deleted binding", () => {
    const FOREGROUND = "foregroundDeletion";
    beforeEach(async () => {
      loop.edit({ targets: [targetOf({ onRelease: "Remove" })] });
      await loop.sync();
    });

    it("releases what it wrote before it removes its finalizer, and no other finalizer", async () => {
      loop.delete(FOREGROUND, OURS);
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeWrites(), [RELEASE, setFinalizers(FOREGROUND)]);
      assert.deepEqual(specOf(), {});
    });

    it("keeps its finalizer while a target can't be released, and reports why", async () => {
      loop.delete(OURS);
      cluster.refused.set(RELEASE, unavailable);
      assert.deepEqual(await loop.reconcile(), BACKOFF);
      assert.deepEqual(cluster.takeWrites(), [RELEASE, WRITE_STATUS]);
      cluster.refused.clear();
      assert.deepEqual(await loop.reconcile(), NEVER);
      assert.deepEqual(cluster.takeWrites(), [RELEASE, setFinalizers()]);
    });

    it("makes no request if only other finalizers keep it", async () => {
      loop.delete(FOREGROUND);
      assert.deepEqual([await loop.reconcile(), cluster.takeRequests()], [NEVER, []]);
    });

    it("watches nothing once it is gone", async () => {
      cluster.bindings.delete(KEY);
      assert.deepEqual([await loop.reconcile(), cluster.takeRequests()], [NEVER, []]);
      assert.deepEqual(cluster.informers.watchedBy(KEY), []);
    });

    describe("whose name a new binding has", () => {
      it("releases what the former binding wrote before it writes for the new one", async () => {
        loop.recreate("second");
        assert.deepEqual(await loop.reconcile(), NEVER);
        const before = [RELEASE, setFinalizers(OURS), WRITE_STATUS];
        assert.deepEqual(cluster.takeWrites(), [...before, write("second"), WRITE_STATUS]);
        assert.deepEqual([specOf(), specOf(SECOND)], [{}, { key: "old" }]);
      });

      it("writes for the new binding while the former can't be released, and writes again what is then released", async () => {
        cluster.lags = true;
        loop.recreate("harbor");
        loop.rotate("new");
        cluster.refused.set(RELEASE, unavailable);
        assert.deepEqual(await loop.reconcile(), BACKOFF);
        assert.deepEqual([specOf(), loop.ready], [{ key: "new" }, ["True", "Synced"]]);
        cluster.refused.clear();
        cluster.takeRequests();
        assert.deepEqual(await loop.reconcile(), NEVER);
        assert.deepEqual(cluster.takeWrites().slice(0, 1), [RELEASE]);
        assert.deepEqual(specOf(), { key: "new" });
      });
    });
  });
});
