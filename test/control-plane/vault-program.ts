/**
 * Where the Vault server for tests is: INLAY_TEST_VAULT names the program, or it is built once from vault/ into a cache.
 * Vault is under the Business Source License: the tests run it, and Inlay ships nothing of it.
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

/** What the build of this process came to. One that failed is not tried again: it takes minutes, and fails each time. */
let build: Promise<string> | undefined;

/** The path of the program, after building it where that is still to be done. */
export async function vaultProgram(env: Environment = process.env): Promise<string> {
  const program = env["INLAY_TEST_VAULT"];
  if (program) return program;
  build ??= findGoProgram(vault, env);
  return await build;
}

export async function isVaultBuilt(env: Environment = process.env): Promise<boolean> {
  return existsSync(env["INLAY_TEST_VAULT"] || (await goProgramPath(vault, env)));
}
