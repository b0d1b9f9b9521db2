/** The README, word for word: its commands, run on a fresh cluster by somebody who has read nothing else. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { eventually } from "../controller/eventually.ts";

const root = join(import.meta.dirname, "..", "..");
const run = promisify(execFile);
const CONTROLLER = /^npx inlay controller/;

describe("the README", function () {
  this.timeout("3m");
  let cluster: ControlPlane;
  let env: NodeJS.ProcessEnv;
  let controller: ChildProcess | undefined;
  let output = "";
  let blocks: string[][];
  const sh = async (line: string) => (await run("sh", ["-c", line], { cwd: root, env })).stdout;

  before(async () => {
    await run("npm", ["run", "prepare"], { cwd: root });
    cluster = await startControlPlane({ controllers: false });
    const home = join(cluster.folder, "home");
    await mkdir(join(home, ".kube"), { recursive: true });
    await writeFile(join(home, ".kube", "config"), await readFile(cluster.kubeconfigFile));
    const path = [dirname(cluster.kubectlProgram), process.env["PATH"]].join(delimiter);
    // What runs in the clone needs no registry: npx finds the command that `npm ci` has linked.
    env = { ...process.env, HOME: home, PATH: path, npm_config_offline: "true" };
    delete env["KUBECONFIG"];
    const text = await readFile(join(root, "README.md"), "utf8");
    blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = ""]) => block.trim().split("\n"));
  });

  after(async () => {
    if (controller?.pid !== undefined && controller.exitCode === null) process.kill(-controller.pid, "SIGINT");
    await cluster?.stop();
  });

  it("opens with the two commands that do everything", () => {
    assert.deepEqual(
      blocks[0]?.map((line) => line.split("#")[0]?.trim()),
      ["npm ci && npm start", "npm ci && npm test"],
    );
  });

  it("installs Inlay and runs the controller beside the user's kubeconfig", async () => {
    for (const line of blocks[1] ?? []) {
      if (!CONTROLLER.test(line)) await sh(line);
      else
        controller = spawn("sh", ["-c", line], {
          cwd: root,
          env,
          detached: true,
          stdio: ["ignore", "pipe", "inherit"],
        });
    }
    controller?.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    await eventually(() => {
      assert.equal(controller?.exitCode, null, "the controller ended");
      assert.match(output, /controller started/);
    });
  });

  it("applies Harbor's story and shows it ready", async () => {
    let listed = "";
    for (const line of blocks[2] ?? []) listed = await sh(line);
    assert.match(listed, /^NAME +READY +SYNCED +REASON +AGE\nharbor-s3 +True +1\/1 +Synced +\d+s\n$/);
  });

  it("rotates the key and shows the new one, and the events", async () => {
    const [patch = "", look = "", describe = ""] = blocks[3] ?? [];
    await sh(patch);
    await eventually(async () => assert.equal(await sh(look), "AKIAEXAMPLENOTAKEY02"));
    assert.match(await sh(describe), /Reason: +Synced\n.*Written/s);
  });

  it("has a controller that ends well", async () => {
    assert.ok(controller?.pid);
    const ended = once(controller, "close");
    process.kill(-controller.pid, "SIGINT");
    await ended;
    controller = undefined;
    assert.match(output, /controller stopped/);
  });

  it("shows bindings that the API server takes, as the examples of the kinds do", async () => {
    const text = await readFile(join(root, "README.md"), "utf8");
    const yaml = /^```yaml\n(.*?)^```/ms.exec(text)?.[1] ?? "";
    await cluster.kubectlWith({ stdin: yaml }, "apply", "--dry-run=server", "--filename=-");
    await cluster.kubectl("apply", "--dry-run=server", `--filename=${join(root, "apis", "examples")}`);
  });
});
