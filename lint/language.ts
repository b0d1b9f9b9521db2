/**
 * Refuses words that make a text hard to understand, in all files that people read: pages, code with its comments and messages,
 * and manifests. Run by `npm run lint`. `node lint/language.ts PATH...` checks some files or folders only.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Each word, as a case-insensitive regular expression, and what to write instead. */
const WORDS: Readonly<Record<string, string>> = {
  "told|tells?": "says, shows, reports, or the active voice",
  "(made )?anew": "again, or recreate",
  "looked at again": "reconciled again",
  "whoever|whomever": "a user who, or you",
  "nobody|somebody": "no user, another user, or name the subject",
  "s?he|his|him|himself|her|hers|herself": "you, they, or the name of the role",
  stands: "is, exists, or contains",
  stand: "be, or exist",
  "taken in|take in": "observed, read, or accepted",
  "let(s)? in": "allowed, permits",
  "left alone|leaves? alone": "does not change, ignores",
  "giv(e|es|ing) way": "yields, or the main clause without it",
  "mend(s|ed|ing)?": "fix",
  oftener: "more often",
  "held against": "compared with",
  "hold(s|ing)? (them|it) against": "compares it with",
  "for good": "permanently",
  "what (is|was) said": "the text, or the message",
  "go(es)? on being": "stays, or continues to be",
  "passed over": "ignored, or skipped",
};

/** Files with texts of others, or that name the words on purpose. */
const EXCLUDED =
  /^(LICENSE|package-lock\.json|lint\/language\.ts|test\/unit\/language\.test\.ts|test\/demand\/crds\/|src\/api\/.*-(?:schema|rules)\.json)/;
const CHECKED = /\.(md|ts|ya?ml|json|go|sh)$|^Dockerfile$/;

const root = join(import.meta.dirname, "..");
const PATTERN = new RegExp(`(?<![\\w-])(${Object.keys(WORDS).join("|")})(?![\\w-])`, "gi");

/** One line for each refused word of a text: the place, and what to write instead. */
export function refusedWords(path: string, text: string): string[] {
  return text
    .split("\n")
    .flatMap((line, index) =>
      [...line.matchAll(PATTERN)].map(([word]) => `${path}:${index + 1}: "${word}". Write ${replacementOf(word)}.`),
    );
}

function replacementOf(word: string): string {
  const found = Object.entries(WORDS).find(([pattern]) => new RegExp(`^(${pattern})$`, "i").test(word));
  return found?.[1] ?? "";
}

/** The files in git, below the paths if any are given. */
function filesBelow(paths: string[]): string[] {
  const names = execFileSync("git", ["ls-files", "--", ...paths], { cwd: root, encoding: "utf8" }).split("\n");
  return names.filter((name) => CHECKED.test(name) && !EXCLUDED.test(name));
}

if (import.meta.main) {
  const found = filesBelow(process.argv.slice(2)).flatMap((path) =>
    refusedWords(path, readFileSync(join(root, path), "utf8")),
  );
  for (const each of found) console.error(each);
  if (found.length > 0) {
    console.error(`${found.length} words that docs and messages don't use; see WORDS in lint/language.ts`);
    process.exitCode = 1;
  }
}
