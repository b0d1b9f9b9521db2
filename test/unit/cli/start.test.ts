/** The packages that each subcommand loads before it does anything. Every package delays the answer. Runs real processes. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMMANDS } from "../../../src/cli/commands.ts";

const program = join(import.meta.dirname, "..", "..", "..", "src", "main.ts");

/** Prints the imported packages when the process ends. */
const HOOK = `import { registerHooks } from "node:module";
const packages = new Set();
registerHooks({
  resolve(specifier, context, next) {
    if (/^[@a-z]/.test(specifier) && !specifier.includes(":")) packages.add(specifier.split("/")[0]);
    return next(specifier, context);
  },
});
process.on("exit", () => console.error("LOADED " + [...packages].join(" ")));`;

describe("the command line", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "inlay-start-"));
    await writeFile(join(folder, "hook.mjs"), HOOK);
    const clusters = [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }];
    const contexts = [{ name: "x", context: { cluster: "c" } }];
    await writeFile(join(folder, "config"), JSON.stringify({ clusters, contexts, "current-context": "x" }));
  });
  after(() => rm(folder, { recursive: true }));

  async function run(...args: string[]): Promise<{ code: number; stderr: string; loaded: string[] }> {
    const { stdout: _, ...result } = await printed(...args);
    return result;
  }

  function printed(...args: string[]): Promise<{ code: number; stdout: string; stderr: string; loaded: string[] }> {
    return new Promise((resolve) => {
      const all = ["--import", join(folder, "hook.mjs"), program, ...args];
      execFile(process.execPath, all, (error, stdout, output) => {
        const [stderr = "", loaded = ""] = output.split("LOADED ");
        const known = ["@kubernetes", "undici", "yaml", "handlebars", "pino", "prom-client", "re2js", "@inquirer"];
        const found = loaded
          .trim()
          .split(" ")
          .filter((name) => known.includes(name));
        resolve({ code: Number(error?.code ?? 0), stdout, stderr, loaded: found });
      });
    });
  }

  for (const command of [[], ...Object.keys(COMMANDS).map((name) => [name])]) {
    it(`shows an example for ${["inlay", ...command].join(" ")} --help, and loads no package`, async () => {
      const { stdout, ...rest } = await printed(...command, "--help");
      assert.match(stdout, /^Usage: inlay .*\nExample:\n {2}\S*.*inlay \w+ \S/s);
      assert.deepEqual(rest, { code: 0, stderr: "", loaded: [] });
    });
  }

  it("is a plugin of kubectl if it is called kubectl-inlay", async () => {
    const plugin = join(folder, "kubectl-inlay");
    await symlink(program, plugin);
    const help = await new Promise<string>((resolve) => {
      execFile(process.execPath, [plugin, "--help"], (_, stdout) => resolve(stdout));
    });
    assert.match(help, /^Usage: kubectl inlay /);
  });

  it("prints its version, and hints at --help after a mistake", async () => {
    for (const flag of ["-V", "--version"]) assert.match((await printed(flag)).stdout, /^\d+\.\d+\.\d+\n$/);
    for (const args of [["explian"], ["explain"], ["trace", "x", "--nope"]])
      assert.match(
        (await run(...args)).stderr,
        /^error: .*.*\nRun the command with --help to see its options and an example\.\n$/s,
      );
  });

  for (const command of ["explain", "trace"]) {
    it(`loads for ${command} the client of the API server, and reports when it can't connect`, async () => {
      const { code, stderr, loaded } = await run(command, "x", "--kubeconfig", join(folder, "config"));
      assert.match(stderr, /^the API server https:\S+ can't be reached: .*ECONNREFUSED.*kubeconfig/);
      assert.deepEqual(loaded.sort(), ["undici", "yaml"]);
      assert.equal(code, 1);
    });

    it(`rejects for ${command} an invalid name`, async () => {
      for (const args of [["a/b/c"], ["x", "-n", "a/b"], ["x", "-o", "text"]]) {
        const { code, stderr } = await run(command, ...args);
        assert.match(stderr, /^error: .* is invalid/);
        assert.equal(code, 1);
      }
    });
  }

  for (const command of ["render", "validate"])
    it(`loads for ${command} the parsers of files and templates, and no client of the API server`, async () => {
      const file = join(import.meta.dirname, "..", "..", "e2e", "render", "composition.yaml");
      const loaded = ["handlebars", "re2js", "yaml"];
      const { loaded: found, ...said } = await run(command, "-f", file);
      assert.deepEqual({ ...said, loaded: found.sort() }, { code: 0, stderr: "", loaded });
    });

  it("loads for rbac no client of the API server without --cluster, and for init no dialog if all flags are set", async () => {
    const file = join(import.meta.dirname, "..", "..", "..", "samples", "granted-login");
    const { loaded, ...said } = await run("rbac", "-f", file);
    assert.deepEqual({ ...said, loaded: loaded.includes("undici") }, { code: 0, stderr: "", loaded: false });
    const target = ["--target", "ConfigMap/a", "--field", "data.a=b/c"];
    const init = await run("init", ...target, "--kubeconfig", join(folder, "config"));
    assert.deepEqual([init.code, init.loaded.includes("@inquirer")], [1, false]);
    assert.match(init.stderr, /^the API server https:\S+ can't be reached: /);
  });

  it("rejects for render an unknown format, and files with nothing to render", async () => {
    assert.equal((await run("render", "-f", "a", "-o", "text")).code, 1);
    assert.equal((await run("render")).code, 1);
    const secret = join(import.meta.dirname, "..", "..", "e2e", "render", "secret.yaml");
    const { code, stderr } = await run("render", "-f", secret);
    assert.deepEqual([code, stderr.includes("SecretBinding")], [1, true]);
  });
});
