/** Runs a control plane by itself until Ctrl-C: nothing comes in, out goes the line that makes kubectl use it. */
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
