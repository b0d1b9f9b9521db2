/** What a release does to the objects that a binding wrote, when the binding is deleted or no longer names them. */
import assert from "node:assert/strict";
import type { Target, TargetStatus } from "../../../src/api/binding.ts";
import { Installation } from "../../../src/api/installation.ts";
import { CREATED_BY } from "../../../src/api/manifest.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import {
  releaseDeletedBinding,
  releaseModeOf,
  releasePaths,
  releaseRemovedTargets,
} from "../../../src/targets/release.ts";
import { entry, liveObject, OURS } from "../apply/managed.ts";
import { fakeClock } from "../clock.ts";
import { selectingTargetOf, targetOf } from "../objects.ts";
import { ACCOUNT, bindingWith, OTHER, PATH, ReleaseFixture, recordOf, removed, VALUE } from "../release.ts";
import { HARBORS, ROLES } from "../resources.ts";

const refused = (status: number, reason: string) => new ApiError("PATCH", status, reason);

const keptByArgocd = (name: string) =>
  `Warning Retained: did not remove spec.s3.key ("argocd") of HarborCluster registry/${name}: the field managers in parentheses own it too. Remove it from what they apply; if they only apply what they find in the cluster, remove it with: kubectl patch harborclusters.goharbor.io ${name} -n registry --type=json -p '[{"op":"remove","path":"/spec/s3/key"}]'`;

describe("a release", () => {
  const clock = fakeClock();
  let written: ReleaseFixture;
  beforeEach(() => {
    written = new ReleaseFixture();
  });
  afterEach(() => {
    const said = JSON.stringify([written.events, written.logged]);
    assert.ok(!said.includes(VALUE), said);
  });

  describe("of a deleted binding", () => {
    const release = async (records: TargetStatus[], binding = bindingWith(), since = Date.now()) =>
      (await releaseDeletedBinding(written.deps, binding, records, since)).records;

    it("removes values where onRelease is Remove, and only gives up ownership where it is Retain", async () => {
      written.put("gone");
      written.put("kept");
      const binding = bindingWith([
        targetOf({ name: "gone", onRelease: "Remove" }),
        targetOf({ name: "kept", onRelease: "Retain" }),
      ]);
      assert.deepEqual(await release([recordOf("gone"), recordOf("kept")], binding), []);
      assert.deepEqual([written.valueOf("gone"), written.valueOf("kept")], [undefined, VALUE]);
      for (const name of ["gone", "kept"]) assert.deepEqual(written.managersOf(name), ["kubectl"]);
      assert.deepEqual(written.events.toSorted(), [
        "Normal Removed: removed spec.s3.key of HarborCluster registry/gone",
        "Normal Retained: kept spec.s3.key of HarborCluster registry/kept; this binding no longer owns them",
      ]);
      assert.deepEqual(written.cluster.users, [ACCOUNT]);
    });

    it("keeps a value that others own too, even if they took it after it was read", async () => {
      const shared = [entry(OURS, [PATH]), entry("argocd", [PATH])];
      written.put("shared", shared);
      written.put("taken");
      let isTaken = false;
      written.cluster.intervene = ({ method, path }) => {
        if (isTaken || method !== "PATCH" || !path.includes("/taken")) return undefined;
        isTaken = true;
        written.put("taken", shared, { resourceVersion: "8" });
        return undefined;
      };
      assert.deepEqual(await release([removed("shared"), removed("taken")]), []);
      for (const name of ["shared", "taken"])
        assert.deepEqual([written.valueOf(name), written.managersOf(name)], [VALUE, ["argocd", "kubectl"]]);
      assert.deepEqual(written.events.toSorted(), ["shared", "taken"].map(keptByArgocd));
    });

    it("names at most five values that others own too, and prints no command that would be cut", async () => {
      const paths = Array.from({ length: 9 }, (_, at) => `spec.s3.${"long".repeat(20)}${at}`);
      written.put("shared", [entry(OURS, paths), entry("argocd", paths)]);
      const live = written.cluster.get(HARBORS, "shared") as KubeObject;
      const s3 = Object.fromEntries(paths.map((path) => [path.split(".").at(-1), VALUE]));
      written.cluster.put(HARBORS, Object.assign(live, { spec: { s3 } }));
      assert.deepEqual(await release([removed("shared", { paths })]), []);
      assert.match(
        written.events.join(),
        /^Warning Retained: did not remove (?:[^ ]+ \("argocd"\),? ){5}and 4 more of /,
      );
      assert.match(written.events.join(), /remove them by editing the object$/);
    });

    it("prints no command after names of field managers because of which an event would cut it", async () => {
      const managers = Array.from({ length: 3 }, (_, at) => `${at}`.repeat(128));
      const paths = ["a", "b", "c"].map((name) => `spec.s3.${name}`);
      written.put("owned", [entry(OURS, paths), ...managers.map((each) => entry(each, paths))]);
      const live = written.cluster.get(HARBORS, "owned") as KubeObject;
      written.cluster.put(HARBORS, Object.assign(live, { spec: { s3: { a: VALUE, b: VALUE, c: VALUE } } }));
      await release([removed("owned", { paths })]);
      assert.match(written.events.join(), /remove them by editing the object$/);
    });

    it("does not touch an object that was made again under the same name", async () => {
      written.put("again");
      const records = [removed("again", { uid: "uid-0" }), removed("again", { uid: "uid-0", created: true })];
      assert.deepEqual(await release(records), []);
      assert.deepEqual([written.cluster.writes, written.valueOf("again"), written.events], [[], VALUE, []]);
    });

    it("deletes an object that the binding created, or only removes its marks", async () => {
      for (const name of ["gone", "kept"]) written.putMade(name);
      // The status has no uid until the object is created: the label is enough.
      const { uid: _, ...noted } = removed("gone", { created: true });
      const binding = bindingWith([targetOf({ name: "kept", onRelease: "Retain" })]);
      assert.deepEqual(await release([noted, recordOf("kept", { created: true })], binding), []);
      const { cluster } = written;
      assert.deepEqual([cluster.get(HARBORS, "gone"), cluster.get(HARBORS, "kept")?.metadata.labels], [undefined, {}]);
      assert.deepEqual([written.valueOf("kept"), written.managersOf("kept")], [VALUE, ["kubectl"]]);
      assert.deepEqual(cluster.users, [ACCOUNT]);
      assert.deepEqual(written.events.toSorted(), [
        "Normal Removed: deleted HarborCluster registry/gone",
        "Normal Retained: kept HarborCluster registry/kept; this binding no longer owns it",
      ]);
    });

    it("keeps a value that is required, or whose index in a list may be another's, and reports it", async () => {
      written.put("required");
      const list = liveObject({ spec: { list: [{ token: VALUE }] } }, [entry("kubectl", ["spec.list"])]);
      written.cluster.put(HARBORS, { ...list, metadata: { ...list.metadata, name: "list" } });
      let refusals = 1;
      written.cluster.intervene = ({ method }) =>
        method === "PATCH" && refusals-- > 0 ? refused(422, "Invalid") : undefined;
      assert.deepEqual(await release([removed("required"), removed("list", { paths: ["spec.list[0].token"] })]), []);
      assert.deepEqual([written.valueOf("required"), written.managersOf("required")], [VALUE, ["kubectl"]]);
      const [ofList, ofRequired] = written.events.toSorted();
      assert.match(
        ofList ?? "",
        /^Warning ReleaseBlocked: kept spec\.list\[0\]\.token .*: others have changed the list/,
      );
      assert.match(
        ofRequired ?? "",
        /^Warning ReleaseBlocked: kept spec\.s3\.key .*: the object is not valid without them$/,
      );
    });

    it("counts everything of a kind that is gone as released", async () => {
      written.cluster.kinds = [];
      assert.deepEqual(await release([removed("a"), removed("b", { created: true })]), []);
      assert.deepEqual([written.cluster.writes, written.events], [[], []]);
    });

    it("discovers a kind again if the API server no longer knows it", async () => {
      await written.deps.discovery.byKind("goharbor.io/v1beta1", "HarborCluster");
      written.cluster.kinds = [];
      const records = [removed("a")];
      assert.deepEqual(await release(records), records);
      await clock.pass(2_000);
      assert.deepEqual(await release(records), []);
    });

    it("does not block others if it fails, and is abandoned with an event after a minute", async () => {
      for (const name of ["closed", "open"]) written.put(name);
      written.cluster.intervene = ({ method, path }) =>
        method === "PATCH" && path.includes("/closed") ? refused(403, "Forbidden") : undefined;
      const [closed, since] = [removed("closed"), Date.now()];
      assert.deepEqual(await release([closed, removed("open")], bindingWith(), since), [closed]);
      assert.equal(written.valueOf("open"), undefined);
      await clock.pass(59_999);
      assert.deepEqual(await release([closed], bindingWith(), since), [closed]);
      assert.deepEqual([written.events.length, written.logged.length], [1, 1]);
      await clock.pass(1);
      assert.deepEqual(await release([closed], bindingWith(), since), []);
      const why =
        "release abandoned after 60 s; values may remain in targets: ServiceAccount registry/inlay may not patch ";
      assert.ok(written.events[1]?.startsWith(`Warning ReleaseAbandoned: ${why}`), written.events[1]);
      const left =
        "spec.s3.key of this object (Forbidden); show what is left, and the command that removes it, with: npx inlay explain";
      assert.ok(written.events[2]?.includes(left), written.events[2]);
      const [line] = written.logged.slice(1) as [[object, string]];
      assert.deepEqual(line[0], { binding: "registry/harbor-s3", reason: "ReleaseAbandoned" });
      assert.equal(written.valueOf("closed"), VALUE);
    });

    it("keeps everything if the kind of bindings is being deleted, and only gives up objects that it owns", async () => {
      const ownerReferences = [{ uid: "uid-of-binding" }, { uid: "other" }];
      written.put("field");
      written.put("made", undefined, { labels: { [CREATED_BY]: "uid-of-binding" }, ownerReferences });
      written.isKindDeleted = undefined;
      const records = [
        removed("field"),
        removed("made", { created: true }),
        removed("made", { created: true, namespace: "team" }),
      ];
      assert.deepEqual(await release(records), records);
      assert.deepEqual(written.cluster.requests, []);
      written.isKindDeleted = true;
      assert.deepEqual(await release(records), []);
      assert.deepEqual(written.cluster.writes, ["PATCH made"]);
      assert.deepEqual(
        [written.valueOf("field"), written.managersOf("field")[0], written.valueOf("made")],
        [VALUE, OURS, VALUE],
      );
      assert.deepEqual(written.cluster.get(HARBORS, "made")?.metadata.ownerReferences, [{ uid: "other" }]);
      assert.match(written.events.at(-1) ?? "", /^Normal Retained: kept all values and objects/);
    });

    it("says what the garbage collector may delete if it can't give up an object within a minute of trying", async () => {
      written.isKindDeleted = true;
      written.putMade("made");
      written.cluster.intervene = ({ method }) => (method === "PATCH" ? refused(403, "Forbidden") : undefined);
      const binding = bindingWith();
      const longAgo = { ...binding, metadata: { ...binding.metadata, deletionTimestamp: "2025-01-01T00:00:00Z" } };
      const [made, since] = [removed("made", { created: true }), Date.now()];
      assert.deepEqual(await release([made, removed("field")], longAgo, since), [made]);
      await clock.pass(59_999);
      assert.deepEqual(await release([made], longAgo, since), [made]);
      await clock.pass(1);
      assert.deepEqual(await release([made], longAgo, since), []);
      const said =
        /^Warning ReleaseAbandoned: release abandoned after 60 s; the garbage collector may delete .*: HarborCluster registry\/made: /;
      assert.match(written.events.at(-1) ?? "", said);
    });

    it("waits until it is known whether the kind is being deleted, and abandons nothing in an outage before", async () => {
      const isOngoing = async () => {
        throw new ApiError("GET", 503, "ServiceUnavailable");
      };
      written.putMade("made");
      const deps = { ...written.deps, kindDeletions: { isOngoing } };
      const [made, since] = [removed("made", { created: true }), Date.now()];
      await clock.pass(600_000);
      const { records, problem } = await releaseDeletedBinding(deps, bindingWith(), [made], since);
      assert.deepEqual([records, problem?.reason, written.events], [[made], "Unavailable", []]);
    });

    it("counts the minute from the deletion by the API server's clock, and tries for five seconds at least", async () => {
      const hour = 3_600_000;
      let ahead = -hour;
      const deps = { ...written.deps, serverTime: () => Date.now() + ahead };
      written.put("closed");
      written.cluster.intervene = ({ method }) => (method === "PATCH" ? refused(403, "Forbidden") : undefined);
      const deletionTimestamp = new Date(Date.now() - hour).toISOString();
      const binding = bindingWith();
      const deleted = { ...binding, metadata: { ...binding.metadata, deletionTimestamp } };
      const isHeld = async (since: number) =>
        (await releaseDeletedBinding(deps, deleted, [removed("closed")], since)).records.length > 0;
      const since = Date.now();
      await clock.pass(59_999);
      assert.ok(await isHeld(since));
      await clock.pass(1);
      assert.ok(!(await isHeld(since)));
      ahead = 0;
      const later = Date.now();
      await clock.pass(4_999);
      assert.ok(await isHeld(later));
      await clock.pass(1);
      assert.ok(!(await isHeld(later)));
    });

    it("is abandoned after a minute for any error, and releases the others", async () => {
      const [broken, bug] = [removed("broken", { paths: ["spec["] }), removed("bug")];
      for (const name of ["bug", "open"]) written.put(name);
      written.cluster.intervene = ({ path }) => (path.includes("/bug") ? new RangeError(VALUE) : undefined);
      const since = Date.now();
      assert.deepEqual(await release([broken, removed("open"), bug], bindingWith(), since), [broken, bug]);
      assert.equal(written.valueOf("open"), undefined);
      await clock.pass(60_000);
      assert.deepEqual(await release([broken, bug], bindingWith(), since), []);
      assert.ok(written.events.at(-1)?.startsWith("Warning ReleaseAbandoned"), written.events.join());
    });

    it("does not impersonate a deleted account, except in other namespaces while the account's namespace is being deleted", async () => {
      written.put("a");
      written.put("a", undefined, { namespace: "team" });
      written.cluster.intervene = ({ path }) =>
        path.includes("/serviceaccounts/") ? refused(404, "NotFound") : undefined;
      const records = [removed("a"), removed("a", { namespace: "team" })];
      assert.deepEqual(await release(records), records);
      assert.deepEqual(written.cluster.users, []);
      written.endNamespace();
      assert.deepEqual(await release(records), []);
      assert.deepEqual([written.valueOf("a"), written.valueOf("a", "team")], [VALUE, undefined]);
    });

    it("impersonates the account if it can't find out whether the account exists", async () => {
      written.put("a");
      written.cluster.intervene = ({ path }) => (path.includes("/serviceaccounts/") ? refused(503, "Busy") : undefined);
      assert.deepEqual(await release([removed("a")]), []);
      assert.equal(written.valueOf("a"), undefined);
    });

    it("sends no request to a namespace that is being deleted or gone", async () => {
      written.endNamespace();
      written.cluster.intervene = ({ path }) => (path.includes("/harbor") ? refused(403, "Forbidden") : undefined);
      assert.deepEqual(await release([removed("a"), removed("a", { namespace: "gone" })]), []);
      assert.deepEqual([written.cluster.users, written.events], [[], []]);
    });

    it("reads no other Namespace if Inlay is installed for one", async () => {
      written.deps.installation = new Installation({ ownNamespace: "inlay-system", scope: "registry" });
      await release([removed("a"), removed("a", { namespace: "team" })]);
      const asked = written.cluster.requests.filter((request) => /\/namespaces\/\w+$/.test(request));
      assert.deepEqual(asked, ["controller GET /api/v1/namespaces/registry"]);
    });

    it("does not look up another namespace in which the binding never saw its object", async () => {
      const { uid: _, ...unseen } = removed("a", { namespace: "gone", created: true });
      written.cluster.intervene = ({ path }) => (path.includes("/harbor") ? refused(403, "Forbidden") : undefined);
      assert.deepEqual(await release([unseen]), [unseen]);
      assert.ok(written.cluster.requests.every((request) => !request.endsWith("/namespaces/gone")));
    });

    it("ignores kinds and paths in status that no binding can write", async () => {
      const forged = ["metadata.ownerReferences", "status.phase"];
      written.put("a", [entry(OURS, [...forged, PATH])], { ownerReferences: [{ uid: "owner" }] });
      const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role" };
      written.cluster.kinds = [HARBORS, ROLES];
      written.putMade("b", ROLES);
      await release([removed("a", { paths: forged, pendingPaths: [PATH] }), removed("b", { ...role, created: true })]);
      assert.deepEqual(written.cluster.get(HARBORS, "a")?.metadata.ownerReferences, [{ uid: "owner" }]);
      assert.deepEqual([written.valueOf("a"), written.cluster.writes], [undefined, ["PATCH a"]]);
    });
  });

  describe("mode", () => {
    const modeOf = (targets: Target[], onRelease: "Remove" | "Retain", more: Partial<TargetStatus> = {}) =>
      releaseModeOf(bindingWith(targets), recordOf("harbor", { onRelease, ...more }));
    const selecting = (onRelease: "Remove" | "Retain") => selectingTargetOf({ onRelease });
    const [removing, retaining] = [
      targetOf({ name: "harbor", onRelease: "Remove" }),
      targetOf({ name: "harbor", onRelease: "Retain" }),
    ];

    it("is that of the spec, even if the record has another", () => {
      assert.equal(modeOf([targetOf({ name: "other", onRelease: "Retain" }), removing], "Retain"), "Remove");
      assert.equal(modeOf([{ ...removing, namespace: "registry" }], "Retain"), "Remove");
      assert.equal(modeOf([removing], "Retain", { apiVersion: "goharbor.io/v1" }), "Remove");
      assert.equal(modeOf([selecting("Retain"), removing], "Retain"), "Remove");
    });

    it("is that of the selectors for the kind if they agree, else that of the record", () => {
      assert.equal(modeOf([selecting("Remove"), selecting("Remove")], "Retain"), "Remove");
      const inMany = { ...removing, namespaceSelector: {} };
      for (const selector of [selecting("Remove"), inMany])
        assert.equal(modeOf([selector, selecting("Retain")], "Retain"), "Retain");
    });

    it("is that of the record if the spec does not name the object, and Retain by default", () => {
      for (const other of [{ name: "other" }, { kind: "Registry" }, { namespace: "team" }])
        assert.equal(modeOf([{ ...retaining, ...other }], "Remove"), "Remove");
      assert.equal(releaseModeOf(bindingWith(), recordOf("harbor")), "Retain");
    });

    it("is Remove by default for an object that the binding created", () => {
      assert.equal(modeOf([targetOf()], "Retain", { created: true }), "Remove");
      assert.equal(modeOf([retaining], "Remove", { created: true }), "Retain");
      assert.equal(modeOf([targetOf()], "Remove"), "Retain");
    });
  });

  describe("of objects that a binding no longer names", () => {
    it("follows onRelease of each record, and does not touch an object that the binding still names", async () => {
      const records = [removed("gone"), recordOf("kept"), removed("named")] as const;
      for (const { name } of records) written.put(name);
      const run = written.contextOf(bindingWith([], [...records]));
      const named = run.binding.status?.targets?.slice(2);
      assert.deepEqual(await releaseRemovedTargets(run, new Set(named)), []);
      assert.deepEqual(
        records.map(({ name }) => written.valueOf(name)),
        [undefined, VALUE, VALUE],
      );
      assert.deepEqual([written.managersOf("kept"), written.managersOf("named")], [["kubectl"], [OURS, "kubectl"]]);
    });

    it("reports what can't be released yet, but not in a namespace that is being deleted", async () => {
      written.put("a");
      written.cluster.intervene = ({ method }) => (method === "PATCH" ? refused(503, "Busy") : undefined);
      const run = written.contextOf(bindingWith([], [recordOf("a")]));
      const [left] = await releaseRemovedTargets(run, new Set());
      assert.deepEqual([left?.record, left?.problem?.reason], [recordOf("a"), "Unavailable"]);
      written.endNamespace();
      assert.deepEqual(await releaseRemovedTargets(run, new Set()), []);
    });
  });

  describe("of some paths", () => {
    const release = (record: TargetStatus, keep: string) =>
      releasePaths(written.contextOf(bindingWith()), record, "Remove", new Set([keep]));

    it("keeps the others in the record and in managedFields", async () => {
      written.put("a", [entry(OURS, [PATH, OTHER])]);
      const { record, released } = await release(removed("a", { paths: [PATH, OTHER] }), OTHER);
      assert.deepEqual([record, released], [removed("a", { paths: [OTHER] }), true]);
      assert.equal(written.valueOf("a"), undefined);
      assert.deepEqual(written.cluster.get(HARBORS, "a")?.metadata.managedFields?.[0], entry(OURS, [OTHER]));
    });

    it("does not delete an object that the binding created", async () => {
      written.putMade("a");
      await release(removed("a", { created: true }), PATH);
      assert.deepEqual([written.valueOf("a"), written.managersOf("a")], [VALUE, ["kubectl"]]);
    });

    it("succeeds if the account lost its permissions because the namespace is being deleted", async () => {
      written.endNamespace();
      for (const [status, reason, isDone] of [
        [403, "Forbidden", true],
        [503, "Busy", false],
      ] as const) {
        written.cluster.intervene = ({ path }) => (path.includes("/harbor") ? refused(status, reason) : undefined);
        const { released, problem } = await release(removed("a"), OTHER);
        assert.deepEqual([released, problem === undefined], [isDone, isDone]);
      }
    });

    it("sends no request if there is nothing to release", async () => {
      const { released } = await release(removed("a"), PATH);
      assert.deepEqual([released, written.cluster.requests], [false, []]);
    });
  });
});
