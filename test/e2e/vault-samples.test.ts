/** The samples for Vault, word for word, each with a Vault server of its own. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { startVault, type Vault } from "../control-plane/vault.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { stopSharedController } from "../controller/shared.ts";
import { testSample, vaultFolders } from "./samples.ts";

/** What the pages write to Vault, and no custom resource gets. */
const SECRETS = [
  "example-no-secret-key-1",
  "example-no-secret-key-2",
  "example-no-agent-password-1",
  "example-no-agent-password-2",
];

/** Readers may reach their server by another name than Inlay, which is not allowed to connect to that one. */
const [FOR_INLAY, FOR_CURL] = ["localhost", "port-forward.localhost"];

/** A configuration that lists the server of the tests, whatever its port. */
const CONFIG = `apiVersion: config.inlay.dev/v1alpha1
kind: ControllerConfiguration
vault: { addresses: [localhost] }
`;

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
    vault = await startVault({ tls: { names: [FOR_INLAY, FOR_CURL] } });
    await vault.enableKv("kv");
    await writeFile(caFile(), vault.ca);
  });
  afterEach(() => vault.stop());

  const caFile = () => join(vault.folder, "ca.crt");
  const env = () => ({
    VAULT_ADDR: vault.address.replace(FOR_INLAY, FOR_CURL),
    INLAY_VAULT_ADDR: vault.address,
    VAULT_CACERT: caFile(),
    VAULT_TOKEN: vault.rootToken,
    KUBERNETES_HOST: controlPlane().url,
  });

  for (const name of vaultFolders) {
    describe(`${name}:`, () => {
      // The page of vault/ enables it. Those who come from the agent have it.
      if (name !== "vault") beforeEach(() => vault.enableKubernetesAuth(controlPlane()));
      testSample(name, env);
    });
  }

  it("are two", () => assert.deepEqual(vaultFolders, ["vault", "vault-agent"]));
});
