/** Reads the files of the command line: files, folders with YAML and JSON, and standard input. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { whyUnreadable } from "../apimachinery/file-errors.ts";
import type { Mistake, TextFile } from "./documents.ts";

const EXTENSION = /\.(?:ya?ml|json)$/;
const STDIN = "-";

/** Reads a file once, even if it is listed twice or with its folder. */
export function readFiles(names: readonly string[]): { files: TextFile[]; mistakes: Mistake[] } {
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
      mistakes.push({ file: name, line: 1, message: why });
      return [];
    }
  };
  const paths = names.flatMap((name) => attempt(name, () => filesAt(name)));
  const files = [...new Set(paths)].flatMap((name) =>
    attempt(name, () => [
      { name: name === STDIN ? "<stdin>" : name, text: readFileSync(name === STDIN ? 0 : name, "utf8") },
    ]),
  );
  return { files, mistakes };
}

/** In the order of names, without subfolders. */
function filesAt(name: string): string[] {
  if (name === STDIN || !statSync(name).isDirectory()) return [name];
  return readdirSync(name, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && EXTENSION.test(entry.name))
    .map((entry) => join(name, entry.name))
    .sort();
}
