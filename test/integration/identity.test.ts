/** Inlay reads and writes everything as the account of the binding, with the permissions of the account and no others. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { untilMayNot } from "../controller/access.ts";
import { Api, type RequestFailed } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { applyObjects, objectsOf } from "../controller/manifests.ts";
import { commandsIn, paste } from "../controller/paste.ts";
import { accessKey, messageOf, newRegistry, SECONDS, spec } from "../controller/registry.ts";
import { CONTROLLER, requestsFor, watchesFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { harborTarget, type Rule, type TestNamespace, usualRules } from "../controller/test-namespace.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";

describe("identity: a binding", () => {
  it("reads, lists, watches and writes all sources and targets as its account, and none of them as the controller", async () => {
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
    // The controller writes events in the background, possibly after the binding is gone.
    await eventually(async () => assert.notEqual((await team.events("harbor-s3")).length, 0));

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

  it("with another account waits until its namespace permits it by the documented Role, and then works", async () => {
    const { team, value } = await newRegistry({ account: false, rules: [] });
    await team.createAccount("rotator");
    await team.grant(usualRules, { account: "rotator", role: "rotator" });
    await team.bind("harbor-s3", spec({ serviceAccountName: "rotator" }));
    const { status } = await team.until("harbor-s3", "ImpersonationForbidden");
    assert.match(status.conditions[0].message, new RegExp(`${team.namespace}/rotator`));
    const page = await readFile(join(import.meta.dirname, "../../docs/tasks/allow-a-namespace.md"), "utf8");
    const example = /<<'EOF'\n([^`]*inlay-may-act-as-rotator.*?)^EOF$/ms.exec(page)?.[1] ?? assert.fail();
    const manifest = example.replaceAll("namespace: registry", `namespace: ${team.namespace}`);
    await applyObjects(team.api, objectsOf(manifest));
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, value);
  });

  it("with a misspelt account learns that the account inlay exists, and has the commands for its own account", async () => {
    const { team } = await newRegistry();
    await team.bind("harbor-s3", spec({ serviceAccountName: "inlya" }));
    const exists = `ServiceAccount ${team.namespace}/inlay exists: set serviceAccountName to inlay, or `;
    const closed = messageOf(await team.until("harbor-s3", "ImpersonationForbidden"));
    assert.ok(closed.includes(exists), closed);
    await paste(commandsIn(closed));
    const missing = messageOf(await team.until("harbor-s3", "ServiceAccountNotFound", SECONDS));
    assert.ok(missing.includes(exists), missing);
    await paste(commandsIn(missing));
    await team.until("harbor-s3", "Forbidden", SECONDS);
  });

  it("with another account stops when its namespace withdraws the permission", async () => {
    const { team, value } = await newRegistry({ account: false, rules: [] });
    await team.createAccount("rotator");
    await team.grant(usualRules, { account: "rotator", role: "rotator" });
    await openAccount(team, "rotator");
    await team.bind("harbor-s3", spec({ serviceAccountName: "rotator" }));
    await team.until("harbor-s3", "Synced");
    await team.revoke("inlay-may-act");
    const { namespace } = team;
    await untilMayNot(CONTROLLER, { verb: "impersonate", resource: "serviceaccounts", name: "rotator", namespace });
    await team.secret("bucket", { accessKeyID: secretText("unseen") });
    await team.until("harbor-s3", "ImpersonationForbidden");
    assert.equal((await team.s3()).accesskey, value);
  });

  it("whose account does not exist reports how to create it, and works once it exists", async () => {
    const { team, value } = await newRegistry({ account: false });
    await team.bind("harbor-s3", spec());
    const binding = await team.until("harbor-s3", "ServiceAccountNotFound");
    await paste(commandsIn(messageOf(binding)));
    await team.until("harbor-s3", "Synced", SECONDS);
    assert.equal((await team.s3()).accesskey, value);
  });

  it("whose account is deleted writes nothing until it exists again", async () => {
    const { team, value } = await newRegistry();
    await team.bind("harbor-s3", spec());
    await team.until("harbor-s3", "Synced");
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/inlay`);
    await team.until("harbor-s3", "ServiceAccountNotFound", SECONDS);
    const mark = await auditLog().mark();
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    // No event shows that nothing was written. But a change of the spec, and its condition, come after the rotation.
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

  it("that names a cluster-scoped kind as namespaced, to change the check at admission, is InvalidBinding and reads nothing", async () => {
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
    // The account may read it, and the author may not. The permission of the author in the namespace does not count.
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

/** Permits the controller to impersonate an account with another name than inlay. */
function openAccount(team: TestNamespace, account: string): Promise<void> {
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

function grantUser(team: TestNamespace, user: string, rules: Rule[]): Promise<void> {
  return bindRole(team, user, rules, { kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" });
}

async function bindRole(
  { api, namespace }: TestNamespace,
  name: string,
  rules: Rule[],
  subject: object,
): Promise<void> {
  await api.create(`${RBAC}/namespaces/${namespace}/roles`, { metadata: { name }, rules });
  await api.create(`${RBAC}/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
    subjects: [subject],
  });
}
