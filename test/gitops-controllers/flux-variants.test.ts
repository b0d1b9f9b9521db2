/** What the pages say beyond their one path, with Flux's kustomize-controller: compositions, kustomize, placeholders, and what is removed in one commit. */
import assert from "node:assert/strict";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { install } from "../control-plane/install.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { objectsOf } from "../controller/manifests.ts";
import { root, runSection } from "../e2e/pages.ts";
import { chart, helm, KUBERNETES } from "../helm/helm.ts";
import { harbor, shipped, withPlaceholder } from "./files.ts";
import { Flux } from "./flux.ts";
import type { Repository } from "./git.ts";
import {
  BINDING,
  binding,
  COPIES,
  COPY,
  HARBOR,
  prepareCopies,
  prepareRegistry,
  printed,
  rotate,
  untilAccessKey,
} from "./stories.ts";
import { World } from "./world.ts";

const COMPOSITIONS = "/apis/inlay.dev/v1alpha1/bindingcompositions";
const TEAM = "/apis/inlay.dev/v1alpha1/namespaces/team-registry/secretbindings/harbor-s3";
const WAIT = { wait: true, timeout: "2m", retryInterval: "1s" };

describe("Flux, in further cases", function () {
  this.timeout("6m");
  let world: World;
  let platform: Repository;
  let team: Repository;
  let flux: Flux;
  let accessKey: string;
  before(async () => {
    world = await World.start("platform", "registry");
    [platform, team] = [world.repository("platform"), world.repository("registry")];
    await install(world.cluster);
    await world.cluster.kubectl("apply", "-f", join(root, "deploy/manifests/optional/access.yaml"));
    flux = await Flux.start(world.cluster, [platform, team]);
    accessKey = await prepareRegistry(world);
    await world.inlay.start();
  });
  afterEach(function () {
    return world.afterEach(this);
  });
  after(() => world?.stop());

  /** Flux reports a change during a reconcile as observed, although it has used the former spec. */
  const untilChanged = async (commit: string, spec: object) => {
    await flux.until("registry", "registry", "True", commit);
    await flux.kustomize("registry", "registry", team, spec);
    await flux.until("registry", "registry", "True", commit);
  };

  it("makes a platform whose composition has no claims yet Ready, and then the team that depends on it", async () => {
    const { stdout: dashboard } = await helm([
      ...[
        "template",
        "inlay",
        chart,
        "--namespace",
        "inlay-system",
        "--kube-version",
        KUBERNETES,
        "--set",
        "dashboard.enabled=true",
      ],
      ...["--show-only", "templates/monitoring/dashboard.yaml"],
    ]);
    const data = { escaped: `$\${HOME}`, replaced: `\${CLUSTER}` };
    const own = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "own", namespace: "inlay-system" }, data };
    const commit = await platform.commit({
      "compositions/account.yaml": await readFile(join(root, "deploy/manifests/optional/compositions.yaml"), "utf8"),
      ...shipped("compositions/harbor", "compositions/harbor"),
      "compositions/dashboard.yaml": dashboard,
      "compositions/own.yaml": JSON.stringify(own),
    });
    const postBuild = { substitute: { CLUSTER: "test" } };
    await flux.kustomize("flux-system", "platform", platform, { path: "./compositions", ...WAIT, postBuild });
    await world.cluster.kubectl("create", "namespace", "team-registry");
    const objects = await team.commit({
      ...shipped("compositions/harbor/sample", "team"),
      "team/account.yaml": TEAM_ACCOUNT,
    });
    const dependsOn = [{ name: "platform", namespace: "flux-system" }];
    await flux.kustomize("team-registry", "team", team, { path: "./team", ...WAIT, dependsOn });
    await flux.until("flux-system", "platform", "True", commit);
    await flux.until("team-registry", "team", "True", objects);

    const configMaps = "/api/v1/namespaces/inlay-system/configmaps";
    assert.deepEqual((await world.api.get(`${configMaps}/own`)).data, { escaped: `\${HOME}`, replaced: "test" });
    const [inGit] = objectsOf(dashboard);
    assert.match(JSON.stringify(inGit.data), /\$\{/);
    assert.deepEqual((await world.api.get(`${configMaps}/${inGit.metadata.name}`)).data, inGit.data);
  });

  it("makes the binding of compositions/harbor Ready, whose claims have two versions", async () => {
    await world.untilReason(TEAM, "Synced");
    const cluster = HARBOR.replace("/registry/", "/team-registry/");
    await eventually(async () => {
      const { metadata, spec } = await world.api.get(cluster);
      assert.equal(metadata.annotations["inlay.dev/state"], "Synced");
      assert.equal(spec.storage.spec.s3.accesskey, "AKIAEXAMPLENOTAKEY01");
    });
    await eventually(async () => {
      const { conditions } = (await world.api.get(`${COMPOSITIONS}/harbor`)).status;
      const ready = conditions.find(({ type }: AnyObject) => type === "Ready");
      assert.equal(ready.status, "True", JSON.stringify(conditions));
    });
    const { metadata } = await world.api.get(cluster);
    await flux.reconcile("team-registry", "team");
    assert.equal((await world.api.get(cluster)).metadata.resourceVersion, metadata.resourceVersion);
  });

  it("prunes a composition that has created copies only when the commit before has the annotation", async () => {
    const { composition, annotated } = await prepareCopies(world);
    const until = async (ready: "True" | "False", file: string | null) =>
      flux.until("flux-system", "platform", ready, await platform.commit({ "compositions/replicator.yaml": file }));
    await until("True", composition);
    await world.untilReason(COPIES, "Synced");
    const { message } = await until("False", null);
    assert.match(message, /inlay\.dev\/delete-copies=true/);
    await until("True", annotated);
    await until("True", null);
    await world.untilGone(`${COMPOSITIONS}/replicator`);
    await world.untilGone(COPY);
  });

  it("ends the deletion of a composition after a minute if one commit removes it with its account", async () => {
    const commit = await platform.commit({ "compositions/harbor": null, "compositions/account.yaml": null });
    await flux.until("flux-system", "platform", "True", commit);
    await world.untilGone(`${COMPOSITIONS}/harbor`, 90_000);
    assert.equal((await world.api.get(TEAM)).metadata.deletionTimestamp, undefined);
  });

  it("removes the values if one commit removes a binding, its account and its Roles, which have the label", async () => {
    const account = harbor.account.replaceAll("metadata:\n", 'metadata:\n  labels: { inlay.dev/access: "true" }\n');
    const files = { "access/s3/account.yaml": account, "access/s3/binding.yaml": binding() };
    const commit = await team.commit({ "access/harborcluster.yaml": harbor.cluster, ...files });
    await flux.kustomize("registry", "registry", team, { path: "./access", ...WAIT });
    await flux.until("registry", "registry", "True", commit);
    await untilAccessKey(world, accessKey);
    const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/registry";
    const kept = ["/api/v1/namespaces/registry/serviceaccounts", `${rbac}/roles`, `${rbac}/rolebindings`];
    for (const path of kept) {
      const finalizers = async () => (await world.api.get(`${path}/inlay`)).metadata.finalizers;
      await eventually(async () => assert.deepEqual(await finalizers(), ["inlay.dev/access"], path));
    }
    await team.commit({ "access/s3": null });
    for (const path of [BINDING, ...kept.map((each) => `${each}/inlay`)]) await world.untilGone(path);
    await untilAccessKey(world, undefined);
  });

  it("leaves the value where git has a placeholder, with the settings that inlay gitops prints", async () => {
    const files = (version: string) => ({
      "placeholder/account.yaml": harbor.account,
      "placeholder/harborcluster.yaml": withPlaceholder(version),
      "placeholder/binding.yaml": binding(undefined, {}, { onConflict: "Force" }),
    });
    await team.commit({ "access/harborcluster.yaml": null, "access/account.yaml": harbor.account });
    await world.untilGone(HARBOR);
    const commit = await team.commit(files("2.5.0"));
    const settings = parse(await printed("flux", "placeholder", world, team)).kustomization.spec;
    await untilChanged(commit, { path: "./placeholder", timeout: "2m", ...settings });
    const rotated = await rotate(world);
    await untilAccessKey(world, rotated);
    const before = await world.api.get(HARBOR);
    await flux.reconcile("registry", "registry");
    assert.equal((await world.api.get(HARBOR)).metadata.resourceVersion, before.metadata.resourceVersion);
    await flux.until("registry", "registry", "True", await team.commit(files("2.5.1")));
    const { metadata, spec } = await world.api.get(HARBOR);
    assert.deepEqual([spec.version, spec.storage.spec.s3.accesskey], ["2.5.1", rotated]);
    assert.equal(metadata.generation, before.metadata.generation + 1);
  });

  it("builds a kustomization that renames objects, as the page says", async () => {
    await cp(join(root, "deploy/kustomize"), join(team.folder, "deploy/kustomize"), { recursive: true });
    const { env, place } = world.reader(team);
    for (const step of ["1. Give each source a name", "2. Add the component", "3. Keep the account out of the prefix"])
      await runSection("docs/tasks/use-kustomize.md", `## ${step}`, env, place);
    await untilChanged(await team.commit({}), { path: "./my-registry", ...WAIT });
    const renamed = HARBOR.replace(/harbor$/, "dev-harbor");
    assert.equal((await world.api.get(renamed)).spec.storage.spec.s3.accesskey, "example");
    const named = join(team.folder, "my-registry/named/kustomization.yaml");
    const changed = (await readFile(named, "utf8")).replace("accessKeyID=example", "accessKeyID=changed");
    const rotated = await team.commit({ "my-registry/named/kustomization.yaml": changed });
    await flux.until("registry", "registry", "True", rotated);
    assert.equal((await world.api.get(renamed)).spec.storage.spec.s3.accesskey, "changed");
  });
});

/** What a team needs for compositions/harbor, by its page. */
const TEAM_ACCOUNT = `
apiVersion: v1
kind: ServiceAccount
metadata: { name: inlay, namespace: team-registry }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: inlay-harbor, namespace: team-registry }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: inlay-harbor }
subjects: [{ kind: ServiceAccount, name: inlay, namespace: team-registry }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: inlay-compositions, namespace: team-registry }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: inlay-compositions }
subjects: [{ kind: ServiceAccount, name: inlay-compositions, namespace: inlay-system }]
---
apiVersion: inlay.dev/v1alpha1
kind: SecretGrant
metadata: { name: harbor, namespace: team-registry }
spec:
  from: [{ composition: harbor }]
  to: [{ kind: Secret, name: bucket }]
`;
