/** Every command, with files and clusters that it can't use: it says so in a line, and prints no stack trace and no value. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { createNamespace } from "../controller/test-namespace.ts";
import { badFiles, type Call, callsOfEveryCommand, type Ran, run } from "./mistakes/every-command.ts";

const main = join(import.meta.dirname, "..", "..", "src", "main.ts");
const STACK = /^\s+at .*[:)]/m;
/** Commander's second line. */
const HINT = "Run the command with --help to see its options and an example.";

function assertPlain({ stdout, stderr, code }: Ran, what: string): void {
  const said = `${what}\n${stdout}${stderr}`;
  assert.doesNotMatch(stdout + stderr, STACK, said);
  assert.deepEqual(foundIn(stdout + stderr), [], said);
  assert.doesNotMatch(
    stderr,
    /\b(TypeError|ReferenceError|RangeError|SyntaxError|undefined is not|Cannot read prop)/,
    said,
  );
  if (code !== 0) assert.notEqual(stderr.trim(), "", `${said}: the exit code is ${code}, and nothing says why`);
}

/** The message without warnings and hints. */
const lines = (stderr: string) =>
  stderr
    .trim()
    .split("\n")
    .filter((line) => line !== HINT && !line.startsWith("warning: "));

describe("every command", () => {
  let calls: Call[];
  let folder: string;
  let away: string;
  before(async () => {
    calls = await callsOfEveryCommand();
    folder = await mkdtemp(join(tmpdir(), "inlay-bad-"));
    away = join(folder, "away");
    const contexts = [{ name: "away", context: { cluster: "away" } }];
    const clusters = [{ name: "away", cluster: { server: "https://127.0.0.1:1" } }];
    await writeFile(away, JSON.stringify({ contexts, clusters, "current-context": "away" }));
    const huge = await open(join(folder, "huge.yaml"), "w");
    await huge.truncate(3 * 2 ** 30);
    await huge.close();
  });
  after(() => rm(folder, { recursive: true }));

  it("that takes files reports the ones that it can't use", async () => {
    const files = { ...(await badFiles(folder, secretText("password"))), "a huge file": join(folder, "huge.yaml") };
    const taking = calls.filter(({ takes }) => takes.files);
    assert.ok(taking.length > 0);
    for (const { title, fill } of taking)
      for (const [what, file] of Object.entries(files)) {
        const ran = await run(fill(file, away));
        assertPlain(ran, `${title} with ${what}`);
        if (/missing|below|device|huge|binary|no YAML|text/.test(what))
          assert.notEqual(ran.code, 0, `${title} with ${what}`);
      }
  });

  it("that reads a cluster reports in one line that it can't", async () => {
    const secret = secretText("kubeconfig");
    const { namespace } = await createNamespace({ rules: [], controller: false });
    const broken = join(folder, "broken");
    await writeFile(broken, `users: [\n  token: ${secret}\n`);
    const binary = join(folder, "binary");
    await writeFile(binary, Buffer.from([0, 1, 2, 0xff, ...Buffer.from(secret)]));
    const rights = await controlPlane().kubeconfigForServiceAccount(namespace, "inlay");
    const clusters = {
      away,
      missing: join(folder, "none"),
      folder,
      broken,
      binary,
      device: "/dev/zero",
      huge: join(folder, "huge.yaml"),
    };
    const reading = calls.filter(({ takes }) => takes.cluster);
    assert.ok(reading.length >= 6, `${reading.length}`);
    const good = join(import.meta.dirname, "render", "composition.yaml");
    for (const { title, fill, takes } of reading) {
      for (const [what, kubeconfig] of Object.entries(clusters)) {
        const ran = await run(fill(good, kubeconfig));
        assertPlain(ran, `${title} with the kubeconfig ${what}`);
        // A command that takes files may not need the cluster.
        if (takes.files) continue;
        assert.notEqual(ran.code, 0, `${title} with the kubeconfig ${what}`);
        assert.equal(lines(ran.stderr).length, 1, `${title} with the kubeconfig ${what}: ${ran.stderr}`);
      }
      const ran = await run(fill(good, rights));
      assertPlain(ran, `${title} without permissions`);
      assert.ok(takes.files || lines(ran.stderr).length <= 1, `${title} without permissions: ${ran.stderr}`);
    }
  });

  it("ends without a message when the reader of its output ends", async () => {
    const child = spawn(process.execPath, [main, "--help"], { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.destroy();
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (chunk) => {
      stderr += chunk;
    });
    const [code, signal] = await once(child, "close");
    assert.deepEqual([code, signal, stderr], [0, null, ""]);
  });

  it("has a documented exit code, and a section in docs/reference/cli.md", async () => {
    const page = await readFile(join(import.meta.dirname, "..", "..", "docs", "reference", "cli.md"), "utf8");
    for (const name of Object.keys(COMMANDS)) assert.match(page, new RegExp(`^## inlay .*\\b${name}\\b`, "m"), name);
  });

  it("is refused in one line and a hint if it does not exist", async () => {
    const { code, stderr } = await new Promise<Ran>((resolve) => {
      execFile(process.execPath, [main, "explan"], (error, stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
      );
    });
    assert.deepEqual([code, stderr.split("\n").at(-2)], [1, HINT]);
  });
});
