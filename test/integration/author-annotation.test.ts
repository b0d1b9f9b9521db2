/**
 * deploy/policies/optional/author-annotation.yaml records the author of each binding, and no request can name another
 * author.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { applyFile, applyObjects, deleteFile, deleteObjects, objectsIn } from "../controller/manifests.ts";
import { lineOfPage, paste } from "../controller/paste.ts";
import { RELOADER } from "../controller/reloader.ts";
import { CONTROLLER } from "../controller/requests.ts";
import { stopSharedController } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const FILE = join(import.meta.dirname, "..", "..", "deploy", "policies", "optional", "author-annotation.yaml");
const AUTHOR = "inlay.dev/author";
const authorOf = ({ metadata }: AnyObject) => metadata.annotations?.[AUTHOR];
const claim = (author: string | null) => ({ metadata: { annotations: { [AUTHOR]: author } } });

describe("the author of a binding", () => {
  let team: TestNamespace;
  const newNamespace = async (controller = false) => {
    team = await createNamespace({ controller });
    for (const name of ["alice", "bob"])
      await team.api.create(team.path("rbac.authorization.k8s.io/v1", "rolebindings"), {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
        subjects: [{ kind: "User", name, apiGroup: "rbac.authorization.k8s.io" }],
      });
    for (const api of [alice(), bob()]) await eventually(() => api.dryRun.create(bindings(), binding()));
  };
  const alice = () => new Api(controlPlane(), "alice");
  const bob = () => new Api(controlPlane(), "bob");
  const bindings = () => team.path("inlay.dev/v1alpha1", "secretbindings");
  const path = () => `${bindings()}/harbor-s3`;
  const binding = (template = "a", metadata: object = {}) => ({
    apiVersion: "inlay.dev/v1alpha1",
    kind: "SecretBinding",
    metadata: { name: "harbor-s3", ...metadata },
    spec: {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "target", fields: [{ path: "data.a", template }] }],
    },
  });

  before(async () => {
    await stopSharedController();
    await newNamespace();
    await team.api.create(bindings(), binding());
    await applyFile(team.api, FILE);
    // Both policies take effect some moments after they are created.
    await eventually(async () =>
      assert.equal(
        authorOf(await alice().dryRun.create(bindings(), { ...binding(), metadata: { name: "x" } })),
        "alice",
      ),
    );
  });
  after(async () => {
    const api = new Api(controlPlane());
    await deleteFile(api, FILE);
    // Both policies must have no effect when later tests write bindings.
    const path = "/apis/inlay.dev/v1alpha1/namespaces/default/secretbindings";
    const forged = binding("a", { annotations: { [AUTHOR]: "bob" } });
    await eventually(async () => assert.equal(authorOf(await api.dryRun.create(path, forged)), "bob"));
  });

  it("is unknown for a binding from before the policy, whatever a request claims, until its spec changes", async () => {
    assert.equal(authorOf(await bob().merge(path(), claim("alice"))), undefined);
    assert.equal(
      authorOf(await bob().merge(path(), { metadata: { annotations: { other: "a", [AUTHOR]: "alice" } } })),
      undefined,
    );
    assert.equal(authorOf(await bob().merge(path(), { spec: { suspend: true } })), "bob");
  });

  it("is the user who creates it, whatever the request claims", async () => {
    await newNamespace();
    const forged = binding("a", { annotations: { [AUTHOR]: "bob", other: "kept" } });
    const { metadata } = await alice().create(bindings(), forged);
    assert.deepEqual(metadata.annotations, { other: "kept", [AUTHOR]: "alice" });
  });

  it("does not change with metadata or status, or when a request forges or removes the annotation", async () => {
    await newNamespace();
    await alice().create(bindings(), binding());
    for (const author of ["bob", null, ""]) assert.equal(authorOf(await bob().merge(path(), claim(author))), "alice");
    assert.equal(authorOf(await bob().merge(path(), { metadata: { labels: { a: "b" }, annotations: null } })), "alice");
    const controller = team.api.as(CONTROLLER);
    assert.equal(
      authorOf(await controller.merge(path(), { metadata: { finalizers: ["inlay.dev/release"] } })),
      "alice",
    );
    const status = { ...(await team.api.get(path())), status: { synced: "0/1" } };
    await controller.replace(`${path()}/status`, {
      ...status,
      metadata: { ...status.metadata, ...claim("bob").metadata },
    });
    assert.equal(authorOf(await team.api.get(path())), "alice");
    await team.api.merge(path(), { metadata: { finalizers: null } });
  });

  it("is the user who changes the spec, by any kind of request", async () => {
    await newNamespace();
    await alice().create(bindings(), binding());
    assert.equal(authorOf(await bob().merge(path(), { spec: { suspend: true } })), "bob");
    const { metadata } = await alice().get(path());
    assert.equal(authorOf(await alice().replace(path(), binding("b", { ...metadata }))), "alice");
    assert.equal(authorOf(await bob().apply(path(), binding("c"), "bob", true)), "bob");
    const replaced = [{ op: "replace", path: "/spec/targets/0/name", value: "other" }];
    assert.equal(authorOf(await alice().jsonPatch(path(), replaced)), "alice");
  });

  it("is the account that the controller impersonates, for a generated binding", async () => {
    await newNamespace();
    const created = await team.api.as(RELOADER, "system:masters").create(bindings(), binding());
    assert.equal(authorOf(created), RELOADER);
  });

  it("causes no drift for a tool that applies the same manifest again, client-side or server-side", async () => {
    await newNamespace();
    const { namespace } = team;
    const kubectl = async (...flags: string[]) => {
      const stdin = JSON.stringify(binding("a", { namespace }));
      const { stdout } = await controlPlane().kubectlWith({ stdin, user: "bob" }, "apply", "--filename=-", ...flags);
      return { stdout, metadata: (await team.api.get(path())).metadata };
    };
    for (const flags of [[], ["--server-side", "--field-manager=argocd-controller"]]) {
      // No controller runs, so the first update stores the default of the status.
      await kubectl(...flags);
      const first = await kubectl(...flags);
      const second = await kubectl(...flags);
      assert.match(second.stdout, flags.length === 0 ? /unchanged/ : /serverside-applied/);
      assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
      assert.equal(authorOf(second), "bob");
      assert.ok(!JSON.stringify(second.metadata.managedFields).includes(`f:${AUTHOR}`));
      await team.api.delete(path());
    }
  });

  it("cannot be changed by a webhook or by another mutating policy", async () => {
    await newNamespace();
    const [, mutates] = await objectsIn(FILE);
    assert.equal(mutates.kind, "MutatingAdmissionPolicyBinding");
    // Without the mutating half of the file, a claim arrives as if a webhook had added it after that half.
    await deleteObjects(team.api, [mutates]);
    try {
      const forged = binding("a", { annotations: { [AUTHOR]: "bob" } });
      const refused = /denied request: .*inlay\.dev\/author/;
      await eventually(() => assert.rejects(alice().dryRun.create(bindings(), forged), refused));
      await alice().create(bindings(), binding("a", { annotations: { [AUTHOR]: "alice" } }));
      for (const author of ["bob", null]) await assert.rejects(bob().merge(path(), claim(author)), refused);
      await assert.rejects(bob().merge(path(), { spec: { suspend: true } }), refused);
      await bob().merge(path(), { metadata: { labels: { a: "b" } } });
    } finally {
      await applyObjects(team.api, [mutates]);
    }
  });

  it("without permissions is found by the documented commands, which also stop the binding", async () => {
    const command = async (begin: string) =>
      (await lineOfPage("tasks/find-bindings-of-a-former-author.md", begin))
        .replace("-n registry", `-n ${team.namespace}`)
        .replace(/ \|\| true$/, "");
    const wordsOf = (line: string) => line.match(/('[^']*'|[^\s'])+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
    const run = (line: string) => controlPlane().kubectl(...wordsOf(line).slice(1));
    await newNamespace(true);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor();
    await alice().create(bindings(), { ...binding(), spec: accessKeySpec() });
    await team.bind("other", { ...accessKeySpec(), suspend: true });
    await team.until("harbor-s3", "Synced");
    await team.revoke("alice");
    await assert.rejects(alice().merge(path(), { spec: { suspend: true } }), /forbidden/);

    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    const table = await run(await command("kubectl get secretbindings -A -o custom-columns"));
    assert.match(table.stdout, new RegExp(`^${team.namespace} +harbor-s3 +alice$`, "m"));
    assert.match(table.stdout, new RegExp(`^${team.namespace} +other +admin$`, "m"));
    const found = await run(await command("kubectl get secretbindings -A -o jsonpath"));
    assert.equal(found.stdout, `${team.namespace}/harbor-s3\n`);
    for (const begin of ["kubectl auth can-i impersonate", "kubectl auth can-i get"])
      await assert.rejects(run(await command(begin)), /ended with 1: no/);

    await paste(await command("kubectl patch secretbinding"));
    await team.until("harbor-s3", "Suspended");
    await team.secret("bucket", { accessKeyID: secretText("later") });
    await team.barrier();
    assert.equal((await team.s3()).accesskey, rotated);
    await paste(await command("kubectl delete secretbinding"));
    await eventually(async () => assert.equal(await team.api.find(path()), undefined));
  });
});
