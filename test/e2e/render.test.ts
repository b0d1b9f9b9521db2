/**
 * Runs `inlay render` as a process: a composition with its claims and Secrets, the binding of a sample, standard input, and
 * mistakes.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

const root = join(import.meta.dirname, "..", "..");
const folder = join("test", "e2e", "render");
const [COMPOSITION, CLAIMS, SECRET, BROKEN] = ["composition", "claims", "secret", "broken"].map((name) =>
  join(folder, `${name}.yaml`),
) as [string, string, string, string];
const all = [COMPOSITION, CLAIMS, SECRET];
/** The values in these files. */
const VALUES = /AKIA|s3\.example\.com|9000/;

async function render(
  args: readonly string[],
  { stdin = "", columns = "" } = {},
): Promise<{ stdout: string; stderr: string; code: number }> {
  const env = { ...process.env, COLUMNS: columns };
  const child = spawn(process.execPath, [join("src", "main.ts"), "render", ...args], { cwd: root, env });
  const said = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].setEncoding("utf8").on("data", (chunk: string) => {
      said[stream] += chunk;
    });
  child.stdin.end(stdin);
  const [code] = await once(child, "close");
  return { ...said, code };
}

const named = (files: readonly string[]) => files.flatMap((file) => ["-f", file]);

describe("inlay render", () => {
  it("shows what a composition creates, in lines that fit the terminal or are whole in a pipe, and no value", async () => {
    const [{ stdout, stderr, code }, narrow] = await Promise.all([
      render(named(all)),
      render(named(all), { columns: "80" }),
    ]);
    assert.deepEqual([stderr, code], ["", 0]);
    assert.match(stdout, /^SecretBinding registry\/harbor-s3$/m);
    assert.match(stdout, /^ +spec\.storage\.spec\.s3\.accesskey +bucket\/accessKeyID +\(hidden\) +\(hidden\)$/m);
    assert.match(stdout, /^ +HarborCluster registry\/waiting +harbor +s3 +FieldNotFound: /m);
    assert.doesNotMatch(stdout, VALUES);
    const wide = (text: string) => text.split("\n").filter((line) => line.length > 80 && !/^ *echo /.test(line));
    assert.deepEqual(wide(narrow.stdout), []);
    assert.notDeepEqual(wide(stdout), []);
  });

  it("prints the same as JSON and as YAML, with values only if --show-values is set", async () => {
    const [json, yaml, open] = await Promise.all([
      render([...named(all), "-o", "json"]),
      render([...named(all), "-o", "yaml"]),
      render([...named(all), "-o", "json", "--show-values"]),
    ]);
    assert.deepEqual(parse(yaml.stdout), JSON.parse(json.stdout));
    assert.doesNotMatch(json.stdout, VALUES);
    const [{ binding, targets }] = JSON.parse(open.stdout).bindings;
    assert.equal(binding.metadata.name, "harbor-s3");
    assert.deepEqual(
      targets[0].fields.map(({ before, value }: { before?: string; value: string }) => [before, value]),
      [
        ["AKIAOLDOLDOLDOLDOLD1", "AKIANEWNEWNEWNEWNEW2"],
        [undefined, "https://s3.example.com:9000"],
      ],
    );
  });

  it("shows what the binding of a sample writes, and reads folders and standard input", async () => {
    const samples = await render(["-f", "samples/harbor", "-f", "samples/harbor/crd"]);
    assert.deepEqual([samples.stderr, samples.code], ["", 0]);
    assert.match(samples.stdout, /^SecretBinding registry\/harbor-s3$/m);
    const text = all.map((file) => readFileSync(join(root, file), "utf8")).join("\n---\n");
    const [files, stdin] = await Promise.all([render(named(all)), render(["-f", "-"], { stdin: text })]);
    assert.deepEqual(stdin, files);
  });

  it("reads the values of Vault from a separate file, and reports missing values", async () => {
    const args = ["-f", join(folder, "vault.yaml"), "-o", "json"];
    const values = join(folder, "vault-values.yaml");
    const [open, hidden, without, absent] = await Promise.all([
      render([...args, "--vault-values", values, "--show-values"]),
      render([...args, "--vault-values", values]),
      render(args),
      render([...args, "--vault-values", "absent.yaml"]),
    ]);
    const fieldIn = ({ stdout }: typeof open) => JSON.parse(stdout).bindings[0].targets[0].fields[0];
    assert.deepEqual([open.stderr, open.code, fieldIn(open).value], ["", 0, "AKIAVAULTVAULTVAULT4"]);
    assert.equal(fieldIn(hidden).value, "(hidden)");
    assert.doesNotMatch(hidden.stdout, VALUES);
    assert.deepEqual([without.code, fieldIn(without).problem.reason], [0, "SourceNotFound"]);
    assert.match(without.stdout, /--vault-values: data: /);
    assert.match(absent.stderr, /^absent\.yaml:1: there is no such file or folder; /);
    assert.equal(absent.code, 1);
  });

  it("reports each mistake with its file and line, and fails", async () => {
    const { stderr, code } = await render([...named([...all, BROKEN]), "-f", "absent.yaml"]);
    const lines = readFileSync(join(root, BROKEN), "utf8").split("\n");
    const marked = lines.flatMap((line, at) => (line.endsWith("# a mistake") ? [`${BROKEN}:${at + 1}`] : []));
    const found = stderr.trimEnd().split("\n");
    assert.deepEqual(
      found.map((line) => /^(\S+:\d+): \S/.exec(line)?.[1]),
      ["absent.yaml:1", ...marked],
      stderr,
    );
    assert.equal(code, 1);
    assert.doesNotMatch(stderr, VALUES);
  });
});
