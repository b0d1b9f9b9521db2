/** `inlay version`: shows the version of this program and, on request, those of the Inlay in a cluster. */
import { Command } from "commander";
import type { InstalledVersions } from "../explain/installed-versions.ts";
import { ownVersion } from "../manager/own-version.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";
import { print } from "./output.ts";

interface Versions {
  readonly inlay: string;
  readonly node: string;
  readonly cluster?: InstalledVersions;
}

export function versionCommand(): Command {
  return withClusterFlags(new Command("version"))
    .option("--cluster", "also show the versions of CRDs, admission policies and controllers in the cluster")
    .addHelpText("after", "\nExample:\n  inlay version --cluster")
    .action(run);
}

async function run({ cluster, ...flags }: ClusterFlags & { cluster?: true }): Promise<void> {
  const own = { inlay: ownVersion(), node: process.versions.node };
  const lines = ({ inlay, node }: Versions) => [`inlay ${inlay}`, `Node  ${node}`];
  if (!cluster) return print<Versions>(own, flags.output, lines);
  const [{ installedVersions, installedText }, { layOut }] = await Promise.all([
    import("../explain/installed-versions.ts"),
    import("../explain/text.ts"),
  ]);
  await show<Versions>(
    flags,
    async (tools) => ({ ...own, cluster: await installedVersions(tools, own.inlay) }),
    (versions, width) => [
      ...lines(versions),
      ...layOut(versions.cluster ? installedText(versions.cluster) : [], width),
    ],
  );
}
