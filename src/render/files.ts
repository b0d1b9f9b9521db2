/** Reads the files of the command line: files, folders with YAML and JSON, and standard input. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { whyUnreadable } from "../apimachinery/file-errors.ts";
import type { Mistake, TextFile } from "./documents.ts";

const EXTENSION = /\.(?:ya?ml|json)$/;
const STDIN = "-";

/** Reads a file once, even if it is listed twice or with its folder. `deep`: folders are read with their subfolders. */
export function readFiles(names: readonly string[], deep = false): { files: TextFile[]; mistakes: Mistake[] } {
  const mistakes: Mistake[] = [];
  const attempt = <T>(name: string, read: () => T[]): T[] => {
    try {
      return read();
    } catch (error) {
      const { code = "an unexpected error" } = error as NodeJS.ErrnoException;
      const why =
        code === "ENOENT"
          ? "there is no such file or folder; correct the path"
          : (whyUnreadable(error) ?? `can't read this file: ${code}`);
      mistakes.push({ file: name, line: 1, column: 1, reason: "InvalidFile", message: why });
      return [];
    }
  };
  const paths = names.flatMap((name) => attempt(name, () => filesAt(name, deep ? "all" : "flat")));
  const files = [...new Set(paths)].flatMap((name) =>
    attempt(name, () => [
      {
        name: name === STDIN ? "<stdin>" : name,
        text: readFileSync(name === STDIN ? 0 : name, "utf8"),
        isFound: !names.includes(name),
      },
    ]),
  );
  return { files, mistakes };
}

/** In the order of names. Skips subfolders that are hidden, such as .git, and node_modules. */
function filesAt(name: string, depth: "flat" | "all"): string[] {
  if (name === STDIN || !statSync(name).isDirectory()) return [name];
  const entries = readdirSync(name, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(name, entry.name);
    if (!entry.isDirectory()) return EXTENSION.test(entry.name) ? [path] : [];
    const isSkipped = depth === "flat" || entry.name.startsWith(".") || entry.name === "node_modules";
    return isSkipped ? [] : filesAt(path, depth);
  });
}
