/** Shows that only users who may write a Secret create, weaken or delete a binding that protects it. */
import assert from "node:assert/strict";
import { parse } from "yaml";
import { eventually } from "../controller/eventually.ts";
import {
  type Act,
  bucket,
  edit,
  type Guarded,
  guard,
  newGuarded,
  remove,
  removeCollection,
  removeEach,
  type Subject,
  untilProtectionWorks,
} from "../controller/guarded.ts";
import { secretText } from "../controller/leak-detector.ts";
import type { Rule } from "../controller/test-namespace.ts";

const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";
const will: Subject = { kind: "User", name: "will" };
const plain = { secret: { name: "bucket" } };
const unlabelled = (sources: object[], spec: object = {}) => ({ ...guard(sources, spec), metadata: { name: "guard" } });
const actAsInlay: Rule = {
  apiGroups: [""],
  resources: ["serviceaccounts"],
  resourceNames: ["inlay"],
  verbs: ["impersonate"],
};
const getSecrets: Rule = { apiGroups: [""], resources: ["secrets"], verbs: ["get"] };

describe("a binding that protects", function () {
  this.timeout("2m");
  before(untilProtectionWorks);

  describe("when it is created", () => {
    let guarded: Guarded;

    before(async () => {
      guarded = await newGuarded();
    });

    it("has the label that the policies select, and other bindings may not have the label", async () => {
      await guarded.letsCreate("edith", guard([bucket()]));
      await guarded.letsCreate("edith", unlabelled([plain]));
      const missing = /needs the label inlay.dev\/protects: "true": add it to metadata.labels/;
      await guarded.refusesToCreate("edith", unlabelled([bucket()]), missing);
      const other = guard([bucket()]);
      other.metadata.labels = { "inlay.dev/protects": "yes" };
      await guarded.refusesToCreate("edith", other, missing);
      const excess = /the label inlay.dev\/protects: "true" .*remove it from metadata.labels/;
      await guarded.refusesToCreate("edith", guard([plain]), excess);
    });

    it("requires permission to update and delete what it protects, and the refusal names the rule that gives it", async () => {
      const sources = [bucket(), { configMap: { name: "settings" }, protect: { writers: [will] } }];
      // Everything but the permission to write the source, and `more`.
      const grantRest = (who: string, ...more: Rule[]) =>
        Promise.all([
          guarded.mayBy(who, "view"),
          guarded.mayBy(who, "inlay-edit"),
          guarded.may(who, actAsInlay, getSecrets, ...more),
        ]);
      await Promise.all(
        sources.map(async (source, index) => {
          const who = `victor${index}`;
          await grantRest(who);
          const said = await guarded.refusesToCreate(who, guard([source]), /update and delete/);
          const rule = parse(said.match(/ with (\{.*\}) bound/)?.[1] ?? "") as Rule;
          const tryWith = async (verb: string) => {
            const half = `${who}-${verb}`;
            await grantRest(half, { ...rule, verbs: [verb] });
            await guarded.refusesToCreate(half, guard([source]), /update and delete/);
          };
          await Promise.all(["update", "delete"].map(tryWith));
          await guarded.may(who, rule);
          await guarded.letsCreate(who, guard([source]));
        }),
      );
    });

    it("is checked for each of the eight sources that it may protect, besides eight others", async () => {
      const who = "otto";
      const protectedOnes = Array.from({ length: 8 }, (_, i) => `protected-${i}`);
      const others = Array.from({ length: 8 }, (_, i) => ({ secret: { name: `other-${i}` } }));
      await guarded.mayBy(who, "inlay-edit");
      const verbs = ["update", "delete"];
      await guarded.may(who, actAsInlay, getSecrets, {
        ...{ apiGroups: [""], resources: ["secrets"], resourceNames: protectedOnes, verbs },
      });
      const source = (name: string) => ({ secret: { name }, protect: { writers: [will] } });
      const sources = protectedOnes.map(source);
      await guarded.letsCreate(who, guard([...others, ...sources]));
      const withForeign = sources.map((_, index) => guard([...others, ...sources.with(index, source("foreign"))]));
      const said = /otto .*update and delete secrets "foreign"/;
      await Promise.all(withForeign.map((one) => guarded.refusesToCreate(who, one, said)));
      await guarded.refusesToCreate(who, guard([...sources, source("ninth")]), /more than 8 sources have protect/);
    });

    it("has valid writers only: users, groups, and accounts of a namespace", async () => {
      const account: Subject = { kind: "ServiceAccount", name: "rotator", namespace: "vault" };
      await guarded.letsCreate("edith", guard([bucket(will, { kind: "Group", name: "a:b" }, account)]));
      await guarded.letsCreate("edith", guard([{ ...plain, protect: {} }]));
      const withNamespace = bucket({ ...will, namespace: "vault" });
      await guarded.refusesToCreate("edith", guard([withNamespace]), /only a ServiceAccount or a SecretBinding has/);
      const role = bucket({ ...will, kind: "Role" } as never);
      await guarded.refusesToCreate(
        "edith",
        guard([role]),
        /supported values: "User", "Group", "ServiceAccount", "SecretBinding"/,
      );
    });

    it("protects Secrets and ConfigMaps of its own namespace only", async () => {
      const service = { object: { apiVersion: "v1", resource: "services", name: "minio" } };
      const { namespace } = guarded.team;
      const elsewhere = ["default", namespace].flatMap((place) => [
        { secret: { name: "bucket", namespace: place } },
        { configMap: { name: "settings", namespace: place } },
      ]);
      const said = /protect needs a Secret or ConfigMap in the namespace/;
      for (const source of [service, ...elsewhere]) {
        await guarded.refusesToCreate("edith", guard([{ ...source, protect: {} }]), said);
      }
    });

    it("protects no source that is read by a SecretGrant", async () => {
      const said = /protect and granted/;
      for (const source of [
        { secret: { name: "bucket", granted: true } },
        { configMap: { name: "settings", granted: true } },
      ])
        await guarded.refusesToCreate("edith", guard([{ ...source, protect: {} }]), said);
    });
  });

  describe("when it exists", () => {
    let guarded: Guarded;

    before(async () => {
      guarded = await newGuarded();
      await guarded.protect(protecting);
      await guarded.mayBy("will", "edit");
    });

    const protecting = guard([bucket(will), { name: "again", secret: { name: "bucket" } }]);
    const refuses = (who: string, saying: RegExp, act: Act) =>
      guarded.refuses(who, saying, act, guarded.team.bindingPath("guard"));
    const kept = /edith .*protection, account or owners of SecretBinding "guard"/;

    const weakenings: Record<string, object> = {
      "add oneself to the writers": { spec: { sources: [bucket(will, { kind: "User", name: "edith" })] } },
      "remove a writer": { spec: { sources: [bucket()] } },
      "remove the protection": {
        metadata: { labels: { "inlay.dev/protects": null } },
        spec: { sources: [plain] },
      },
      "name another Secret instead": {
        spec: { sources: [{ secret: { name: "other" }, protect: { writers: [will] } }] },
      },
      "change its account": { spec: { serviceAccountName: "builder" } },
      "give it an owner that can be deleted": {
        metadata: { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "mine", uid: "a-uid" }] },
      },
    };
    it("does not allow that user to let a composition delete it, by its label or annotation", async () => {
      const said = /edith may not change the composition of SecretBinding "guard"/;
      const labels = { "inlay.dev/composition": "x", "inlay.dev/composition-binding": "x", "inlay.dev/claim-uid": "x" };
      const marks = Object.entries(labels).map(([key, value]): object => ({ labels: { [key]: value } }));
      for (const metadata of [...marks, { annotations: { "inlay.dev/claim": "x" } }])
        await refuses("edith", said, edit({ metadata }));
    });

    for (const [what, patch] of Object.entries(weakenings)) {
      it(`does not allow a user who may not write the Secret to ${what}`, () => refuses("edith", kept, edit(patch)));
    }

    it("is not deleted by a user who may not write the Secret, alone or with all others", async () => {
      const said = /edith .*delete SecretBinding "guard" .*secrets "bucket".*: cluster admins, User will/;
      for (const act of [remove, removeEach]) await refuses("edith", said, act);
      await assert.rejects(removeCollection(guarded.as("edith"), guarded.team.bindingPath("guard")), said);
    });

    it("keeps its label while it protects", async () => {
      const said = /needs the label inlay.dev\/protects/;
      const drop = edit({ metadata: { labels: { "inlay.dev/protects": null } } });
      for (const who of ["edith", "will"]) await refuses(who, said, drop);
      const dropAll = edit({ metadata: { labels: null } });
      await assert.rejects(dropAll(guarded.team.api, guarded.team.bindingPath("guard")), said);
    });

    it("is not replaced, also by server-side apply", async () => {
      const another = guard([bucket(will, { kind: "User", name: "edith" })]);
      await assert.rejects(guarded.triesToCreate("edith", another), /already exists/);
      const weaker = guard([bucket()]);
      const path = guarded.team.bindingPath("guard");
      const api = guarded.as("edith").dryRun;
      await assert.rejects(api.apply(path, weaker, "kubectl", true), kept);
      // As kubectl applies without --server-side.
      await assert.rejects(api.merge(path, weaker), kept);
      // The controller writes to it too. This refuses the version that was read, and the next version on a conflict.
      await eventually(async () => {
        const { metadata } = await api.get(path);
        await assert.rejects(api.replace(path, { ...weaker, metadata }), kept);
      });
    });

    it("allows every user who may write bindings to change all else, with labels and annotations", async () => {
      const targets = guard([]).spec.targets.map((each: object) => ({ ...each, name: "elsewhere" }));
      const api = guarded.as("edith").dryRun;
      for (const patch of [
        { spec: { targets } },
        { metadata: { labels: { team: "storage" }, annotations: { a: "b" } } },
      ]) {
        await api.merge(guarded.team.bindingPath("guard"), patch);
      }
    });

    it("refuses another binding that protects the same Secret without its writers", async () => {
      const another = guard([bucket()], {}, "another");
      const said = /edith .*protect secrets "bucket" .*SecretBinding "guard".*: cluster admins, User will/;
      await guarded.refusesToCreate("edith", another, said);
      await guarded.refusesToCreate("edith", guard([{ ...plain, protect: { writers: [will] } }], {}, "another"), said);
      await guarded.letsCreate("will", another);
      await guarded.letsCreate("edith", { ...unlabelled([plain]), metadata: { name: "reader" } });
    });

    it("allows its writers to change the protection, and to delete it", async () => {
      const own = await newGuarded();
      const path = own.team.bindingPath("guard");
      await own.mayBy("will", "edit");
      await own.protect(protecting);
      const change = { spec: { sources: [bucket(will, { kind: "User", name: "dora" })] } };
      await eventually(() => own.as("will").merge(path, change));
      await own.as("will").delete(path);
      await own.changes("edith");
    });
  });

  it("is lifted by an admin whom a user with the role edit has excluded, and by no other role in the namespace", async () => {
    const guarded = await newGuarded();
    const { team } = guarded;
    const edith: Subject = { kind: "User", name: "edith" };
    const bindings = team.path("inlay.dev/v1alpha1", "secretbindings");
    await eventually(() => guarded.as("edith").create(bindings, guard([bucket(edith)])));
    await guarded.refuses("adam", /protects it/, edit({ data: { a: "Yg==" } }));
    const [path, lifted] = [team.bindingPath("guard"), edit({ spec: { sources: [bucket()] } })];
    await guarded.mayBy("victor", "edit");
    for (const act of [lifted, remove]) await guarded.refuses("victor", /victor may not/, act, path);
    const again = guard([bucket({ kind: "User", name: "adam" })], {}, "second");
    await guarded.letsCreate("adam", again);
    await guarded.refusesToCreate("victor", again, /"guard" protects it already/);
    await lifted(guarded.as("adam").dryRun, path);
    await guarded.as("adam").delete(path);
    await guarded.changes("adam");
  });

  it("protects the ServiceAccount of a protected token, with which Kubernetes would delete the token", async () => {
    const read = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] }];
    const guarded = await newGuarded({ rules: read });
    const { team } = guarded;
    const [secrets, accounts] = ["secrets", "serviceaccounts"].map((plural) => team.path("v1", plural));
    const robot = `${accounts}/robot`;
    await team.createAccount("robot");
    await team.createAccount("other");
    await team.api.create(secrets as string, {
      metadata: { name: "token", annotations: { "kubernetes.io/service-account.name": "robot" } },
      type: "kubernetes.io/service-account-token",
    });
    const token = { secret: { name: "token" }, protect: { writers: [will] } };
    // It can't write its target, and has no other reason to read the Secret.
    await guarded.protect(guard([bucket(), token]));
    await eventually(async () => {
      const { status } = await team.binding("guard");
      assert.deepEqual(status?.protectedTokens, [{ secret: "token", serviceAccountName: "robot" }]);
    });
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "mine", uid: "a-uid" };
    for (const act of [remove, removeCollection, edit({ metadata: { ownerReferences: [owner] } })])
      for (const who of ["edith", "adam"])
        await guarded.refuses(who, /serviceaccounts "robot" .* secrets "token"/, act, robot);
    await guarded.changes("edith", robot);
    await guarded.as("edith").delete(`${accounts}/other`);
    await guarded.mayBy("will", "edit");
    await eventually(() => guarded.as("will").delete(robot));
    await team.untilGone(`${secrets}/token`);
    await eventually(async () => assert.equal((await team.binding("guard")).status.protectedTokens, undefined));
  });

  it("gets its finalizer and its status from the controller, and is released by it", async () => {
    const guarded = await newGuarded({
      rules: [
        { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
      ],
    });
    const { team } = guarded;
    const made = { apiVersion: "v1", kind: "ConfigMap", name: "made", create: { manifest: { data: { a: "b" } } } };
    await guarded.protect(guard([bucket(will)], { targets: [made] }));
    const { metadata } = await team.until("guard", "Synced");
    assert.deepEqual(metadata.finalizers, ["inlay.dev/release"]);
    const weaker = { spec: { sources: [bucket()] } };
    const said = /inlay-controller may not (change the protection|get secrets)/;
    await assert.rejects(guarded.as(CONTROLLER).merge(team.bindingPath("guard"), weaker), said);
    await assert.rejects(
      team.unbind("guard"),
      /delete the objects that it created, such as ConfigMap "made"; to keep them/,
    );
    await guarded.confirmDeletion();
    await team.unbind("guard");
    assert.equal(await team.api.find(`${team.path("v1", "configmaps")}/made`), undefined);
    await guarded.changes("edith");
    await team.secret("bucket", { accessKeyID: secretText("after") });
  });
});
