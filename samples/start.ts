/**
 * Runs `npm start`: shows the example samples/harbor on a control plane of its own, or with --vault the example samples/vault. It prints
 * each step with every value masked. The cluster runs until Ctrl-C.
 */
import { parseArgs } from "node:util";
import { type ControlPlane, startControlPlane } from "../test/control-plane/control-plane.ts";
import { showHarbor } from "./start-harbor.ts";
import { showVault } from "./start-vault.ts";
import { say } from "./story.ts";

// Keeps this process alive until stop() ends it; the control plane alone does not.
setInterval(() => {}, 2 ** 30);
let controlPlane: ControlPlane | undefined;
const others: (() => Promise<void>)[] = [];
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());

try {
  const { values } = parseArgs({ options: { vault: { type: "boolean", default: false } } });
  const show = values.vault ? showVault : showHarbor;
  await show({
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

/** Stops all programs in order, and removes their files. A second Ctrl-C changes nothing. */
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  if (controlPlane !== undefined) say("", "Stopping the controller and the control plane.");
  await controlPlane?.stop();
  for (const each of others) await each();
  process.exit();
}
