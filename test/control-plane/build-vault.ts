/**
 * Builds the Vault server beside the first tests of a run, which go first: after the control plane, without which no test
 * begins, and at a low priority.
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
