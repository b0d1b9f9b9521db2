/** Finds the test files that need a Vault server: those that import its program, directly or through other modules. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const PROGRAM = join(import.meta.dirname, "..", "control-plane", "vault-program.ts");
const IMPORT = /\b(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+\.ts)"/g;

/** The modules that a file imports. */
const imports = new Map<string, string[]>();

/** Takes the absolute path of a file. */
export function needsVault(file: string): boolean {
  const seen = new Set([file]);
  // The list grows during the loop.
  for (const each of seen) {
    if (each === PROGRAM) return true;
    for (const imported of importsOf(each)) seen.add(imported);
  }
  return false;
}

function importsOf(file: string): string[] {
  const known = imports.get(file);
  if (known !== undefined) return known;
  // Text that only looks like an import may name no file.
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const found = [...text.matchAll(IMPORT)].map(([, path = ""]) => join(dirname(file), path));
  imports.set(file, found);
  return found;
}
