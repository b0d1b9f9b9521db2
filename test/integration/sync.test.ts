/** `inlay sync`, `suspend`, `resume` and `version --cluster`, and an older Inlay in the cluster, on a real API server. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlay } from "../controller/cli.ts";
import {
  ACCESS_KEY_BASE,
  compose,
  compositionPath,
  HARBOR_CLAIMS,
  installCompositions,
  READS_SECRETS,
  removeCompositions,
  TO_CLAIM,
  untilComposition,
} from "../controller/compositions.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { accessKeySpec, createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const admin = () => controlPlane().kubeconfigFile;
const run = (team: TestNamespace, command: string, object: string, ...more: string[]) =>
  inlay(admin(), command, object, "-n", team.namespace, ...more);
const bindingPath = (team: TestNamespace) => `${team.path("inlay.dev/v1alpha1", "secretbindings")}/harbor-s3`;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

describe("inlay sync", () => {
  it("makes Inlay read sources and targets again, and costs one write of the status", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await team.barrier();
    const before = await team.binding("harbor-s3");
    // A read of the same version is shared for a second (docs/decisions/0049-shared-reads.md), so the first sync may read no Secret.
    const { asked, requested } = await eventually(async () => {
      const mark = await auditLog().mark();
      const { stdout, code } = await run(team, "sync", "harbor-s3", "--wait", "-o", "json");
      assert.equal(code, 0);
      const { handled, requested, ready } = JSON.parse(stdout);
      assert.deepEqual([handled, ready.status, ready.reason], [true, "True", "Synced"]);
      const asked = await requestsFor(team, mark);
      const reads = asked
        .filter(({ verb }) => verb === "get")
        .map(({ uri }) => uri.split("?")[0]?.split("/").slice(-2).join("/"));
      assert.deepEqual(reads.sort(), ["harborclusters/harbor", "secrets/bucket"]);
      return { asked, requested };
    });
    // Events of earlier writes are sent in the background, and may arrive now.
    const writes = asked.filter(
      ({ verb, uri }) => !["get", "list", "watch"].includes(verb) && !/reviews|\/events/.test(uri),
    );
    assert.deepEqual(
      writes.map(({ verb, uri }) => [verb, uri.split("?")[0]]),
      [["update", `${bindingPath(team)}/status`]],
    );
    const { metadata, status } = await team.binding("harbor-s3");
    assert.deepEqual({ ...status, lastHandledRefresh: undefined }, { ...before.status, lastHandledRefresh: undefined });
    assert.deepEqual([status.lastHandledRefresh, metadata.annotations["inlay.dev/refresh"]], [requested, requested]);
  });

  it("says with --wait what is wrong with a binding, and exits with 1", async () => {
    const team = await createNamespace();
    await team.harbor();
    await team.bind("harbor-s3", accessKeySpec());
    await team.until("harbor-s3", "SourceNotFound");
    const { stdout, code } = await run(team, "sync", "sb/harbor-s3", "--wait");
    assert.match(stdout, /^secretbinding\.inlay\.dev\/harbor-s3: Ready is False \(SourceNotFound\): .*bucket/);
    assert.equal(code, 1);
  });

  it("makes a composition reconcile all its claims", async () => {
    await installCompositions([...HARBOR_CLAIMS, READS_SECRETS]);
    try {
      const team = await createNamespace();
      await team.secret("bucket", { accessKeyID: secretText("access") });
      await team.harbor();
      await compose(team, "harbor", { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] });
      await untilComposition(team, "harbor", "Ready");
      const name = `bindingcomposition/${team.namespace}-harbor`;
      const { stdout, code } = await run(team, "sync", name, "--wait");
      assert.match(stdout, /: Ready is True \(Ready\)/);
      assert.equal(code, 0);
      const { metadata, status } = await team.api.get(compositionPath(team, "harbor"));
      assert.equal(status.lastHandledRefresh, metadata.annotations["inlay.dev/refresh"]);
      const [composed] = (await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"))).items;
      assert.equal(composed.metadata.annotations["inlay.dev/refresh"], undefined);
      // A composed binding can be synced too, and its composition does not revert the annotation.
      assert.equal((await run(team, "sync", composed.metadata.name, "--wait")).code, 0);
    } finally {
      await removeCompositions();
    }
  });

  it("refuses an object that is suspended, and users who may not patch it", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    const { stdout } = await run(team, "suspend", "harbor-s3");
    assert.match(stdout, /^secretbinding\.inlay\.dev\/harbor-s3 suspended/);
    await team.until("harbor-s3", "Suspended");
    const { metadata } = await team.binding("harbor-s3");
    assert.ok(metadata.managedFields.some(({ manager }: AnyObject) => manager === "inlay-cli"));
    assert.match((await run(team, "suspend", "harbor-s3")).stdout, /unchanged/);
    assert.match(
      (await run(team, "sync", "harbor-s3")).stderr,
      /suspended; resume it with: inlay resume secretbinding\/harbor-s3/,
    );
    await run(team, "resume", "harbor-s3");
    await team.until("harbor-s3", "Synced");
    await team.createAccount("viewer");
    const rules = [{ apiGroups: ["inlay.dev"], resources: ["secretbindings"], verbs: ["get"] }];
    await team.grant(rules, { account: "viewer", role: "viewer" });
    const viewer = await controlPlane().kubeconfigForServiceAccount(team.namespace, "viewer");
    for (const command of ["sync", "suspend"]) {
      const { stderr, code } = await inlay(viewer, command, "harbor-s3", "-n", team.namespace);
      assert.match(
        stderr,
        /^you may not patch secretbindings\.inlay\.dev\/harbor-s3 in namespace \S+; ask for this permission\n$/,
      );
      assert.equal(code, 1);
    }
  });

  it("says that no controller handles the request", async () => {
    const team = await createNamespace({ controller: false });
    await team.controller.stop();
    await team.bind("harbor-s3", accessKeySpec());
    const { stderr, code } = await run(team, "sync", "harbor-s3", "--wait", "--timeout", "300ms");
    assert.match(stderr, /^secretbinding\.inlay\.dev\/harbor-s3: Inlay has not handled the request after 0 s; /);
    assert.equal(code, 1);
  });
});

describe("an installation", () => {
  it("is shown with its versions, and its parts of other versions are named", async () => {
    const { stdout, code } = await inlay(admin(), "version", "--cluster", "-o", "json");
    assert.equal(code, 0);
    const { inlay: own, cluster } = JSON.parse(stdout);
    assert.equal(cluster.crds.length, 4);
    assert.ok([...cluster.crds, ...cluster.policies].every(({ version }) => version === own));
    assert.deepEqual(cluster.notes, []);
  });

  it("completes the names of its objects, also for kubectl inlay", async () => {
    const team = await createNamespace({ controller: false });
    await team.bind("harbor-s3", accessKeySpec());
    const folder = await mkdtemp(join(tmpdir(), "inlay-plugin-"));
    const main = join(import.meta.dirname, "..", "..", "src", "main.ts");
    for (const name of ["kubectl-inlay", "kubectl_complete-inlay"]) await symlink(main, join(folder, name));
    const node = dirname(process.execPath);
    const env = { ...process.env, KUBECONFIG: admin(), PATH: `${folder}:${node}:${process.env["PATH"]}` };
    try {
      const args = ["__complete", "inlay", "sync", "-n", team.namespace, ""];
      const { stdout } = await promisify(execFile)(controlPlane().kubectlProgram, args, { env });
      assert.equal(stdout, "harbor-s3\n:4\n");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("that is older is noticed by every command that reads it, without permissions", async () => {
    const team = await createNamespace({ controller: false });
    const crd = `${CRDS}/secretgrants.inlay.dev`;
    const { spec } = await team.api.get(crd);
    const reduced = structuredClone(spec);
    delete reduced.versions[0].schema.openAPIV3Schema.properties.spec.properties.from.items.properties.namespaceUID;
    delete reduced.versions[0].schema.openAPIV3Schema.properties.spec.properties.from.items["x-kubernetes-validations"];
    await team.createAccount("viewer");
    const viewer = await controlPlane().kubeconfigForServiceAccount(team.namespace, "viewer");
    await team.api.merge(crd, { spec: reduced });
    try {
      await eventually(async () => {
        const { stderr } = await inlay(viewer, "trace", "bucket", "-n", team.namespace);
        assert.match(
          stderr,
          /^warning: the Inlay in this cluster is older than this program .*SecretGrant has no spec\.from\[\]\.namespaceUID; upgrade it/,
        );
      }, 20_000);
    } finally {
      await team.api.merge(crd, { spec });
    }
  });
});
