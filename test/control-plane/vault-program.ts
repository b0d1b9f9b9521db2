/**
 * Finds the Vault server for tests: INLAY_TEST_VAULT names the program, otherwise it is built once from vault/ into a cache.
 * Vault has the Business Source License: the tests run it, and Inlay ships nothing of it.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findGoProgram, type GoProgram, goProgramPath } from "./go-program.ts";
import type { Environment } from "./programs.ts";

const vault: GoProgram = {
  name: "vault",
  sources: join(import.meta.dirname, "vault"),
  called: "a real Vault server",
  takes: "about 4 minutes",
  purpose: "These tests run against a real Vault server.",
};

/** The build of this process. A failed build is not repeated: it takes minutes, and would fail again. */
let build: Promise<string> | undefined;

/** The path of the program, which is built if necessary. */
export async function vaultProgram(env: Environment = process.env): Promise<string> {
  const program = env["INLAY_TEST_VAULT"];
  if (program) return program;
  build ??= findGoProgram(vault, env);
  return await build;
}

export async function isVaultBuilt(env: Environment = process.env): Promise<boolean> {
  return existsSync(env["INLAY_TEST_VAULT"] || (await goProgramPath(vault, env)));
}
