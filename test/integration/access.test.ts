/** The finalizer inlay.dev/access on accounts, Roles and RoleBindings: bindings are released in whatever order all of them are deleted. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { FastController } from "../controller/fast.ts";
import { applyFile, deleteFile } from "../controller/manifests.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const root = join(import.meta.dirname, "..", "..");
const FILE = join(root, "deploy", "manifests", "optional", "access.yaml");
const FINALIZER = "inlay.dev/access";
const RBAC = "rbac.authorization.k8s.io/v1";
const CONTROLLER = "system:serviceaccount:inlay-system:inlay-controller";

const KINDS = {
  SecretBinding: ["inlay.dev/v1alpha1", "secretbindings", "harbor-s3"],
  ServiceAccount: ["v1", "serviceaccounts", "inlay"],
  Role: [RBAC, "roles", "inlay"],
  RoleBinding: [RBAC, "rolebindings", "inlay"],
} as const;
type Kind = keyof typeof KINDS;
const ACCESS = ["ServiceAccount", "Role", "RoleBinding"] as const;

const pathOf = (team: TestNamespace, kind: Kind) => {
  const [apiVersion, plural, name] = KINDS[kind];
  return `${team.path(apiVersion, plural)}/${name}`;
};
const find = (team: TestNamespace, kind: Kind): Promise<AnyObject | undefined> => team.api.find(pathOf(team, kind));

async function label(team: TestNamespace, value: string | null = "true"): Promise<void> {
  for (const kind of ACCESS) await team.api.merge(pathOf(team, kind), { metadata: { labels: { [FINALIZER]: value } } });
}

async function untilMarked(team: TestNamespace, isMarked: boolean): Promise<void> {
  await eventually(async () => {
    const found = await Promise.all(ACCESS.map((kind) => find(team, kind)));
    const marked = found.map((each) => each?.metadata.finalizers?.includes(FINALIZER) ?? false);
    assert.deepEqual(
      marked,
      ACCESS.map(() => isMarked),
    );
  });
}

async function boundTeam(): Promise<TestNamespace> {
  const team = await createNamespace({ controller: false });
  await label(team);
  await team.boundHarbor({ onRelease: "Remove" });
  await untilMarked(team, true);
  return team;
}

/** Deletes the objects in this order by one command, which returns when all of them are gone. */
async function deleteAtOnce(team: TestNamespace, kinds: readonly Kind[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "inlay-access-"));
  const objects = kinds.map((kind) => {
    const [apiVersion, , name] = KINDS[kind];
    return JSON.stringify({ apiVersion, kind, metadata: { name, namespace: team.namespace } });
  });
  await writeFile(join(folder, "all.yaml"), objects.join("\n---\n"));
  await controlPlane().kubectl("delete", "--timeout=20s", "-f", join(folder, "all.yaml"));
  await rm(folder, { recursive: true });
}

/** How much faster its clock runs. The release must fit into a minute of it, also on a busy machine. */
const FACTOR = 3;

describe("the access of bindings", function () {
  this.timeout("3m");
  const cluster = () => new Api(controlPlane());
  let controller: ControllerProcess;

  before(async () => {
    await stopSharedController();
    await applyFile(cluster(), FILE);
    controller = new ControllerProcess(controlPlane());
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await deleteFile(cluster(), FILE);
  });

  it("outlasts them if all are deleted at once, in any order, and the values are removed", async () => {
    const orders: Kind[][] = [
      ["RoleBinding", "Role", "ServiceAccount", "SecretBinding"],
      ["ServiceAccount", "Role", "RoleBinding", "SecretBinding"],
      ["Role", "SecretBinding", "RoleBinding", "ServiceAccount"],
      ["SecretBinding", "RoleBinding", "Role", "ServiceAccount"],
    ];
    const teams = await Promise.all(orders.map(() => boundTeam()));
    await Promise.all(teams.map((team, at) => deleteAtOnce(team, orders[at] ?? [])));
    for (const team of teams) assert.equal((await team.s3()).accesskey, undefined);
  });

  it("is deleted at once if no binding needs it, the label is removed, or its namespace is deleted", async () => {
    const [ending, unbound, unlabelled] = await Promise.all([boundTeam(), boundTeam(), boundTeam()]);
    const unused = await createNamespace({ controller: false });
    const ended = controlPlane().kubectl("delete", "namespace", ending.namespace, "--timeout=60s");
    await unbound.unbind("harbor-s3");
    await untilMarked(unbound, false);
    await label(unlabelled, null);
    await untilMarked(unlabelled, false);
    await label(unused);
    await deleteAtOnce(unused, ACCESS);
    await ended;
  });

  it("is kept by no other change than that of the finalizer, and only with the label", async () => {
    const team = await boundTeam();
    await team.createAccount("other");
    const as = team.api.as(CONTROLLER).dryRun;
    const only = /may change the finalizer inlay\.dev\/access of this object, and nothing else/;
    const change = (path: string, change: object) => as.merge(path, change);
    const [role, account] = [pathOf(team, "Role"), pathOf(team, "ServiceAccount")];
    await change(role, { metadata: { finalizers: null } });
    for (const [path, forbidden] of [
      [role, { rules: [] }],
      [role, { metadata: { finalizers: [FINALIZER, "example.com/other"] } }],
      [account, { metadata: { labels: { [FINALIZER]: null } } }],
      [account, { metadata: { annotations: { a: "b" } } }],
      [account, { imagePullSecrets: [{ name: "other" }] }],
      [account, { automountServiceAccountToken: true }],
    ] as const)
      await assert.rejects(change(path, forbidden), only, JSON.stringify(forbidden));
    // The API server allows no other change without the verbs bind or escalate.
    for (const path of [role, pathOf(team, "RoleBinding")])
      await assert.rejects(
        change(path, { metadata: { annotations: { a: "b" } } }),
        /attempting to grant RBAC permissions/,
      );
    const other = `${team.path("v1", "serviceaccounts")}/other`;
    await assert.rejects(change(other, { metadata: { finalizers: [FINALIZER] } }), /only to objects with the label/);
  });

  it("grants until the bindings are released by the next controller, and not longer than their time", async () => {
    const [both, alone] = [await boundTeam(), await boundTeam()];
    await controller.stop();
    const began = Date.now();
    for (const kind of ["RoleBinding", "ServiceAccount", "SecretBinding", "Role"] as const)
      await both.api.delete(pathOf(both, kind));
    await alone.api.delete(pathOf(alone, "RoleBinding"));
    for (const team of [both, alone]) assert.ok((await find(team, "RoleBinding"))?.metadata.deletionTimestamp);
    controller = new FastController(controlPlane(), FACTOR);
    await controller.start();
    await both.untilGone(both.bindingPath("harbor-s3"));
    assert.equal((await both.s3()).accesskey, undefined);
    for (const kind of ACCESS) await both.untilGone(pathOf(both, kind));
    // Nothing else of that namespace is deleted, so the RoleBinding waits for a third of the minute.
    await alone.untilGone(pathOf(alone, "RoleBinding"));
    assert.ok((Date.now() - began) * FACTOR >= 19_000);
    assert.deepEqual((await find(alone, "Role"))?.metadata.finalizers, [FINALIZER]);
    await alone.unbindByForce("harbor-s3");
  });

  it("does not wait for bindings whose kind was removed", async () => {
    const team = await boundTeam();
    await controller.stop();
    await team.unbindByForce("harbor-s3");
    const kind = join(root, "apis", "secretbindings.yaml");
    try {
      await deleteFile(cluster(), kind);
      await controller.start();
      await deleteAtOnce(team, ACCESS);
    } finally {
      await applyFile(cluster(), kind);
    }
  });
});
