/**
 * `npm start`: tells a story on a real control plane of its own, as it happens: that of samples/harbor, or with --vault that of
 * samples/vault. The story goes out on stdout, with every value masked, and the cluster stays up until Ctrl-C.
 */
import { parseArgs } from "node:util";
import { type ControlPlane, startControlPlane } from "../test/control-plane/control-plane.ts";
import { tellHarbor } from "./start-harbor.ts";
import { tellVault } from "./start-vault.ts";
import { say } from "./story.ts";

// A control plane alone does not keep its parent alive; this does, until stop() ends the process.
setInterval(() => {}, 2 ** 30);
let controlPlane: ControlPlane | undefined;
const others: (() => Promise<void>)[] = [];
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());

try {
  const { values } = parseArgs({ options: { vault: { type: "boolean", default: false } } });
  const tell = values.vault ? tellVault : tellHarbor;
  await tell({
    startControlPlane: async () => {
      controlPlane = await startControlPlane();
      return controlPlane;
    },
    onStop: (stop) => others.push(stop),
  });
} catch (error) {
  if (!stopping) {
    console.error(`\n${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
  await stop();
}

/** Stops everything in its order, and leaves nothing; a second Ctrl-C changes nothing. */
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (controlPlane !== undefined) say("", "Stopping: the controller first, etcd last.");
  await controlPlane?.stop();
  for (const each of others) await each();
  process.exit();
}
