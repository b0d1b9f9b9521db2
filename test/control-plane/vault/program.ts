/**
 * The Vault server of the tests. Vault has the Business Source License: the tests run it, and Inlay ships nothing of it.
 */
import { findGoProgram, type GoProgram } from "../go-program.ts";

export const vault: GoProgram = {
  name: "vault",
  sources: import.meta.dirname,
  variable: "INLAY_TEST_VAULT",
  called: "a real Vault server",
  takes: "about 4 minutes",
  purpose: "These tests run against a real Vault server.",
};

export const vaultProgram = () => findGoProgram(vault);
