/** The pages of docs whose commands need a Vault server, each with one of its own. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { startVault, type Vault } from "../control-plane/vault.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { stopSharedController } from "../controller/shared.ts";
import { textOf } from "./doc-blocks.ts";
import { testPage, vaultPages } from "./docs.ts";
import { CONFIG, VAULT_NAMES, vaultEnv, writeCa } from "./vault-pages.ts";

describe("the pages of docs with commands for Vault:", () => {
  let vault: Vault;
  let controller: ControllerProcess | undefined;

  before(async () => {
    const file = join(controlPlane().folder, "docs-vault.yaml");
    await writeFile(file, CONFIG);
    await stopSharedController();
    controller = new ControllerProcess(controlPlane(), "--config", file);
    await controller.start();
  });
  after(() => controller?.stop());

  beforeEach(async () => {
    vault = await startVault({ tls: { names: VAULT_NAMES } });
    await vault.enableKv("kv");
    await writeCa(vault);
  });
  afterEach(() => vault.stop());

  for (const page of vaultPages)
    it(`${page} does what it says, and leaves nothing`, async () => {
      if (!textOf(page).includes("sys/auth/kubernetes")) await vault.enableKubernetesAuth(controlPlane());
      await testPage(page, async () => {}, { ...vaultEnv(vault), KUBERNETES_HOST: controlPlane().url });
    }).timeout("2m");
});
