/** `inlay migrate`: converts the objects of other tools in files to objects of Inlay. Reads a cluster only with `--cluster`. */
import { Argument, Command } from "commander";
import type { JsonObject } from "../apimachinery/objects.ts";
import type { ObjectName } from "../migrate/known-objects.ts";
import { TOOLS } from "../migrate/tools.ts";
import { namespaceOption } from "./argument-types.ts";
import { type FileFlags, reportMistakes, withFiles } from "./input-files.ts";
import { outputOption, print } from "./output.ts";

interface MigrateFlags extends FileFlags {
  namespace: string;
}

export const TOOL_NAMES = Object.keys(TOOLS);

export function migrateCommand(): Command {
  return withFiles(
    new Command("migrate").addArgument(
      new Argument("[tool]", "the tool that you use now (default: all whose objects are in the files)").choices(
        TOOL_NAMES,
      ),
    ),
    ", with the objects of the tool",
  )
    .option(
      "--cluster",
      "read types, labels and annotations of copied objects that are not in the files from your cluster",
    )
    .option("--kubeconfig <file>", "with --cluster: path to a kubeconfig file (default: as kubectl)")
    .addOption(namespaceOption("objects that don't set one", "default"))
    .addOption(outputOption().default("yaml"))
    .addHelpText("after", "\nExample:\n  inlay migrate vso -f vault-static-secrets/ > bindings.yaml")
    .action(run);
}

async function run(name: string | undefined, flags: MigrateFlags): Promise<void> {
  const [{ readFiles }, { migrate }, { migrationText, migrationYaml }] = await Promise.all([
    import("../render/files.ts"),
    import("../migrate/migration.ts"),
    import("../migrate/text.ts"),
  ]);
  const { filename, namespace, output, cluster = false } = flags;
  const tools = await Promise.all(
    Object.entries(TOOLS).flatMap(([each, load]) => (name === undefined || name === each ? [load()] : [])),
  );
  const { files, mistakes } = readFiles(filename);
  const convert = (live?: readonly JsonObject[]) => migrate(tools, files, namespace, live, mistakes);
  let migration = convert();
  if (cluster && migration.missing.length > 0) migration = convert(await read(flags, migration.missing));
  const { converted, lost, unplaced, remarks, others } = migration;
  const result = { converted, lost, remarks };
  const texts = { converted, unplaced, remarks };
  if (output === "yaml") await print(texts, "table", migrationYaml);
  else await print(output === "table" ? texts : result, output, (_, width) => migrationText(texts, width));
  const [tool] = name === undefined ? [] : tools;
  const whose = tool?.title ?? "a tool that Inlay knows";
  if (others > 0)
    process.stderr.write(
      `${others} other ${others === 1 ? "object is" : "objects are"} not of ${whose}, and ignored\n`,
    );
  if (migration.own === 0 && lost.length === 0)
    throw new Error(`the files have no ${tool?.objects ?? `objects of ${TOOL_NAMES.join(", ")}`}; correct -f`);
  reportMistakes(lost);
}

/** The objects in the cluster, without the values of Secrets. */
async function read({ kubeconfig }: MigrateFlags, objects: readonly ObjectName[]): Promise<JsonObject[]> {
  const [{ withTools }, { readSources }] = await Promise.all([
    import("./cluster.ts"),
    import("../migrate/live-sources.ts"),
  ]);
  const { found, unread } = await withTools({ kubeconfig }, ({ reader }) => readSources(reader, objects));
  for (const message of unread) process.stderr.write(`warning: ${message}\n`);
  return found;
}
