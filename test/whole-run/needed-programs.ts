/** Finds the Go programs that a test file needs: those from whose folder it imports a module, directly or through other modules. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { GoProgram } from "../control-plane/go-program.ts";
import { GO_PROGRAMS } from "../control-plane/go-programs.ts";

const IMPORT = /\b(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+\.ts)"/g;

/** It imports all programs, for those who choose one by its name. */
const LIST = join(import.meta.dirname, "..", "control-plane", "go-programs.ts");
/** The modules that a file imports. */
const imports = new Map<string, string[]>();

/** Takes the absolute path of a file. */
export function neededPrograms(file: string): GoProgram[] {
  const seen = new Set([file]);
  // The list grows during the loop.
  for (const each of seen) if (each !== LIST) for (const imported of importsOf(each)) seen.add(imported);
  const folders = new Set([...seen].map(dirname));
  return GO_PROGRAMS.filter(({ sources }) => folders.has(sources));
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
