/** Runs a control plane until Ctrl-C, and prints the line that configures kubectl for it. */
import { startControlPlane } from "./control-plane.ts";
import { install } from "./install.ts";

const controlPlane = await startControlPlane();
await install(controlPlane);
console.log(`export KUBECONFIG=${controlPlane.kubeconfigFile}`);
console.log("Ctrl-C stops it and removes all that it holds.");

const alive = setInterval(() => {}, 2 ** 30);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(signal, async () => {
    await controlPlane.stop();
    clearInterval(alive);
  });
}
