/** The READMEs of compositions that read from Vault, word for word, with one Vault server and one controller for all of them. */
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

/** What the pages write to Vault. */
const SECRETS = ["example-no-password-1", "example-no-password-2"];
/** Readers may reach their server by another name than Inlay, which is not allowed to connect to that one. */
const [FOR_INLAY, FOR_CURL] = ["localhost", "port-forward.localhost"];

/** A configuration that lists the server of the tests, whatever its port. */
const CONFIG = `apiVersion: config.inlay.dev/v1alpha1
kind: ControllerConfiguration
vault: { addresses: [localhost] }
`;

describe("the compositions for Vault:", () => {
  const api = () => new Api(controlPlane());
  let vault: Vault;
  let controller: ControllerProcess | undefined;

  before(async () => {
    for (const value of SECRETS) registerSecret(value);
    vault = await startVault({ tls: { names: [FOR_INLAY, FOR_CURL] } });
    await Promise.all([vault.enableKv("kv"), vault.enableKubernetesAuth(controlPlane())]);
    await writeFile(caFile(), vault.ca);
    const config = join(vault.folder, "controller.yaml");
    await writeFile(config, CONFIG);
    await applyFile(api(), MANIFEST);
    await stopSharedController();
    controller = new ControllerProcess(controlPlane(), "--config", config);
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await vault.stop();
    await deleteFile(api(), MANIFEST);
  });

  const caFile = () => join(vault.folder, "ca.crt");
  const env = () => ({
    VAULT_ADDR: vault.address.replace(FOR_INLAY, FOR_CURL),
    INLAY_VAULT_ADDR: vault.address,
    VAULT_CACERT: caFile(),
    VAULT_TOKEN: vault.rootToken,
  });

  it("the README of vault-sync-status does what it says, and leaves nothing", () =>
    testPage("vault-sync-status", undefined, env())).timeout("2m");

  it("the README of vault-static-secret does what it says, and goes back with what is not supported any more, too", () =>
    testPage("vault-static-secret", makeUnsupported, env())).timeout("2m");
});

/** Before the page goes back, its VaultStaticSecret asks for what the composition can't do, so its binding stays as it was made last. */
async function makeUnsupported({ commands }: Step): Promise<void> {
  if (!commands.startsWith("kubectl get vaultstaticsecrets -A -o custom-columns=")) return;
  const claim = "vaultstaticsecret app -n team-web";
  await shell(`kubectl patch ${claim} --type merge -p '{"spec": {"namespace": "team"}}'`);
  await shell(`kubectl wait --for=jsonpath='{.status.conditions[0].reason}'=NotSupported ${claim} --timeout=30s`);
}
