/** Runs a control plane until Ctrl-C, and prints the line that configures kubectl for it. */
import { startControlPlane } from "./control-plane.ts";
import { install } from "./install.ts";

const controlPlane = await startControlPlane();
await install(controlPlane);
console.log(`
The control plane runs, with Inlay's CRDs, policies and permissions. In another terminal, in this folder:

  export KUBECONFIG=${controlPlane.kubeconfigFile}
  npx inlay controller                   # runs Inlay against it
  kubectl get secretbindings -A          # with any kubectl

Ctrl-C stops the control plane and removes all that it holds.`);

const alive = setInterval(() => {}, 2 ** 30);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(signal, async () => {
    await controlPlane.stop();
    clearInterval(alive);
  });
}
