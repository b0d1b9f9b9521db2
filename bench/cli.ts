/**
 * The commands for files: `inlay validate` of many files, next to starting Node and reading the files; its first output for a small input;
 * and `inlay diff` of many bindings, next to the same number of dry-run applies by a fast client.
 */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atOnce, type Client } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { spread } from "./table.ts";
import { bindingOf, dropBindings, harborPath, makeHarbors, makeNamespace, makeSecrets } from "./world.ts";

const ROUNDS = 5;
const WIDTH = 32;
const NAMESPACE = "cli";
const MB = 1024;
const main = join(import.meta.dirname, "..", "dist", "main.js");
const READ_ALL = `const { readdirSync, readFileSync } = require("node:fs");
for (const name of readdirSync(process.argv[1])) readFileSync(process.argv[1] + "/" + name, "utf8");`;
/** Prints the peak memory at the end, in KiB. */
const PEAK = `data:text/javascript,process.on("exit",()=>process.stderr.write("PEAK "+process.resourceUsage().maxRSS+"\\n"))`;

interface Run {
  ms: number;
  firstMs: number;
  peakMb: number;
  code: number;
}

export async function measureCli(rig: Rig): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "inlay-bench-"));
  try {
    const count = rig.of(1_000);
    await atOnce(count, WIDTH, (i) => writeFile(join(folder, `${i}.json`), JSON.stringify(bindingOf(NAMESPACE, i))));
    await measureValidate(rig, folder, count);
    await measureDiff(rig, folder, count);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function measureValidate({ table }: Rig, folder: string, count: number): Promise<void> {
  const floors = await rounds(() => run(["-e", READ_ALL, folder]));
  const ours = await rounds(() => run([main, "validate", "-f", folder]));
  table.row(
    `inlay validate of ${count} files, cold, and Node reading them`,
    spread(
      floors.map(({ ms }) => ms),
      "ms",
    ),
    spread(
      ours.map(({ ms }) => ms),
      "ms",
    ),
    "2 s",
  );
  table.ours(
    "  peak memory",
    spread(
      ours.map(({ peakMb }) => peakMb),
      "MB",
    ),
    "300 MB",
  );
  const [start, small] = [
    await rounds(() => run(["-e", "console.log()"])),
    await rounds(() => run([main, "validate", "-f", join(folder, "0.json")])),
  ];
  table.row(
    "inlay validate of one file: first output, and that of Node",
    spread(
      start.map(({ firstMs }) => firstMs),
      "ms",
    ),
    spread(
      small.map(({ firstMs }) => firstMs),
      "ms",
    ),
    "300 ms",
  );
  table.ours(
    "  peak memory",
    spread(
      small.map(({ peakMb }) => peakMb),
      "MB",
    ),
    "120 MB",
  );
}

async function measureDiff({ client, cluster, table }: Rig, folder: string, count: number): Promise<void> {
  await makeNamespace(client, NAMESPACE);
  await makeSecrets(client, () => NAMESPACE, count);
  await makeHarbors(client, () => NAMESPACE, count);
  const started = performance.now();
  await atOnce(count, WIDTH, (i) => dryRun(client, i));
  const floor = performance.now() - started;
  const { ms, code } = await run([main, "diff", "--kubeconfig", cluster.kubeconfigFile, "-f", folder, "-o", "json"]);
  if (code !== 1) throw new Error(`inlay diff ended with ${code}`);
  table.row(
    `inlay diff of ${count} new bindings, and ${count} dry-run applies`,
    `${(floor / 1_000).toFixed(1)} s`,
    `${(ms / 1_000).toFixed(1)} s`,
    "30 s",
  );
  await dropBindings(client);
}

function dryRun(client: Client, i: number) {
  const body = {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    metadata: { name: `h-${i}`, namespace: NAMESPACE },
    spec: { storage: { spec: { s3: { accesskey: "floor" } } } },
  };
  const path = `${harborPath(NAMESPACE, `h-${i}`)}?fieldManager=floor&force=true&dryRun=All`;
  return client.send("PATCH", path, body, "application/apply-patch+yaml");
}

async function rounds(once: () => Promise<Run>): Promise<Run[]> {
  const all: Run[] = [];
  for (let i = 0; i < ROUNDS; i++) all.push(await once());
  return all;
}

function run(args: string[]): Promise<Run> {
  const started = performance.now();
  const child = spawn(process.execPath, ["--import", PEAK, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let firstMs = Number.NaN;
  let said = "";
  child.stdout.once("data", () => {
    firstMs = performance.now() - started;
  });
  child.stdout.resume();
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      const peakMb = Number(/PEAK (\d+)/.exec(said)?.[1]) / MB;
      resolve({ ms: performance.now() - started, firstMs, peakMb, code: code ?? -1 });
    });
  });
}
