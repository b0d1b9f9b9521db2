/** `inlay rbac`: prints the least permissions for the bindings in files, as manifests. */
import { Command, Option } from "commander";
import { namespaceOption, objectName } from "./argument-types.ts";
import { withTools } from "./cluster.ts";
import {
  crdsOption,
  type FileFlags,
  type InstallationFlags,
  readInput,
  reportMistakes,
  withFiles,
  withInstallation,
} from "./input-files.ts";
import { outputOption, print } from "./output.ts";

interface RbacFlags extends InstallationFlags, FileFlags {
  name: string;
}

export function rbacCommand(): Command {
  return withInstallation(withFiles(new Command("rbac"), ", with bindings, compositions, claims and VaultConnections"))
    .addOption(crdsOption("sources, targets, claims and workloads"))
    .addOption(
      new Option("--cluster", "read kinds, claims, namespaces and VaultConnections from your cluster").conflicts(
        "crds",
      ),
    )
    .option("--kubeconfig <file>", "for --cluster: path to a kubeconfig file (default: as kubectl)")
    .addOption(namespaceOption("objects that don't set one (default: default, with --cluster the kubeconfig's)"))
    .option("--name <name>", "name of the Roles; use another one for each set of files", objectName, "inlay-bindings")
    .addOption(outputOption().default("yaml"))
    .addHelpText("after", "\nExample:\n  inlay rbac -f bindings/ --cluster | kubectl apply -f -")
    .action(run);
}

async function run(flags: RbacFlags): Promise<void> {
  const { name, output } = flags;
  const [{ files, mistakes, ...options }, { requiredAccounts }, { rbacYaml, rbacTable, rbacList }] = await Promise.all([
    readInput(flags),
    import("../rbac/rbac.ts"),
    import("../rbac/rbac-text.ts"),
  ]);
  if (mistakes.length > 0) return reportMistakes(mistakes);
  const required = flags.cluster
    ? await withTools(flags, async (tools, namespace) => {
        const { clusterObjects } = await import("../rbac/cluster-objects.ts");
        // Throws if the API server does not answer, which is no mistake in the files.
        await tools.discovery.byKind("v1", "Namespace");
        const cluster = { kinds: tools.discovery, objectsFor: clusterObjects(tools) };
        return requiredAccounts(files, { ...options, namespace, cluster });
      })
    : await requiredAccounts(files, { ...options, namespace: flags.namespace ?? "default" });
  // Permissions of a part would look like all of them.
  if (required.mistakes.length > 0) return reportMistakes(required.mistakes);
  if (output === "yaml") await print(required, "table", () => rbacYaml(required, name));
  else if (output === "json") await print(rbacList(required, name), output, () => []);
  else await print(required, output, (_, width) => rbacTable(required, name, width));
}
