/** Everything is read and written as the account of the binding, with its rights and no others. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api, type RequestFailed } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import { apiVersionOf, createObject, installKind, type Kind } from "../controller/kinds.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { CONTROLLER, requestsFor, watchesFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { harborTarget, newTeam, type Rule, type Team, usualRules } from "../controller/team.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
/** "Within seconds", on a machine that has other things to do. */
const SECONDS = 10_000;

const accessKey = { accesskey: { from: { source: "bucket", key: "accessKeyID" } } };
const spec = (more: object = {}, target: object = {}) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [harborTarget(accessKey, target)],
  ...more,
});

const rule = (resource: "secrets" | "harborclusters", ...verbs: string[]): Rule => ({
  apiGroups: [resource === "secrets" ? "" : "goharbor.io"],
  resources: [resource],
  verbs,
});

/** A team with a Secret and a HarborCluster. */
async function newRegistry(options: Parameters<typeof newTeam>[0] = {}): Promise<{ team: Team; value: string }> {
  const team = await newTeam(options);
  const value = secretText("access");
  await team.secret("bucket", { accessKeyID: value });
  await team.harbor();
  return { team, value };
}

const messageOf = (binding: AnyObject): string => binding.status.targets[0].message;

describe("identity: a binding", () => {
  it("reads, lists, watches and writes all sources and targets as its account, and nothing of them as the controller", async () => {
    const { team } = await newRegistry();
    const mark = await auditLog().mark();
    const account = `system:serviceaccount:${team.namespace}:inlay`;
    await team.api.create(team.path("v1", "configmaps"), {
      metadata: { name: "place" },
      data: { region: "eu-north-1" },
    });
    await team.api.create(team.path("v1", "services"), {
      metadata: { name: "s3" },
      spec: { ports: [{ port: 9000 }] },
    });
    await team.bind("harbor-s3", {
      sources: [
        { secret: { name: "bucket" } },
        { configMap: { name: "place" } },
        { object: { apiVersion: "v1", resource: "services", name: "s3" } },
      ],
      targets: [
        harborTarget({
          ...accessKey,
          region: { from: { source: "place", key: "region" } },
          regionendpoint: { from: { source: "s3", fieldPath: "spec.clusterIP" } },
        }),
      ],
      defaults: { onRelease: "Remove", onConflict: "Force" },
    });
    await team.until("harbor-s3", "Synced");
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    await team.unbind("harbor-s3");

    const requests = [...(await requestsFor(team, mark)), ...(await watchesFor(team, mark))];
    const asAccount = requests.filter(({ as }) => as === account);
    const read = ["get", "list", "watch"];
    for (const [resource, verbs] of Object.entries({
      secrets: read,
      configmaps: read,
      services: read,
      "goharbor.io/harborclusters": [...read, "patch"],
    })) {
      const made = new Set(asAccount.filter((each) => each.resource === resource).map(({ verb }) => verb));
      assert.deepEqual([...made].sort(), [...verbs].sort(), resource);
    }
    const others = requests.filter(({ as }) => as !== account);
    assert.deepEqual(
      [...new Set(others.map(({ as, verb, resource }) => `${as ?? "itself"} ${verb} ${resource}`))].sort(),
      [
        "itself create events.k8s.io/events",
        "itself get namespaces",
        "itself get serviceaccounts",
        "itself patch inlay.dev/secretbindings",
        "itself update inlay.dev/secretbindings/status",
      ],
    );
  });

  it("with another account waits for its namespace to open it, as deploy/manifests/README.md shows, and then works", async () => {
    const { team, value } = await newRegistry({ account: false, rules: [] });
    await team.createAccount("rotator");
    await team.grant(usualRules, { account: "rotator", role: "rotator" });
    await team.bind("harbor-s3", spec({ serviceAccountName: "rotator" }));
    const { status } = await team.until("harbor-s3", "ImpersonationForbidden");
    assert.match(status.conditions[0].message, new RegExp(`${team.namespace}/rotator`));
    const readme = await readFile(join(import.meta.dirname, "../../deploy/manifests/README.md"), "utf8");
    const example = readme.split("```").find((block) => block.includes("inlay-may-act-as-rotator")) ?? "";
    const manifest = example.replace(/^yaml/, "").replaceAll("namespace: registry", `namespace: ${team.namespace}`);
    await controlPlane().kubectlWith({ stdin: manifest }, "apply", "--filename=-");
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, value);
  });

  it("with another account stops when its namespace closes it again", async () => {
    const { team, value } = await newRegistry({ account: false, rules: [] });
    await team.createAccount("rotator");
    await team.grant(usualRules, { account: "rotator", role: "rotator" });
    await openAccount(team, "rotator");
    await team.bind("harbor-s3", spec({ serviceAccountName: "rotator" }));
    await team.until("harbor-s3", "Synced");
    await team.revoke("inlay-may-act");
    const mayStill = ["auth", "can-i", "impersonate", "serviceaccounts/rotator", `--as=${CONTROLLER}`];
    await eventually(() => assert.rejects(controlPlane().kubectl(...mayStill, `--namespace=${team.namespace}`)));
    await team.secret("bucket", { accessKeyID: secretText("unseen") });
    await team.until("harbor-s3", "ImpersonationForbidden");
    assert.equal((await team.s3()).accesskey, value);
  });

  it("whose account does not exist says how to make it, and works once it is made", async () => {
    const { team, value } = await newRegistry({ account: false });
    await team.bind("harbor-s3", spec());
    const binding = await team.until("harbor-s3", "ServiceAccountNotFound");
    await paste(commandsIn(messageOf(binding)));
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, value);
  });

  it("whose account is deleted writes nothing until it is there again", async () => {
    const { team, value } = await newRegistry();
    await team.bind("harbor-s3", spec());
    await team.until("harbor-s3", "Synced");
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/inlay`);
    await team.until("harbor-s3", "ServiceAccountNotFound", SECONDS);
    const mark = await auditLog().mark();
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    // Nothing tells when a thing was left undone; a change of the spec, and its condition, come after the rotation.
    await team.api.merge(team.bindingPath("harbor-s3"), { spec: { defaults: { onRelease: "Remove" } } });
    await team.until("harbor-s3", "ServiceAccountNotFound");
    assert.equal((await team.s3()).accesskey, value);
    const requests = await requestsFor(team, mark);
    assert.deepEqual(
      requests.filter(({ as, verb }) => as !== undefined && ["get", "patch"].includes(verb)),
      [],
    );
    await team.createAccount();
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, rotated);
  });

  describe("whose account may not", () => {
    const cases: { lacks: string; names: string; rules: Rule[] }[] = [
      {
        lacks: "get the source",
        names: "may not get secrets/bucket in namespace",
        rules: [rule("secrets", "list", "watch"), rule("harborclusters", "get", "list", "watch", "patch")],
      },
      {
        lacks: "watch the source",
        names: "may not watch secrets/bucket in namespace",
        rules: [rule("secrets", "get"), rule("harborclusters", "get", "list", "watch", "patch")],
      },
      {
        lacks: "get the target",
        names: "may not get harborclusters.goharbor.io/harbor in namespace",
        rules: [rule("secrets", "get", "list", "watch"), rule("harborclusters", "list", "watch", "patch")],
      },
      {
        lacks: "watch the target",
        names: "may not watch harborclusters.goharbor.io/harbor in namespace",
        rules: [rule("secrets", "get", "list", "watch"), rule("harborclusters", "get", "patch")],
      },
      {
        lacks: "patch the target",
        names: "may not patch harborclusters.goharbor.io/harbor in namespace",
        rules: [rule("secrets", "get", "list", "watch"), rule("harborclusters", "get", "list", "watch")],
      },
    ];
    for (const { lacks, names, rules } of cases) {
      it(`${lacks} is Forbidden, and works when the commands of the message were run word for word`, async () => {
        const { team, value } = await newRegistry({ rules });
        await team.bind("harbor-s3", spec());
        const binding = await team.until("harbor-s3", "Forbidden");
        const message = messageOf(binding);
        assert.ok(message.includes(`ServiceAccount ${team.namespace}/inlay ${names} ${team.namespace};`), message);
        assert.equal((await team.s3()).accesskey, undefined);
        await paste(commandsIn(message));
        await team.until("harbor-s3", "Synced", SECONDS);
        assert.equal((await team.s3()).accesskey, value);
      });
    }

    it("do anything gets all it needs, and no more, from the commands of one message after the other", async () => {
      const { team, value } = await newRegistry({ rules: [] });
      await team.secret("other", { accessKeyID: secretText("other") });
      await team.bind("harbor-s3", spec());
      const source = messageOf(await team.until("harbor-s3", "Forbidden"));
      await paste(commandsIn(source));
      const target = await eventually(async () => {
        const message = messageOf(await team.until("harbor-s3", "Forbidden"));
        assert.notEqual(message, source);
        return message;
      });
      await paste(commandsIn(target));
      await team.until("harbor-s3", "Synced", SECONDS);
      assert.equal((await team.s3()).accesskey, value);
      const { items } = await team.api.get(`${RBAC}/namespaces/${team.namespace}/roles`);
      const names = items.flatMap(({ rules }: AnyObject) => (rules ?? []).map((each: Rule) => each.resourceNames));
      assert.deepEqual(names.sort(), [["bucket"], ["harbor"]]);
    });

    it("read a source of the cluster is told of a ClusterRole, whose commands work", async () => {
      const { team } = await newRegistry();
      await team.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
        metadata: { name: team.namespace },
        value: 7,
        description: "a-description",
      });
      await team.bind("harbor-s3", {
        sources: [
          {
            name: "class",
            object: {
              apiVersion: "scheduling.k8s.io/v1",
              resource: "priorityclasses",
              name: team.namespace,
              scope: "Cluster",
            },
          },
        ],
        targets: [harborTarget({ accesskey: { from: { source: "class", fieldPath: "description" } } })],
      });
      const message = messageOf(await team.until("harbor-s3", "Forbidden"));
      assert.match(
        message,
        /may not watch priorityclasses\.scheduling\.k8s\.io\/\S+; allow it with: kubectl create clusterrole /,
      );
      await paste(commandsIn(message));
      await team.until("harbor-s3", "Synced", SECONDS);
      assert.equal((await team.s3()).accesskey, "a-description");
    });

    it("write a target is told so by commands that do no more than they say, whatever the target is called", async () => {
      const { team } = await newRegistry({ rules: [rule("secrets", "get", "list", "watch")] });
      const name = "harbor'; touch mine; echo $(touch yours) `touch theirs`";
      await team.bind("harbor-s3", spec({}, { name }));
      const binding = await team.until("harbor-s3", "Forbidden");
      assert.deepEqual(await paste(commandsIn(messageOf(binding))), []);
      await team.until("harbor-s3", "TargetNotFound", SECONDS);
    });
  });

  it("is Forbidden when a right is taken away later, and no later rotation is written", async () => {
    // What a binding wrote is written without a look; once that was refused, the look is.
    for (const [lost, kept, verb] of [
      ["secrets", rule("harborclusters", "get", "list", "watch", "patch"), "get"],
      ["harborclusters", rule("secrets", "get", "list", "watch"), "(get|patch)"],
    ] as const) {
      const { team, value } = await newRegistry();
      await team.bind("harbor-s3", spec());
      await team.until("harbor-s3", "Synced");
      await team.grant([kept], { role: "kept" });
      await team.revoke();
      // The API server lets an account go on for a moment, until it has heard of its loss itself.
      const account = `system:serviceaccount:${team.namespace}:inlay`;
      const name = lost === "secrets" ? "secrets/bucket" : "harborclusters.goharbor.io/harbor";
      await eventually(() =>
        assert.rejects(controlPlane().kubectl("get", name, `--namespace=${team.namespace}`, `--as=${account}`)),
      );
      await team.secret("bucket", { accessKeyID: secretText("unseen") });
      const message = messageOf(await team.until("harbor-s3", "Forbidden"));
      assert.match(message, new RegExp(`may not ${verb} ${name} in namespace ${team.namespace};`));
      assert.equal((await team.s3()).accesskey, value);
      await team.grant(usualRules, { role: "again" });
      await team.until("harbor-s3", "Synced", SECONDS);
      assert.notEqual((await team.s3()).accesskey, value);
    }
  });

  it("writes into another namespace only where its account has rights", async () => {
    const { team, value } = await newRegistry();
    const { team: other } = await newRegistry();
    await team.bind("harbor-s3", spec({}, { namespace: other.namespace }));
    const message = messageOf(await team.until("harbor-s3", "Forbidden"));
    assert.ok(message.includes(`harborclusters.goharbor.io/harbor in namespace ${other.namespace}`), message);
    assert.equal((await other.s3()).accesskey, undefined);
    await paste(commandsIn(message));
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await other.s3()).accesskey, value);
  });

  it("is helped by its commands although others ran theirs for the same object", async () => {
    const [{ team: one }, { team: two }, { team: other }] = [
      await newRegistry(),
      await newRegistry(),
      await newRegistry(),
    ];
    for (const [team, field] of [
      [one, "accesskey"],
      [two, "regionendpoint"],
    ] as const) {
      const target = harborTarget({ [field]: accessKey.accesskey }, { namespace: other.namespace });
      await team.bind("harbor-s3", spec({ targets: [target] }));
      await paste(commandsIn(messageOf(await team.until("harbor-s3", "Forbidden"))));
      await team.until("harbor-s3", "Synced", SECONDS);
    }
  });

  it("that calls a kind of the cluster namespaced, to be asked the wrong question, is InvalidBinding and reads nothing", async () => {
    const kind: Kind = {
      group: "identity.example.com",
      kind: "Vault",
      plural: "vaults",
      scope: "Cluster",
      spec: { type: "object", properties: { password: { type: "string" } } },
    };
    const { team } = await newRegistry();
    await installKind(team.api, kind);
    const password = secretText("password");
    await createObject(team.api, kind, "root", { password });
    // The account may read it, and the author may not: the right that he has in his namespace counts for nothing.
    await team.grantInCluster([{ apiGroups: [kind.group], resources: [kind.plural], verbs: ["get", "list", "watch"] }]);
    await grantUser(team, "bob", [
      { apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["get", "create"] },
      { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["impersonate"] },
      { apiGroups: [kind.group], resources: [kind.plural], verbs: ["get"] },
    ]);
    const bob = new Api(controlPlane(), "bob");
    const attack = (scope: string) =>
      bob.create(team.path("inlay.dev/v1alpha1", "secretbindings"), {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "SecretBinding",
        metadata: { name: "attack" },
        spec: {
          sources: [{ object: { apiVersion: apiVersionOf(kind), resource: kind.plural, name: "root", scope } }],
          targets: [harborTarget({ accesskey: { from: { source: "root", fieldPath: "spec.password" } } })],
        },
      });
    await assert.rejects(attack("Cluster"), (error: RequestFailed) => error.status === 403);
    const mark = await auditLog().mark();
    await eventually(() => attack("Namespaced"));
    await team.until("attack", "InvalidBinding");
    assert.equal((await team.s3()).accesskey, undefined);
    const read = (await requestsFor(team, mark)).filter(({ resource }) => resource === `${kind.group}/${kind.plural}`);
    assert.deepEqual(read, []);
  });
});

/** Lets the controller act as an account of another name than inlay. */
function openAccount(team: Team, account: string): Promise<void> {
  return bindRole(
    team,
    "inlay-may-act",
    [
      {
        apiGroups: [""],
        resources: ["serviceaccounts"],
        resourceNames: [account],
        verbs: ["impersonate", "get", "list", "watch"],
      },
    ],
    { kind: "ServiceAccount", name: "inlay-controller", namespace: "inlay-system" },
  );
}

function grantUser(team: Team, user: string, rules: Rule[]): Promise<void> {
  return bindRole(team, user, rules, { kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" });
}

async function bindRole({ api, namespace }: Team, name: string, rules: Rule[], subject: object): Promise<void> {
  await api.create(`${RBAC}/namespaces/${namespace}/roles`, { metadata: { name }, rules });
  await api.create(`${RBAC}/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
    subjects: [subject],
  });
}
