/** What a binding sees in its watches, and which changes requeue it. */
import assert from "node:assert/strict";
import type { ObjectRef, Version } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { impersonationRefused } from "../../cache/list-watch.ts";
import { type FakeInformers, placeOf, version } from "../../informers.ts";
import { bindingOf, recordOf, targetOf } from "../../objects.ts";
import {
  ACCOUNT,
  BUCKET,
  copying,
  type Given,
  IDENTITY,
  inRegistry,
  KEY,
  ObservedStateFixture,
  only,
} from "../../observed-state.ts";
import { ACCOUNTS, CONFIGMAPS, DEPLOYMENTS, HARBOR, SECRETS } from "../../resources.ts";

const SHARED: ObjectRef = { resource: SECRETS, namespace: "storage", name: "shared" };
const GRANTS = "storage/secretgrants";
const NOTHING_KNOWN: ReadonlyMap<ObjectRef, Version> = new Map();
const allows = (name: string) => ({ from: [{ namespace: "registry" }], to: [{ kind: "Secret", name }] });

describe("the observed state of a binding", () => {
  let informers: FakeInformers;
  let show: ObservedStateFixture["show"];
  let look: ObservedStateFixture["look"];
  beforeEach(() => {
    const viewing = new ObservedStateFixture();
    informers = viewing.informers;
    show = (...shown) => viewing.show(...shown);
    look = (given) => viewing.look(given);
  });

  it("watches the account, the sources, the targets and the workloads", () => {
    look({ workloads: [{ identity: IDENTITY, ref: inRegistry(DEPLOYMENTS, "core") }] });
    const own = ["registry/serviceaccounts/inlay", "registry/secrets/bucket", "registry/harborclusters/harbor"];
    assert.deepEqual(informers.watchedBy(KEY), [...own, "registry/deployments/core"]);
  });

  it("watches a source in another namespace only once a SecretGrant there permits it", () => {
    look({ sources: [SHARED] });
    assert.ok(informers.watchedBy(KEY).includes(GRANTS));
    assert.ok(!informers.watchedBy(KEY).includes("storage/secrets/shared"));
    informers.objects.set(`${GRANTS}/to-registry`, { ...version("1"), spec: allows("shared") });
    look({ sources: [SHARED] });
    assert.ok(informers.watchedBy(KEY).includes("storage/secrets/shared"));
  });

  it("watches a source that a SecretGrant permits for a composition only for bindings of that composition", () => {
    const spec = { ...allows("shared"), from: [{ composition: "harbors" }] };
    informers.objects.set(`${GRANTS}/shared`, { ...version("1"), spec });
    const isWatched = (composition: NonNullable<Given["composition"]>) => {
      look({ sources: [SHARED], composition });
      return informers.watchedBy(KEY).includes("storage/secrets/shared");
    };
    assert.deepEqual([{ by: "harbors" }, { by: "other" }, "none" as const, "unknown" as const].map(isWatched), [
      true,
      false,
      false,
      false,
    ]);
  });

  it("is pending until every watch except those of workloads is in sync", () => {
    const workloads = [{ identity: IDENTITY, ref: inRegistry(DEPLOYMENTS, "core") }];
    const sources = [BUCKET, SHARED];
    const needed = [...[ACCOUNT, BUCKET, HARBOR].map(placeOf), GRANTS];
    for (const place of needed) {
      informers.pend(place);
      assert.equal(look({ sources, workloads }).pending, true, place);
      informers.sync(place);
    }
    informers.pend("registry/deployments/core");
    assert.equal(look({ sources, workloads }).pending, false);
  });

  describe("reports a problem", () => {
    const reasonOf = (problem: Problem | undefined) => problem && [problem.reason, problem.retryPolicy];

    it("of the account, if it does not exist or the controller may not watch it", () => {
      assert.equal(look().account, undefined);
      informers.refuse(placeOf(ACCOUNT));
      assert.deepEqual(reasonOf(look().account), ["Forbidden", "OnChange"]);
      informers.sync(placeOf(ACCOUNT));
      show(ACCOUNT, undefined);
      assert.deepEqual(reasonOf(look().account), ["ServiceAccountNotFound", "OnChange"]);
      assert.match(look().account?.message ?? "", /kubectl create serviceaccount inlay -n registry/);
    });

    it("of an account with a name of its own, which the controller may not impersonate until a Role allows it", () => {
      const account = inRegistry(ACCOUNTS, "deployer");
      informers.refuse(placeOf(account));
      assert.deepEqual(reasonOf(look({ account }).account), ["ImpersonationForbidden", "OnChange"]);
    });

    it("of a source or target that the account may not watch, with the verbs that each needs", () => {
      for (const [ref, verbs] of [
        [BUCKET, "get,list,watch "],
        [HARBOR, "get,list,watch,patch "],
      ] as const) {
        informers.refuse(placeOf(ref));
        const problem = look().problemOf(ref);
        assert.deepEqual(reasonOf(problem), ["Forbidden", "OnChange"]);
        assert.ok(problem?.message.includes(`--verb=${verbs}`), problem?.message);
      }
    });

    it("of a reference that could not be resolved, and none of an object that is only missing", () => {
      const unresolved = new Problem("KindNotFound", "no such kind");
      show(HARBOR, undefined);
      assert.equal(look().problemOf(unresolved), unresolved);
      assert.equal(look().problemOf(HARBOR), undefined);
    });

    it("of the targets that may own workloads, if one of them is not known", () => {
      show(HARBOR, version("3", 1, "uid-harbor"));
      const { uids, problem } = look().owners();
      assert.deepEqual([[...uids], problem], [["uid-harbor"], undefined]);
      informers.refuse(placeOf(HARBOR));
      assert.equal(look().owners().problem?.reason, "Forbidden");
      const unresolved = new Problem("KindNotFound", "no such kind");
      assert.equal(look({ at: unresolved }).owners().problem, unresolved);
    });
  });

  describe("shows of an object", () => {
    it("the newer of the version in the watch and the version that the controller knows", () => {
      const stream = version("9");
      show(HARBOR, stream);
      assert.equal(look().shown(HARBOR), stream);
      assert.equal(look().shown(HARBOR, version("8")), stream);
      const ours = version("10");
      assert.equal(look().shown(HARBOR, ours), ours);
    });

    it("what the watch shows if the object was recreated or deleted, or has versions that are not numbers", () => {
      const recreated = version("9", 1, "uid-2");
      show(HARBOR, recreated);
      assert.equal(look().shown(HARBOR, version("10")), recreated);
      const opaque = version("abc");
      show(HARBOR, opaque);
      assert.equal(look().shown(HARBOR, version("def")), opaque);
      show(HARBOR, undefined);
      assert.equal(look().shown(HARBOR, version("10")), undefined);
    });
  });

  describe("takes a target for unchanged", () => {
    /** The version that counts as unchanged since version 3 of generation 1. */
    function unchangedSince(seen: Version, binding = copying(), at: ObjectRef = HARBOR): Version | undefined {
      show(at, seen);
      const view = look({ binding, at });
      const { target, ref } = only(view);
      return view.unchanged(target, ref, version("3", 1));
    }
    const withField = (path: string) =>
      bindingOf({ spec: { targets: [targetOf({ fields: [{ path, from: { source: "bucket" } }] })] } });

    it("if only its status changed, and then shows its current version", () => {
      const now = version("4", 1);
      assert.equal(unchangedSince(now), now);
      assert.equal(unchangedSince(version("4", 2)), undefined);
      assert.equal(unchangedSince(version("4", 1, "uid-2")), undefined);
    });

    it("by its resourceVersion, if its kind has no status, or the binding writes metadata or creates the object", () => {
      const now = version("4", 1);
      const config = inRegistry(CONFIGMAPS, "config");
      const made = bindingOf({ spec: { targets: [targetOf({ create: { manifest: {} } })] } });
      assert.equal(unchangedSince(now, copying(), config), undefined);
      assert.equal(unchangedSince(now, withField("metadata.labels.tier")), undefined);
      assert.equal(unchangedSince(now, withField('["metadata"].labels.tier')), undefined);
      assert.equal(unchangedSince(now, made), undefined);
      const same = version("3", 1);
      assert.equal(unchangedSince(same, copying(), config), same);
    });

    it("never while its watch fails", () => {
      informers.refuse(placeOf(HARBOR));
      assert.equal(unchangedSince(version("3", 1)), undefined);
    });
  });

  describe("has a fingerprint", () => {
    const fingerprint = (given: Given = {}, workloads = "", known = NOTHING_KNOWN) =>
      look(given).fingerprint(given.binding ?? copying(), known, workloads);

    const changes: [what: string, change: () => void][] = [
      ["a source", () => show(BUCKET, version("4"))],
      ["a source that is deleted", () => show(BUCKET, undefined)],
      ["a source whose stream fails", () => informers.refuse(placeOf(BUCKET))],
      ["the account", () => show(ACCOUNT, version("1", undefined, "uid-2"))],
      ["the generation of a target", () => show(HARBOR, version("4", 2))],
      ["a target that is re-created", () => show(HARBOR, version("4", 1, "uid-2"))],
      ["a target that is deleted", () => show(HARBOR, undefined)],
      ["a target whose stream fails", () => informers.refuse(placeOf(HARBOR))],
    ];
    for (const [what, change] of changes)
      it(`that changes with ${what}`, () => {
        const before = fingerprint();
        change();
        assert.notEqual(fingerprint(), before);
      });

    it("that changes when a stream is refused for another reason", () => {
      for (const ref of [ACCOUNT, BUCKET, HARBOR]) {
        informers.refuse(placeOf(ref), impersonationRefused());
        const before = fingerprint();
        informers.refuse(placeOf(ref));
        assert.notEqual(fingerprint(), before, ref.name);
      }
    });

    it("that changes with the binding itself", () => {
      assert.notEqual(fingerprint({ binding: copying({ resourceVersion: "8" }) }), fingerprint());
    });

    it("that changes with the reason why a target can't be resolved, and with the claims of older bindings", () => {
      const given = [{ at: new Problem("KindNotFound", "none") }, { at: new Problem("ForbiddenKind", "denied") }];
      const older = [{ key: "registry/first" }];
      assert.equal(new Set([{}, ...given, { older }].map((each) => fingerprint(each))).size, 4);
    });

    it("that changes with the workloads to restart", () => {
      assert.notEqual(fingerprint({}, "core"), fingerprint({}, ""));
    });

    it("that changes with a SecretGrant for a source of the binding, and with no other", () => {
      const given = { sources: [SHARED] };
      const before = fingerprint(given);
      informers.objects.set(`${GRANTS}/other`, { ...version("1"), spec: allows("other") });
      assert.equal(fingerprint(given), before);
      informers.objects.set(`${GRANTS}/shared`, { ...version("1"), spec: allows("shared") });
      assert.notEqual(fingerprint(given), before);
    });

    it("that changes with the composition of the binding, if a SecretGrant asks for it", () => {
      const spec = { ...allows("shared"), from: [{ composition: "harbors" }] };
      informers.objects.set(`${GRANTS}/shared`, { ...version("1"), spec });
      const answers = ["none", "unknown", { by: "harbors" }] as const;
      const fingerprints = (sources: ObjectRef[]) =>
        new Set(answers.map((composition) => fingerprint({ sources, composition }))).size;
      assert.deepEqual([fingerprints([SHARED]), fingerprints([BUCKET])], [3, 1]);
    });

    it("that changes with the objects that a selector matches, and with each of them", () => {
      const objects = { names: undefined, labels: "" };
      const at = { resource: HARBOR.resource, objects, namespaces: ["registry"], refusedIn: () => undefined };
      const another = { ...HARBOR, name: "harbor-2" };
      const fingerprints = new Set([fingerprint({ at })]);
      for (const change of [
        () => show(another, version("5", 1, "uid-2")),
        () => show(another, version("6", 2, "uid-2")),
        () => [another, HARBOR].map((ref) => show(ref, undefined)),
        () => informers.refuse("registry/harborclusters"),
      ]) {
        change();
        fingerprints.add(fingerprint({ at }));
      }
      assert.equal(fingerprints.size, 5);
    });

    it("that stays the same when only the status of a target changes", () => {
      const before = fingerprint();
      show(HARBOR, version("4", 1));
      assert.equal(fingerprint(), before);
    });

    it("that a write of the controller does not change again when the watch shows it", () => {
      const written = version("4", 2);
      const afterWrite = fingerprint({}, "", new Map([[HARBOR, written]]));
      assert.notEqual(afterWrite, fingerprint());
      show(HARBOR, written);
      assert.equal(fingerprint(), afterWrite);
    });
  });

  describe("has a state of each target", () => {
    const record = recordOf({ paths: ["spec.key"] });
    const stateOf = (given: Given = {}, recorded = record, isSynced = true) => {
      const view = look(given);
      const { target, ref } = only(view);
      return view.stateOf(target, ref, recorded, isSynced, view.shown(ref));
    };

    it("that changes with the target, the sources, the account, older bindings and the binding", () => {
      const [recreated, edited] = [copying({ uid: "uid-2" }), copying({ generation: 2 })];
      const given = [{}, { older: [{ key: "registry/first" }] }, { binding: recreated }, { binding: edited }];
      const states = new Set(given.map((each) => stateOf(each)));
      for (const ref of [HARBOR, BUCKET, ACCOUNT]) {
        show(ref, version("9", 2));
        states.add(stateOf());
      }
      assert.equal(states.size, 7);
    });

    it("that changes with what the record lists as written, and not with its outcome or the order of its fields", () => {
      const before = stateOf();
      assert.notEqual(stateOf({}, { ...record, paths: ["spec.other"] }), before);
      assert.equal(stateOf({}, { ...record, reason: "Conflict", message: "spec.key belongs to argocd" }), before);
      const { apiVersion, ...later } = record;
      assert.equal(stateOf({}, { ...later, apiVersion }), before);
    });

    it("that changes with the metadata of the target only while it is not synced", () => {
      const [synced, failed] = [stateOf(), stateOf({}, record, false)];
      show(HARBOR, version("4", 1));
      assert.equal(stateOf(), synced);
      assert.notEqual(stateOf({}, record, false), failed);
    });
  });
});
