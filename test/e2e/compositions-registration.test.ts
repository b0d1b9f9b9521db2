/** Runs the page that replaces Vault's own service registration word for word, and shows that real servers move the Service. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { Vault } from "../control-plane/vault.ts";
import { loopbackHosts, startVaultCluster } from "../control-plane/vault-cluster.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { applyFile, deleteFile, objectsOf } from "../controller/manifests.ts";
import { describeRight, isAdmitted, isBy, type Right, rightsOf } from "../controller/rights.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { FOLDER, NAMESPACE, VaultPods } from "../controller/vault-pods.ts";
import { TcpProxy } from "../faults/proxy.ts";
import { MANIFEST } from "./compositions.ts";
import { root, runPage, shell, stepsOf } from "./pages.ts";

/** The configuration that readers of the page write, for the pods of the tests. */
const CONFIG = `apiVersion: config.inlay.dev/v1alpha1
kind: ControllerConfiguration
vault: { addresses: ["127.0.0.0/8:8200"] }
`;

const PAGE = "compositions/vault-service-registration/README.md";

describe("the composition for Vault's service registration", function () {
  this.timeout("3m");
  const hosts = loopbackHosts();
  let vault: Vault;
  /** The URL of Vault in the shell of the page's readers. */
  let forwarded: TcpProxy;
  let pods: VaultPods;
  let controller: ControllerProcess;
  /** The position in the audit log at the start. */
  let began: number;

  before(async function () {
    this.timeout("20m");
    began = await auditLog().mark();
    vault = await startVaultCluster(hosts, {
      tls: { names: ["vault.vault.svc", "localhost"] },
      versionMetadata: "ent",
    });
    forwarded = await TcpProxy.start(vault.address);
    pods = new VaultPods(hosts);
    await pods.start();
    await applyFile(pods.api, MANIFEST);
    await writeFile(join(vault.folder, "ca.crt"), vault.ca);
    const config = join(vault.folder, "controller.yaml");
    await writeFile(config, CONFIG);
    await stopSharedController();
    controller = new ControllerProcess(controlPlane(), "--config", config);
    await controller.start();
    // The labels that Vault's own registration left.
    const of = (active: string) => ({
      "vault-active": active,
      "vault-initialized": "true",
      "vault-perf-standby": "false",
      "vault-sealed": "false",
      "vault-version": "1.21.4-ent",
    });
    await Promise.all(["true", "false", "false"].map((active, index) => pods.label(`vault-${index}`, of(active))));
  });
  after(async () => {
    await controller.stop();
    await deleteFile(pods.api, MANIFEST);
    await pods.stop();
    await forwarded.stop();
    await vault.stop();
  });

  const env = () => ({
    VAULT_ADDR: `https://localhost:${new URL(forwarded.url).port}`,
    INLAY_VAULT_ADDR: vault.address,
    VAULT_CACERT: join(vault.folder, "ca.crt"),
    VAULT_TOKEN: vault.rootToken,
  });
  const states = async () =>
    (await pods.pods()).map(({ metadata }) => metadata.annotations?.["inlay.dev/state"] as string | undefined);

  it("has a page that works word for word, and removes what it creates", async () => {
    const objects = async () =>
      (await shell("kubectl get namespaces,bindingcompositions,clusterroles,clusterrolebindings -o name")).split("\n");
    const before = await objects();
    const steps = await runPage(PAGE, env());
    assert.ok(steps.length > 5, "the page applies, tries, and goes back");
    assert.deepEqual(await objects(), before);
  });

  it("moves the Service within 5 seconds of a step-down, and changes nothing while all servers are silent", async () => {
    const steps = stepsOf(await readFile(join(root, PAGE), "utf8"));
    await shell(steps[0]?.commands ?? assert.fail(), env());
    await eventually(async () => assert.deepEqual(await states(), ["Synced", "Synced", "Synced"]));
    const former = await pods.behind();
    assert.equal(former.length, 1);
    // The active server steps down through its own API.
    const began = performance.now();
    await vault.askAt(hosts[Number(former[0]?.at(-1))] ?? assert.fail(), "PUT", "sys/step-down");
    await eventually(async () => {
      const behind = await pods.behind();
      assert.ok(behind.length === 1 && behind[0] !== former[0], `${behind}`);
    });
    assert.ok(performance.now() - began < 5_000, `it took ${performance.now() - began} ms`);

    const labels = async () => (await pods.pods()).map(({ metadata }) => metadata.labels);
    const before = { behind: await pods.behind(), labels: await labels() };
    await vault.program.kill("SIGSTOP");
    try {
      await eventually(
        async () => assert.deepEqual(await states(), ["Unreachable", "Unreachable", "Unreachable"]),
        60_000,
      );
      assert.deepEqual({ behind: await pods.behind(), labels: await labels() }, before);
    } finally {
      await vault.program.kill("SIGCONT");
    }
    await eventually(async () => assert.deepEqual(await states(), ["Synced", "Synced", "Synced"]), 60_000);
    assert.deepEqual({ behind: await pods.behind(), labels: await labels() }, before);
    // The last steps of the page, which remove its objects.
    for (const { commands } of steps.slice(-3).filter(({ prints }) => prints === undefined)) await shell(commands);
  });

  it("has used every permission in its account.yaml, in that namespace only", async () => {
    const requests = [...(await auditLog().since(began)), ...(await auditLog().watchesSince(began))].filter(isAdmitted);
    const account = objectsOf(await readFile(join(FOLDER, "account.yaml"), "utf8"));
    const users = ["inlay-system:inlay-compositions", "vault:inlay"].map((each) => `system:serviceaccount:${each}`);
    const unused = account.flatMap(({ rules }, role) => {
      const own = requests.filter(({ as, namespace }) => as === users[role] && namespace === NAMESPACE);
      const used = (right: Right) => own.some((each) => isBy(right, { ...each, as: undefined }));
      return rules.flatMap(rightsOf).filter((right: Right) => !used(right));
    });
    // The admission policy checks this permission, without a request.
    assert.deepEqual(unused.map(describeRight), ["use inlay.dev/vaultconnections vault"]);
  });

  it("is the same for OpenBao as for Vault", async () => {
    const read = (file: string) => readFile(join(FOLDER, file), "utf8");
    const replaced = (await read("composition.yaml"))
      .replaceAll(/vault(?!:$|\.health| })/gm, "openbao")
      .replaceAll("Vault", "OpenBao");
    assert.equal(await read("openbao/composition.yaml"), replaced);
  });
});
