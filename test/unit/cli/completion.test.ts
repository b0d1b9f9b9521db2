/** Completion on the command line: the candidates for a word, and the scripts in real shells. */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { complete, completionText, type FindNames } from "../../../src/cli/complete.ts";
import { SCRIPTS } from "../../../src/cli/completion.ts";

const run = promisify(execFile);
const main = join(import.meta.dirname, "..", "..", "..", "src", "main.ts");

describe("the completion of a word", () => {
  let asked: unknown[];
  const find: FindNames = async (...args) => {
    asked.push(args);
    return ["harbor-s3", "harbor-db", "other"];
  };
  beforeEach(() => {
    asked = [];
  });
  const values = async (...words: string[]) => (await complete(words, find)).candidates.map(({ value }) => value);

  it("knows every command and every option of it, with what they mean", async () => {
    assert.deepEqual((await values("")).slice(0, -3), Object.keys(COMMANDS));
    for (const [name, { load, summary }] of Object.entries(COMMANDS)) {
      const { candidates } = await complete([name.slice(0, -1)], find);
      assert.ok(candidates.some(({ value, description }) => value === name && description === summary));
      const { options } = await load();
      const found = await values(name, "--");
      for (const { long, hidden } of options) if (long && !hidden) assert.ok(found.includes(long), `${name} ${long}`);
    }
  });

  it("knows the choices of options and arguments, also after an equals sign", async () => {
    assert.deepEqual(await values("explain", "-o", ""), ["table", "json", "yaml"]);
    assert.deepEqual(await values("explain", "--output=j"), ["--output=json"]);
    // As bash splits it.
    assert.deepEqual(await values("explain", "--output", "=", "j"), ["json"]);
    assert.deepEqual(await values("explain", "--output", "="), []);
    assert.deepEqual(await values("completion", "f"), ["fish"]);
    assert.deepEqual(await values("help", "expl"), ["explain"]);
  });

  it("asks the cluster for names, with the flags before the word", async () => {
    assert.deepEqual(await values("explain", "--kubeconfig", "k", "--namespace=registry", "harbor"), [
      "harbor-s3",
      "harbor-db",
    ]);
    await values("explain", "x", "-n", "");
    await values("trace", "--config-map", "");
    await values("trace", "");
    await values("sync", "-n", "a", "");
    assert.deepEqual(asked, [
      ["binding", { kubeconfig: "k", namespace: "registry" }],
      ["namespace", {}],
      ["config-map", {}],
      ["secret", {}],
      ["object", { namespace: "a" }],
    ]);
  });

  it("leaves files to the shell, and has no candidates where the user writes a text of their own", async () => {
    for (const words of [
      ["render", "-f", ""],
      ["render", "--filename=a"],
      ["explain", "--kubeconfig", ""],
    ])
      assert.deepEqual(await complete(words, find), { candidates: [], isFile: true });
    for (const words of [
      ["sync", "--timeout", ""],
      ["nothing", ""],
      ["explain", "a", ""],
      ["toString", ""],
    ])
      assert.deepEqual(await complete(words, find), { candidates: [], isFile: false });
    assert.deepEqual(await complete(["explain", ""], () => Promise.reject(new Error("no cluster"))), {
      candidates: [],
      isFile: false,
    });
  });

  it("is printed in the format of Cobra", () => {
    const candidates = [{ value: "a", description: "one\nline" }, { value: "b" }];
    assert.equal(completionText({ candidates, isFile: false }), "a\tone line\nb\n:4\n");
    assert.equal(completionText({ candidates: [], isFile: true }), ":0\n");
  });
});

/** How each shell calls its function, and prints the candidates: those of `sync --wa`, of `explain x -o j`, and of a file. */
const CALLS: Readonly<Record<string, string>> = {
  bash: `
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _inlay_complete; echo "\${COMPREPLY[*]}"; }
try inlay sync --wa
try inlay explain x --output = j
try inlay render -f ''
complete -p inlay`,
  zsh: `
try() { words=("$@"); CURRENT=$#; _inlay; }
_describe() { echo "\${candidates[@]}"; }
_files() { echo files; }
try inlay sync --wa
try inlay explain x -o j
try inlay render -f ''
echo $_comps[inlay]`,
  fish: `
complete -C 'inlay sync --wa'
complete -C 'inlay explain x -o j'
complete -C 'inlay render -f comple' | string match 'completion-*'`,
};

const EXPECTED: Readonly<Record<string, readonly RegExp[]>> = {
  bash: [/^--wait$/, /^json$/, /^$/, /^complete -o default -F _inlay_complete inlay$/],
  zsh: [/^--wait:wait until .*$/, /^json$/, /^files$/, /^_inlay$/],
  fish: [/^--wait\twait until .*$/, /^json$/, /^completion-here\.yaml$/],
};

function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ["-c", "exit 0"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describe("the script for completion", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-completion-"));
    await writeFile(join(folder, "inlay"), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`);
    await chmod(join(folder, "inlay"), 0o755);
    await writeFile(join(folder, "completion-here.yaml"), "");
  });
  after(() => rm(folder, { recursive: true }));

  const missing = Object.keys(SCRIPTS).filter((shell) => shell !== "bash" && !isInstalled(shell));
  for (const shell of missing) console.log(`${shell} is not installed, so its completion was not tested`);
  for (const shell of Object.keys(SCRIPTS).filter((each) => !missing.includes(each)))
    it(`completes options, choices and files in ${shell}`, async () => {
      const load = shell === "fish" ? "inlay completion fish | source" : `source <(inlay completion ${shell})`;
      const compinit = shell === "zsh" ? "autoload -U compinit; compinit -u -D\n" : "";
      const clean = { bash: ["--norc"], zsh: ["-f"], fish: ["--no-config"] }[shell] ?? [];
      const env = { ...process.env, PATH: `${folder}:${process.env["PATH"]}`, HOME: folder };
      const { stdout, stderr } = await run(shell, [...clean, "-c", `${compinit}${load}${CALLS[shell]}`], {
        env,
        cwd: folder,
      });
      const lines = stdout.trimEnd().split("\n");
      const expected = EXPECTED[shell] ?? [];
      assert.equal(lines.length, expected.length, stdout + stderr);
      for (const [at, pattern] of expected.entries()) assert.match(lines[at] ?? "", pattern);
    });
});
