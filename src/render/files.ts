/** Reads the files of the command line: files, folders with YAML and JSON, and standard input. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { whyUnreadable } from "../apimachinery/file-errors.ts";
import { whyTooLarge } from "../kube/file-size.ts";
import type { Mistake, TextFile } from "./documents.ts";

/** More than any file for kubectl. */
const MAX_MIB = 64;
const EXTENSION = /\.(?:ya?ml|json)$/;
const STDIN = "-";

/** Reads a file once, even if it is listed twice or with its folder. `flat`: without the subfolders of folders. */
export function readFiles(names: readonly string[], flat = false): { files: TextFile[]; mistakes: Mistake[] } {
  const mistakes: Mistake[] = [];
  const attempt = <T>(name: string, read: () => T[]): T[] => {
    try {
      return read();
    } catch (error) {
      const { code = "an unexpected error" } = error as NodeJS.ErrnoException;
      const why =
        error instanceof Unusable
          ? error.message
          : code === "ENOENT"
            ? "there is no such file or folder; correct the path"
            : (whyUnreadable(error) ?? `can't read this file: ${code}`);
      mistakes.push({ file: name, line: 1, column: 1, reason: "InvalidFile", message: why });
      return [];
    }
  };
  const paths = names.flatMap((name) => attempt(name, () => filesAt(name, flat)));
  const files = [...new Set(paths)].flatMap((name) =>
    attempt(name, () => {
      if (name !== STDIN) assertReadable(name);
      const text = readFileSync(name === STDIN ? 0 : name, "utf8");
      if (text.includes("\0")) throw new Unusable("this is not a text file; write YAML or JSON in UTF-8");
      return [{ name: name === STDIN ? "<stdin>" : name, text, isFound: !names.includes(name) }];
    }),
  );
  return { files, mistakes };
}

function assertReadable(name: string): void {
  const why = whyTooLarge(name, MAX_MIB);
  if (why !== undefined) throw new Unusable(why);
}

/** In the order of names. Skips subfolders that are hidden, such as .git, and node_modules. */
function filesAt(name: string, flat: boolean): string[] {
  if (name === STDIN || !statSync(name).isDirectory()) return [name];
  const entries = readdirSync(name, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(name, entry.name);
    if (!entry.isDirectory()) return EXTENSION.test(entry.name) ? [path] : [];
    const isSkipped = flat || entry.name.startsWith(".") || entry.name === "node_modules";
    return isSkipped ? [] : filesAt(path, flat);
  });
}

/** The message says why a file can't be used. */
class Unusable extends Error {}
