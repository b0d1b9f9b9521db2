/**
 * The labels and Services of Inlay follow the servers of a Vault cluster through failures. An upgrade that uses the labels
 * deletes the right pods.
 */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { Vault } from "../control-plane/vault.ts";
import { loopbackHosts, startVaultProcesses } from "../control-plane/vault-cluster.ts";
import type { AnyObject } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { deleteFile } from "../controller/manifests.ts";
import { stopSharedController } from "../controller/shared.ts";
import { FOLDER, NAMESPACE, VaultPods } from "../controller/vault-pods.ts";
import { MANIFEST } from "../e2e/compositions.ts";
import { shell, stepsOf } from "../e2e/pages.ts";

const CONFIG = `apiVersion: config.inlay.dev/v1alpha1
kind: ControllerConfiguration
vault: { addresses: ["127.0.0.0/8:8200"] }
`;
const [OLD, NEW] = ["1.21.4-old", "1.21.4-new"];
const NAMES = ["vault-0", "vault-1", "vault-2"];

describe("the labels of Vault's pods", function () {
  this.timeout("2m");
  const hosts = loopbackHosts();
  let vaults: [Vault, Vault, Vault];
  let pods: VaultPods;
  let controller: ControllerProcess;
  let page: string;

  before(async function () {
    this.timeout("20m");
    page = await readFile(join(FOLDER, "README.md"), "utf8");
    vaults = await startVaultProcesses(hosts, { names: ["vault.vault.svc"], versionMetadata: "old" });
    const running = new Set<number>();
    pods = new VaultPods(hosts, {
      // A recreated pod has a new server, which must be unsealed.
      onStart: async (index, image) => {
        if (!running.has(index)) return void running.add(index);
        await vaults[index]?.restart(image.endsWith("new") ? "new" : "old");
        await vaults[index]?.unseal();
      },
    });
    const [first] = vaults;
    await Promise.all([
      pods.start(),
      writeFile(join(first.folder, "ca.crt"), first.ca),
      writeFile(join(first.folder, "controller.yaml"), CONFIG),
    ]);
    await stopSharedController();
    controller = new ControllerProcess(controlPlane(), "--config", join(first.folder, "controller.yaml"));
    await controller.start();
    const env = { INLAY_VAULT_ADDR: first.address, VAULT_CACERT: join(first.folder, "ca.crt") };
    await shell(stepsOf(page)[0]?.commands ?? assert.fail(), env);
    await labelled("vault-version", [OLD, OLD, OLD]);
    await labelled("vault-active", ["true", "false", "false"]);
  });
  after(async () => {
    // Deletes one file after the other, because Inlay needs its permissions to release what it wrote.
    for (const file of ["composition.yaml", "account.yaml"]) await shell(`kubectl delete -f ${join(FOLDER, file)}`);
    await controller.stop();
    await deleteFile(pods.api, MANIFEST);
    await pods.stop();
    await Promise.all(vaults.map((each) => each.stop()));
  });

  const labelled = (label: string, expected: string[]) =>
    eventually(async () => assert.deepEqual(await pods.labels(label), expected));
  /** The index of the pod with the label of the active server. The Service selects that pod. */
  const active = async () => {
    const index = (await pods.labels("vault-active")).indexOf("true");
    assert.deepEqual(await pods.behind(), [NAMES[index]]);
    return index;
  };
  /** Waits until the servers can elect another one when the active one fails. A server that has just started does not count yet. */
  const tolerant = (index: number) =>
    eventually(async () => {
      const { data } = (await vaults[index]?.api("GET", "sys/storage/raft/autopilot/state")) ?? assert.fail();
      assert.equal(data.failure_tolerance, 1, JSON.stringify(data.servers));
    }, 60_000);
  /** How long it takes until the check passes. */
  const timed = async (check: () => Promise<void>) => {
    const began = performance.now();
    await eventually(check, 60_000);
    return performance.now() - began;
  };
  /** Until the servers have elected another one. */
  const electedBeside = (index: number) =>
    timed(async () => {
      const others = vaults.filter((_, each) => each !== index);
      const answers = await Promise.all(others.map((each) => each.ask("GET", "sys/health")));
      assert.ok(answers.some(({ status }) => status === 200));
    });
  /** Until its pod is not labelled as active any more. */
  const droppedFrom = (index: number) =>
    timed(async () => assert.equal((await pods.labels("vault-active"))[index], "false"));
  /** Until the Service selects only another pod. */
  const movedFrom = async (index: number) => {
    const moved = await timed(async () => {
      const behind = await pods.behind();
      assert.ok(behind.length === 1 && behind[0] !== NAMES[index], `${behind} instead of another than ${index}`);
    });
    assert.equal((await pods.labels("vault-active"))[index], "false");
    return moved;
  };

  it("move the Service within 5 seconds when the active server is killed, and keep the version", async () => {
    const index = await active();
    await tolerant(index);
    await vaults[index]?.kill();
    const took = await movedFrom(index);
    assert.ok(took < 5_000, `it took ${took} ms`);
    const { labels } = (await pods.pods())[index].metadata;
    assert.deepEqual(
      [labels["vault-sealed"], labels["vault-initialized"], labels["vault-version"]],
      ["true", "false", OLD],
    );
    await vaults[index]?.restart();
    await vaults[index]?.unseal();
    await labelled("vault-sealed", ["false", "false", "false"]);
  });

  it("move the Service within 20 seconds when the active server hangs", async () => {
    const index = await active();
    await tolerant(index);
    await vaults[index]?.program.kill("SIGSTOP");
    try {
      const all = [movedFrom(index), droppedFrom(index), electedBeside(index)] as const;
      const [took, dropped, elected] = await Promise.all(all);
      assert.ok(dropped < 20_000, `the label took ${dropped} ms`);
      // Before another server is active, the Service can select none.
      assert.ok(took < Math.max(20_000, elected + 5_000), `it took ${took} ms, and the election ${elected} ms`);
    } finally {
      await vaults[index]?.program.kill("SIGCONT");
    }
    await labelled("vault-sealed", ["false", "false", "false"]);
    // The server that continues says that it is active until it learns of the other one.
    await eventually(active, 30_000);
  });

  it("are restored when the old tool changes them, and the pod names that tool when it continues", async () => {
    const standby = ((await active()) + 1) % NAMES.length;
    const name = NAMES[standby] ?? assert.fail();
    const state = async () => (await pods.pods())[standby].metadata;
    await eventually(async () => {
      const { labels, annotations } = await state();
      if (labels["vault-perf-standby"] === "false") await pods.label(name, { "vault-perf-standby": "true" });
      assert.equal(annotations["inlay.dev/state"], "Contended");
    });
    const path = `/apis/inlay.dev/v1alpha1/namespaces/${NAMESPACE}/secretbindings/${name}-registration`;
    const { conditions } = (await pods.api.get(path)).status;
    assert.match(conditions.find(({ type }: AnyObject) => type === "Ready").message, /Go-http-client/);
  });

  it("name the right pods in the right order for an upgrade with OnDelete", async () => {
    const [, standbys = "", last = ""] = /^(kubectl delete pods .*)\n(kubectl delete pods .*)$/m.exec(page) ?? [];
    const run = (command: string) => shell(command.replace("1.21.3", OLD));
    await shell(`kubectl set image statefulset/vault -n ${NAMESPACE} vault=hashicorp/vault:new`);
    const index = await active();
    const others = NAMES.filter((_, each) => each !== index);
    assert.deepEqual(deletedBy(await run(standbys)), others);
    await labelled(
      "vault-version",
      NAMES.map((_, each) => (each === index ? OLD : NEW)),
    );
    await labelled("vault-sealed", ["false", "false", "false"]);
    assert.equal(await active(), index);
    assert.deepEqual(deletedBy(await run(standbys)), []);
    assert.deepEqual(deletedBy(await run(last)), [NAMES[index]]);
    await labelled("vault-version", [NEW, NEW, NEW]);
    // The servers elect the leader. The former active server may be elected again.
    await eventually(async () => assert.equal((await vaults[await active()]?.api("GET", "sys/leader"))?.is_self, true));
    for (const command of [standbys, last]) assert.deepEqual(deletedBy(await run(command)), []);
  });
});

const deletedBy = (printed: string) => [...printed.matchAll(/pod "([^"]+)"/g)].map(([, name]) => name).sort();
