/** The control plane keeps what it promises to the tests that run on it, and leaves nothing behind. */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { controlPlane } from "../control-plane/shared.ts";

describe("the shared control plane", () => {
  const namespace = "control-plane-test";
  const inNamespace = `--namespace=${namespace}`;

  before(async () => {
    await controlPlane().kubectl("create", "namespace", namespace);
    await controlPlane().kubectl("wait", "--for=create", "serviceaccount/default", inNamespace, "--timeout=20s");
  });

  it("rolls a Deployment out", async () => {
    await controlPlane().kubectl("create", "deployment", "web", "--image=web", "--replicas=3", inNamespace);
    await controlPlane().kubectl("rollout", "status", "deployment/web", inNamespace, "--timeout=20s");
    const { stdout } = await controlPlane().kubectl("get", "deployment/web", inNamespace, "-o=jsonpath={.status}");
    assert.equal(JSON.parse(stdout).readyReplicas, 3);
  });

  it("knows users by their tokens, with their groups", async () => {
    const { stdout } = await controlPlane().kubectlWith({ user: "alice" }, "auth", "whoami", "-o=json");
    const { username, groups } = JSON.parse(stdout).status.userInfo;
    assert.deepEqual({ username, groups }, { username: "alice", groups: ["team-a", "system:authenticated"] });
  });

  it("hands out tokens of ServiceAccounts", async () => {
    const kubeconfig = await controlPlane().kubeconfigForServiceAccount(namespace, "default");
    const { stdout } = await controlPlane().kubectl(`--kubeconfig=${kubeconfig}`, "auth", "whoami", "-o=json");
    assert.equal(JSON.parse(stdout).status.userInfo.username, `system:serviceaccount:${namespace}:default`);
  });

  it("has Inlay installed", async () => {
    await controlPlane().kubectl("get", "secretbindings", "--all-namespaces");
  });

  it("deletes a namespace with all that is in it", async () => {
    await controlPlane().kubectl("create", "namespace", "deleted");
    await controlPlane().kubectl("create", "configmap", "inside", "--namespace=deleted");
    await controlPlane().kubectl("delete", "namespace", "deleted", "--timeout=30s");
  });

  after(async () => await controlPlane().kubectl("delete", "namespace", namespace, "--wait=false"));
});

describe("a control plane of its own", () => {
  let own: ControlPlane;
  before(async () => {
    own = await startControlPlane({ controllers: false });
  });
  after(async () => await own.stop());

  it("runs etcd and the API server alone when asked to", () => {
    assert.deepEqual([...own.processes.keys()], ["etcd", "kube-apiserver"]);
  });

  it("keeps its data, and its address, when its programs are killed and started again", async () => {
    await own.kubectl("create", "configmap", "kept");
    await own.apiServer.kill("SIGKILL");
    await assert.rejects(own.kubectl("get", "configmap", "kept"), /refused/);
    await own.etcd.kill("SIGKILL");
    await own.etcd.start();
    await own.apiServer.start();
    await own.kubectl("get", "configmap", "kept");
  });

  it("leaves no process and no file when it is stopped", async () => {
    const before = programsOf(own.folder);
    assert.equal(before.length, 2);
    await own.stop();
    assert.deepEqual(programsOf(own.folder), []);
    assert.equal(existsSync(own.folder), false);
  });

  it("says why a program did not start, and leaves nothing", async () => {
    const keepers = keepersOf(process.pid);
    let said = "";
    await assert.rejects(startControlPlane({ apiServerFlags: ["--no-such-flag"] }), (error: Error) => {
      said = error.message;
      return true;
    });
    assert.match(said, /^kube-apiserver did not start.*exit code 1.*unknown flag: --no-such-flag/s);
    assert.deepEqual(keepersOf(process.pid), keepers);
  });
});

describe("a control plane whose parent is killed", () => {
  const main = join(import.meta.dirname, "..", "control-plane", "main.ts");

  for (const signal of ["SIGKILL", "SIGINT"] as const) {
    it(`leaves no process and no file after ${signal}`, async () => {
      const parent = spawn(process.execPath, [main], { stdio: ["ignore", "pipe", "inherit"] });
      const folder = await folderOf(parent);
      const [keeper = 0] = keepersOf(parent.pid as number);
      assert.equal(programsOf(folder).length, 5);
      parent.kill(signal);
      await until(() => programsOf(folder).length === 0 && !existsSync(folder) && !isAlive(keeper));
    });
  }
});

/** Where the control plane that main.ts runs has its files. */
async function folderOf(main: ChildProcess): Promise<string> {
  for await (const line of createInterface(main.stdout as NodeJS.ReadableStream)) {
    const kubeconfig = /^export KUBECONFIG=(.*)$/.exec(line)?.[1];
    if (kubeconfig !== undefined) return dirname(dirname(kubeconfig));
  }
  throw new Error("main.ts ended without a kubeconfig");
}

/** Every program of a control plane has its folder in its command line. */
const programsOf = (folder: string) => processes().filter(({ command }) => command.includes(folder));

const keepersOf = (parent: number) =>
  processes()
    .filter((running) => running.parent === parent && running.command.includes("keeper-process"))
    .map(({ pid }) => pid);

const isAlive = (pid: number) => processes().some((running) => running.pid === pid);

function processes(): { pid: number; parent: number; command: string }[] {
  const lines = execFileSync("ps", ["-axwwo", "pid=,ppid=,stat=,command="], { encoding: "utf8" }).trim().split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, state, command] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return state === undefined || state.startsWith("Z")
      ? []
      : [{ pid: Number(pid), parent: Number(parent), command: `${command}` }];
  });
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, "still not so after 30 s");
    await sleep(100);
  }
}
