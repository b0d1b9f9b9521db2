/** `inlay sync`: asks the controller to reconcile an object now, and to read everything again. */
import { Command, Option } from "commander";
import type { NamedObject } from "../actions/object.ts";
import { kindAndName, milliseconds } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";

interface SyncFlags extends ClusterFlags {
  wait?: true;
  timeout: number;
}

export function syncCommand(): Command {
  return withClusterFlags(new Command("sync"))
    .argument(
      "<object>",
      "name of a SecretBinding, or secretbinding/NAME, bindingcomposition/NAME, vaultconnection/NAME",
      kindAndName,
    )
    .option("--wait", "wait until Inlay has done it, and show the condition Ready")
    .addOption(
      new Option("--timeout <duration>", "how long to wait, such as 30s or 5m")
        .argParser(milliseconds)
        .default(30_000, "30s"),
    )
    .addHelpText("after", "\nExample:\n  inlay sync harbor-s3 -n registry --wait")
    .action(run);
}

async function run(object: NamedObject, { wait, timeout, ...flags }: SyncFlags): Promise<void> {
  const [{ sync }, { conditionText, textOf }] = await Promise.all([
    import("../actions/sync.ts"),
    import("../actions/object.ts"),
  ]);
  const synced = await show(
    flags,
    (tools, namespace) => sync(tools, object, namespace, wait ? timeout : undefined),
    ({ handled, ready }) => [handled ? conditionText(object, ready) : `${textOf(object)}: sync requested`],
  );
  if (synced.ready?.status === "False") process.exitCode = 1;
}
