/**
 * Builds the Vault server beside the first tests of a run, at a low priority. Building the control plane comes first, because all
 * tests need it.
 */
import { setPriority } from "node:os";
import { findPrograms } from "./programs.ts";
import { vaultProgram } from "./vault-program.ts";

const LOW_PRIORITY = 10;

try {
  await findPrograms();
  setPriority(LOW_PRIORITY);
  await vaultProgram();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
