/**
 * Refuses code that reads a sentence to learn a fact: a Problem has parts for that. Run by `npm run lint`. What other programs write only as
 * a sentence may be read in the files of `ELSEWHERE`.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Who wrote the messages that these files read. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "src/apply/findings.ts": "the API server",
  "src/kube/api-error.ts": "the API server",
  "src/kube/server-text.ts": "the API server",
  "src/cli/config-file.ts": "the YAML parser",
  "src/cli/failure.ts": "Node",
  "src/migrate/kyverno-draft.ts": "the author of a policy",
  "src/transform/template.ts": "Handlebars",
};

const READ = "(?:replace|replaceAll|split|includes|startsWith|endsWith|match|matchAll|search|indexOf)\\(";
const PATTERNS = [new RegExp(`\\bmessage(?:\\?)?\\.${READ}`), /\.(?:test|exec)\((?:[\w.?]*\.)?message\)/];

/** The lines of a text that read a message, from 1. */
export const readsIn = (text: string): number[] =>
  text.split("\n").flatMap((line, at) => (PATTERNS.some((pattern) => pattern.test(line)) ? [at + 1] : []));

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const files = execFileSync("git", ["ls-files", "src/*.ts"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  const found = files
    .filter((file) => !Object.hasOwn(ELSEWHERE, file))
    .flatMap((file) => readsIn(readFileSync(join(root, file), "utf8")).map((line) => `${file}:${line}`));
  for (const place of found) console.error(`${place}: reads a message; use the parts of the Problem`);
  if (found.length > 0) process.exitCode = 1;
}
