/**
 * `npm run bench`: measures the built Inlay on its own control plane, next to the floor: the fastest possible client for the same work.
 * Arguments select parts, all by default. Prints a table, and draws plots if it has a folder for them.
 */
import { parseArgs } from "node:util";
import { measureAnnotations } from "./annotations.ts";
import { measureCli } from "./cli.ts";
import { Client, startCluster } from "./cluster.ts";
import { measureCompositions } from "./compositions.ts";
import { measureFailover } from "./failover.ts";
import { measureFairness } from "./fairness.ts";
import { measureGrowth } from "./growth.ts";
import { measureHostile } from "./hostile.ts";
import { measureMarks } from "./marks.ts";
import { measureProtection } from "./protect.ts";
import { measureRequests } from "./requests.ts";
import { Results } from "./results.ts";
import { Rig } from "./rig.ts";
import { measureRollouts, measureWorkloads } from "./rollouts.ts";
import { measureRotations } from "./rotation.ts";
import { measureSharedSecretClaims } from "./shared-secret-claims.ts";
import { measureMemory, measureRestart, measureTenants } from "./size.ts";
import { measureSpread } from "./spread.ts";
import { measureStreams } from "./streams.ts";
import { Table } from "./table.ts";
import { measureThroughput } from "./throughput.ts";
import { measureVault } from "./vault.ts";
import { measureVaultSync } from "./vault-sync.ts";

const PARTS = {
  rotations: measureRotations,
  rollouts: measureRollouts,
  growth: measureGrowth,
  fairness: measureFairness,
  annotations: measureAnnotations,
  memory: measureMemory,
  workloads: measureWorkloads,
  tenants: measureTenants,
  restart: measureRestart,
  failover: measureFailover,
  throughput: measureThroughput,
  requests: measureRequests,
  hostile: measureHostile,
  streams: measureStreams,
  protect: measureProtection,
  marks: measureMarks,
  compositions: measureCompositions,
  spread: measureSpread,
  "shared-secret-claims": measureSharedSecretClaims,
  cli: measureCli,
  vault: measureVault,
  "vault-sync": measureVaultSync,
};

const scale = Number(process.env["INLAY_BENCH_SCALE"] ?? 1);
const { positionals: asked, values } = parseArgs({
  allowPositionals: true,
  options: { plots: { type: "string" } },
});
const unknown = asked.filter((part) => !Object.hasOwn(PARTS, part));
if (unknown.length > 0 || !(scale > 0)) {
  console.error(
    `npm run bench -- [${Object.keys(PARTS).join("|")}]... [--plots FOLDER], with INLAY_BENCH_SCALE above 0`,
  );
  process.exit(2);
}

const cluster = await startCluster();
const client = new Client(cluster);
const { gitVersion } = await client.send("GET", "/version");
const rig = new Rig(cluster, client, new Table(gitVersion, scale), new Results(gitVersion, scale), scale);
try {
  for (const [name, measure] of Object.entries(PARTS)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    await measure(rig);
    if (values.plots !== undefined) await rig.results.save(values.plots);
  }
} finally {
  await rig.controller.stop();
  await client.close();
  await cluster.stop();
}
