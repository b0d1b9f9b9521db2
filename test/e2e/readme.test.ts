/** Runs the commands of the README word for word, from the top, on a new cluster with nothing installed. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { eventually } from "../controller/eventually.ts";
import { helmProgram } from "../helm/program.ts";
import { root, type Step, stepsOf } from "./pages.ts";

const run = promisify(execFile);
const CONTROLLER = /^npx inlay controller/;

describe("the README", function () {
  this.timeout("3m");
  let cluster: ControlPlane;
  let env: NodeJS.ProcessEnv;
  let controller: ChildProcess | undefined;
  let output = "";
  let text: string;
  let steps: Step[];
  const sh = async (commands: string) => (await run("sh", ["-ec", commands], { cwd: root, env })).stdout;
  const linesOf = (step: Step | undefined) => (step?.commands ?? "").trim().split("\n");

  before(async function () {
    // The first run builds Helm.
    this.timeout("20m");
    await run("npm", ["run", "prepare"], { cwd: root });
    cluster = await startControlPlane({ controllers: false });
    const home = join(cluster.folder, "home");
    await mkdir(join(home, ".kube"), { recursive: true });
    await writeFile(join(home, ".kube", "config"), await readFile(cluster.kubeconfigFile));
    const path = [dirname(cluster.kubectlProgram), dirname(await helmProgram()), process.env["PATH"]].join(delimiter);
    // Offline: npx finds the command that `npm ci` has linked in the clone.
    env = { ...process.env, HOME: home, PATH: path, npm_config_offline: "true" };
    delete env["KUBECONFIG"];
    text = await readFile(join(root, "README.md"), "utf8");
    steps = stepsOf(text);
  });

  after(async () => {
    if (controller?.pid !== undefined && controller.exitCode === null) process.kill(-controller.pid, "SIGINT");
    await cluster?.stop();
  });

  it("begins with the two commands that do all the set-up", () => {
    assert.deepEqual(
      linesOf(steps[0]).map((line) => line.split("#")[0]?.trim()),
      ["npm ci && npm start", "npm ci && npm test"],
    );
  });

  it("installs Inlay, and starts the controller with the user's kubeconfig", async () => {
    const lines = linesOf(steps[1]);
    const command = lines.pop() ?? "";
    assert.match(command, CONTROLLER);
    await sh(lines.join("\n"));
    controller = spawn("sh", ["-c", command], { cwd: root, env, detached: true, stdio: ["ignore", "pipe", "inherit"] });
    controller.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    await eventually(() => {
      assert.equal(controller?.exitCode, null, "the controller ended");
      assert.match(output, /controller started/);
    });
  });

  it("creates the example, which becomes ready as the README shows", async () => {
    const { commands = "", prints = "" } = steps[2] ?? {};
    const printed = (await sh(commands)).split("\n").slice(-prints.split("\n").length).join("\n");
    assert.deepEqual(columnsOf(printed), columnsOf(prints));
    assert.match(printed, /Synced/);
  });

  it("changes the key in the Secret, and shows the new key in the target", async () => {
    const lines = linesOf(steps[3]);
    const show = lines.pop() ?? "";
    await sh(lines.join("\n"));
    assert.equal(await sh(show), "AKIAEXAMPLENOTAKEY02");
  });

  it("has no other commands", () => assert.equal(steps.length, 4));

  it("shows a binding that the API server accepts, like the examples of each kind", async () => {
    const yaml = /^```yaml\n(.*?)^```/ms.exec(text)?.[1] ?? "";
    assert.match(yaml, /kind: SecretBinding/);
    await cluster.kubectlWith({ stdin: yaml }, "apply", "--dry-run=server", "--filename=-");
    await cluster.kubectl("apply", "--dry-run=server", `--filename=${join(root, "apis", "examples")}`);
  });

  it("has a controller that stops on Ctrl-C", async () => {
    assert.ok(controller?.pid);
    const ended = once(controller, "close");
    process.kill(-controller.pid, "SIGINT");
    await ended;
    controller = undefined;
    assert.match(output, /controller stopped/);
  });
});

/** The cells of a table, without the last column, which contains ages. */
function columnsOf(table: string): string[][] {
  const lines = table.trim().split("\n");
  return lines.map((line) => line.split(/ +/).slice(0, -1));
}
