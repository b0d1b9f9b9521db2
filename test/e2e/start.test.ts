/** `npm start`, as a new user runs it: what it tells, what stays up, and what Ctrl-C leaves. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../controller/eventually.ts";
import { registerSecret } from "../controller/leak-detector.ts";

const root = join(import.meta.dirname, "..", "..");
const run = promisify(execFile);

describe("npm start", function () {
  this.timeout("3m");
  let story: ChildProcess;
  let told = "";
  let folder = "";
  const export_ = (name: string) => new RegExp(`${name}=(\\S+)`).exec(told)?.[1] ?? "";

  before(async () => {
    story = spawn("npm", ["start"], { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [story.stdout, story.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        told += chunk;
      });
    }
    await eventually(() => {
      assert.equal(story.exitCode, null, told);
      assert.match(told, /The controller's log/);
    }, 120_000);
    folder = dirname(dirname(export_("KUBECONFIG")));
  });

  after(() => {
    if (story.exitCode === null && story.signalCode === null && story.pid !== undefined)
      process.kill(-story.pid, "SIGINT");
  });

  it("tells of the fields before, after, and after a rotation with its time", () => {
    assert.match(told, /2\. A HarborCluster.*\n\s+accesskey\s+\(not there\)\n\s+regionendpoint\s+\(not there\)/);
    assert.match(
      told,
      /accesskey\s+•+\s+✔ is bucket's accessKeyID\n\s+regionendpoint\s+•+\s+✔ is bucket's host and port/,
    );
    assert.match(told, /NAME\s+READY\s+SYNCED\s+REASON\s+AGE\n\s+harbor-s3\s+True\s+1\/1\s+Synced/);
    assert.match(told, /accesskey\s+•+\s+✔ is bucket's new accessKeyID/);
    assert.match(told, /stood in the HarborCluster \d+(, \d+)* ms after/);
  });

  it("prints no value of the Secret, rotated or not", async () => {
    const secret = await readFile(join(root, "samples", "harbor", "02-secret.yaml"), "utf8");
    const values = [/accessKeyID: (\S+)/, /secretAccessKey: (\S+)/, /host: (\S+)/].map(
      (of) => of.exec(secret)?.[1] ?? "",
    );
    const log = await readFile(join(folder, "inlay.log"), "utf8");
    for (const value of [...values, "AKIAEXAMPLEROTATED"]) {
      assert.notEqual(registerSecret(value), "");
      assert.ok(!told.includes(value) && !log.includes(value), `a value of the Secret was printed`);
    }
  });

  it("stays up for the kubectl commands that it prints", async () => {
    const env = { ...process.env, KUBECONFIG: export_("KUBECONFIG") };
    const kubectl = export_("alias kubectl") || "kubectl";
    const patch = /kubectl (patch secret .*)$/m.exec(told)?.[1] ?? "";
    await run("sh", ["-c", `${kubectl} ${patch}`], { env });
    const look = /kubectl (get harborcluster .*)$/m.exec(told)?.[1] ?? "";
    await eventually(async () => {
      const { stdout } = await run("sh", ["-c", `${kubectl} ${look}`], { env });
      assert.equal(stdout, "AKIAEXAMPLENOTAKEY02");
    });
    const { stdout } = await run(kubectl, ["describe", "secretbinding", "harbor-s3", "-n", "registry"], { env });
    assert.match(stdout, /Written .*wrote spec\.storage\.spec\.s3\.accesskey/);
  });

  it("leaves no process and no file after Ctrl-C", async () => {
    const pids = await processesIn(folder);
    assert.ok(pids.length >= 6, `only ${pids.length} processes ran`);
    const ended = once(story, "close");
    process.kill(-(story.pid as number), "SIGINT");
    await ended;
    assert.equal(existsSync(folder), false);
    assert.deepEqual(await processesIn(folder), []);
  });
});

/** The processes whose command line names the folder. */
async function processesIn(folder: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, i) => lines[i]?.includes(folder));
}
