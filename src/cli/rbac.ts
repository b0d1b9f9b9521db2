/** `inlay rbac`: prints the least permissions for the bindings in files, as manifests. */
import { Command, Option } from "commander";
import { namespaceName, objectName } from "./argument-types.ts";
import { withTools } from "./cluster.ts";
import { listed, reportMistakes, withFiles } from "./input-files.ts";
import { type InstallationFlags, withInstallation } from "./installation-flags.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface RbacFlags extends InstallationFlags {
  filename: string[];
  crds?: string[];
  cluster?: boolean;
  kubeconfig?: string;
  namespace?: string;
  name: string;
  output: OutputFormat;
}

export function rbacCommand(): Command {
  return withInstallation(withFiles(new Command("rbac"), ", with bindings, compositions, claims and VaultConnections"))
    .option(
      "--crds <file>",
      "file or folder with the CRDs of sources, targets, claims and workloads; repeatable",
      listed,
    )
    .addOption(
      new Option("--cluster", "read kinds, claims, namespaces and VaultConnections from your cluster").conflicts(
        "crds",
      ),
    )
    .option("--kubeconfig <file>", "for --cluster: path to a kubeconfig file (default: as kubectl)")
    .option(
      "-n, --namespace <namespace>",
      "namespace of objects that don't set one (default: default, with --cluster the kubeconfig's)",
      namespaceName,
    )
    .option("--name <name>", "name of the Roles; use another one for each set of files", objectName, "inlay-bindings")
    .addOption(outputOption().default("yaml"))
    .addHelpText("after", "\nExample:\n  inlay rbac -f bindings/ --cluster | kubectl apply -f -")
    .action(run);
}

async function run(flags: RbacFlags): Promise<void> {
  const { filename, crds = [], kubeconfig, name, output } = flags;
  const [{ loadInstallation }, { readFiles }, { requiredAccounts }, { rbacYaml, rbacTable, rbacList }] =
    await Promise.all([
      import("./config-file.ts"),
      import("../render/files.ts"),
      import("../rbac/rbac.ts"),
      import("../rbac/rbac-text.ts"),
    ]);
  const installation = loadInstallation(flags.config, flags.controllerNamespace);
  const [given, ofCrds] = [readFiles(filename), readFiles(crds)];
  const unread = [...given.mistakes, ...ofCrds.mistakes];
  if (unread.length > 0) return reportMistakes(unread);
  const options = { installation, crds: ofCrds.files };
  const required = flags.cluster
    ? await withTools({ kubeconfig, namespace: flags.namespace }, async (tools, namespace) => {
        const { clusterObjects } = await import("../rbac/cluster-objects.ts");
        // Throws if the API server does not answer, which is no mistake in the files.
        await tools.discovery.byKind("v1", "Namespace");
        const cluster = { kinds: tools.discovery, objectsFor: clusterObjects(tools) };
        return requiredAccounts(given.files, { ...options, namespace, cluster });
      })
    : await requiredAccounts(given.files, { ...options, namespace: flags.namespace ?? "default" });
  // Permissions of a part would look like all of them.
  if (required.mistakes.length > 0) return reportMistakes(required.mistakes);
  if (output === "yaml") await print(required, "table", () => rbacYaml(required, name));
  else if (output === "json") await print(rbacList(required, name), output, () => []);
  else await print(required, output, (_, width) => rbacTable(required, name, width));
}
