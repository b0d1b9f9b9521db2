/** Runs the samples for Vault word for word, each with a Vault server of its own. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { startVault, type Vault } from "../control-plane/vault.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { stopSharedController } from "../controller/shared.ts";
import { testSample, vaultFolders } from "./samples.ts";
import { CONFIG, VAULT_NAMES, vaultEnv, writeCa } from "./vault-pages.ts";

/** The values that the pages write to Vault, which no custom resource may contain. */
const SECRETS = [
  "example-no-secret-key-1",
  "example-no-secret-key-2",
  "example-no-agent-password-1",
  "example-no-agent-password-2",
];

describe("the samples for Vault:", () => {
  let vault: Vault;
  let controller: ControllerProcess | undefined;

  before(async () => {
    for (const value of SECRETS) registerSecret(value);
    const file = join(controlPlane().folder, "vault-samples.yaml");
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

  const env = () => ({ ...vaultEnv(vault), KUBERNETES_HOST: controlPlane().url });

  for (const name of vaultFolders) {
    describe(`${name}:`, () => {
      // The page of vault/ enables it. Users of the agent already have it.
      if (name !== "vault") beforeEach(() => vault.enableKubernetesAuth(controlPlane()));
      testSample(name, env);
    });
  }

  it("are two", () => assert.deepEqual(vaultFolders, ["vault", "vault-agent"]));
});
