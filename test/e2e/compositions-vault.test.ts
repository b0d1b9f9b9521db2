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

  for (const name of ["vault-sync-status", "vault-static-secret"])
    it(`the README of ${name} does what it says, and leaves nothing`, () => testPage(name, undefined, env())).timeout(
      "2m",
    );
});
