/** Runs the READMEs of compositions that read from Vault word for word, with one Vault server and one controller. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { startVault, type Vault } from "../control-plane/vault.ts";
import { Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { applyFile, deleteFile } from "../controller/manifests.ts";
import { stopSharedController } from "../controller/shared.ts";
import { MANIFEST, testPage } from "./compositions.ts";
import { type Step, shell } from "./pages.ts";
import { CONFIG, VAULT_NAMES, vaultEnv, writeCa } from "./vault-pages.ts";

/** The values that the pages write to Vault. */
const SECRETS = ["example-no-password-1", "example-no-password-2"];

describe("the compositions for Vault:", () => {
  const api = () => new Api(controlPlane());
  let vault: Vault;
  /** The operator of VaultSyncStatus uses plain http. */
  let plain: Vault;
  let controller: ControllerProcess | undefined;

  before(async () => {
    for (const value of SECRETS) registerSecret(value);
    [vault, plain] = [await startVault({ tls: { names: VAULT_NAMES } }), await startVault()];
    await Promise.all([vault.enableKv("kv"), plain.enableKv("kv"), vault.enableKubernetesAuth(controlPlane())]);
    await writeCa(vault);
    const config = join(vault.folder, "controller.yaml");
    await writeFile(config, CONFIG);
    await applyFile(api(), MANIFEST);
    await stopSharedController();
    controller = new ControllerProcess(controlPlane(), "--config", config);
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await Promise.all([vault.stop(), plain.stop()]);
    await deleteFile(api(), MANIFEST);
  });

  it("the README of vault-sync-status works word for word, and removes what it creates", () =>
    testPage("vault-sync-status", undefined, {
      VAULT_ADDR: plain.address,
      INLAY_VAULT_ADDR: plain.address,
      VAULT_TOKEN: plain.rootToken,
    })).timeout("2m");

  it("the README of vault-static-secret works word for word, also when it removes unsupported claims", () =>
    testPage("vault-static-secret", makeUnsupported, vaultEnv(vault))).timeout("2m");
});

/**
 * Before the page goes back, its VaultStaticSecret asks for something unsupported, so its binding stays unchanged from then on.
 */
async function makeUnsupported({ commands }: Step): Promise<void> {
  if (!commands.startsWith("kubectl get vaultstaticsecrets -A -o custom-columns=")) return;
  const claim = "vaultstaticsecret app -n team-web";
  await shell(`kubectl patch ${claim} --type merge -p '{"spec": {"namespace": "team"}}'`);
  await shell(`kubectl wait --for=jsonpath='{.status.conditions[0].reason}'=NotSupported ${claim} --timeout=30s`);
}
