/** What Argo CD and Flux need in a cluster: the CRDs in their Go modules, and an account with all permissions, as both have by default. */
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { goIn } from "../control-plane/go.ts";
import type { AnyObject } from "../controller/api.ts";

const GO = "The CRDs of Argo CD and Flux are fetched with Go (https://go.dev/dl): no `go` was found in the PATH.";

/** The folder of a module, which is fetched if necessary. Takes a module with its version. */
export async function moduleFolder(sources: string, module: string): Promise<string> {
  const lines: string[] = [];
  await goIn(GO)(sources, ["mod", "download", "-json", module], { onOutput: (line) => lines.push(line) });
  return (JSON.parse(lines.join("\n")) as AnyObject).Dir;
}

/** Creates the account in a namespace of its own. Returns its kubeconfig. */
export async function accountOfTool(cluster: ControlPlane, namespace: string, name: string): Promise<string> {
  await cluster.kubectl("create", "namespace", namespace);
  await cluster.kubectl("create", "serviceaccount", name, `--namespace=${namespace}`);
  const subject = `--serviceaccount=${namespace}:${name}`;
  await cluster.kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", subject);
  return cluster.kubeconfigForServiceAccount(namespace, name);
}
