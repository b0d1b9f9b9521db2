/** Runs a control plane until Ctrl-C, and prints the commands that use it. */
import { dirname } from "node:path";
import { startControlPlane } from "./control-plane.ts";
import { install } from "./install.ts";

const controlPlane = await startControlPlane();
await install(controlPlane);
console.log(`
The control plane runs, with Inlay's CRDs, policies and permissions. Run Inlay against it in a second terminal, in this folder:

  export KUBECONFIG=${controlPlane.kubeconfigFile}
  npx inlay controller

Use it in a third terminal. The second line finds a kubectl if you have none:

  export KUBECONFIG=${controlPlane.kubeconfigFile}
  export PATH=$PATH:${dirname(controlPlane.kubectlProgram)}
  kubectl get secretbindings -A

Ctrl-C stops the control plane and removes all that it holds.`);

const alive = setInterval(() => {}, 2 ** 30);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(signal, async () => {
    await controlPlane.stop();
    clearInterval(alive);
  });
}
