/** The environment of pages that read from a Vault server on this machine: its names, variables, and a configuration of Inlay. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Vault } from "../control-plane/vault.ts";

/** Readers reach their server by another name than Inlay, and Inlay may not connect to that name. */
const [FOR_INLAY, FOR_CURL] = ["localhost", "port-forward.localhost"];
/** The names in the certificate of the server. */
export const VAULT_NAMES: [string, string] = [FOR_INLAY, FOR_CURL];

/** A configuration that lists the server with any port, and one without TLS. */
export const CONFIG = `apiVersion: config.inlay.dev/v1alpha1
kind: ControllerConfiguration
vault: { addresses: [${FOR_INLAY}, "http://127.0.0.1"] }
`;

const caFile = (vault: Vault) => join(vault.folder, "ca.crt");

export const writeCa = (vault: Vault): Promise<void> => writeFile(caFile(vault), vault.ca);

export const vaultEnv = (vault: Vault) => ({
  VAULT_ADDR: vault.address.replace(FOR_INLAY, FOR_CURL),
  INLAY_VAULT_ADDR: vault.address,
  VAULT_CACERT: caFile(vault),
  VAULT_TOKEN: vault.rootToken,
});
