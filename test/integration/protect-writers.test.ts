/**
 * Shows who is a writer of a protected Secret: bindings, to which the account of Inlay does not suffice, and users with a verb. And who may
 * lift the protection.
 */
import assert from "node:assert/strict";
import type { Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import {
  type Act,
  bucket,
  edit,
  type Guarded,
  guard,
  label,
  newGuarded,
  remove,
  type Subject,
  untilProtectionWorks,
} from "../controller/guarded.ts";
import { secretText } from "../controller/leak-detector.ts";
import { auditLog } from "../controller/shared.ts";

const MARK = "impersonate-extra-inlay.dev%2fbinding";
const writeSecrets = {
  apiGroups: [""],
  resources: ["secrets"],
  verbs: ["get", "list", "watch", "create", "patch", "delete"],
};
const noTargets = { targets: [] };

describe("a protected Secret", function () {
  this.timeout("2m");
  before(untilProtectionWorks);

  describe("that the account of a binding may write", () => {
    let guarded: Guarded;
    let account: string;
    const thief = (name: string, value: string) => ({
      metadata: { name },
      spec: {
        sources: [{ secret: { name: "own" } }],
        targets: [
          {
            apiVersion: "v1",
            kind: "Secret",
            name: "bucket",
            fields: [{ path: value, from: { source: "own", key: "a" } }],
          },
        ],
      },
    });

    before(async () => {
      guarded = await newGuarded({ rules: [writeSecrets] });
      account = `system:serviceaccount:${guarded.team.namespace}:inlay`;
      await guarded.team.secret("own", { a: secretText("own") });
      await guarded.protect(guard([bucket()], noTargets));
    });

    it("has a binding that only protects, and is ready without an account", async () => {
      const { status } = await guarded.team.until("guard", "Synced");
      const [ready] = status.conditions;
      assert.equal(ready.message, "there are no targets to write, only Secret bucket to protect");
    });

    it("is not changed by a user who acts as the account, by impersonation or by its token", async () => {
      const token = await tokenOf(guarded, "edith", "inlay");
      for (const act of [label, remove, edit({ data: { accessKeyID: "Yg==" } })]) {
        await guarded.refuses(account, /protects it/, act);
        await assert.rejects(act(guarded.team.api.bearing(token), guarded.secretPath), /protects it/);
      }
    });

    it("is not changed by a user who claims to be Inlay, which only the controller may", async () => {
      await guarded.team.createAccount("robot");
      await guarded.mayBy(`system:serviceaccount:${guarded.team.namespace}:robot`, "admin");
      const { metadata } = await guarded.team.binding("guard");
      const mark = `${metadata.namespace}/guard/${metadata.uid}`;
      const robot = guarded.team.api.bearing(await tokenOf(guarded, "adam", "robot"));
      const asInlay = robot.as(account).sending({ [MARK]: mark });
      await assert.rejects(
        label(asInlay, guarded.secretPath),
        /cannot impersonate resource "userextras\/inlay.dev\/binding"/,
      );
      // A cluster admin may: the mark is what lets a request pass.
      await label(guarded.team.api.as(account).sending({ [MARK]: mark }).dryRun, guarded.secretPath);
      const other = guarded.team.api.as(account).sending({ [MARK]: `${metadata.namespace}/guard/another-uid` });
      await assert.rejects(label(other.dryRun, guarded.secretPath), /protects it/);
    });

    it("is not changed by another binding, which names the one that protects it, until it is a writer", async () => {
      const { team } = guarded;
      const before = await team.api.get(guarded.secretPath);
      const bindings = team.path("inlay.dev/v1alpha1", "secretbindings");
      const stolen = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", ...thief("thief", "data.stolen") };
      await eventually(() => guarded.as("edith").create(bindings, stolen));
      const { status } = await team.until("thief", "Protected");
      const { message } = status.conditions[0];
      assert.match(
        message,
        /^Secret team-\d+\/bucket: SecretBinding guard protects it, and this binding is not one of the writers there/,
      );
      assert.deepEqual((await team.api.get(guarded.secretPath)).data, before.data);
      const writers = ["thief", "renewal"].map((name): Subject => ({ kind: "SecretBinding", name }));
      await team.api.merge(team.bindingPath("guard"), { spec: { sources: [bucket(...writers)] } });
      await eventually(async () => {
        await team.api.merge(team.bindingPath("thief"), {
          metadata: { annotations: { "inlay.dev/refresh": `${Date.now()}` } },
        });
        await team.until("thief", "Synced", 5_000);
      });
      const { data } = await team.api.get(guarded.secretPath);
      assert.equal(data.stolen, (await team.api.get(`${team.path("v1", "secrets")}/own`)).data.a);
      // A binding of another name, with the same account, is none.
      await team.bind("thief-2", thief("thief-2", "data.more").spec);
      await team.until("thief-2", "Protected");
      await guarded.refuses(account, /SecretBinding team-\d+\/thief/, label);
    });

    it("is not changed or deleted by a user who changes, deletes or creates a binding that is a writer", async () => {
      const said = (verb: string, name: string) =>
        new RegExp(
          `edith may not ${verb} SecretBinding "${name}", which may write secrets "bucket" .* "guard" protects`,
        );
      const path = guarded.team.bindingPath("thief");
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "mine", uid: "a-uid" }];
      for (const patch of [{ spec: thief("thief", "data.other").spec }, { metadata: { ownerReferences } }])
        await guarded.refuses("edith", said("update", "thief"), edit(patch), path);
      await guarded.refuses("edith", said("delete", "thief"), remove, path);
      const renewal = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", ...thief("renewal", "data.other") };
      await guarded.refusesToCreate("edith", renewal, said("create", "renewal"));
      await guarded.letsCreate("adam", renewal);
      await edit({ metadata: { labels: { team: "storage" } } })(guarded.as("edith").dryRun, path);
    });

    it("is not changed by a user who gives the binding that protects it a target or a restart that writes it", async () => {
      const path = guarded.team.bindingPath("guard");
      const { spec } = thief("guard", "data.stolen");
      const sources = [...(await guarded.team.binding("guard")).spec.sources, ...spec.sources];
      const [target] = spec.targets;
      const { name: _, ...all } = target as { name: string };
      const workloads = { targets: [{ apiVersion: "v1", kind: "Secret", name: "bucket", restartPath: "data.a" }] };
      for (const more of [
        { targets: [target] },
        { targets: [{ ...all, selector: { matchLabels: { a: "b" } } }] },
        { rollout: workloads },
        { rollout: { steps: [{ name: "first", ...workloads }] } },
      ])
        await guarded.refuses(
          "edith",
          /edith may not change the spec of SecretBinding "guard"/,
          edit({ spec: { sources, ...more } }),
          path,
        );
      await edit({ spec: { sources, targets: [{ ...target, name: "other" }] } })(guarded.as("edith").dryRun, path);
    });

    it("is not changed by a binding of another namespace that has the name and an account with permission", async () => {
      const { team } = guarded;
      const other = await newGuarded({ rules: [writeSecrets] });
      await other.team.grant([writeSecrets], { role: "inlay-of-other", namespace: team.namespace });
      await other.team.secret("own", { a: secretText("own") });
      const { spec } = thief("guard", "data.elsewhere");
      const targets = spec.targets.map((each) => ({ ...each, namespace: team.namespace }));
      const bindings = other.team.path("inlay.dev/v1alpha1", "secretbindings");
      for (const name of ["guard", "thief"]) {
        const binding = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata: { name }, spec };
        const acknowledge = ["ReadableCopies"];
        await eventually(() =>
          other.as("edith").create(bindings, { ...binding, spec: { ...spec, acknowledge, targets } }),
        );
        await other.team.until(name, "Protected");
      }
      assert.equal((await team.api.get(guarded.secretPath)).data.elsewhere, undefined);
    });

    it("was changed by a request that names its binding in the audit log", async () => {
      const { team } = guarded;
      const { metadata } = await team.binding("thief");
      const mark = `${team.namespace}/thief/${metadata.uid}`;
      const found = (await auditLog().since(0)).filter((each) => each.mark === mark && each.verb === "patch");
      assert.ok(found.some(({ as, code }) => as === account && code === 200));
    });
  });

  describe("with a verb for its writers", () => {
    const verb = "change-shared-secret";
    const byVerb = (more: object = {}) => ({ ...bucket(), protect: { writerVerb: verb, ...more } });
    const has = { apiGroups: [""], resources: ["secrets"], resourceNames: ["bucket"], verbs: [verb] };

    it("is changed by users who have the verb in the namespace, and not by others with the same roles", async () => {
      const guarded = await newGuarded();
      await guarded.mayBy("vera", "edit");
      await guarded.protect(guard([byVerb({ message: "ask the platform team" })], noTargets));
      const said = await guarded.refuses("vera", /protects it/, label);
      assert.match(
        said,
        /protects it \(ask the platform team\); only these may: cluster admins, users with the verb change-shared-secret on it;/,
      );
      await guarded.may("vera", has);
      await guarded.changes("vera");
      await guarded.refuses("edith", /protects it/, remove);
      // A writer may also lift the protection.
      await guarded.refuses(
        "edith",
        /users with the verb change-shared-secret on it/,
        remove,
        guarded.team.bindingPath("guard"),
      );
      await guarded.as("vera").delete(guarded.team.bindingPath("guard"));
    });

    it("is checked for eight sources that the author may only update and delete by name", async () => {
      const guarded = await newGuarded();
      const names = Array.from({ length: 8 }, (_, i) => `protected-${i}`);
      const sources = (writers: Subject[]) =>
        names.map((name, at) => ({
          secret: { name },
          protect: {
            liftedBy: "Writers",
            ...(at < 4
              ? { writers, writerVerb: verb }
              : { writers: [...writers.slice(1), { kind: "User", name: "otto" }] }),
          },
        }));
      const actAsInlay = {
        apiGroups: [""],
        resources: ["serviceaccounts"],
        resourceNames: ["inlay"],
        verbs: ["impersonate"],
      };
      const writes = {
        apiGroups: [""],
        resources: ["secrets"],
        resourceNames: names,
        verbs: ["get", "update", "delete", verb],
      };
      const unprotect = { apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["unprotect"] };
      await guarded.mayBy("otto", "inlay-edit");
      await guarded.may("otto", actAsInlay, writes, unprotect);
      await eventually(() =>
        guarded.as("otto").create(guarded.team.path("inlay.dev/v1alpha1", "secretbindings"), guard(sources([]))),
      );
      // Sixteen groups of the same length for each, and a requester with three hundred.
      const writers = Array.from(
        { length: 16 },
        (_, i): Subject => ({ kind: "Group", name: `${"w".repeat(240)}-${i}` }),
      );
      const groups = Array.from({ length: 300 }, (_, i) => `${"w".repeat(200)}-${i}`);
      await guarded.team.api
        .as("otto", ...groups)
        .dryRun.merge(guarded.team.bindingPath("guard"), { spec: { sources: sources(writers) } });
      await guarded.refuses(
        "edith",
        /may not change the protection/,
        edit({ spec: { sources: sources(writers) } }),
        guarded.team.bindingPath("guard"),
      );
    });

    it("is asked for also where a binding names the Secret three times", async () => {
      const guarded = await newGuarded();
      const again = [0, 1, 2].map((at) => ({ ...byVerb(), name: `source-${at}` }));
      await guarded.protect(guard(again, noTargets));
      await guarded.refuses("edith", /may not delete/, remove, guarded.team.bindingPath("guard"));
    });

    it("is no verb of Kubernetes, which edit has", async () => {
      const guarded = await newGuarded();
      for (const each of ["update", "delete"])
        await guarded.refusesToCreate(
          "edith",
          guard([byVerb({ writerVerb: each })]),
          /would protect nothing; choose a verb/,
        );
      await guarded.refusesToCreate("edith", guard([byVerb({ message: "two\nlines" })]), /write one line/);
    });
  });

  describe("whose protection only writers lift", () => {
    const lifted = (...writers: Subject[]) => ({ ...bucket(), protect: { liftedBy: "Writers", writers } });

    it("is set so by an admin of the namespace, and not by a user with edit, who could lock out admins", async () => {
      const guarded = await newGuarded();
      const said = /edith may not set protect.liftedBy to Writers .* users with the role admin/;
      await guarded.refusesToCreate("edith", guard([lifted({ kind: "User", name: "edith" })]), said);
      await guarded.letsCreate("adam", guard([lifted()]));
    });

    it("is neither deleted, weakened nor protected again by an admin of the namespace", async () => {
      const guarded = await newGuarded();
      await guarded.protect(guard([lifted({ kind: "User", name: "will" })]));
      const path = guarded.team.bindingPath("guard");
      const acts: Act[] = [
        remove,
        edit({ spec: { sources: [bucket()] } }),
        edit({ metadata: { finalizers: ["example.com/x"] } }),
      ];
      for (const act of acts.slice(0, 2)) {
        const said = await guarded.refuses("adam", /adam may not .*: cluster admins, User will$/, act, path);
        assert.doesNotMatch(said, /role admin/);
      }
      await guarded.refusesToCreate("adam", guard([bucket()], {}, "second"), /protects it already/);
      await guarded.mayBy("will", "edit");
      await eventually(() => guarded.as("will").delete(path));
      await guarded.changes("edith");
    });
  });

  it("is protected by an author with the verb protect on all Secrets, who may write none", async () => {
    const guarded = await newGuarded();
    const rules = [
      { apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["create"] },
      { apiGroups: [""], resources: ["serviceaccounts"], resourceNames: ["inlay"], verbs: ["impersonate"] },
      { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
    ];
    await guarded.may("pia", ...rules);
    await guarded.refusesToCreate("pia", guard([bucket()], noTargets), /may not both update and delete/);
    await guarded.may("pia", { apiGroups: [""], resources: ["secrets"], verbs: ["protect"] });
    await guarded.letsCreate("pia", guard([bucket()], noTargets));
  });
});

/** A token for a ServiceAccount, which the user requests. */
async function tokenOf(guarded: Guarded, user: string, account: string): Promise<string> {
  const path = `${guarded.team.path("v1", "serviceaccounts")}/${account}/token`;
  const request = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { audiences: [], expirationSeconds: 600 },
  };
  const api: Api = guarded.as(user);
  const { status } = await eventually(() => api.create(path, request));
  return status.token;
}
