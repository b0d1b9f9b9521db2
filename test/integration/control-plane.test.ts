/** The control plane works as the tests require, and leaves nothing behind. */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { type ControlPlane, startControlPlane } from "../control-plane/control-plane.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { vaultProgram } from "../control-plane/vault/program.ts";
import { askVault } from "../control-plane/vault-api.ts";
import { Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { registerSecret } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { Workloads } from "../controller/workloads.ts";
import { callsOfEveryCommand, run } from "../e2e/mistakes/every-command.ts";

describe("the shared control plane", () => {
  let team: TestNamespace;

  before(async () => {
    team = await createNamespace({ account: false, rules: [], controller: false });
    const account = `${team.path("v1", "serviceaccounts")}/default`;
    await eventually(async () => assert.ok(await team.api.find(account)), 20_000);
  });

  it("rolls a Deployment out", async () => {
    const web = new Workloads(team);
    await web.deploy({ web: { replicas: 3 } });
    assert.equal((await team.api.get(web.path("web"))).status.readyReplicas, 3);
  });

  it("identifies users by their tokens, with their groups", async () => {
    const { stdout } = await controlPlane().kubectlWith({ user: "alice" }, "auth", "whoami", "-o=json");
    const { username, groups } = JSON.parse(stdout).status.userInfo;
    assert.deepEqual({ username, groups }, { username: "alice", groups: ["team-a", "system:authenticated"] });
  });

  it("issues tokens of ServiceAccounts", async () => {
    const { namespace } = team;
    const kubeconfig = await controlPlane().kubeconfigForServiceAccount(namespace, "default");
    const { stdout } = await controlPlane().kubectl(`--kubeconfig=${kubeconfig}`, "auth", "whoami", "-o=json");
    assert.equal(JSON.parse(stdout).status.userInfo.username, `system:serviceaccount:${namespace}:default`);
  });

  it("has Inlay installed", async () => {
    await team.api.get("/apis/inlay.dev/v1alpha1/secretbindings");
  });

  it("deletes a namespace with all its objects", async () => {
    const deleted = await createNamespace({ account: false, rules: [], controller: false });
    await deleted.api.create(deleted.path("v1", "configmaps"), { metadata: { name: "inside" } });
    const namespace = `/api/v1/namespaces/${deleted.namespace}`;
    await deleted.api.delete(namespace);
    await deleted.untilGone(namespace, 30_000);
  });
});

describe("a control plane of a test's own", () => {
  let own: ControlPlane;
  before(async () => {
    own = await startControlPlane({ controllers: false });
  });
  after(async () => await own.stop());

  it("runs only etcd and the API server on request", () => {
    assert.deepEqual([...own.processes.keys()], ["etcd", "kube-apiserver"]);
  });

  it("has no Inlay until it is installed, which every command that reads a cluster reports in one line", async () => {
    const calls = (await callsOfEveryCommand()).filter(({ takes }) => takes.cluster && !takes.files);
    assert.ok(calls.length >= 6, `${calls.length}`);
    for (const { title, fill } of calls) {
      const { stderr } = await run(fill("", own.kubeconfigFile));
      const said = stderr.trim().split("\n");
      assert.equal(said.length, 1, `${title}: ${stderr}`);
      assert.match(said[0] ?? "", /Inlay is not installed in this cluster: .*docs\/tasks\/install\.md/, title);
    }
  });

  it("keeps its data, and its address, when its programs are killed and started again", async () => {
    const api = new Api(own);
    const path = "/api/v1/namespaces/default/configmaps";
    await api.create(path, { metadata: { name: "kept" } });
    await own.apiServer.kill("SIGKILL");
    await assert.rejects(api.get(`${path}/kept`), { code: "ECONNREFUSED" });
    await own.etcd.kill("SIGKILL");
    await own.etcd.start();
    await own.apiServer.start();
    await api.get(`${path}/kept`);
  });

  it("leaves no process and no file when it is stopped", async () => {
    const before = programsOf(own.folder);
    assert.equal(before.length, 2);
    await own.stop();
    assert.deepEqual(programsOf(own.folder), []);
    assert.equal(existsSync(own.folder), false);
  });

  it("reports why a program did not start, and leaves nothing", async () => {
    const keepers = keepersOf(process.pid);
    let failure = "";
    await assert.rejects(startControlPlane({ apiServerFlags: ["--no-such-flag"] }), (error: Error) => {
      failure = error.message;
      return true;
    });
    assert.match(failure, /^kube-apiserver did not start.*exit code 1.*unknown flag: --no-such-flag/s);
    assert.deepEqual(keepersOf(process.pid), keepers);
  });
});

describe("a control plane whose parent is killed", () => {
  const root = join(import.meta.dirname, "..", "..");
  /** The second one also runs the controller and Vault. */
  const runs = [
    { signal: "SIGKILL", args: [join("test", "control-plane", "main.ts")], programs: 5 },
    { signal: "SIGINT", args: [join("src", "main.ts"), "dev", "--vault"], programs: 6 },
  ] as const;
  let started: { parent: ChildProcess; folder: string; output: string }[];

  before(async function () {
    this.timeout("10m");
    await vaultProgram();
    const parents = runs.map(({ args }) =>
      spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] }),
    );
    started = await Promise.all(parents.map(async (parent) => ({ parent, ...(await outputOf(parent)) })));
  });
  after(() => {
    for (const { parent } of started) parent.kill();
  });

  it("runs the controller and Vault on request, and prints no token", async () => {
    const { folder, output } = started[1] ?? assert.fail();
    assert.match(readFileSync(join(folder, "inlay.log"), "utf8"), /controller started/);
    const [, address = "", ca = ""] = /VAULT_ADDR=(\S+) VAULT_CACERT=(\S+)/.exec(output) ?? [];
    const [, file = ""] = /VAULT_TOKEN=\$\(cat (\S+)\)/.exec(output) ?? [];
    const token = registerSecret(readFileSync(file, "utf8"));
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(!output.includes(token));
    const trust = { ca: readFileSync(ca, "utf8"), servername: "localhost" };
    const { status } = await askVault({ address, trust }, { method: "GET", path: "kv/data/vault-registry/s3", token });
    assert.equal(status, 200);
    const connection = ["get", "vaultconnection/vault", "-n=vault-registry", "-o=name", "--kubeconfig"];
    await controlPlane().kubectl(...connection, join(folder, "kubeconfigs", "admin.yaml"));
  });

  for (const [index, { signal, programs }] of runs.entries()) {
    it(`leaves no process and no file after ${signal}`, async () => {
      const { parent, folder } = started[index] ?? assert.fail();
      const keepers = keepersOf(parent.pid as number);
      assert.equal(programsOf(folder).length, programs);
      parent.kill(signal);
      // The folder is removed last.
      await eventually(() => assert.ok(!existsSync(folder)), 30_000);
      await eventually(() => assert.ok(programsOf(folder).length === 0 && !keepers.some(isAlive)));
    });
  }
});

/** The whole text that a program prints when everything runs, and the folder with the files of its control plane. */
async function outputOf(program: ChildProcess): Promise<{ folder: string; output: string }> {
  let output = "";
  for await (const line of createInterface(program.stdout as NodeJS.ReadableStream)) {
    output += `${line}\n`;
    if (!line.startsWith("Ctrl-C")) continue;
    const kubeconfig = /^ *export KUBECONFIG=(.*)$/m.exec(output)?.[1] ?? "";
    return { folder: dirname(dirname(kubeconfig)), output };
  }
  throw new Error(`the program ended early: ${output}`);
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
