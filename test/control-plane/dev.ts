/** Runs a control plane with Inlay until Ctrl-C, for `inlay dev` and `npm run control-plane`, and prints how to reach it. */
import { dirname } from "node:path";
import { caFile, prepareVaultSample, writeToken, writeVaultConfig } from "../../samples/start-vault.ts";
import { logOf, startController } from "../../samples/story.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { install } from "./install.ts";
import { vaultProgram } from "./vault/program.ts";
import { startVault, type Vault } from "./vault.ts";

export interface DevOptions {
  controller: boolean;
  vault: boolean;
}

/** Returns when everything runs. It is stopped by a signal. */
export async function runDev({ controller, vault: withVault }: DevOptions): Promise<void> {
  const alive = setInterval(() => {}, 2 ** 30);
  const started: { stop(): Promise<void> }[] = [];
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    for (const each of started.toReversed()) await each.stop();
    clearInterval(alive);
  };
  // Under npx, one Ctrl-C arrives twice.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());
  try {
    if (withVault) await vaultProgram();
    const cluster = await startControlPlane();
    started.push(cluster);
    await install(cluster);
    let vault: Vault | undefined;
    if (withVault) {
      vault = await startVault({ tls: true });
      started.push(vault);
      await vault.enableKv("kv");
      await prepareVaultSample(cluster, vault);
    }
    const config = vault === undefined ? [] : ["--config", await writeVaultConfig(cluster, vault)];
    if (controller && !isStopping) await startController(cluster, ...config);
    if (!isStopping)
      console.log([...clusterText(cluster, controller, config), ...(await vaultText(vault)), END].join("\n"));
  } catch (error) {
    if (!isStopping) {
      await stop();
      throw error;
    }
  }
}

const END = "\nCtrl-C stops everything, and removes all that it holds.";

function clusterText(cluster: ControlPlane, controller: boolean, config: readonly string[]): string[] {
  const use = `  export KUBECONFIG=${cluster.kubeconfigFile}`;
  const path = `  export PATH=$PATH:${dirname(cluster.kubectlProgram)}`;
  const run = `  ${["npx inlay controller", ...config].join(" ")}`;
  const running = controller
    ? [
        "",
        "The control plane and Inlay's controller run. The log of the controller:",
        "",
        `  tail -f ${logOf(cluster)}`,
      ]
    : [
        "",
        "The control plane runs, with Inlay's CRDs, policies and permissions. Run Inlay against it in a second terminal, in this folder:",
        "",
        use,
        run,
      ];
  const which = controller ? "another" : "a third";
  return [
    ...running,
    "",
    `Use it in ${which} terminal. The second line finds a kubectl if you have none:`,
    "",
    use,
    path,
    "  kubectl get secretbindings -A",
  ];
}

async function vaultText(vault: Vault | undefined): Promise<string[]> {
  if (vault === undefined) return [];
  return [
    "",
    "Vault runs, with keys at kv/vault-registry/s3, and a VaultConnection in the namespace vault-registry. To use it:",
    "",
    `  export VAULT_ADDR=${vault.address} VAULT_CACERT=${caFile(vault)}`,
    `  export VAULT_TOKEN=$(cat ${await writeToken(vault)})`,
    "  kubectl apply -f samples/vault/05-binding.yaml",
    "  kubectl get secretbindings -n vault-registry",
  ];
}
